"""The rows of a fit, where an engine keeps them.

All that has one number a row lives here: the table's columns, the embedding, the neighbour graph,
margins, weights and gains. Algorithm 1 sends terms, sparse vectors and step weights, and gets back
scalars, and vectors and matrices over terms. So it is the same whether the rows are in this
process or on a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from .base import NeighborLists

#: The embedding is rotated into fewer columns once it has this many times as many as its rank can
#: be.
ROTATE_ABOVE = 1.5


@dataclass(frozen=True)
class Terms:
    """Some candidates: their numbers, their columns' numbers (padded), means and deviations."""

    index: Index
    factors: Rows
    moments: Float

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, chosen: Index | slice) -> Terms:
        return Terms(self.index[chosen], self.factors[chosen], self.moments[chosen])


class Line(ABC):
    """The exponential loss of the bag along ``W + w xi xi^T``.

    ``slope`` is what the loss falls at ``w = 0``, ``total`` the bag's weight, and ``one_sided``
    says that no row of it loses.
    """

    slope: float
    total: float
    one_sided: bool

    @abstractmethod
    def imbalance(self, w: float) -> tuple[float, float]:
        """Logarithm of the losing side of the derivative less that of the gaining side.

        And its own derivative. The sides are ``sum_{g<0} u |g| exp(w |g|)`` and
        ``sum_{g>0} u g exp(-w g)``.
        """


class TrainingRows(ABC):
    """The state of one fit: first the table alone, then, once it has begun, Algorithm 1's.

    The plain distance is on the first ``n_plain`` columns.
    """

    n_rows: int
    n_columns: int
    n_plain: int

    # --- the table

    @abstractmethod
    def term_moments(self, factors: Rows) -> Float:
        """Mean and deviation of every term's column; infinite where it does not vary."""

    # --- where the rows lie

    @abstractmethod
    def begin(self, labels: Index, sample_weight: Float) -> None:
        """Start from W = 0, with neither neighbours nor margins."""

    @abstractmethod
    def embed(self, terms: Terms, matrix: Float) -> None:
        """``W + M M^T``: the columns ``Phi M`` join the embedding."""

    def refresh(self, lists: NeighborLists, n_terms: int) -> None:
        """The neighbours under W, and the margins; plain neighbours where W is zero.

        W has ``n_terms`` terms.
        """
        self.rotate(n_terms)
        self._find_neighbors(lists)

    def rotate(self, n_terms: int) -> None:
        """Put the embedding into fewer columns where it has many more than its rank can be."""
        if self._rank() > ROTATE_ABOVE * n_terms:
            values, vectors = np.linalg.eigh(self._gram())
            kept = values > values[-1] * len(values) * np.finfo(float).eps
            self._turn(vectors[:, kept])

    @abstractmethod
    def _rank(self) -> int:
        """Columns of the embedding."""

    @abstractmethod
    def _gram(self) -> Float:
        """``Z^T Z`` of the embedding Z."""

    @abstractmethod
    def _turn(self, vectors: Float) -> None:
        """The embedding becomes ``Z V``."""

    @abstractmethod
    def _find_neighbors(self, lists: NeighborLists) -> None:
        """Neighbours and margins under the embedding as it is."""

    # --- a step

    @abstractmethod
    def weigh(self, in_bag: npt.NDArray[np.bool_]) -> None:
        """The weights ``u = exp(-m)`` of the bag and of the rows left out.

        Up to a common factor, which changes nothing and would overflow.
        """

    @abstractmethod
    def matrix(self, terms: Terms) -> Float:
        """``A = sum u_i D_i`` over the bag, on some terms."""

    @abstractmethod
    def diagonal(self, terms: Terms) -> Float:
        """The diagonal of A over all candidates; an estimate, up to a factor, where it is rough."""

    @property
    @abstractmethod
    def rough_diagonal(self) -> bool:
        """Whether the diagonal over all candidates is an estimate: it says where to start."""

    @abstractmethod
    def image(self, terms: Terms, vectors: Float, over: Terms) -> Float:
        """``A v`` for each column v over ``terms``: its entries at all terms of ``over``, s x q."""

    @abstractmethod
    def share_sums(self, terms: Terms, vectors: Float) -> Float:
        """The shares of the rows in the gain of each column v on the rows left out.

        A row's share is what the edges of the rows left out add at it, from either end: their sum,
        and the sum of their squared deviations, s x 2.
        """

    @abstractmethod
    def line(self, terms: Terms, xi: Float) -> Line:
        """The gains ``xi' D_i xi`` of all rows, and the loss of the bag along them."""

    @abstractmethod
    def take(self, w: float) -> None:
        """``W + w xi xi^T`` for the xi of the last line: its margins, and its embedding."""

    @abstractmethod
    def follow(self, terms: Terms, xi: Float, w: float, margins: bool) -> None:
        """As ``line`` and ``take``, for a step that is known; without margins before a refresh."""

    @abstractmethod
    def loss(self) -> float:
        """The summed exponential loss; margins far below zero count as e^500."""
