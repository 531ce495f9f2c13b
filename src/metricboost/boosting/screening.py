"""Pair screening: products whose mean differs between the classes, found before the first step.

For every pair of columns, squares included, the difference between the classes of the second
moments, the columns centred within their class, is divided by its standard error. Under no
difference the largest of p(p+1)/2 such statistics lies near sqrt(2 log(p(p+1))); pairs above that
plus a margin become candidates. That finds interactions without any marginal effect, and
differences in spread, where Euclidean neighbours among many noise columns know nothing.
Two matrix products per class, O(n p^2) once, block by block.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from .terms import Term

#: Above sqrt(2 log(p(p+1))) by this much: products of columns have heavier tails than a normal.
MARGIN = 0.5
#: The most work screening does unasked, in multiply-adds per moment (n p^2).
BUDGET = 4e10
#: Columns of a block of the pair matrix.
BLOCK = 256


@dataclass(frozen=True)
class Screening:
    """The pairs kept, best first, and how many columns they were sought among."""

    pairs: list[Term]
    scores: list[float]
    n_screened: int


def screen_pairs(
    X: Float,
    positive: npt.NDArray[np.bool_],
    n_pairs: int,
    budget: float = np.inf,
    threshold: float | None = None,
) -> Screening:
    """The ``n_pairs`` best pairs above the noise; ``X`` is standardised."""
    columns = np.arange(X.shape[1])
    if X.shape[0] * X.shape[1] ** 2 > budget:
        columns = _best_columns(X, positive, int(np.sqrt(budget / X.shape[0])))
    classes = [_centred(X[np.ix_(group, columns)]) for group in (positive, ~positive)]
    p = len(columns)
    if threshold is None:
        threshold = float(np.sqrt(2 * np.log(p * (p + 1)))) + MARGIN
    best: list[tuple[float, int, int]] = []
    for start in range(0, p, BLOCK):
        score = np.abs(_scores(classes, start, min(start + BLOCK, p)))
        rows, cols = np.nonzero(np.triu(score > threshold, k=start))
        found = zip(score[rows, cols], rows + start, cols)
        best = heapq.nsmallest(n_pairs, best + [(-s, int(a), int(b)) for s, a, b in found])
    pairs: list[Term] = [(int(columns[a]), int(columns[b])) for _, a, b in best]
    return Screening(pairs, [-s for s, _, _ in best], p)


def _centred(X: Float) -> Float:
    result: Float = X - X.mean(axis=0)
    return result


def _scores(classes: list[Float], start: int, stop: int) -> Float:
    """Studentised differences for columns start..stop against all; zero below the diagonal."""
    difference: Float | float = 0.0
    variance: Float | float = 0.0
    for sign, X in zip((1, -1), classes):
        n = len(X)
        mean = X[:, start:stop].T @ X / n
        square = X * X
        spread = square[:, start:stop].T @ square / n - mean**2
        difference = difference + sign * mean
        variance = variance + np.maximum(spread, 0.0) / max(n - 1, 1)
    score = np.asarray(difference) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    score[np.asarray(variance) <= 1e-20] = 0.0
    return np.triu(score, k=start)


def _best_columns(X: Float, positive: npt.NDArray[np.bool_], size: int) -> Index:
    """Columns that differ most in mean or spread: all that a sweep in O(n p) can see."""
    size = max(size, 2)
    best = np.zeros(X.shape[1])
    for values in (X, (X - X.mean(axis=0)) ** 2):
        a, b = values[positive], values[~positive]
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        t = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.maximum(error, np.finfo(float).tiny)
        best = np.maximum(best, t)
    return np.sort(np.argsort(-best, kind="stable")[:size])
