"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

import numpy as np

from .._typing import Float

#: A step may raise the weighted mean margin by at most this much. A step that separates the bag
#: has no finite minimiser; this keeps it finite, and one with a loss of e^-10 needs no more.
MAX_GAIN = 10.0
#: Relative precision of the weight, and the most iterations (bisection alone needs about 50).
TOLERANCE = 1e-12
MAX_ITER = 200


def step_weight(weight: Float, gain: Float) -> float:
    """``argmin_w sum weight * exp(-w * gain)`` over ``0 <= w <= bound``.

    The derivative, ``-sum weight gain exp(-w gain)``, increases with w: zero if it starts
    non-negative, the bound if it is still negative there, and its root otherwise.
    """
    slope = float(weight @ gain)
    if not slope > 0:
        return 0.0
    bound = MAX_GAIN * float(weight.sum()) / slope
    if _derivatives(bound, weight, gain)[0] <= 0:
        return bound
    return _root(weight, gain, bound)


def _derivatives(w: float, weight: Float, gain: Float) -> tuple[float, float]:
    """First and second derivative, times a positive factor that keeps the largest term finite."""
    exponent = -w * gain
    first_order = weight * gain * np.exp(exponent - exponent.max())
    return -float(first_order.sum()), float(first_order @ gain)


def _root(weight: Float, gain: Float, bound: float) -> float:
    """Newton's method, kept inside a bracket that bisection shrinks where Newton would leave it."""
    low, high, w = 0.0, bound, 0.0
    for _ in range(MAX_ITER):
        first, second = _derivatives(w, weight, gain)
        low, high = (w, high) if first < 0 else (low, w)
        newton = w - first / second if second > 0 else np.inf
        if abs(newton - w) <= TOLERANCE * w or high - low <= TOLERANCE * high:
            return min(max(newton, low), high)
        w = newton if low < newton < high else (low + high) / 2
    return w
