"""The interface of an engine: the kernels of a fit and of predictions, and arrays.

The kernels are those on terms, passes over the candidates, neighbour graphs, the search for
neighbours, the screening of pairs, the small computations of a step (power iterations, eigenvectors
and the line search) and flats. Algorithm 1 (``boosting``) is written once, on the arrays of an
engine, which are NumPy arrays or PyTorch tensors. The loss, the order of the computations of a step
and the gate are not part of an engine. The NumPy engine is the reference (the oracle), and every
other engine is tested against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from .._typing import Array, Float, Index, Rows
from . import algebra, flats, line_search, pairs
from .pairs import Centred, Pairs

#: A term whose deviation is at most this share of its largest value does not vary.
CONSTANT = 1e-10


@dataclass(frozen=True)
class Terms:
    """A sequence of candidate terms.

    Attributes
    ----------
    index : ndarray of shape (n_terms,)
        The indices of the terms in the list of all candidates.
    factors : ndarray of shape (n_terms, max_degree)
        The column numbers of every term. Terms of lower degree are padded with the number of
        columns.
    moments : ndarray of shape (n_terms, 2)
        Mean and deviation of every term.
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
    """The definition of the neighbour lists of a row.

    Attributes
    ----------
    slots : ndarray of shape (n_classes, n_classes)
        For a row of class a, the nearest rows of class b are in the list ``slots[a, b]``. Rows of
        class b are in no list if the entry is -1.
    sizes : tuple of int
        The number of neighbours in each list.
    """

    slots: Rows
    sizes: tuple[int, ...]

    @property
    def width(self) -> int:
        """The total number of neighbours in the lists of a row."""
        return sum(self.sizes)


class Table(ABC):
    """The standardised table of a fit, in the memory of an engine.

    In the methods, ``Phi`` is the matrix of the standardised values of the given terms, of shape
    (n_rows, n_terms).

    Attributes
    ----------
    engine : Engine
    n_rows, n_columns : int
    n_plain : int
        The plain distance uses the first ``n_plain`` columns.
    """

    engine: Engine
    n_rows: int
    n_columns: int
    n_plain: int

    @abstractmethod
    def term_moments(self, factors: Rows) -> Float:
        """Mean and deviation of terms.

        Parameters
        ----------
        factors : ndarray of shape (n_terms, max_degree)
            As in ``Terms``.

        Returns
        -------
        ndarray of shape (n_terms, 2)
            The deviation is infinite for a term that does not vary: its deviation is at most
            ``CONSTANT`` times its largest absolute value.
        """

    @abstractmethod
    def plain(self) -> Array:
        """The columns of the plain distance, of shape (n_rows, n_plain)."""

    @abstractmethod
    def columns(self, terms: Terms) -> Array:
        """``Phi`` for the terms, in the precision of the engine."""

    @abstractmethod
    def along(self, terms: Terms, vectors: Float) -> Array:
        """``Phi V`` in float64.

        Parameters
        ----------
        terms : Terms
        vectors : ndarray of shape (n_terms, s) or (n_terms,)
            The matrix ``V``, or a single vector.

        Returns
        -------
        array of shape (n_rows, s) or (n_rows,)
        """

    @abstractmethod
    def pulled_back(self, terms: Terms, y: Array) -> Float:
        """``y' Phi``.

        Parameters
        ----------
        terms : Terms
        y : array of shape (n_rows, s)
            A matrix with few columns.

        Returns
        -------
        ndarray of shape (s, n_terms)
        """


class Sweeps(ABC):
    """Passes over all candidate terms.

    The passes only choose among the candidates. An engine may store the values of the terms and
    their column margins, and may compute them in float32 or from a sample of the rows.
    """

    @abstractmethod
    def use(self, graph: NeighborGraph) -> None:
        """Use the neighbours of a graph from now on."""

    @abstractmethod
    def diagonal(self, terms: Terms, weight: Array) -> Float:
        """``sum_i weight_i (D_i)_cc`` for all candidates c: the diagonal of A, or an estimate.

        Parameters
        ----------
        terms : Terms
            All candidates. Candidates of an earlier call must be the first ones.
        weight : array of shape (n_rows,)
        """

    @abstractmethod
    def pulled_back(self, terms: Terms, y: Array) -> Float:
        """``y' Phi``.

        Parameters
        ----------
        terms : Terms
            All candidates, as in ``diagonal``.
        y : array of shape (n_rows, s)
            A matrix with few columns.

        Returns
        -------
        ndarray of shape (s, n_terms)
        """


class NeighborGraph(ABC):
    """The signed neighbour graph of the rows.

    A row has edges of weight +1/k to its k neighbours in ``other``, and edges of weight -1/k to its
    k neighbours in ``same``. The two numbers k may differ.
    """

    @abstractmethod
    def margins(self, z: Array) -> Array:
        """The margin of every row in an embedding.

        The margin is the mean squared distance to the neighbours in ``other`` minus the mean
        squared distance to the neighbours in ``same``.

        Parameters
        ----------
        z : array of shape (n, r)
            The embedding of the rows.

        Returns
        -------
        array of shape (n,)
        """

    @abstractmethod
    def column_margins(self, phi: Array, dtype: Any, rows: Array | None = None) -> Array:
        """The margin of every row in each column of ``phi`` alone: the diagonals of all D_i.

        Parameters
        ----------
        phi : array of shape (n, q)
        dtype : dtype
            The type of the result. Sums are computed in float64.
        rows : array of int, optional
            The rows whose margins are computed. By default all rows.

        Returns
        -------
        array of shape (n, q), or (len(rows), q)
        """

    @abstractmethod
    def weighted(self, weight: Array) -> Laplacian:
        """The Laplacian of the graph with row weights.

        Parameters
        ----------
        weight : array of shape (n,)
            The edges from a row are multiplied by the weight of the row.
        """


class Laplacian(ABC):
    """``L = diag(deg) - S - S'``, where row i of S is row i of the graph times its weight."""

    @abstractmethod
    def __matmul__(self, z: Array) -> Array:
        """``L z``, for an array ``z`` of shape (n, s)."""

    @abstractmethod
    def form(self, phi: Array) -> Float:
        """``phi' L phi``.

        Parameters
        ----------
        phi : array of shape (n, q)

        Returns
        -------
        ndarray of shape (q, q)
        """

    @abstractmethod
    def share_sums(self, z: Array) -> Float:
        """Sum and squared deviations of the shares of the rows in ``z' L z``.

        The share of a row is the sum over all edges from or to the row.

        Parameters
        ----------
        z : array of shape (n, s)
            Every column is treated by itself.

        Returns
        -------
        ndarray of shape (s, 2)
            The sum of the shares, and the sum of their squared deviations from their mean.
        """


class Arrays(ABC):
    """Creation and conversion of the arrays of an engine.

    Attributes
    ----------
    xp : module
        ``numpy`` or ``torch``. Only functions that both modules have are used.
    """

    xp: Any

    @abstractmethod
    def made(self, values: npt.ArrayLike) -> Array:
        """Convert a NumPy array to an array of the engine with the same type."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An uninitialised array."""

    @abstractmethod
    def host(self, array: Array) -> npt.NDArray[Any]:
        """Convert an array of the engine to a NumPy array."""


class Engine(ABC):
    """Numerical kernels, and the arrays they work on.

    Parameters
    ----------
    threads : int, default=1
        The number of threads for large operations. Results do not depend on this number.

    Attributes
    ----------
    name : str
    threads : int
    arrays : Arrays
    """

    name: ClassVar[str]
    arrays: Arrays

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    @property
    def signature(self) -> str:
        """A string that identifies the engine, its device and its precision.

        Engines with the same signature give the same bits on the same machine.
        """
        return self.name

    def most_rows(self, n_columns: int) -> int | None:
        """The largest number of rows of a fit that fits into the memory of the GPU.

        The result is None if the engine does not use a GPU.

        Parameters
        ----------
        n_columns : int
            The number of columns of the table.
        """
        return None

    @contextmanager
    def working(self, n_rows: int) -> Iterator[None]:
        """A context in which a fit runs, with the settings that its results depend on.

        Parameters
        ----------
        n_rows : int
            The number of rows of the fit.
        """
        yield

    @abstractmethod
    def table(self, Xt: Float, n_plain: int | None = None) -> Table:
        """Put the table of a fit into the memory of the engine.

        Parameters
        ----------
        Xt : ndarray of shape (n_columns, n_rows)
            The transposed standardised table.
        n_plain : int, optional
            The plain distance uses the first ``n_plain`` columns. By default all columns.

        Returns
        -------
        Table
        """

    @abstractmethod
    def sweeps(self, table: Table) -> Sweeps:
        """Passes over the candidates of a fit, without neighbours yet.

        Parameters
        ----------
        table : Table
        """

    def pairs_above(self, table: Centred, bar: float, n_pairs: int) -> Pairs:
        """The best pairs of columns with a score above ``bar``, with the best pair first.

        ``engines/pairs.py`` defines the scores.

        Parameters
        ----------
        table : Centred
            In main memory.
        bar : float
        n_pairs : int
            The largest number of pairs.
        """
        return pairs.pairs_above(table, bar, n_pairs, self.threads)

    def truncated_powers(self, A: Float, starts: Index, kappa: int) -> Index:
        """The supports that truncated power iterations end at (the paper's Algorithm 2).

        Parameters
        ----------
        A : ndarray of shape (q, q)
            A symmetric matrix in main memory.
        starts : ndarray of shape (s,)
            Every start is a unit vector with a single nonzero entry at this place.
        kappa : int
            The number of entries of the vectors, at most q.

        Returns
        -------
        ndarray of shape (s, kappa)
            The places of the entries, in ascending order.
        """
        return algebra.truncated_powers(A, starts, kappa)

    def leading_eigenvectors(self, A: Float, supports: Sequence[Index]) -> tuple[Float, Float]:
        """The leading eigenvectors of the blocks of A on given supports.

        Parameters
        ----------
        A : ndarray of shape (q, q)
            A symmetric matrix in main memory.
        supports : sequence of ndarray

        Returns
        -------
        values : ndarray of shape (n_supports,)
            The largest eigenvalue of each block.
        vectors : ndarray of shape (n_supports, q)
            Its eigenvector, with zeros outside of the support. The largest entry is positive.
        """
        return algebra.leading_eigenvectors(A, supports)

    def step_weight(self, weight: Array, gain: Array) -> float:
        """The minimiser of ``sum weight * exp(-w * gain)`` over ``0 <= w <= bound``.

        Parameters
        ----------
        weight, gain : array of shape (n,)

        Returns
        -------
        float
            Zero if the gains do not have a positive weighted sum.
        """
        return line_search.step_weight(line_search.Line(self.arrays.xp, weight, gain))

    def flat_distances(self, given: flats.Flats, ridges: Float) -> Float:
        """The squared distances of queries to the flats through their nearest rows.

        Parameters
        ----------
        given : Flats
        ridges : ndarray of shape (n_ridges,)
            The ridges, as multiples of the mean square of the centred rows.

        Returns
        -------
        ndarray of shape (n_queries, n_ridges)
        """
        return flats.flat_distances(given, ridges)

    @abstractmethod
    def graph(self, same: Rows, other: Rows, place: Array | None = None) -> NeighborGraph:
        """The signed neighbour graph.

        Parameters
        ----------
        same, other : ndarray of shape (n, k)
            The neighbours of every row in its own class and in the other classes. The number k of
            ``same`` may differ from the number k of ``other``.
        place : array of shape (n, r), optional
            The positions of the rows. An engine may use them to store rows that are near each
            other together, which is faster. Results do not depend on the positions.

        Returns
        -------
        NeighborGraph
        """

    @abstractmethod
    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        """The k nearest references of every query.

        The search is exact: distances are sums of squared differences. The neighbours of a query
        are ordered by distance. Neighbours whose distances agree to twelve digits are ordered by
        their number. If there are fewer than k references, all of them are returned.

        Parameters
        ----------
        queries : ndarray of shape (n_queries, r)
        references : ndarray of shape (n_references, r)
        k : int

        Returns
        -------
        rows : ndarray of shape (n_queries, k)
            Row numbers in ``references``.
        distances : ndarray of shape (n_queries, k)
            Squared distances.
        """

    @abstractmethod
    def nearest_by_class(
        self, z: Array, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        """The nearest rows of every row, by class. A row is not its own neighbour.

        The search is exact, and the neighbours in a list are ordered, as in ``nearest``.

        Parameters
        ----------
        z : array of shape (n, r)
            The positions of the rows.
        classes : ndarray of shape (n,)
        lists : NeighborLists
        previous : ndarray of shape (n, lists.width), optional
            The row numbers that a search with the same lists found for a similar ``z``. They make
            the search faster and do not change its result.

        Returns
        -------
        rows : ndarray of shape (n, lists.width)
            The neighbours in all lists, one list after the other. Places that no row is found for
            are -1.
        distances : ndarray of shape (n, lists.width)
            Squared distances. Places that no row is found for are infinite.
        """
