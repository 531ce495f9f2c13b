"""The step weight: the minimiser of the exponential loss along one rank-one update."""

from __future__ import annotations

from typing import Any

from .._typing import Array

#: Largest increase of the weighted mean margin in one step. Without this bound, the weight of a
#: step that separates the bag would be infinite. A loss of e^-10 is small enough.
MAX_GAIN = 10.0
#: Relative precision of the weight, and maximum number of iterations (bisection alone needs about
#: 50).
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
        Minus the derivative of the loss at ``w = 0``.
    total : float
        The sum of the weights of the rows in the bag.
    one_sided : bool
        Whether no row has a negative gain.
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
        """``log(losing) - log(gaining)`` at ``w``, and the derivative of this difference by w.

        The derivative of the loss is ``losing - gaining``, with the sum over rows with negative
        gain ``losing = sum_{g<0} u |g| exp(w |g|)`` and the sum over rows with positive gain
        ``gaining = sum_{g>0} u g exp(-w g)``.
        """
        losing, its_slope = self._log_sum(w, *self._losing)
        gaining, slope = self._log_sum(w, *self._gaining)
        return losing - gaining, its_slope - slope

    def _log_sum(self, w: float, log_weight: Array, gain: Array) -> tuple[float, float]:
        """``log sum exp(log_weight - w gain)`` and its derivative by w."""
        exponent = log_weight - w * gain
        top = exponent.max()
        terms = self._xp.exp(exponent - top)
        total = terms.sum()
        return float(top) + float(self._xp.log(total)), -float(terms @ gain) / float(total)


def step_weight(line: Line) -> float:
    """``argmin_w sum u * exp(-w * gain)`` over the bag and ``0 <= w <= bound``.

    At the minimum the derivative is zero: the rows with negative gain balance the rows with
    positive gain, ``sum_{g<0} u |g| exp(w |g|) = sum_{g>0} u g exp(-w g)``. The difference of the
    logarithms of the two sides increases with w and is nearly linear, so Newton's method needs few
    iterations.
    """
    if not line.slope > 0:
        return 0.0
    bound = MAX_GAIN * line.total / line.slope
    return bound if line.one_sided else _root(line, bound)


def _root(line: Line, bound: float) -> float:
    """The root of ``line.imbalance``, or the bound if the root is larger.

    Newton's method is used inside a bracket. If a Newton iteration would leave the bracket, the
    bracket is bisected. Iterates beyond the bound are replaced by the bound.
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
    return low  # the loss decreases up to ``low``, which is therefore a safe weight
