"""What an engine provides: kernels over terms, the neighbour graph and neighbours, and arrays.

Algorithm 1 (``boosting``) is written once, over the arrays of an engine: those of NumPy or tensors
of PyTorch. An engine knows nothing of the loss, the margins or the gate. The NumPy engine is the
oracle, and every other engine is tested against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from .._typing import Float, Index, Rows

#: An array of an engine: of NumPy, or a tensor of PyTorch.
Array = Any
#: A term whose deviation is at most this share of its largest value does not vary.
CONSTANT = 1e-10


@dataclass(frozen=True)
class Terms:
    """Some candidate terms.

    Attributes
    ----------
    index : ndarray of shape (n_terms,)
        Their numbers among the candidates.
    factors : ndarray of shape (n_terms, max_degree)
        The columns of every term, padded with the number of columns.
    moments : ndarray of shape (n_terms, 2)
        Their means and deviations.
    """

    index: Index
    factors: Rows
    moments: Float

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: Index | slice) -> Terms:
        return Terms(self.index[chosen], self.factors[chosen], self.moments[chosen])


@dataclass(frozen=True)
class NeighborLists:
    """The lists of neighbours that every row has.

    Attributes
    ----------
    slots : ndarray of shape (n_classes, n_classes)
        A row of class a has rows of class b in the list ``slots[a, b]``. It has none of them if the
        number is -1.
    sizes : tuple of int
        How many of the nearest rows every list has.
    """

    slots: Rows
    sizes: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of neighbours in all lists of a row."""
        return sum(self.sizes)


class Table(ABC):
    """The standardised columns of a fit, in the memory of an engine.

    ``Phi`` stands for the standardised columns of some terms, n x q.

    Attributes
    ----------
    engine : Engine
    n_rows, n_columns : int
    n_plain : int
        The plain distance is on the first ``n_plain`` columns.
    """

    engine: Engine
    n_rows: int
    n_columns: int
    n_plain: int

    @abstractmethod
    def term_moments(self, factors: Rows) -> Float:
        """Mean and deviation of every term, q x 2. The deviation is infinite if it does not vary.

        A term does not vary if its deviation is at most ``CONSTANT`` times its largest value.
        """

    @abstractmethod
    def plain(self) -> Array:
        """The rows in the columns of the plain distance, n x n_plain."""

    @abstractmethod
    def columns(self, terms: Terms) -> Array:
        """``Phi``, in the precision of the engine."""

    @abstractmethod
    def along(self, terms: Terms, vectors: Float) -> Array:
        """``Phi V`` in float64, n x s, or ``Phi v`` for a single vector."""

    @abstractmethod
    def pulled_back(self, terms: Terms, y: Array) -> Float:
        """``y' Phi`` for a ``y`` of few columns, s x q."""


class NeighborGraph(ABC):
    """The signed neighbour graph: +1/k to rows of the other class, -1/k to rows of the same.

    ``same`` and ``other`` are n x k, and each mean is over its own k.
    """

    @abstractmethod
    def margins(self, z: Array) -> Array:
        """Mean squared distance to ``other`` minus that to ``same``, for rows embedded as ``z``."""

    @abstractmethod
    def column_margins(self, phi: Array, dtype: Any, rows: Array | None = None) -> Array:
        """The margins in every column of ``phi`` by itself: the diagonals of all D_i, n x q.

        Parameters
        ----------
        phi : array of shape (n, q)
        dtype : dtype
            Of the result. Sums are in float64.
        rows : array of int, optional
            Only the margins of these rows.
        """

    @abstractmethod
    def weighted(self, weight: Array) -> Laplacian:
        """The Laplacian with a weight for every row."""


class Laplacian(ABC):
    """``L = diag(deg) - S - S'``: row i of S is row i of the graph times the weight of row i."""

    @abstractmethod
    def __matmul__(self, z: Array) -> Array:
        """``L z``, n x s."""

    @abstractmethod
    def form(self, phi: Array) -> Float:
        """``phi' L phi``, q x q."""

    @abstractmethod
    def share_sums(self, z: Array) -> Float:
        """The shares of the rows in ``z' L z`` for each column z: their sum and squared deviations.

        The share of a row is what the edges at the row, from either end, add. The result is s x 2.
        """


class Arrays(ABC):
    """The arrays of an engine.

    Attributes
    ----------
    xp : module
        ``numpy`` or ``torch``. Only functions that both have are used.
    """

    xp: Any

    @abstractmethod
    def made(self, values: npt.ArrayLike) -> Array:
        """An array of the engine with the values and the type of an array of NumPy."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array without values."""

    @abstractmethod
    def host(self, array: Array) -> npt.NDArray[Any]:
        """An array of NumPy with the values of an array of the engine."""


class Engine(ABC):
    """Kernels, and the arrays that they take.

    Attributes
    ----------
    threads : int
        How many threads may share a large piece of work. No result depends on the number.
    arrays : Arrays
    """

    name: ClassVar[str]
    arrays: Arrays

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    @property
    def signature(self) -> str:
        """What the last bits of results depend on, besides the machine."""
        return self.name

    def most_rows(self, n_columns: int) -> int | None:
        """How many rows of a fit the memory of a GPU has room for; None if there is no GPU."""
        return None

    @contextmanager
    def working(self, n_rows: int) -> Iterator[None]:
        """A fit of this number of rows runs inside: settings that its results depend on."""
        yield

    @abstractmethod
    def table(self, Xt: Float, n_plain: int | None = None) -> Table:
        """The table of a fit in the memory of the engine.

        Parameters
        ----------
        Xt : ndarray of shape (n_columns, n_rows)
            The standardised table, transposed.
        n_plain : int, optional
            How many columns belong to the plain distance; all by default.
        """

    @abstractmethod
    def graph(self, same: Rows, other: Rows, place: Array | None = None) -> NeighborGraph:
        """The signed neighbour graph.

        Parameters
        ----------
        same, other : ndarray of shape (n, k)
        place : array, optional
            Where the rows lie. An engine may store near rows together. Results do not depend on it.
        """

    @abstractmethod
    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        """The k nearest references of every query, in order, and their squared distances.

        The search is exact: distances are sums of squared differences. Distances that are equal to
        twelve digits are in the order of the numbers of the references. If there are fewer than k
        references, all of them are found.
        """

    @abstractmethod
    def nearest_by_class(
        self, z: Array, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        """The nearest of the other rows in every list of every row, list after list.

        In order and exact, as in ``nearest``; -1 and infinity if a list has fewer rows than its
        size. ``previous``, the result of a search with the same lists for a similar ``z``, makes
        the search faster and does not change its result.
        """
