"""Comparison of numbers up to rounding errors.

Numbers that agree to twelve digits are ties, and the smaller index is preferred. Engines have
different rounding errors, and ties are common: tables of integers have many equal distances, and
two candidates may have equal values (a repeated column, or the square of a column of zeros and
ones). The choice between them must not depend on rounding errors.
"""

from __future__ import annotations

import numpy as np

from ._typing import Float, Index

#: Number of trailing bits that are rounded away: 36 of the 53 bits of a double are kept.
DROPPED = 17
#: Long rows are divided into runs of this length, and the maxima of the runs are compared first.
RUN = 64
#: Rows of at most this length are sorted, which takes fewer calls.
FEW = 300


def to_twelve_digits(values: Float) -> Float:
    """Round to 36 significant bits, with halves to even, as the native engine does."""
    bits = np.array(values, dtype=np.float64).view(np.uint64)
    bits += np.uint64(2 ** (DROPPED - 1) - 1) + ((bits >> np.uint64(DROPPED)) & np.uint64(1))
    bits &= ~np.uint64(2**DROPPED - 1)
    return bits.view(np.float64)


def largest(values: Float, k: int) -> Index:
    """The columns of the k largest entries of every row, sorted by column number.

    Among equal entries, smaller column numbers are preferred.
    """
    n_columns = values.shape[1]
    if k >= n_columns:
        return np.tile(np.arange(n_columns), (len(values), 1))
    if n_columns // RUN >= 4 * k:
        found = [_largest_of_many(row, k) for row in values]
        return np.array(found, dtype=np.intp).reshape(len(values), k)
    return _by_partition(values, k)


def _by_partition(values: Float, k: int) -> Index:
    rounded = to_twelve_digits(values)
    if values.shape[1] <= FEW:
        return np.sort(np.argsort(-rounded, axis=1, kind="stable")[:, :k], axis=1)
    bar = np.partition(rounded, -k, axis=1)[:, [-k]]
    above = rounded > bar
    room = k - above.sum(axis=1, keepdims=True)
    at_bar = rounded == bar
    kept = above | (at_bar & (np.cumsum(at_bar, axis=1) <= room))
    return np.nonzero(kept)[1].reshape(len(values), k)


def _largest_of_many(row: Float, k: int) -> Index:
    """The columns of the k largest entries of a long row.

    The k-th largest of the maxima of the runs is a lower bound for the k largest entries, because
    at least k entries reach it. Only few entries are above the bound.
    """
    maxima = row[: len(row) // RUN * RUN].reshape(-1, RUN).max(axis=1)
    bar = float(np.partition(maxima, -k)[-k])
    near = np.flatnonzero(row >= bar - 2.0**-34 * abs(bar))  # includes ties to twelve digits
    found: Index = near[_by_partition(row[None, near], k)[0]]
    return found
