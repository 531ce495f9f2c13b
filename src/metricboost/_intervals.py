"""Confidence intervals of shares, such as an error."""

from __future__ import annotations

from scipy.special import betaincinv

LEVEL = 0.95


def interval(count: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share. It has at least its level, also for few rows.

    Parameters
    ----------
    count, n : float
        The number of rows of a kind, such as errors, and of all rows. They are whole numbers, or
        effective numbers of rows.
    level : float, default=0.95

    Examples
    --------
    >>> from metricboost._intervals import interval
    >>> low, high = interval(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    tail = (1 - level) / 2
    low = 0.0 if count <= 0 else float(betaincinv(count, n - count + 1, tail))
    high = 1.0 if count >= n else float(betaincinv(count + 1, n - count, 1 - tail))
    return low, high
