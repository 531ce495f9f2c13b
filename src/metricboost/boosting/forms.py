"""The matrix A_m of a step as the power method sees it: formed, or only ever applied.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)^T`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own, and so ``A = Phi^T (diag(deg) - S - S^T) Phi``. No D_i is ever
formed. On a small panel A itself is cheap; on a large one it is only ever applied to sparse
vectors, at O(n p) each, and its diagonal comes from the columns' own margins, which change only
when the neighbours do. Of many rows a sample gives the diagonal: it says where the power
method starts, and no more.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._typing import Float, Index
from ..engines.rows import Terms, TrainingRows
from .terms import Candidates

#: Up to this many candidates a step that sees them all forms A, as for any panel.
SMALL_TABLE = 64
#: Panels up to this size form A; on larger ones it is applied.
DENSE_PANEL = 1024
#: The diagonal of a larger panel is made for so many terms at a time.
BLOCK = 64


class QuadraticForm(Protocol):
    """A symmetric matrix over the panel, seen through what the power method needs of it."""

    size: int
    #: Whether the diagonal is an estimate.
    rough: bool

    def diagonal(self) -> Float: ...

    def apply(self, index: Index, coef: Float) -> Float:
        """``A v`` for several sparse v at once: row s has ``coef[s]`` at ``index[s]``."""
        ...

    def block(self, index: Index) -> Float:
        """A restricted to a few rows and columns."""
        ...


def step_form(candidates: Candidates, panel: Index, kappa: int) -> QuadraticForm:
    """``A_m`` on the panel, for the bag as it was weighed: formed at O(n q (q + k)), or applied.

    One nonzero needs no more than the diagonal; several need A applied some ten times.
    """
    every = len(panel) == len(candidates)
    if len(panel) > (SMALL_TABLE if every or kappa == 1 else DENSE_PANEL):
        return LaplacianForm(candidates.rows, candidates.terms(panel), every)
    return PanelForm(candidates.rows.matrix(candidates.terms(panel)))


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
    """A over all candidates, or over a large panel of them, only ever applied."""

    def __init__(self, rows: TrainingRows, terms: Terms, every: bool) -> None:
        self._rows = rows
        self._terms = terms
        self._every = every
        self.size = len(terms)
        self.rough = every and rows.rough_diagonal
        self._known: tuple[Index, Float] = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def diagonal(self) -> Float:
        if self._every:
            return self._rows.diagonal(self._terms)
        starts = range(0, self.size, BLOCK)
        blocks = [self._rows.matrix(self._terms[s : s + BLOCK]) for s in starts]
        return np.concatenate([block.diagonal() for block in blocks])

    def apply(self, index: Index, coef: Float) -> Float:
        used, place = np.unique(index, return_inverse=True)
        vectors = _as_columns(place.reshape(index.shape), coef, len(used))
        return self._rows.image(self._terms[used], vectors, self._terms)

    def block(self, index: Index) -> Float:
        """Of what was asked for last a part is at hand."""
        known, A = self._known
        if not np.isin(index, known).all():
            known = np.unique(index)
            A = self._rows.matrix(self._terms[known])
            self._known = known, A
        place = np.searchsorted(known, index)
        return A[np.ix_(place, place)]


def _as_columns(index: Index, coef: Float, size: int) -> Float:
    """The sparse vectors as the columns of a matrix."""
    vectors = np.zeros((size, len(index)))
    np.add.at(vectors, (index, np.arange(len(index))[:, None]), coef)
    return vectors
