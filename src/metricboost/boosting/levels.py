"""Columns of two values, and which products of them say nothing new.

A category becomes one column of zeros and ones for each level. The square of such a column is the
column itself, scaled. The product of two of its levels is never 1 in both, and such a product is a
linear function of the two columns: with a row missing from one of the four cells of a 2 x 2 table,
three numbers (1, a, b) describe a * b. The same holds for any two columns of two values, whatever
they were made from. Products of this kind are therefore no candidates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._typing import Float, Rows

#: Pairs of columns that are compared at once, in bytes of packed rows.
BLOCK_BYTES = 2**24


class Levels:
    """Which columns have two values, and in which rows they have the larger one, as bits."""

    def __init__(self, Xt: Float) -> None:
        low, high = Xt.min(axis=1), Xt.max(axis=1)
        self.two_valued = np.zeros(len(Xt), dtype=bool)
        bits = []
        for j, column in enumerate(Xt):
            at_high = column == high[j]
            if (at_high | (column == low[j])).all():
                self.two_valued[j] = True
                bits.append(np.packbits(at_high))
        self._place = np.cumsum(self.two_valued) - 1
        self._high = np.array(bits, dtype=np.uint8).reshape(len(bits), -(-Xt.shape[1] // 8))
        self._low = ~self._high
        rest = Xt.shape[1] % 8
        if rest and len(bits):  # bits beyond the last row belong to neither value
            self._low[:, -1] &= np.uint8(256 - 2 ** (8 - rest))

    def linear(self, a: Rows, b: Rows) -> npt.NDArray[np.bool_]:
        """Whether the product of columns ``a[i]`` and ``b[i]`` is a linear function of the two."""
        result = np.zeros(len(a), dtype=bool)
        both = np.flatnonzero(self.two_valued[a] & self.two_valued[b])
        size = max(BLOCK_BYTES // max(self._high.shape[1], 1), 1)
        for start in range(0, len(both), size):
            part = both[start : start + size]
            first, second = self._place[a[part]], self._place[b[part]]
            cells = [
                (one[first] & other[second]).any(axis=1)
                for one in (self._high, self._low)
                for other in (self._high, self._low)
            ]
            result[part] = ~np.logical_and.reduce(cells)
        return result
