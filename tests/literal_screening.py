"""The screening of pairs for the literal implementation of sDist: slow, explicit, pair by pair.

Nothing is imported from the package.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import numpy.typing as npt
from scipy import stats

Term = tuple[int, ...]
Array = npt.NDArray[Any]

SCREENING_MARGIN = 0.5
SCREENING_MARGIN_BEFORE_GATE = -0.5
SCREENING_FEW = 8
SCREENING_PRIOR = 10


def screened_pairs(
    X: Array, labels: Array, n_pairs: int, margin: float = SCREENING_MARGIN
) -> list[tuple[float, Term]]:
    """Return (score, pair), best first, computed pair by pair from the moments of each class."""
    p = X.shape[1]
    classes = [labels == c for c in sorted(set(labels.tolist()))]
    large = [rows for rows in classes if rows.sum() >= SCREENING_FEW]
    classes = large if len(large) >= 2 else classes
    threshold = math.sqrt(2 * math.log(p * (p + 1))) + margin
    if len(classes) > 2:  # the tail probability of the two-class threshold
        threshold = math.sqrt(stats.chi2.isf(2 * stats.norm.sf(threshold), len(classes) - 1))
    found = []
    for a, b in combinations_with_replacement(range(p), 2):
        products = []
        for rows in classes:
            x, y = X[rows, a], X[rows, b]
            products.append((x - x.mean()) * (y - y.mean()))
        score = t_score(*products) if len(products) == 2 else chi_score(products)
        if score > threshold:
            found.append((score, (a, b)))
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))[:n_pairs]


def t_score(a: Array, b: Array) -> float:
    """The studentised difference of the means of two samples."""
    variance = a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)
    return float(abs(a.mean() - b.mean()) / math.sqrt(variance)) if variance > 1e-20 else 0.0


def chi_score(samples: list[Array]) -> float:
    """The root of the weighted sum of squared deviations of the means from their mean."""
    degrees = [len(s) - 1 for s in samples]
    common = math.fsum(d * s.var(ddof=1) for d, s in zip(degrees, samples)) / sum(degrees)
    weights = []
    for d, s in zip(degrees, samples):
        drawn = (d * s.var(ddof=1) + SCREENING_PRIOR * common) / (d + SCREENING_PRIOR)
        weights.append(len(s) / drawn if drawn > 0 else 0.0)
    if sum(weights) == 0:
        return 0.0
    means = [float(s.mean()) for s in samples]
    centre = math.fsum(w * m for w, m in zip(weights, means)) / sum(weights)
    return math.sqrt(math.fsum(w * (m - centre) ** 2 for w, m in zip(weights, means)))
