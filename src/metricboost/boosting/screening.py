"""Pair screening: products whose mean differs between the classes, found before the first step.

The columns are centred within each class. The score of a pair of columns (squares included) is the
difference of its second moments between the classes, divided by the standard error. If no pair
differs between the classes, the largest of the p(p+1)/2 scores is near sqrt(2 log(p(p+1))). Pairs
with a score above this threshold plus a margin become candidates. Screening finds interactions
without marginal effects, and differences in spread. Euclidean neighbours do not show them if there
are many noise columns. The cost is O(n p^2), once: two matrix products per class, in blocks.

With K > 2 classes the score is the root of ``chi2 = sum_c (m_c - m)^2 / e_c``, where m_c is the
moment in class c, e_c the square of its standard error and m the mean of the m_c weighted by
1 / e_c. For K = 2 this is the studentised difference. The threshold is the root of the quantile of
the chi2 distribution with K - 1 degrees of freedom that has the tail probability of the two-class
threshold under a normal distribution.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtr

from .._blocks import slices
from .._typing import Float, Index
from ..model import Term
from .classes import members

#: Added to the threshold sqrt(2 log(p(p+1))), because products of columns have heavier tails than
#: a normal distribution.
MARGIN = 0.5
#: The margin for candidates of two classes. A table of noise then has about one false pair, which
#: the gate rejects. A larger margin misses true pairs in tables with few rows: the double ring with
#: 100 rows has an error of 0.21 (50 columns) and 0.22 (500 columns) with this margin, and of 0.30
#: and 0.31 with MARGIN.
MARGIN_BEFORE_GATE = -0.5
#: Default limit of the work of screening, in multiply-adds per moment (n p^2).
BUDGET = 1.6e11
#: Columns in a tile of the pair matrix for two classes. With more classes a tile has fewer columns,
#: so that the tiles stay in the cache.
TILE = 256
#: With at least ROUGH_COLUMNS columns, pairs are first scored in float32, and only pairs that may
#: be above the threshold are scored again in float64. float32 has seven digits, and a score needs
#: three: ROUGH is the relative error allowed for. If more than FEW_ABOVE pairs of a tile may be
#: above the threshold, the whole tile is scored again.
ROUGH_COLUMNS, ROUGH, FEW_ABOVE = 1000, 1e-3, 1000
#: With more than two classes, classes with fewer rows are ignored: their moments are not precise
#: enough for tail probabilities of 1e-6.
FEW_ROWS = 8
#: With more than two classes, the variance in each class is shrunk towards the common variance, as
#: if the common variance had been observed on this many additional rows. The variance of ten rows
#: is sometimes far too small, and without shrinkage the largest of p(p+1)/2 scores is due to such a
#: variance: ten classes of ten rows with 100 noise columns gave three false pairs per table without
#: shrinkage and none with shrinkage.
PRIOR_ROWS = 10


#: The negated score of a pair, so that the best pair is sorted first, and its two columns.
Found = tuple[float, int, int]


@dataclass(frozen=True)
class Screening:
    """The result of screening.

    Attributes
    ----------
    pairs : list of tuple
        The pairs above the threshold, with the best pair first.
    scores : list of float
        Their scores.
    n_screened : int
        The number of columns whose pairs were scored.
    """

    pairs: list[Term]
    scores: list[float]
    n_screened: int


def screen_pairs(
    X: Float,
    labels: Index,
    n_pairs: int,
    budget: float = np.inf,
    threshold: float | None = None,
    margin: float = MARGIN,
    threads: int = 1,
) -> Screening:
    """The best pairs of columns with a score above the threshold.

    Parameters
    ----------
    X : ndarray
        The standardised table.
    labels : ndarray of int
    n_pairs : int
        The largest number of pairs to return.
    budget : float
        The limit on ``n p^2``. Tables above the limit are screened on the columns that differ most
        between the classes by themselves.
    threshold : float, optional
        By default ``sqrt(2 log(p(p+1))) + margin``.
    margin : float
    threads : int
        The number of threads. BLAS should use one thread in each of them.
    """
    groups = screened_classes(labels)
    columns = np.arange(X.shape[1])
    if X.shape[0] * X.shape[1] ** 2 > budget:
        columns = _best_columns(X, groups, int(np.sqrt(budget / X.shape[0])))
    p = len(columns)
    if threshold is None:
        threshold = float(np.sqrt(2 * np.log(p * (p + 1)))) + margin
    pairs = _Pairs(
        [X[np.ix_(group, columns)] for group in groups], _as_rare(threshold, len(groups))
    )
    best: list[Found] = []
    with ThreadPoolExecutor(threads) as pool:
        for found in pool.map(pairs.of_rows, range(0, p, pairs.tile)):
            best = heapq.nsmallest(n_pairs, best + found)
    terms: list[Term] = [(int(columns[a]), int(columns[b])) for _, a, b in best]
    return Screening(terms, [-s for s, _, _ in best], p)


def pairs_of_moments(
    means: Float, errors: Float, counts: list[int], columns: Index, n_pairs: int, margin: float
) -> Screening:
    """The best pairs, from the moments of all products in each class.

    ``means`` and ``errors`` (squared standard errors) have the shape (K, p, p).
    """
    p = len(columns)
    bar = _as_rare(float(np.sqrt(2 * np.log(p * (p + 1)))) + margin, len(counts))
    score = _known_separation(means, errors, counts)
    a, b = _places(score > bar, slice(0, p), slice(0, p))
    best = heapq.nsmallest(n_pairs, ((-s, i, j) for s, i, j in _rows(score[a, b], a, b)))
    terms: list[Term] = [(int(columns[i]), int(columns[j])) for _, i, j in best]
    return Screening(terms, [-s for s, _, _ in best], p)


def screened_classes(labels: Index) -> list[Index]:
    """The rows of each class with at least FEW_ROWS rows.

    If fewer than two classes have enough rows, all classes are used.
    """
    groups = members(labels)
    large = [group for group in groups if len(group) >= FEW_ROWS]
    return large if len(large) > 1 else groups


def _as_rare(threshold: float, n_classes: int) -> float:
    """The threshold for K classes, from the threshold for two classes.

    The tail probability of the root of a chi2 variable above the result is that of the absolute
    value of a normal variable above ``threshold``.
    """
    if n_classes == 2 or threshold <= 0:
        return threshold
    tail = max(2 * float(ndtr(-threshold)), 1e-300)  # thresholds beyond 37 would underflow
    return float(np.sqrt(chdtri(n_classes - 1, tail)))


class _Pairs:
    """The centred columns of each class, and the pairs with a score above a bar."""

    def __init__(self, tables: Sequence[Float], bar: float) -> None:
        self._bar = bar
        self._classes = [_Moments(X - X.mean(axis=0)) for X in tables]
        self._p = tables[0].shape[1]
        self.tile = max(2 * TILE // len(tables), 1)
        self._rough: _RoughPairs | None = None
        if len(tables) == 2 and self._p >= ROUGH_COLUMNS and bar > 0:
            self._rough = _RoughPairs([own.X for own in self._classes], bar)

    def of_rows(self, start: int) -> list[Found]:
        """Pairs of the columns of the tile row at ``start`` with these and all later columns."""
        rows = slice(start, min(start + self.tile, self._p))
        found: list[Found] = []
        for first in range(start, self._p, self.tile):
            found += self._of_tile(rows, slice(first, min(first + self.tile, self._p)))
        return found

    def _of_tile(self, rows: slice, cols: slice) -> list[Found]:
        if self._rough is not None:
            a, b = _places(self._rough.may_be_above(rows, cols), rows, cols)
            if len(a) <= FEW_ABOVE:
                exact = _pair_scores(self._classes, a, b)
                return [(-s, i, j) for s, i, j in _rows(exact, a, b) if s > self._bar]
        score = _scores(self._classes, rows, cols)
        a, b = _places(score > self._bar, rows, cols)
        return [(-s, i, j) for s, i, j in _rows(score[a - rows.start, b - cols.start], a, b)]


class _Moments:
    """The centred columns of one class and their squares, for the moments of products."""

    def __init__(self, X: npt.NDArray[Any]) -> None:
        self.X = X
        self._square = X * X

    def of(self, rows: slice, cols: slice) -> tuple[Float, Float]:
        """Means of the products of the columns, and their squared standard errors."""
        n = len(self.X)
        mean = self.X[:, rows].T @ self.X[:, cols]
        mean *= 1 / n
        spread = self._square[:, rows].T @ self._square[:, cols]
        spread *= 1 / n
        spread -= mean * mean
        np.maximum(spread, 0.0, out=spread)
        spread *= 1 / max(n - 1, 1)
        return mean, spread


class _RoughPairs:
    """The pairs that may have a score above a bar for two classes, in float32.

    Let m_c be the mean of a product in class c and q_c the mean of its square. The score is above
    the bar b if ``(m0 - m1)^2 > b^2 sum_c (q_c - m_c^2) / (n_c - 1)``. The columns are scaled in
    advance so that the matrix products are the m_c and the weighted sum of the q_c, and no division
    is needed. To allow for rounding, the q_c are made smaller by the share ``ROUGH``.
    """

    def __init__(self, tables: Sequence[Float], bar: float) -> None:
        freedom = [max(len(X) - 1, 1) for X in tables]
        self._means = [(X / np.sqrt(len(X))).astype(np.float32) for X in tables]
        self._lost = [np.float32(bar**2 / f) for f in freedom]
        squares = [
            X * X * np.sqrt((1 - ROUGH) * bar**2 / (len(X) * f)) for X, f in zip(tables, freedom)
        ]
        self._squares = np.vstack(squares).astype(np.float32)

    def may_be_above(self, rows: slice, cols: slice) -> npt.NDArray[np.bool_]:
        first, second = (own[:, rows].T @ own[:, cols] for own in self._means)
        separation = first - second
        separation *= separation
        for mean, lost in zip((first, second), self._lost):
            mean *= mean
            mean *= lost
            separation += mean
        above: npt.NDArray[np.bool_] = (
            separation > self._squares[:, rows].T @ self._squares[:, cols]
        )
        return above


def _places(found: npt.NDArray[np.bool_], rows: slice, cols: slice) -> tuple[Index, Index]:
    """The pairs (a, b) with ``a <= b`` that were found in a tile."""
    if not found.any():
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    a, b = np.nonzero(found)
    a, b = a + rows.start, b + cols.start
    return a[a <= b], b[a <= b]


def _rows(*columns: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns))


def _pair_scores(classes: Sequence[_Moments], a: Index, b: Index) -> Float:
    """The scores of the pairs ``(a[i], b[i])``."""
    if not len(a):
        return np.empty(0)
    products = [own.X[:, a] * own.X[:, b] for own in classes]
    means = np.stack([product.mean(axis=0) for product in products])
    errors = np.stack([product.var(axis=0) / max(len(product) - 1, 1) for product in products])
    return _known_separation(means, errors, [len(own.X) for own in classes])


def _scores(classes: Sequence[_Moments], rows: slice, cols: slice) -> Float:
    """The scores of all pairs of a tile."""
    means, errors = zip(*(own.of(rows, cols) for own in classes))
    return _known_separation(np.stack(means), np.stack(errors), [len(own.X) for own in classes])


def _known_separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """The scores, with 0 for products that do not vary."""
    score = _separation(means, errors, counts)
    score[errors.sum(axis=0) <= 1e-20] = 0.0
    return score


def _separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """The scores: the root of chi2, which is |t| for two classes.

    ``means`` and ``errors`` (squared standard errors) have the classes as their first axis.
    """
    if len(means) == 2:
        variance = np.maximum(errors[0] + errors[1], np.finfo(float).tiny)
        result: Float = np.abs(means[0] - means[1]) / np.sqrt(variance)
        return result
    precision = 1 / np.maximum(_shrunk(errors, counts), 1e-100)
    centre = (precision * means).sum(axis=0) / precision.sum(axis=0)
    result = np.sqrt((precision * (means - centre) ** 2).sum(axis=0))
    return result


def _shrunk(errors: Float, counts: list[int]) -> Float:
    """The squared errors, with the variance in each class shrunk towards the common variance."""
    n = np.array(counts, dtype=float).reshape(-1, *[1] * (errors.ndim - 1))
    variance, weight = n * errors, np.maximum(n - 1, 1)
    common = (weight * variance).sum(axis=0) / weight.sum()
    result: Float = (weight * variance + PRIOR_ROWS * common) / (weight + PRIOR_ROWS) / n
    return result


def _best_columns(X: Float, groups: list[Index], size: int) -> Index:
    """The ``size`` columns that differ most in mean or spread between the classes, at O(n p)."""
    size, counts = max(size, 2), [len(group) for group in groups]
    among = np.zeros((len(X), len(groups)))
    for c, group in enumerate(groups):
        among[group, c] = 1 / len(group)
    best = np.zeros(X.shape[1])
    for columns in slices(X.shape[1], len(X)):
        values = X.T[columns]
        for power in (values, (values - values.mean(axis=1)[:, None]) ** 2):
            means = power @ among
            errors = np.maximum((power * power) @ among - means**2, 0.0) / np.array(counts)
            score = _separation(means.T, errors.T, counts)
            best[columns] = np.maximum(best[columns], score)
    return np.sort(np.argsort(-best, kind="stable")[:size])
