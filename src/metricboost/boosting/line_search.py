"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

import numpy as np

from .._typing import Float

#: A step may raise the weighted mean margin by at most this much. A step that separates the bag
#: has no finite minimiser; this keeps it finite, and one with a loss of e^-10 needs no more.
MAX_GAIN = 10.0
#: Relative precision of the weight, and the most iterations (bisection alone needs about 50).
TOLERANCE = 1e-13
MAX_ITER = 200


def step_weight(weight: Float, gain: Float) -> float:
    """``argmin_w sum weight * exp(-w * gain)`` over ``0 <= w <= bound``.

    The derivative vanishes where the rows that lose balance those that gain,
    ``sum_{g<0} u |g| exp(w |g|) = sum_{g>0} u g exp(-w g)``. The difference of the logarithms of
    the two sides increases with w and is nearly linear, so Newton's method needs few steps.
    """
    slope = float(weight @ gain)
    if not slope > 0:
        return 0.0
    bound = MAX_GAIN * float(weight.sum()) / slope
    first_order = weight * gain
    gains, losses = first_order > 0, first_order < 0
    if not losses.any():
        return bound
    up = np.log(first_order[gains]), gain[gains]
    down = np.log(-first_order[losses]), gain[losses]
    return _root(up, down, bound)


def _imbalance(w: float, up: tuple[Float, Float], down: tuple[Float, Float]) -> tuple[float, float]:
    """Logarithm of the losing side less that of the gaining side, and its derivative."""
    value, slope = _log_sum(w, *down)
    value_up, slope_up = _log_sum(w, *up)
    return value - value_up, slope - slope_up


def _log_sum(w: float, log_weight: Float, gain: Float) -> tuple[float, float]:
    """``log sum exp(log_weight - w gain)`` and its derivative in w."""
    exponent = log_weight - w * gain
    top = float(exponent.max())
    terms = np.exp(exponent - top)
    total = float(terms.sum())
    return top + float(np.log(total)), -float(terms @ gain) / total


def _root(up: tuple[Float, Float], down: tuple[Float, Float], bound: float) -> float:
    """Newton's method, kept inside a bracket that bisection shrinks where Newton would leave it.

    The bound itself is tried once Newton reaches for it.
    """
    low, high, w = 0.0, np.inf, 0.0
    for _ in range(MAX_ITER):
        value, slope = _imbalance(w, up, down)
        if w == bound and value <= 0:
            return bound
        low, high = (w, high) if value < 0 else (low, w)
        newton = min(w - value / slope, bound)
        if abs(newton - w) <= TOLERANCE * w or high - low <= TOLERANCE * low:
            return min(max(newton, low), high)
        w = newton if low < newton < high else (low + min(high, bound)) / 2
    return low  # not past the root: the loss falls all the way to it
