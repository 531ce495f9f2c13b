"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

from typing import Any

from ..engines import Array

#: A step may raise the weighted mean margin by at most this much. A step that separates the bag
#: has no finite minimiser; this keeps it finite, and one with a loss of e^-10 needs no more.
MAX_GAIN = 10.0
#: Relative precision of the weight, and the most iterations (bisection alone needs about 50).
TOLERANCE = 1e-13
MAX_ITER = 200


class Line:
    """The exponential loss of the bag along ``W + w xi xi'``.

    Parameters
    ----------
    xp : module
        ``numpy`` or ``torch``.
    weight, gain : array
        The weight and the gain ``xi' D_i xi`` of every row of the bag.

    Attributes
    ----------
    slope : float
        How fast the loss falls at ``w = 0``.
    total : float
        The weight of the bag.
    one_sided : bool
        Whether no row loses.
    """

    def __init__(self, xp: Any, weight: Array, gain: Array) -> None:
        first_order = weight * gain
        up, down = first_order > 0, first_order < 0
        self.slope, self.total = float(first_order.sum()), float(weight.sum())
        self.one_sided = not bool(down.any())
        self._xp = xp
        if self.slope > 0:
            self._gaining = xp.log(first_order[up]), gain[up]
            self._losing = xp.log(-first_order[down]), gain[down]

    def imbalance(self, w: float) -> tuple[float, float]:
        """Logarithm of the losing side of the derivative less that of the gaining side.

        And its own derivative. The sides are ``sum_{g<0} u |g| exp(w |g|)`` and
        ``sum_{g>0} u g exp(-w g)``.
        """
        losing, its_slope = self._log_sum(w, *self._losing)
        gaining, slope = self._log_sum(w, *self._gaining)
        return losing - gaining, its_slope - slope

    def _log_sum(self, w: float, log_weight: Array, gain: Array) -> tuple[float, float]:
        """``log sum exp(log_weight - w gain)`` and its derivative in w."""
        exponent = log_weight - w * gain
        top = exponent.max()
        terms = self._xp.exp(exponent - top)
        total = terms.sum()
        return float(top) + float(self._xp.log(total)), -float(terms @ gain) / float(total)


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
    """Newton's method inside a bracket. Bisection shrinks the bracket where Newton would leave it.

    The bound itself is tried once Newton reaches for it.
    """
    low, high, w = 0.0, float("inf"), 0.0
    for _ in range(MAX_ITER):
        value, slope = line.imbalance(w)
        if w == bound and value <= 0:
            return bound
        low, high = (w, high) if value < 0 else (low, w)
        newton = min(w - value / slope, bound)
        if abs(newton - w) <= TOLERANCE * w or high - low <= TOLERANCE * low:
            return min(max(newton, low), high)
        w = newton if low < newton < high else (low + min(high, bound)) / 2
    return low  # the loss falls up to here: the root lies beyond
