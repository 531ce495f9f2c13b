"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

import numpy as np

from ..engines.rows import Line

#: A step may raise the weighted mean margin by at most this much. A step that separates the bag
#: has no finite minimiser; this keeps it finite, and one with a loss of e^-10 needs no more.
MAX_GAIN = 10.0
#: Relative precision of the weight, and the most iterations (bisection alone needs about 50).
TOLERANCE = 1e-13
MAX_ITER = 200


def step_weight(line: Line) -> float:
    """``argmin_w sum u * exp(-w * gain)`` over the bag and ``0 <= w <= bound``.

    The derivative vanishes where the rows that lose balance those that gain,
    ``sum_{g<0} u |g| exp(w |g|) = sum_{g>0} u g exp(-w g)``. The difference of the logarithms of
    the two sides increases with w and is nearly linear, so Newton's method needs few steps.
    """
    if not line.slope > 0:
        return 0.0
    bound = MAX_GAIN * line.total / line.slope
    return bound if line.one_sided else _root(line, bound)


def _root(line: Line, bound: float) -> float:
    """Newton's method, kept inside a bracket that bisection shrinks where Newton would leave it.

    The bound itself is tried once Newton reaches for it.
    """
    low, high, w = 0.0, np.inf, 0.0
    for _ in range(MAX_ITER):
        value, slope = line.imbalance(w)
        if w == bound and value <= 0:
            return bound
        low, high = (w, high) if value < 0 else (low, w)
        newton = min(w - value / slope, bound)
        if abs(newton - w) <= TOLERANCE * w or high - low <= TOLERANCE * low:
            return min(max(newton, low), high)
        w = newton if low < newton < high else (low + min(high, bound)) / 2
    return low  # not past the root: the loss falls all the way to it
