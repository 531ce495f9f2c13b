"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from .._typing import Float

#: A step may raise the weighted mean margin by at most this much. A step that separates the bag
#: has no finite minimiser; this keeps it finite, and one with a loss of e^-10 needs no more.
MAX_GAIN = 10.0


def step_weight(weight: Float, gain: Float) -> float:
    """``argmin_w sum weight * exp(-w * gain)`` over ``0 <= w <= bound``.

    The derivative, ``-sum weight gain exp(-w gain)``, increases with w: zero if it starts
    non-negative, the bound if it is still negative there, and its root otherwise.
    """
    slope = float(weight @ gain)
    if not slope > 0:
        return 0.0
    bound = MAX_GAIN * float(weight.sum()) / slope
    first_order = weight * gain

    def downhill(w: float) -> float:
        """Minus the derivative, times a positive factor that keeps the largest term finite."""
        exponent = -w * gain
        return float(first_order @ np.exp(exponent - exponent.max()))

    if downhill(bound) >= 0:
        return bound
    return float(brentq(downhill, 0.0, bound, xtol=np.finfo(float).tiny, rtol=1e-13))
