"""The native engine: C++ kernels (``native/``) with threads, which release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas

from .._threads import one_blas_thread
from .._typing import Float, Index, Rows
from . import _native  # type: ignore[attr-defined]
from .base import NeighborLists
from .host import HostEngine, HostGraph
from .sorting import nearest_by_sorting

#: Operations with fewer multiply-adds use one thread, because a second thread would not pay off.
WORTH_SHARING = 2**20
#: With fewer queries, references are not divided into blocks, because this would not pay off.
FEW_QUERIES = 16
#: Tables with fewer rows and fewer numbers are searched with one thread.
MANY_ROWS, MANY_NUMBERS = 2048, 2**21
#: A graph with at least this many rows stores rows that are near each other together. The rows do
#: not fit into the cache, so access in random order would be slow.
FAR_APART = 2**15
#: The neighbour search is guided by the rows rotated to their DIRECTIONS first principal
#: directions, which are computed from about TURNED_BY rows. Rows are not rotated if they have more
#: than MOST_TURNED columns, or if their squares would overflow or underflow (SMALLEST).
DIRECTIONS, TURNED_BY, MOST_TURNED, SMALLEST = 16, 4096, 512, 1e-100
#: The BLAS routines of SciPy, for the tiles of the neighbour search.
_SGEMM, _DGEMM = (cython_blas.__pyx_capi__[name] for name in ("sgemm", "dgemm"))


class NativeGraph(HostGraph):
    def __init__(self, same: Rows, other: Rows, threads: int, place: Float | None) -> None:
        super().__init__(same, other)
        self._threads = threads
        self._graph = _native.Graph(self.same, self.other, place)

    def _shared(self, width: int) -> int:
        """The number of threads for an operation on ``width`` columns."""
        return self._threads if (self.same.size + self.other.size) * width > WORTH_SHARING else 1

    def margins(self, z: Float) -> Float:
        out = np.empty(len(z))
        self._graph.margins(_contiguous(z), self._shared(z.shape[1]), out)
        return out

    def column_margins(
        self, phi: Float, dtype: npt.DTypeLike = np.float64, rows: Index | None = None
    ) -> Float:
        rows = np.arange(len(phi)) if rows is None else rows
        out = np.empty((len(rows), phi.shape[1]), dtype=dtype)
        threads = self._shared(phi.shape[1])
        self._graph.column_margins(_contiguous(phi), rows.astype(np.int32), threads, out)
        return out

    def laplacian(self, z: Float, weight: Float) -> Float:
        return self._over_edges(self._graph.laplacian, z, weight)

    def half_laplacian(self, z: Float, weight: Float) -> Float:
        return self._over_edges(self._graph.half_laplacian, z, weight)

    def share_sums(self, z: Float, weight: Float) -> Float:
        out = np.empty((z.shape[1], 2))
        threads = self._shared(z.shape[1])
        self._graph.share_sums(_contiguous(z), _contiguous(weight), threads, out)
        return out

    def _over_edges(self, kernel: Callable[..., None], z: Float, weight: Float) -> Float:
        out = np.empty(z.shape)
        kernel(_contiguous(z), _contiguous(weight), self._shared(z.shape[1]), out)
        return out


class NativeEngine(HostEngine):
    name = "native"

    def _shared(self, Xt: Float, terms: int) -> int:
        """The number of threads for an operation on this number of terms."""
        return self.threads if Xt.shape[1] * terms > WORTH_SHARING else 1

    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        out = np.empty((len(factors), 2))
        threads = self._shared(Xt, len(factors))
        _native.term_moments(_contiguous(Xt), _contiguous(factors), threads, out)
        return out

    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        out = np.empty((Xt.shape[1], len(factors)))
        terms = _contiguous(Xt), _contiguous(factors), _contiguous(moments)
        _native.term_columns(*terms, self._shared(Xt, len(factors)), out)
        return out

    def pull_back(self, Xt: npt.NDArray[Any], factors: Rows, moments: Float, y: Float) -> Float:
        out = np.empty((y.shape[1], len(factors)))
        terms = _contiguous(Xt), _contiguous(factors), _contiguous(moments)
        _native.pull_back(*terms, _contiguous(y), self._shared(Xt, len(factors)), out)
        return out

    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        if len(queries) < FEW_QUERIES or not min(k, len(references)):
            return nearest_by_sorting(queries, references, k)
        k, n = min(k, len(references)), len(queries)
        classes = np.repeat([0, 1], [n, len(references)])
        lists = NeighborLists(np.array([[-1, 0], [-1, -1]], dtype=np.int32), (k,))
        rows, distances = self.nearest_by_class(np.vstack([queries, references]), classes, lists)
        return rows[:n] - np.int32(n), distances[:n]

    def nearest_by_class(
        self, z: Float, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        rows, distances = (
            np.empty((len(z), lists.width), dtype=np.int32),
            np.empty((len(z), lists.width)),
        )
        sizes = np.array(lists.sizes, dtype=np.int32)
        guide, rounding = _guide(z)
        threads = self.threads if len(z) >= MANY_ROWS or z.size >= MANY_NUMBERS else 1
        with one_blas_thread():
            _native.nearest(
                z, guide, rounding, classes.astype(np.int32), _contiguous(lists.slots), sizes,
                previous, _SGEMM, _DGEMM, threads, rows, distances,
            )  # fmt: skip
        return rows, distances

    def graph(self, same: Rows, other: Rows, place: Float | None = None) -> NativeGraph:
        return NativeGraph(same, other, self.threads, place if len(same) >= FAR_APART else None)


def _guide(z: Float) -> tuple[Float, float]:
    """The rows in their first principal directions, and the rounding error of a coordinate.

    Bounding boxes of blocks of near rows are small in these directions, so that the search can skip
    more blocks.
    """
    n, r = z.shape
    if n < MANY_ROWS and r > MOST_TURNED:
        return z[:, :0], 0.0  # no block of so few, wide rows is far enough away to be skipped
    if n < MANY_ROWS or not 2 < r <= MOST_TURNED:
        return z, 0.0
    sample = z[:: max(n // TURNED_BY, 1)]
    sample = sample - sample.mean(axis=0)
    size = float(np.abs(sample).max())
    if not SMALLEST < size < 1 / SMALLEST:
        return z, 0.0
    sample /= size
    axes = np.linalg.eigh(sample.T @ sample)[1][:, : -DIRECTIONS - 1 : -1]
    length = np.sqrt(float(np.einsum("ij,ij->i", z, z).max()))
    return z @ axes, 4 * r * float(np.finfo(float).eps) * length


def _contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array)
