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
from .terms import BLOCK, Candidates

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
        self._column_margins: list[Float] = []
        self._n_cached = 0

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
        if len(panel) <= DENSE_PANEL:
            return DenseForm(self.gram(panel, weight))
        return LaplacianForm(self, panel, weight)

    def diagonal(self, weight: Float) -> Float:
        """The diagonal of A over all candidates.

        ``A_cc = sum_i u_i (D_i)_cc``, and ``(D_i)_cc`` is fixed between two refreshes: it is kept
        for up to twice as many terms as there are columns (memory O(n p)), computed for the rest.
        """
        total = len(self.candidates)
        limit = self.candidates.n_columns + max(self.candidates.n_columns, 1024)
        for part in self._blocks(self._n_cached, min(total, limit)):
            self._column_margins.append(self._margins_of(part))
            self._n_cached += len(part)
        kept = [weight @ block for block in self._column_margins]
        rest = [weight @ self._margins_of(part) for part in self._blocks(self._n_cached, total)]
        return np.concatenate(kept + rest)

    def _blocks(self, start: int, stop: int) -> list[Index]:
        """Index ranges: the columns whole (they are not copied), products block by block."""
        p = self.candidates.n_columns
        edges = [0, p] if start == 0 else [start]
        edges += list(range(edges[-1] + BLOCK, stop, BLOCK))
        if edges[-1] < stop:
            edges.append(stop)
        return [np.arange(a, b) for a, b in zip(edges[:-1], edges[1:])]

    def _margins_of(self, index: Index) -> Float:
        p = self.candidates.n_columns
        whole = len(index) == p and index[0] == 0
        phi = self.candidates.X if whole else self.candidates.columns(index)
        return self.graph.column_margins(phi)


class LaplacianForm:
    """A, only ever applied: for panels of hundreds of terms and more."""

    def __init__(self, signed: SignedGraph, panel: Index, weight: Float) -> None:
        self._signed = signed
        self._panel = panel
        self._weight = weight
        self.size = len(panel)

    def diagonal(self) -> Float:
        return self._signed.diagonal(self._weight)[self._panel]

    def apply(self, index: Index, coef: Float) -> Float:
        terms, place = np.unique(index, return_inverse=True)
        vectors = np.zeros((len(terms), len(index)))
        np.add.at(vectors, (place.reshape(index.shape), np.arange(len(index))[:, None]), coef)
        z = self._signed.candidates.columns(self._panel[terms]) @ vectors
        y = self._signed.graph.laplacian(z, self._weight)
        return self._signed.candidates.pull_back(y)[self._panel].T

    def block(self, index: Index) -> Float:
        return self._signed.gram(self._panel[index], self._weight)
