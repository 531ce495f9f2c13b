"""Pair screening: products whose mean differs between the classes, found before the first step.

For every pair of columns, squares included, the difference between the classes of the second
moments, the columns centred within their class, is divided by its standard error. Under no
difference the largest of p(p+1)/2 such statistics lies near sqrt(2 log(p(p+1))); pairs above that
plus a margin become candidates. That finds interactions without any marginal effect, and
differences in spread, where Euclidean neighbours among many noise columns know nothing.
Two matrix products per class, O(n p^2) once, block by block.

With K > 2 classes the score is the root of ``chi2 = sum_c (m_c - m)^2 / e_c``, with m_c the moment
in class c, e_c the square of its standard error and m the mean weighted by 1 / e_c. For K = 2 that
is the studentised difference. The threshold is the root of the chi2 quantile, K - 1 degrees of
freedom, that noise exceeds as often as a normal variable exceeds the one above.
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
from .classes import members
from ..model import Term

#: Above sqrt(2 log(p(p+1))) by this much: products of columns have heavier tails than a normal.
MARGIN = 0.5
#: For candidates of two classes. Noise then has about one false pair a table, which the gate turns
#: away; above it true pairs are missed where rows are few: the double ring with N 100 has an error
#: of 0.21 (p 50) and 0.22 (p 500), and of 0.30 and 0.31 with the margin above.
MARGIN_BEFORE_GATE = -0.5
#: The most work screening does unasked, in multiply-adds per moment (n p^2).
BUDGET = 1.6e11
#: Columns of a tile of the pair matrix for two classes; fewer for more, so that it stays in the
#: cache.
TILE = 256
#: Of so many columns all pairs are scored in float32, and again where they may be above the noise:
#: float32 has seven digits, and a score needs three. Where more than so many of a tile's pairs
#: may be, all of them are scored again.
ROUGH_COLUMNS, ROUGH, FEW_ABOVE = 1000, 1e-3, 1000
#: Of several classes one with fewer rows has no say: its moments say nothing at tails of 1e-6.
FEW_ROWS = 8
#: Of several classes each has a variance of its own, drawn towards the common one as if that had
#: been seen on this many rows. The variance of ten rows is now and then far too small, and among
#: p(p+1)/2 pairs and K classes the largest score is then no more than that: ten classes of ten
#: rows, 100 columns of noise, gave three false pairs a table without this and none with it.
PRIOR_ROWS = 10


#: A pair with its score, negated, so that the best comes first.
Found = tuple[float, int, int]


@dataclass(frozen=True)
class Screening:
    """The pairs kept, best first, and how many columns they were sought among."""

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
    """The ``n_pairs`` best pairs above the noise; ``X`` is standardised.

    The noise reaches up to ``sqrt(2 log(p(p+1))) + margin``, where no threshold is given. Threads
    share the blocks; BLAS should have one in each.
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
    """The best pairs, from the moments of all products in every class (K x p x p)."""
    p = len(columns)
    bar = _as_rare(float(np.sqrt(2 * np.log(p * (p + 1)))) + margin, len(counts))
    score = _known_separation(means, errors, counts)
    a, b = _places(score > bar, slice(0, p), slice(0, p))
    best = heapq.nsmallest(n_pairs, ((-s, i, j) for s, i, j in _rows(score[a, b], a, b)))
    terms: list[Term] = [(int(columns[i]), int(columns[j])) for _, i, j in best]
    return Screening(terms, [-s for s, _, _ in best], p)


def screened_classes(labels: Index) -> list[Index]:
    """Rows of the classes that have enough of them; of all where fewer than two have."""
    groups = members(labels)
    large = [group for group in groups if len(group) >= FEW_ROWS]
    return large if len(large) > 1 else groups


def _as_rare(threshold: float, n_classes: int) -> float:
    """The root of the chi2 value that is exceeded as often as a normal exceeds +-threshold."""
    if n_classes == 2 or threshold <= 0:
        return threshold
    tail = max(2 * float(ndtr(-threshold)), 1e-300)  # thresholds beyond 37 would underflow
    return float(np.sqrt(chdtri(n_classes - 1, tail)))


class _Pairs:
    """The columns of every class, centred, and what their products say above a bar."""

    def __init__(self, tables: Sequence[Float], bar: float) -> None:
        self._bar = bar
        self._classes = [_Moments(X - X.mean(axis=0)) for X in tables]
        self._p = tables[0].shape[1]
        self.tile = max(2 * TILE // len(tables), 1)
        self._rough: _RoughPairs | None = None
        if len(tables) == 2 and self._p >= ROUGH_COLUMNS and bar > 0:
            self._rough = _RoughPairs([own.X for own in self._classes], bar)

    def of_rows(self, start: int) -> list[Found]:
        """Pairs of a run of columns with all from it on."""
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
    """One class's columns and their squares, for the moments of products."""

    def __init__(self, X: npt.NDArray[Any]) -> None:
        self.X = X
        self._square = X * X

    def of(self, rows: slice, cols: slice) -> tuple[Float, Float]:
        """Means of the products, and the squares of their standard errors."""
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
    """Which pairs of two classes may have a score above a bar, in float32.

    With the means m of a product in the classes and q the means of its square, the score is above
    the bar b where ``(m0 - m1)^2 > b^2 sum_c (q_c - m_c^2) / (n_c - 1)``. Columns are scaled so
    that products of them are the m_c and the whole sum of the q_c; nothing is divided. What
    rounding could hide is allowed for: q is too small by a share of ``ROUGH``.
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
    """The pairs that were found in a tile; each once."""
    if not found.any():
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    a, b = np.nonzero(found)
    a, b = a + rows.start, b + cols.start
    return a[a <= b], b[a <= b]


def _rows(*columns: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.tolist() for column in columns))


def _pair_scores(classes: Sequence[_Moments], a: Index, b: Index) -> Float:
    """The scores of single pairs."""
    if not len(a):
        return np.empty(0)
    products = [own.X[:, a] * own.X[:, b] for own in classes]
    means = np.stack([product.mean(axis=0) for product in products])
    errors = np.stack([product.var(axis=0) / max(len(product) - 1, 1) for product in products])
    return _known_separation(means, errors, [len(own.X) for own in classes])


def _scores(classes: Sequence[_Moments], rows: slice, cols: slice) -> Float:
    """How much the moments of a tile's products differ between the classes."""
    means, errors = zip(*(own.of(rows, cols) for own in classes))
    return _known_separation(np.stack(means), np.stack(errors), [len(own.X) for own in classes])


def _known_separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """No separation where nothing varies."""
    score = _separation(means, errors, counts)
    score[errors.sum(axis=0) <= 1e-20] = 0.0
    return score


def _separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """The root of chi2, for two classes |t|; ``errors`` are squares, the first axis the classes."""
    if len(means) == 2:
        variance = np.maximum(errors[0] + errors[1], np.finfo(float).tiny)
        result: Float = np.abs(means[0] - means[1]) / np.sqrt(variance)
        return result
    precision = 1 / np.maximum(_shrunk(errors, counts), 1e-100)
    centre = (precision * means).sum(axis=0) / precision.sum(axis=0)
    result = np.sqrt((precision * (means - centre) ** 2).sum(axis=0))
    return result


def _shrunk(errors: Float, counts: list[int]) -> Float:
    """The squared errors, every class's variance drawn towards the common one."""
    n = np.array(counts, dtype=float).reshape(-1, *[1] * (errors.ndim - 1))
    variance, weight = n * errors, np.maximum(n - 1, 1)
    common = (weight * variance).sum(axis=0) / weight.sum()
    result: Float = (weight * variance + PRIOR_ROWS * common) / (weight + PRIOR_ROWS) / n
    return result


def _best_columns(X: Float, groups: list[Index], size: int) -> Index:
    """Columns that differ most in mean or spread: all that a sweep in O(n p) can see."""
    size, counts = max(size, 2), [len(group) for group in groups]
    among = np.zeros((len(X), len(groups)))
    for c, group in enumerate(groups):
        among[group, c] = 1 / len(group)
    best = np.zeros(X.shape[1])
    for columns in slices(X.shape[1], len(X)):
        values = X.T[columns]  # a row a column: there may be many
        for power in (values, (values - values.mean(axis=1)[:, None]) ** 2):
            means = power @ among
            errors = np.maximum((power * power) @ among - means**2, 0.0) / np.array(counts)
            score = _separation(means.T, errors.T, counts)
            best[columns] = np.maximum(best[columns], score)
    return np.sort(np.argsort(-best, kind="stable")[:size])
