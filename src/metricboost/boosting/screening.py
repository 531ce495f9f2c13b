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
threshold under a normal distribution. The scores are computed by an engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr

from .._blocks import slices
from .._typing import Float, Index
from ..engines import Centred, Engine, Pairs, engine_at_hand, known_separation, separation
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
#: With more than two classes, classes with fewer rows are ignored: their moments are not precise
#: enough for tail probabilities of 1e-6.
FEW_ROWS = 8


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
    engine: Engine | None = None,
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
    engine : Engine, optional
        Computes the scores. By default the native engine, if the package was built with it.
    """
    groups = screened_classes(labels)
    columns = np.arange(X.shape[1])
    if X.shape[0] * X.shape[1] ** 2 > budget:
        columns = _best_columns(X, groups, int(np.sqrt(budget / X.shape[0])))
    p = len(columns)
    if threshold is None:
        threshold = float(np.sqrt(2 * np.log(p * (p + 1)))) + margin
    engine, table = engine or engine_at_hand("auto"), Centred.of(X.T[columns], groups)
    return _screening(engine.pairs_above(table, _as_rare(threshold, len(groups)), n_pairs), columns)


def pairs_of_moments(
    means: Float, errors: Float, counts: list[int], columns: Index, n_pairs: int, margin: float
) -> Screening:
    """The best pairs, from the moments of all products in each class.

    ``means`` and ``errors`` (squared standard errors) have the shape (K, p, p).
    """
    p = len(columns)
    bar = _as_rare(float(np.sqrt(2 * np.log(p * (p + 1)))) + margin, len(counts))
    a, b = np.triu_indices(p)
    score = known_separation(means, errors, counts)[a, b]
    return _screening(Pairs(a, b, score).best(n_pairs, bar), columns)


def _screening(found: Pairs, columns: Index) -> Screening:
    """The pairs that were found, which refer to ``columns`` by position."""
    a, b = columns[found.a].tolist(), columns[found.b].tolist()
    return Screening(list(zip(a, b)), found.scores.tolist(), len(columns))


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
            score = separation(means.T, errors.T, counts)
            best[columns] = np.maximum(best[columns], score)
    return np.sort(np.argsort(-best, kind="stable")[:size])
