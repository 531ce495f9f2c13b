"""The out-of-bag gate: a step learned on the bag must also gain on the rows left out.

The gain of a step over the rows left out is a sum over edges of the neighbour graph, and edges
share rows: where one class is rare, the same few rows are everybody's neighbours, and a noise
column that happens to set those few apart gains on hundreds of rows at once. A t statistic over
rows takes that for evidence. Here the rows are the independent units: a row's share of the gain is
what all edges at it add, from either end, and the gain is divided by the deviation of the
shares (the variance of a sum over pairs, as for a U-statistic).

Rows left out still serve as neighbours and have shaped earlier refreshes, so the statistic is
somewhat optimistic; it is a guard against steps that fit noise, not a test.
"""

from __future__ import annotations

import numpy as np

from .._typing import Float


def t_statistic(shares: Float) -> float:
    """The gain over its standard error; an edge's gain is counted in the shares of both its ends."""
    gain = float(shares.sum()) / 2
    deviation = float(np.sqrt(((shares - shares.mean()) ** 2).sum()))
    if deviation == 0.0:
        return float(np.sign(gain)) * np.inf if gain else -np.inf
    return gain / deviation
