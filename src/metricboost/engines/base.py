"""What an engine is: a place where rows live, and for those in this process a few hot kernels.

The boosting loop knows no engine, only the rows of its fit (``rows.py``). The NumPy engine is the
oracle; every other engine is tested against it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows

if TYPE_CHECKING:
    from .rows import TrainingRows

#: A term whose deviation is at most this share of its largest value does not vary.
CONSTANT = 1e-10


@dataclass(frozen=True)
class NeighborLists:
    """Which lists of neighbours a row keeps.

    A row of class a keeps rows of class b in the list ``slots[a, b]``, or nowhere where that is
    -1; list l has the ``sizes[l]`` nearest of them.
    """

    slots: Rows
    sizes: tuple[int, ...]

    @property
    def width(self) -> int:
        return sum(self.sizes)


class NeighborGraph(ABC):
    """The signed neighbour graph: +1/k to rows of the other class, -1/k to rows of the same.

    ``same`` and ``other`` are n x k; each mean is over its own k.
    """

    def __init__(self, same: Rows, other: Rows) -> None:
        self.same = np.ascontiguousarray(same, dtype=np.int32)
        self.other = np.ascontiguousarray(other, dtype=np.int32)

    @abstractmethod
    def margins(self, z: Float) -> Float:
        """Mean squared distance to ``other`` minus to ``same``, for rows embedded as ``z``."""

    @abstractmethod
    def column_margins(
        self, phi: Float, dtype: npt.DTypeLike = np.float64, rows: Index | None = None
    ) -> Float:
        """The same for every column of ``phi`` by itself: the diagonals of all D_i, n x q.

        Of all rows, or of some. Computed in float64, whatever they are kept as.
        """

    @abstractmethod
    def laplacian(self, z: Float, weight: Float) -> Float:
        """``(diag(deg) - S - S^T) z``; row i of S is ``weight[i]`` times that of the graph."""

    @abstractmethod
    def half_laplacian(self, z: Float, weight: Float) -> Float:
        """A y with ``z^T L z = z^T y + y^T z``, L the Laplacian above: half the work.

        For columns whose means are near zero.
        """

    @abstractmethod
    def share_sums(self, z: Float, weight: Float) -> Float:
        """Sum, and sum of squared deviations, of the rows' shares in ``z' L z``, s x 2.

        A row's share is what the edges at it, from either end, add.
        """


class Engine(ABC):
    """A place where rows live: those of a fit, and searches among any.

    ``threads`` is how many may share what is large enough; no result depends on it.
    """

    name: ClassVar[str]

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    @property
    def signature(self) -> str:
        """What results depend on to the last bit, beside the machine."""
        return self.name

    def most_rows(self, n_columns: int) -> int | None:
        """How many rows of a fit fit into the memory of a GPU; None if there is no GPU."""
        return None

    @abstractmethod
    def rows(self, Xt: Float, n_plain: int | None = None) -> TrainingRows:
        """The rows of a fit, where this engine keeps them; ``Xt`` is the table transposed."""

    @abstractmethod
    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        """The k nearest references of every query, in order, and their squared distances.

        Exact: distances are sums of squared differences. Those that are equal to twelve digits are
        in the order of the references' numbers. Where there are fewer than k, all of them.
        """

    @abstractmethod
    def nearest_by_class(
        self, z: Float, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        """The nearest of the other rows in every list of every row, list after list.

        In order and exact as above; -1 and infinity where a list has fewer rows. ``previous``,
        from a search with the same lists in a similar place, makes no difference but to the time.
        """


class HostEngine(Engine):
    """An engine of kernels on arrays in this process: terms, and the neighbour graph.

    The kernels keep nothing. They work on standardised columns, on terms given as rows of column
    numbers (``factors``, padded with ``p``, which stands for 1), and on neighbour graphs.
    """

    def rows(self, Xt: Float, n_plain: int | None = None) -> TrainingRows:
        from .host import HostRows

        return HostRows(self, Xt, n_plain)

    @abstractmethod
    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        """Mean and deviation of every term's column, q x 2; ``Xt`` is the table transposed.

        The deviation of a term that does not vary (at most ``CONSTANT`` times its largest value)
        is infinite.
        """

    @abstractmethod
    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        """The standardised columns of the terms, n x q, C order."""

    @abstractmethod
    def pull_back(self, Xt: npt.NDArray[Any], factors: Rows, moments: Float, y: Float) -> Float:
        """``y^T Phi``, s x q, Phi the terms' columns, for a ``y`` of few columns.

        ``Xt`` may be in float32.
        """

    @abstractmethod
    def graph(self, same: Rows, other: Rows, place: Float | None = None) -> NeighborGraph:
        """The signed neighbour graph on this engine.

        ``place``, where the rows lie, lets it put near ones together; results do not need it.
        """
