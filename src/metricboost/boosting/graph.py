"""The signed neighbour-graph Laplacian between two copies of the feature matrix.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)^T`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own, and so ``A = Phi^T (diag(deg) - S - S^T) Phi``. No D_i is ever
formed. On a small panel A itself is cheap; on a large one it is only ever applied to sparse
vectors, at O(n p) each, and its diagonal comes from the columns' own margins, which change only
when the neighbours do. Of many rows a sample gives the diagonal: it says where the power
method starts, and no more.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from .._typing import Float, Index
from .neighborhoods import Neighborhoods
from .storage import KeptColumns
from .terms import Candidates

#: Up to this many candidates a step that sees them all makes their columns, as for any panel.
SMALL_TABLE = 64
#: Panels up to this size form A once it is applied; beyond, it stays a product of two factors.
DENSE_PANEL = 1024
#: Margins of columns are computed for this many candidates at a time: for more where rows are few,
#: for fewer where they are many.
BLOCK, FEW_NUMBERS, MANY_NUMBERS = 64, 2**18, 2**23
#: They are kept up to this size, or that of the table.
KEPT_BYTES = 2**27
#: Of so many rows, evenly spaced, where there are more, and in float32 for large tables.
MARGIN_ROWS, DOUBLE_MARGINS = 2**14, 2**23


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


class PanelForm:
    """A on a panel, ``Phi^T Y + Y^T Phi``; their product only where it pays.

    One nonzero needs no more than the diagonal; several need A applied some ten times.
    """

    rough = False

    def __init__(self, phi: Float, half: Float) -> None:
        self._phi = phi
        self._half = half
        self.size = phi.shape[1]

    @cached_property
    def A(self) -> Float:
        return _symmetric(self._phi, self._half)

    def diagonal(self) -> Float:
        result: Float = 2 * np.einsum("ic,ic->c", self._phi, self._half)
        return result

    def apply(self, index: Index, coef: Float) -> Float:
        if self.size <= DENSE_PANEL:
            result: Float = np.einsum("sk,skq->sq", coef, self.A[index])
            return result
        vectors = _as_columns(index, coef, self.size)
        image = self._phi.T @ (self._half @ vectors) + self._half.T @ (self._phi @ vectors)
        return image.T

    def block(self, index: Index) -> Float:
        if self.size <= DENSE_PANEL:
            return self.A[np.ix_(index, index)]
        return _symmetric(self._phi[:, index], self._half[:, index])


def _symmetric(phi: Float, half: Float) -> Float:
    A = phi.T @ half
    return A + A.T


class SignedGraph:
    """The neighbour graph of the training rows, over the candidate terms."""

    def __init__(
        self, candidates: Candidates, neighborhoods: Neighborhoods, place: Float | None = None
    ) -> None:
        self.candidates = candidates
        self.neighborhoods = neighborhoods
        self.graph = candidates.engine.graph(neighborhoods.same, neighborhoods.other, place)
        n = candidates.n_rows
        self._sample: Index | None = None
        if n > MARGIN_ROWS:
            self._sample = np.linspace(0, n - 1, MARGIN_ROWS).astype(np.intp)
        self._margins = _kept_margins(candidates)

    @property
    def estimates_diagonal(self) -> bool:
        return self._sample is not None

    def margins(self, embedding: Float) -> Float:
        """``m_i`` of every row under the metric that gives this embedding."""
        return self.graph.margins(embedding)

    def form(self, panel: Index, weight: Float) -> QuadraticForm:
        """``A_m`` on the panel, for the rows whose weight is not zero: O(n q (q + k))."""
        if len(panel) == len(self.candidates) > SMALL_TABLE:
            return LaplacianForm(self, weight)
        return PanelForm(*self._halves(panel, weight))

    def gram(self, index: Index, weight: Float) -> Float:
        """A on some terms: O(n q (q + k))."""
        return _symmetric(*self._halves(index, weight))

    def _halves(self, index: Index, weight: Float) -> tuple[Float, Float]:
        """Phi and Y with ``A = Phi^T Y + Y^T Phi``; columns taken as given are centred for it."""
        phi = self.candidates.columns(index)
        center = phi.mean(axis=0)
        if (np.abs(center) > 1).any():
            phi -= center
        return phi, self.graph.half_laplacian(phi, weight)

    def diagonal(self, weight: Float) -> Float:
        """The diagonal of A over all candidates, up to a factor where it is estimated.

        ``A_cc = sum_i u_i (D_i)_cc``, and ``(D_i)_cc`` is fixed between two refreshes: it is
        computed once for the candidates there is room for.
        """
        weight = weight if self._sample is None else weight[self._sample]
        kept, block = self._margins, _block(self.candidates.n_rows)
        kept.reserve(len(self.candidates))
        while kept.size < len(self.candidates) and kept.room_left:
            kept.add(self._margins_of(kept.size, min(block, kept.room_left)))
        parts = [kept.columns.T @ weight.astype(kept.dtype, copy=False)]
        for start in range(kept.size, len(self.candidates), block):
            parts.append(self._margins_of(start, block).T @ weight)
        return np.concatenate(parts).astype(np.float64, copy=False)

    def _margins_of(self, start: int, size: int) -> Float:
        """Column margins of some candidates after others."""
        index = np.arange(start, min(start + size, len(self.candidates)))
        columns = self.candidates.columns(index)
        return self.graph.column_margins(columns, self._margins.dtype, self._sample)


def _block(n_rows: int) -> int:
    return max(min(BLOCK, MANY_NUMBERS // n_rows), FEW_NUMBERS // n_rows, 8)


def _kept_margins(candidates: Candidates) -> KeptColumns:
    """Room for as many margins as the table has bytes, or 128 MiB; in float32 where it is large."""
    n, p = candidates.n_rows, candidates.n_columns
    dtype = np.float64 if n * p <= DOUBLE_MARGINS and n <= MARGIN_ROWS else np.float32
    n_margins = min(n, MARGIN_ROWS)
    bytes_each = n_margins * np.dtype(dtype).itemsize
    return KeptColumns(n_margins, max(8 * n * p, KEPT_BYTES) // bytes_each, dtype)


class LaplacianForm:
    """A over all candidates, only ever applied: for hundreds of terms and more."""

    def __init__(self, signed: SignedGraph, weight: Float) -> None:
        self._signed = signed
        self._weight = weight
        self.size = len(signed.candidates)
        self.rough = signed.estimates_diagonal

    def diagonal(self) -> Float:
        return self._signed.diagonal(self._weight)

    def apply(self, index: Index, coef: Float) -> Float:
        terms, place = np.unique(index, return_inverse=True)
        vectors = _as_columns(place.reshape(index.shape), coef, len(terms))
        z = self._signed.candidates.columns(terms) @ vectors
        y = self._signed.graph.laplacian(z, self._weight)
        return self._signed.candidates.pull_back(y)

    def block(self, index: Index) -> Float:
        return self._signed.gram(index, self._weight)


def _as_columns(index: Index, coef: Float, size: int) -> Float:
    """The sparse vectors as the columns of a matrix."""
    vectors = np.zeros((size, len(index)))
    np.add.at(vectors, (index, np.arange(len(index))[:, None]), coef)
    return vectors
