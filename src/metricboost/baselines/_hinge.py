"""Hinge losses of comparisons: row i should be nearer to j than to l, by 1 of squared distance.

A hinge has a kink, and gradient methods need none, so it is smoothed as in Nesterov (2005): with
``u = 1 + d_ij - d_il`` and a width ``w``, the largest of ``a u - w a^2 / 2`` over a in [0, 1]. That
is 0 up to u = 0, a parabola up to u = w, and ``u - w / 2`` beyond. It lies below the hinge, so at
a minimum of the smoothed loss the hinge loss exceeds its own minimum by no more than the two differ
there: the width is lowered until that is little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from .._typing import Float, Index, Rows
from ..boosting.neighborhoods import class_neighborhoods
from ..engines import Engine

#: Entries of a block of differences: a block stays in the cache.
BLOCK_ENTRIES = 2**17
#: Rows of a block of products.
BLOCK_ROWS = 512
#: With more than one pair in so many, products of all rows are quicker than differences of pairs.
SPARSE = 64


@dataclass(frozen=True)
class Comparisons:
    """Every row's targets, and pairs (row, other) of which the row's targets should be nearer.

    ``targets`` is n x k. With many pairs, rows in the order of their classes are quicker.
    """

    targets: Rows
    rows: Index
    others: Index

    def distances(self, E: Float) -> tuple[Float, Float]:
        """Squared distances between rows of E: n x k to the targets, and one a pair."""
        near = _of_pairs(E, E, *self._target_pairs())
        crowded = len(self.rows) * SPARSE > len(E) ** 2
        far = self._by_products(E) if crowded else _of_pairs(E, E, self.rows, self.others)
        return near.reshape(self.targets.shape), far

    def distances_under(self, X: Float, W: Float) -> tuple[Float, Float]:
        """The same for a symmetric matrix, which need not be positive."""
        XW = X @ W
        near = _of_pairs(X, XW, *self._target_pairs())
        return near.reshape(self.targets.shape), _of_pairs(X, XW, self.rows, self.others)

    def _by_products(self, E: Float) -> Float:
        """Distances of the pairs, picked from blocks of ``E E'`` above its diagonal."""
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
        """With the pairs of both."""
        n = len(self.targets)
        keys = np.union1d(self.rows * n + self.others, other.rows * n + other.others)
        return Comparisons(self.targets, keys // n, keys % n)

    @cached_property
    def _unordered(self) -> tuple[Index, Index, Index]:
        """The pairs by their smaller row: their numbers, the smaller rows, the larger ones."""
        low, high = np.minimum(self.rows, self.others), np.maximum(self.rows, self.others)
        order = np.lexsort((high, low))
        return order, low[order], high[order]

    def _target_pairs(self) -> tuple[Index, Index]:
        n, k = self.targets.shape
        return np.repeat(np.arange(n), k), self.targets.ravel().astype(np.intp)

    def laplacian(self, near: Float, far: Float) -> csr_array:
        """``sum of w (e_i - e_j)(e_i - e_j)'`` over targets and pairs, n x n."""
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
    """Each row with its k nearest of its class against its k nearest of the others."""
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
    """The sum of smoothed hinges, and the derivative of each; width 0 is the hinge itself."""
    if width == 0:
        return float(np.maximum(u, 0.0).sum()), (u > 0).astype(np.float64)
    slope = np.clip(u / width, 0.0, 1.0)
    return float((slope * (u - 0.5 * width * slope)).sum()), slope


@dataclass(frozen=True)
class HingeLoss:
    """``pull`` times the distances to the targets and ``push`` times the hinges, summed."""

    X: Float
    comparisons: Comparisons
    pull: float = 0.0
    push: float = 1.0

    def of_factor(self, L: Float, width: float) -> tuple[float, Float]:
        """The loss of the metric L'L, and its gradient by L."""
        E = self.X @ L.T
        value, near, far = self.weighed(*self.comparisons.distances(E), width)
        force = self.comparisons.laplacian(near, far) @ E
        return value, 2 * (force.T @ self.X)

    def of_matrix(self, W: Float, width: float) -> tuple[float, Float]:
        """The loss of a symmetric matrix, and its gradient by it."""
        value, near, far = self.weighed(*self.comparisons.distances_under(self.X, W), width)
        return value, self.X.T @ (self.comparisons.laplacian(near, far) @ self.X)

    def values(self, L: Float, *widths: float) -> list[float]:
        """The loss at several widths."""
        distances = self.comparisons.distances(self.X @ L.T)
        return [self.weighed(*distances, width)[0] for width in widths]

    def weighed(self, near: Float, far: Float, width: float) -> tuple[float, Float, Float]:
        """The loss, and its derivatives by the distances."""
        total, slope = smoothed(1 + near[self.comparisons.rows] - far[:, None], width)
        pulled = np.full(near.shape, self.pull)
        for j in range(near.shape[1]):
            pulled[:, j] += self.push * np.bincount(self.comparisons.rows, slope[:, j], len(near))
        value = self.pull * float(near.sum()) + self.push * total
        return value, pulled, -self.push * slope.sum(axis=1)


def best_scale(loss: HingeLoss, L: Float, penalty: float = 0.0) -> float:
    """What to multiply the metric L'L by for the least loss and penalty, which grows with it."""
    scales, losses = losses_at_scales(loss, L)
    return float(scales[int(np.argmin(losses + penalty * scales))])


def losses_at_scales(loss: HingeLoss, L: Float) -> tuple[Float, Float]:
    """Multiples of the metric L'L, from far too small to far too large, and the loss of each."""
    near, far = loss.comparisons.distances(loss.X @ L.T)
    unit = 1 / max(float(near.mean()), float(far.mean()) * 1e-12, 1e-300)
    scales = unit * 10.0 ** np.arange(-3, 4.01, 0.25)
    losses = [loss.weighed(near * scale, far * scale, 0.0)[0] for scale in scales]
    return scales, np.array(losses)
