"""Ties: numbers that differ by rounding alone are equal, and the smaller index wins.

Engines round differently. On whole numbers many distances are equal, and two candidates may be
the same column (a repeated one, the square of a 0/1 column): which is taken must not depend on
the last bits.
"""

from __future__ import annotations

import numpy as np

from ._typing import Float, Index

#: Bits of a double that count for nothing: 36 of its 53 are left.
DROPPED = 17
#: Entries of a long row whose maximum is taken first.
RUN = 64


def to_twelve_digits(values: Float) -> Float:
    """Rounded to 36 bits of their own size, halves to even, as the native engine rounds."""
    bits = np.array(values, dtype=np.float64).view(np.uint64)
    bits += np.uint64(2 ** (DROPPED - 1) - 1) + ((bits >> np.uint64(DROPPED)) & np.uint64(1))
    bits &= ~np.uint64(2**DROPPED - 1)
    return bits.view(np.float64)


def largest(values: Float, k: int) -> Index:
    """Columns of the k largest entries of every row, sorted; ties by number."""
    n_columns = values.shape[1]
    if k >= n_columns:
        return np.tile(np.arange(n_columns), (len(values), 1))
    if n_columns // RUN >= 4 * k:
        found = [_largest_of_many(row, k) for row in values]
        return np.array(found, dtype=np.intp).reshape(len(values), k)
    return _by_partition(values, k)


def _by_partition(values: Float, k: int) -> Index:
    rounded = to_twelve_digits(values)
    bar = np.partition(rounded, -k, axis=1)[:, [-k]]
    above = rounded > bar
    room = k - above.sum(axis=1, keepdims=True)
    at_bar = rounded == bar
    kept = above | (at_bar & (np.cumsum(at_bar, axis=1) <= room))
    return np.nonzero(kept)[1].reshape(len(values), k)


def _largest_of_many(row: Float, k: int) -> Index:
    """At least k runs reach the k-th largest of the runs' maxima, and few entries do."""
    maxima = row[: len(row) // RUN * RUN].reshape(-1, RUN).max(axis=1)
    bar = float(np.partition(maxima, -k)[-k])
    near = np.flatnonzero(row >= bar - 2.0**-34 * abs(bar))  # what may be equal to twelve digits
    found: Index = near[_by_partition(row[None, near], k)[0]]
    return found
