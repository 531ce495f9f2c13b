"""Hinge losses of comparisons of distances.

In a comparison, row i should be nearer to row j than to row l, by a margin of 1 in squared
distance. With ``u = 1 + d_ij - d_il``, the hinge loss of the comparison is ``max(0, u)``. Gradient
methods need a smooth loss, so the hinge is smoothed as in Nesterov (2005): the smoothed hinge with
the width w is the maximum of ``a u - w a^2 / 2`` over a in [0, 1]. It is 0 for u < 0, a parabola
between 0 and w, and ``u - w / 2`` for u > w. The smoothed hinge is at most the hinge. At a minimum
of the smoothed loss, the hinge loss therefore exceeds its own minimum by at most the difference of
the two losses. The width is lowered until this difference is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from .._typing import Float, Index, Rows
from ..boosting.neighborhoods import class_neighborhoods
from ..engines import Engine

#: Number of entries in a block of differences, which should stay in the cache.
BLOCK_ENTRIES = 2**17
#: Number of rows in a block of products.
BLOCK_ROWS = 512
#: If more than one in SPARSE of all n^2 pairs of rows is compared, the products of all rows are
#: faster than the differences of the compared pairs.
SPARSE = 64


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of the targets of a row with other rows.

    For every pair ``(rows[m], others[m])``, all targets of the row should be nearer to the row than
    the other row. With many pairs, computations are faster if the rows are sorted by class.

    Attributes
    ----------
    targets : ndarray of shape (n, k)
        The k targets of each row.
    rows, others : ndarray of shape (n_pairs,)
    """

    targets: Rows
    rows: Index
    others: Index

    def distances(self, E: Float) -> tuple[Float, Float]:
        """Squared distances in the embedding E: to the targets (n x k), and of the pairs."""
        near = _of_pairs(E, E, *self._target_pairs())
        crowded = len(self.rows) * SPARSE > len(E) ** 2
        far = self._by_products(E) if crowded else _of_pairs(E, E, self.rows, self.others)
        return near.reshape(self.targets.shape), far

    def distances_under(self, X: Float, W: Float) -> tuple[Float, Float]:
        """As ``distances``, under a symmetric matrix W, which may have negative eigenvalues."""
        XW = X @ W
        near = _of_pairs(X, XW, *self._target_pairs())
        return near.reshape(self.targets.shape), _of_pairs(X, XW, self.rows, self.others)

    def _by_products(self, E: Float) -> Float:
        """Squared distances of the pairs, from blocks of ``E E'`` above the diagonal."""
        order, low, high = self._unordered
        norms = np.einsum("ij,ij->i", E, E)
        squared = norms[low] + norms[high]
        for start in range(0, len(E), BLOCK_ROWS):
            first, last = np.searchsorted(low, [start, start + BLOCK_ROWS])
            if first == last:
                continue
            part = slice(first, last)
            left, right = int(high[part].min()), int(high[part].max()) + 1
            products = E[start : start + BLOCK_ROWS] @ E[left:right].T
            squared[part] -= 2 * products[low[part] - start, high[part] - left]
        result: Float = np.empty_like(squared)
        result[order] = np.maximum(squared, 0.0)
        return result

    def joined(self, other: Comparisons) -> Comparisons:
        """The union of the pairs of both comparisons."""
        n = len(self.targets)
        keys = np.union1d(self.rows * n + self.others, other.rows * n + other.others)
        return Comparisons(self.targets, keys // n, keys % n)

    @cached_property
    def _unordered(self) -> tuple[Index, Index, Index]:
        """The pairs sorted by their smaller row: the order, the smaller and the larger rows."""
        low, high = np.minimum(self.rows, self.others), np.maximum(self.rows, self.others)
        order = np.lexsort((high, low))
        return order, low[order], high[order]

    def _target_pairs(self) -> tuple[Index, Index]:
        n, k = self.targets.shape
        return np.repeat(np.arange(n), k), self.targets.ravel().astype(np.intp)

    def laplacian(self, near: Float, far: Float) -> csr_array:
        """``sum of w (e_i - e_j)(e_i - e_j)'`` over targets and pairs, as an n x n matrix.

        ``near`` has the weights w of the targets, and ``far`` the weights of the pairs.
        """
        rows, targets = self._target_pairs()
        i, j = np.concatenate([rows, self.rows]), np.concatenate([targets, self.others])
        weight = np.concatenate([near.ravel(), far])
        used = weight != 0
        i, j, weight = i[used], j[used], weight[used]
        n = len(self.targets)
        degree = np.bincount(i, weight, n) + np.bincount(j, weight, n)
        entries = np.concatenate([degree, -weight, -weight])
        every = np.arange(n)
        places = np.concatenate([every, i, j]), np.concatenate([every, j, i])
        return coo_array((entries, places), shape=(n, n)).tocsr()


def nearest_comparisons(engine: Engine, X: Float, labels: Index, k: int = 1) -> Comparisons:
    """Comparisons of the k nearest rows of the own class with the k nearest rows of the others."""
    near = class_neighborhoods(engine, X, labels, k)
    rows = np.repeat(np.arange(len(X)), near.other.shape[1])
    return Comparisons(near.same, rows, near.other.ravel().astype(np.intp))


def _of_pairs(A: Float, B: Float, i: Index, j: Index) -> Float:
    """``(A_i - A_j)'(B_i - B_j)`` for every pair."""
    result = np.empty(len(i))
    step = max(1, BLOCK_ENTRIES // max(1, A.shape[1]))
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        a = A[i[part]] - A[j[part]]
        b = a if B is A else B[i[part]] - B[j[part]]
        result[part] = np.einsum("ij,ij->i", a, b)
    return result


def smoothed(u: Float, width: float) -> tuple[float, Float]:
    """The sum of the smoothed hinges, and the derivative of each.

    A width of 0 is the exact hinge.
    """
    if width == 0:
        return float(np.maximum(u, 0.0).sum()), (u > 0).astype(np.float64)
    slope = np.clip(u / width, 0.0, 1.0)
    return float((slope * (u - 0.5 * width * slope)).sum()), slope


@dataclass(frozen=True)
class HingeLoss:
    """The sum of ``pull`` times the distances to the targets and ``push`` times the hinges."""

    X: Float
    comparisons: Comparisons
    pull: float = 0.0
    push: float = 1.0

    def of_factor(self, L: Float, width: float) -> tuple[float, Float]:
        """The loss of the metric L'L, and its gradient with respect to L."""
        E = self.X @ L.T
        value, near, far = self.weighed(*self.comparisons.distances(E), width)
        force = self.comparisons.laplacian(near, far) @ E
        return value, 2 * (force.T @ self.X)

    def of_matrix(self, W: Float, width: float) -> tuple[float, Float]:
        """The loss of a symmetric matrix W, and its gradient with respect to W."""
        value, near, far = self.weighed(*self.comparisons.distances_under(self.X, W), width)
        return value, self.X.T @ (self.comparisons.laplacian(near, far) @ self.X)

    def values(self, L: Float, *widths: float) -> list[float]:
        """The losses of the metric L'L for several widths."""
        distances = self.comparisons.distances(self.X @ L.T)
        return [self.weighed(*distances, width)[0] for width in widths]

    def weighed(self, near: Float, far: Float, width: float) -> tuple[float, Float, Float]:
        """The loss, and its derivatives with respect to the distances."""
        total, slope = smoothed(1 + near[self.comparisons.rows] - far[:, None], width)
        pulled = np.full(near.shape, self.pull)
        for j in range(near.shape[1]):
            pulled[:, j] += self.push * np.bincount(self.comparisons.rows, slope[:, j], len(near))
        value = self.pull * float(near.sum()) + self.push * total
        return value, pulled, -self.push * slope.sum(axis=1)


def best_scale(loss: HingeLoss, L: Float, penalty: float = 0.0) -> float:
    """The factor c for which ``c L'L`` has the smallest loss plus ``penalty * c``."""
    scales, losses = losses_at_scales(loss, L)
    return float(scales[int(np.argmin(losses + penalty * scales))])


def losses_at_scales(loss: HingeLoss, L: Float) -> tuple[Float, Float]:
    """A grid of factors from far too small to far too large, and the losses of c L'L."""
    near, far = loss.comparisons.distances(loss.X @ L.T)
    unit = 1 / max(float(near.mean()), float(far.mean()) * 1e-12, 1e-300)
    scales = unit * 10.0 ** np.arange(-3, 4.01, 0.25)
    losses = [loss.weighed(near * scale, far * scale, 0.0)[0] for scale in scales]
    return scales, np.array(losses)
