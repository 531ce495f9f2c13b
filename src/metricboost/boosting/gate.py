"""The out-of-bag gate: a step learned on the bag must also gain on the rows left out.

The gain of a step over the rows left out is a sum over edges of the neighbour graph, and edges
share rows: where one class is rare, the same few rows are everybody's neighbours, and a noise
column that happens to set those few apart gains on hundreds of rows at once. A t statistic over
rows takes that for evidence. Here the rows are the independent units: a row's share of the gain is
what all edges at it add, from either end, and the gain is divided by the deviation of the
shares (the variance of a sum over pairs, as for a U-statistic).

The gate also decides how many entries of xi a step keeps: of its largest entries as many as give
the largest statistic. So kappa is only an upper bound, and a step does not carry noise
columns along with the one that matters.

Rows left out still serve as neighbours and have shaped earlier refreshes, so the statistic is
somewhat optimistic; it is a guard against steps that fit noise, not a test.
"""

from __future__ import annotations

import numpy as np

from .._rounding import to_twelve_digits
from .._typing import Float, Index
from ..engines import Laplacian, Table, Terms
from .forms import QuadraticForm
from .sparse_eigen import leading_eigenvector


def t_statistic(total: float, deviation: float) -> float:
    """The gain over its standard error, from the sum of the shares and of their squared deviations.

    An edge is counted in the shares of both its ends.
    """
    gain = total / 2
    if deviation == 0.0:
        return np.inf if gain > 0 else -np.inf
    return gain / float(np.sqrt(deviation))


def truncation_sizes(kappa: int) -> list[int]:
    """All sizes up to 8, then each half as large again: a step need not be trimmed to the entry."""
    sizes = list(range(1, min(kappa, 8) + 1))
    while sizes[-1] < kappa:
        sizes.append(min(kappa, sizes[-1] * 3 // 2))
    return sizes


def trimmed(
    form: QuadraticForm,
    support: Index,
    xi: Float,
    table: Table,
    terms: Terms,
    left_out: Laplacian,
) -> tuple[float, Index, Float]:
    """The best statistic over the truncations of xi, with the entries kept and their values.

    Parameters
    ----------
    form : QuadraticForm
        The matrix of the step.
    support : ndarray of int
        The places of the entries of xi in the form.
    xi : ndarray
    table : Table
    terms : Terms
        The terms at the places.
    left_out : Laplacian
        With the weights of the rows out of the bag.
    """
    block = form.block(support)
    order = np.argsort(-to_twelve_digits(np.abs(xi)), kind="stable")
    truncations = [np.sort(order[:size]) for size in truncation_sizes(len(xi))]
    vectors = np.zeros((len(xi), len(truncations)))
    for column, kept in enumerate(truncations):
        vectors[kept, column] = leading_eigenvector(block[np.ix_(kept, kept)])[1]
    sums = left_out.share_sums(table.along(terms, vectors))
    statistics = [t_statistic(*pair) for pair in sums.tolist()]
    best = int(np.argmax(to_twelve_digits(np.array(statistics))))
    return statistics[best], truncations[best], vectors[truncations[best], best]
