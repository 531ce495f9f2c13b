"""Ties: numbers that differ by rounding alone are equal, and the smaller index wins.

Engines round differently. On whole numbers many distances are equal, and two candidates may be
the same column (a repeated one, the square of a 0/1 column): which is taken must not depend on
the last bits.
"""

from __future__ import annotations

import numpy as np

from ._typing import Float, Index


def to_twelve_digits(values: Float) -> Float:
    """Rounded to 36 bits of their own size."""
    mantissa, exponent = np.frexp(values)
    result: Float = np.ldexp(np.round(mantissa * 2.0**36), exponent)
    return result


def largest(values: Float, k: int) -> Index:
    """Columns of the k largest entries of every row, sorted; ties by number."""
    if k >= values.shape[1]:
        return np.tile(np.arange(values.shape[1]), (len(values), 1))
    rounded = to_twelve_digits(values)
    bar = np.partition(rounded, -k, axis=1)[:, [-k]]
    above = rounded > bar
    room = k - above.sum(axis=1, keepdims=True)
    at_bar = rounded == bar
    kept = above | (at_bar & (np.cumsum(at_bar, axis=1) <= room))
    return np.nonzero(kept)[1].reshape(len(values), k)
