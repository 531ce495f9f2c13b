"""The signed neighbour-graph Laplacian between two copies of the feature matrix.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)^T`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own, and so ``A = Phi^T (diag(deg) - S - S^T) Phi``. No D_i is ever
formed. On a small panel A itself is cheap; on a large one it is only ever applied to sparse
vectors, at O(n p) each, and its diagonal comes from the columns' own margins, which change only
when the neighbours do.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._typing import Float, Index
from ..engines import NeighborGraph
from .storage import KeptColumns
from .terms import Candidates

#: Panels up to this size form A; measured: beyond it, applying A to a few sparse vectors is cheaper.
DENSE_PANEL = 96


class QuadraticForm(Protocol):
    """A symmetric matrix over the panel, seen through what the power method needs of it."""

    size: int

    def diagonal(self) -> Float: ...

    def apply(self, index: Index, coef: Float) -> Float:
        """``A v`` for several sparse v at once: row s has ``coef[s]`` at ``index[s]``."""
        ...

    def block(self, index: Index) -> Float:
        """A restricted to a few rows and columns."""
        ...


class DenseForm:
    """A, formed: for panels of a few dozen terms."""

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


class SignedGraph:
    """The neighbour graph of the training rows, over the candidate terms."""

    def __init__(self, candidates: Candidates, graph: NeighborGraph) -> None:
        self.candidates = candidates
        self.graph = graph
        self._column_margins: dict[int, KeptColumns] = {}

    def margins(self, embedding: Float) -> Float:
        """``m_i`` of every row under the metric that gives this embedding."""
        return self.graph.margins(embedding)

    def gram(self, index: Index, weight: Float) -> Float:
        """A on some terms: O(n q (q + k))."""
        phi = self.candidates.columns(index)
        A = phi.T @ self.graph.laplacian(phi, weight)
        return (A + A.T) / 2

    def form(self, panel: Index, weight: Float) -> QuadraticForm:
        """``A_m`` on the panel, for the rows whose weight is not zero."""
        if len(panel) == len(self.candidates) > DENSE_PANEL:
            return LaplacianForm(self, weight)
        return DenseForm(self.gram(panel, weight))

    def diagonal(self, weight: Float) -> Float:
        """The diagonal of A over all candidates.

        ``A_cc = sum_i u_i (D_i)_cc``, and ``(D_i)_cc`` is fixed between two refreshes: it is
        computed once for the columns that are kept, O(n p) numbers.
        """
        parts = []
        for number, block in enumerate(self.candidates.blocks()):
            parts.append(self._margins_of(number, block).T @ weight)
        return np.concatenate(parts)

    def _margins_of(self, number: int, block: Float) -> Float:
        """Column margins of one block of candidates; blocks 0 and 1 are kept, and 1 may grow."""
        if number > 1:
            return self.graph.column_margins(block)
        known = self._column_margins.setdefault(number, KeptColumns(len(block), block.shape[1]))
        if known.size < block.shape[1]:
            known.extend_room(block.shape[1])
            known.add(self.graph.column_margins(block[:, known.size :]))
        return known.columns


class LaplacianForm:
    """A over all candidates, only ever applied: for hundreds of terms and more."""

    def __init__(self, signed: SignedGraph, weight: Float) -> None:
        self._signed = signed
        self._weight = weight
        self.size = len(signed.candidates)

    def diagonal(self) -> Float:
        return self._signed.diagonal(self._weight)

    def apply(self, index: Index, coef: Float) -> Float:
        terms, place = np.unique(index, return_inverse=True)
        vectors = np.zeros((len(terms), len(index)))
        np.add.at(vectors, (place.reshape(index.shape), np.arange(len(index))[:, None]), coef)
        z = self._signed.candidates.columns(terms) @ vectors
        y = self._signed.graph.laplacian(z, self._weight)
        return self._signed.candidates.pull_back(y).T

    def block(self, index: Index) -> Float:
        return self._signed.gram(index, self._weight)
