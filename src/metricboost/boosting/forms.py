"""The matrix A_m of a step as the power method sees it: formed, or only applied to vectors.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)'`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own class. So ``A = Phi' L Phi`` with the Laplacian
``L = diag(deg) - S - S'``, and no D_i is ever formed. On a small panel A itself is cheap. On a
large panel A is only applied to sparse vectors, at O(n p) each, and its diagonal comes from the
margins in single columns (``diagonal``).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._typing import Float, Index
from ..engines import Terms
from .diagonal import is_rough
from .state import State, Weights
from .terms import Candidates

#: Up to this many candidates a step that sees them all forms A, as for any panel.
SMALL_TABLE = 64
#: Panels up to this size form A; on larger ones A is applied.
DENSE_PANEL = 1024
#: The diagonal of a larger panel is made for so many terms at a time.
BLOCK = 64


class QuadraticForm(Protocol):
    """A symmetric matrix over the panel, as far as the power method needs it."""

    size: int
    #: Whether the diagonal is an estimate.
    rough: bool

    def diagonal(self) -> Float:
        """The diagonal."""
        ...

    def apply(self, index: Index, coef: Float) -> Float:
        """``A v`` for several sparse v at once: row s has ``coef[s]`` at ``index[s]``."""
        ...

    def block(self, index: Index) -> Float:
        """A on a few rows and columns."""
        ...


def step_form(
    state: State, weights: Weights, candidates: Candidates, panel: Index, kappa: int
) -> QuadraticForm:
    """``A_m`` on the panel: formed at O(n q (q + k)), or applied.

    One nonzero needs no more than the diagonal. Several need A applied some ten times.
    """
    every = len(panel) == len(candidates)
    if len(panel) > (SMALL_TABLE if every or kappa == 1 else DENSE_PANEL):
        return LaplacianForm(state, weights, candidates.terms(panel), every)
    return PanelForm(weights.bag.form(state.table.columns(candidates.terms(panel))))


class PanelForm:
    """A as a matrix."""

    rough = False

    def __init__(self, A: Float) -> None:
        self.A = A
        self.size = len(A)

    def diagonal(self) -> Float:
        return self.A.diagonal()

    def apply(self, index: Index, coef: Float) -> Float:
        result: Float = np.einsum("sk,skq->sq", coef, self.A[index])
        return result

    def block(self, index: Index) -> Float:
        return self.A[np.ix_(index, index)]


class LaplacianForm:
    """A over all candidates, or over a large panel of them, only applied to vectors."""

    def __init__(self, state: State, weights: Weights, terms: Terms, every: bool) -> None:
        self._state, self._weights = state, weights
        self._terms = terms
        self._every = every
        self.size = len(terms)
        self.rough = every and is_rough(state.table.n_rows)
        self._known: tuple[Index, Float] = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def diagonal(self) -> Float:
        if self._every:
            return self._state.diagonal(self._weights, self._terms)
        starts = range(0, self.size, BLOCK)
        blocks = [self._formed(self._terms[start : start + BLOCK]) for start in starts]
        return np.concatenate([block.diagonal() for block in blocks])

    def apply(self, index: Index, coef: Float) -> Float:
        used, place = np.unique(index, return_inverse=True)
        vectors = _as_columns(place.reshape(index.shape), coef, len(used))
        table = self._state.table
        image = self._weights.bag @ table.along(self._terms[used], vectors)
        return table.pulled_back(self._terms, image)

    def block(self, index: Index) -> Float:
        known, A = self._known
        if not np.isin(index, known).all():  # the method often asks for parts of the last block
            known = np.unique(index)
            A = self._formed(self._terms[known])
            self._known = known, A
        place = np.searchsorted(known, index)
        return A[np.ix_(place, place)]

    def _formed(self, terms: Terms) -> Float:
        return self._weights.bag.form(self._state.table.columns(terms))


def _as_columns(index: Index, coef: Float, size: int) -> Float:
    """The sparse vectors as the columns of a matrix."""
    vectors = np.zeros((size, len(index)))
    np.add.at(vectors, (index, np.arange(len(index))[:, None]), coef)
    return vectors
