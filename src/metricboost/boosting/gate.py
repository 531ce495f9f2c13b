"""The out-of-bag gate: a step learned on the bag must also gain on the out-of-bag rows.

The gain of a step on the out-of-bag rows is a sum over edges of the neighbour graph. These edges
are not independent, because they share rows. If one class is rare, the same few rows are neighbours
of most other rows, and a noise column that separates these few rows by chance gains on hundreds of
rows at once. A t statistic over the gains of single rows would count this as evidence. The
statistic of the gate treats rows as the independent units. The share of a row in the gain is the
sum over all edges at the row, in both directions, and the gain is divided by the deviation of the
shares (the variance of a sum over pairs, as for a U-statistic).

The gate also trims xi: a step keeps the number of largest entries that maximises the statistic. So
kappa is an upper bound, and a step does not add noise terms together with a relevant term.

Out-of-bag rows still serve as neighbours and have influenced earlier refreshes, so the statistic is
slightly optimistic. The gate rejects steps that fit noise, but it is not a significance test.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._rounding import to_twelve_digits
from .._typing import Float, Index
from ..engines import Terms
from .state import State, Weights


def t_statistic(total: float, deviation: float) -> float:
    """The gain divided by its standard error.

    Parameters
    ----------
    total : float
        The sum of the shares of all rows. Every edge is counted twice, in the shares of both ends.
    deviation : float
        The sum of the squared deviations of the shares from their mean.
    """
    gain = total / 2
    if deviation == 0.0:
        return np.inf if gain > 0 else -np.inf
    return gain / math.sqrt(deviation)


@lru_cache
def truncation_sizes(kappa: int) -> tuple[int, ...]:
    """The numbers of entries to try when xi is trimmed: 1 to 8, then each larger by a half."""
    sizes = list(range(1, min(kappa, 8) + 1))
    while sizes[-1] < kappa:
        sizes.append(min(kappa, sizes[-1] * 3 // 2))
    return tuple(sizes)


def trimmed(
    A: Float, xi: Float, terms: Terms, state: State, weights: Weights
) -> tuple[float, Index, Float]:
    """Trim xi to the number of entries with the largest statistic on the out-of-bag rows.

    Returns the statistic, the places of the entries that are kept, and their values.

    Parameters
    ----------
    A : ndarray
        The block of the matrix of the step on the support of xi.
    xi : ndarray
    terms : Terms
        The terms of the entries of xi.
    state : State
    weights : Weights
        The weights of the step.
    """
    order = np.argsort(-to_twelve_digits(np.abs(xi)), kind="stable")
    truncations = [order[:size] for size in truncation_sizes(len(xi))]
    vectors = state.table.engine.leading_eigenvectors(A, truncations)[1]
    sums = state.share_sums(weights, terms, vectors.T)
    statistics = [t_statistic(total, deviation) for total, deviation in sums.tolist()]
    best = int(np.argmax(to_twelve_digits(np.array(statistics))))
    kept = np.sort(truncations[best])
    return statistics[best], kept, vectors[best, kept]
