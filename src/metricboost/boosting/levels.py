"""Columns with two values, and which of their products are linear functions of the columns.

A categorical column becomes one column of zeros and ones per level. After standardisation, the
square of such a column is a linear function of the column. Two levels a and b of one category never
occur in the same row, so one of the four cells of the 2 x 2 table of a and b is empty. The product
a * b then takes at most three values and is a linear function of 1, a and b. The same holds for any
two columns with two values if one of the four cells is empty. Such products do not become
candidates, because the columns already contain their information.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._typing import Float, Rows

#: Size of a block of pairs of columns that are compared at once, in bytes of packed rows.
BLOCK_BYTES = 2**24


class Levels:
    """The columns with two values, as bits: 1 in rows with the larger value.

    Parameters
    ----------
    Xt : ndarray of shape (n_columns, n_rows)
        The transposed table.

    Attributes
    ----------
    two_valued : ndarray of bool
        Whether a column has at most two values.
    """

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
        if rest and len(bits):  # clear the padding bits beyond the last row
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
