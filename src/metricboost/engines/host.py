"""Base classes of the engines that work on NumPy arrays (``numpy`` and ``native``)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from .base import Arrays, Engine, Laplacian, NeighborGraph, Table, Terms

#: Number of terms whose values are computed at a time by a pass over many terms.
BLOCK = 256


class HostArrays(Arrays):
    """NumPy arrays."""

    xp = np

    def made(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        return np.asarray(values)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        return np.empty(shape, dtype=dtype)

    def host(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array


class HostEngine(Engine):
    """An engine with kernels on NumPy arrays.

    The kernels have no state. Their arguments are the transposed table ``Xt`` of shape
    (n_columns, n_rows), and terms as rows of column numbers (``factors``). The number of columns is
    used as padding, and stands for a column of ones.
    """

    arrays = HostArrays()

    def table(self, Xt: Float, n_plain: int | None = None) -> HostTable:
        return HostTable(self, Xt, n_plain)

    @abstractmethod
    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        """As ``Table.term_moments``."""

    @abstractmethod
    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        """The standardised values of the terms, of shape (n_rows, n_terms), in C order."""


class HostTable(Table):
    """A table in the memory of this process."""

    def __init__(self, engine: HostEngine, Xt: Float, n_plain: int | None = None) -> None:
        self.engine: HostEngine = engine
        self.Xt = np.ascontiguousarray(Xt)
        self.n_columns, self.n_rows = Xt.shape
        self.n_plain = self.n_columns if n_plain is None else n_plain

    def term_moments(self, factors: Rows) -> Float:
        return self.engine.term_moments(self.Xt, factors)

    def plain(self) -> Float:
        return self.Xt[: self.n_plain].T

    def columns(self, terms: Terms) -> Float:
        return self.engine.term_columns(self.Xt, terms.factors, terms.moments)

    def along(self, terms: Terms, vectors: Float) -> Float:
        return self.columns(terms) @ vectors

    def pulled_back(self, terms: Terms, y: Float) -> Float:
        starts = range(0, len(terms), BLOCK)
        return np.hstack([y.T @ self.columns(terms[start : start + BLOCK]) for start in starts])


class HostGraph(NeighborGraph):
    """A neighbour graph with kernels on NumPy arrays."""

    def __init__(self, same: Rows, other: Rows) -> None:
        self.same = np.ascontiguousarray(same, dtype=np.int32)
        self.other = np.ascontiguousarray(other, dtype=np.int32)

    @abstractmethod
    def column_margins(
        self, phi: Float, dtype: npt.DTypeLike = np.float64, rows: Index | None = None
    ) -> Float: ...

    def weighted(self, weight: Float) -> HostLaplacian:
        return HostLaplacian(self, weight)

    @abstractmethod
    def laplacian(self, z: Float, weight: Float) -> Float:
        """``L z``, where L is the Laplacian with the row weights ``weight``."""

    @abstractmethod
    def half_laplacian(self, z: Float, weight: Float) -> Float:
        """An array ``y`` with ``z' L z = z' y + y' z``, at half the cost of ``L z``.

        The means of the columns of ``z`` should be near zero, because rounding errors grow with
        them.
        """

    @abstractmethod
    def share_sums(self, z: Float, weight: Float) -> Float:
        """As ``Laplacian.share_sums``."""


class HostLaplacian(Laplacian):
    """A neighbour graph with the weights of the rows."""

    def __init__(self, graph: HostGraph, weight: Float) -> None:
        self._graph = graph
        self._weight = weight

    def __matmul__(self, z: Float) -> Float:
        return self._graph.laplacian(z, self._weight)

    def form(self, phi: Float) -> Float:
        """``phi' L phi`` at O(n q (q + k)).

        Columns with means far from zero are centred to reduce rounding errors. The result depends
        on differences of rows only, so centring does not change it.
        """
        center = phi.mean(axis=0)
        if (np.abs(center) > 1).any():
            phi = phi - center
        half = phi.T @ self._graph.half_laplacian(phi, self._weight)
        return half + half.T

    def share_sums(self, z: Float) -> Float:
        return self._graph.share_sums(z, self._weight)
