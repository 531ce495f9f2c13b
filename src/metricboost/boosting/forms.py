"""The matrix A_m of a step: computed in full, or only applied to vectors.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)'`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own class. So ``A = Phi' L Phi`` with the Laplacian
``L = diag(deg) - S - S'``, and the matrices D_i are not needed. On a small panel A is computed. On
a large panel A is only applied to sparse vectors, at O(n p) each, and its diagonal is computed from
the column margins (``diagonal``).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._typing import Float, Index
from ..engines import Terms
from .diagonal import is_rough
from .state import State, Weights
from .terms import Candidates

#: A is computed in full for panels of at most SMALL_TABLE candidates. If kappa is larger than 1 and
#: the panel is a proper subset of the candidates, the limit is DENSE_PANEL.
SMALL_TABLE = 64
DENSE_PANEL = 1024
#: The diagonal of a larger panel is computed for BLOCK terms at a time.
BLOCK = 64


class QuadraticForm(Protocol):
    """The operations on the symmetric matrix A over the panel that the power method uses."""

    size: int
    #: Whether the diagonal is an estimate.
    rough: bool

    def diagonal(self) -> Float:
        """The diagonal."""
        ...

    def apply(self, index: Index, coef: Float) -> Float:
        """``A v`` for several sparse vectors v, one per row of the result.

        Vector s has the entries ``coef[s]`` at the places ``index[s]``.
        """
        ...

    def block(self, index: Index) -> Float:
        """The rows and columns ``index`` of A."""
        ...


def step_form(
    state: State, weights: Weights, candidates: Candidates, panel: Index, kappa: int
) -> QuadraticForm:
    """The matrix ``A_m`` on the panel.

    Computing A in full costs O(n q (q + k)) for a panel of q candidates. With ``kappa = 1`` only
    the diagonal is needed. With a larger kappa, A is applied about ten times.
    """
    every = len(panel) == len(candidates)
    if len(panel) > (SMALL_TABLE if every or kappa == 1 else DENSE_PANEL):
        return LaplacianForm(state, weights, candidates.terms(panel), every)
    return PanelForm(weights.bag.form(state.table.columns(candidates.terms(panel))))


class PanelForm:
    """The matrix A, computed in full."""

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
    """The matrix A over all candidates or a large panel, applied to vectors only."""

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
        if not np.isin(index, known).all():  # often the last block contains the requested one
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
