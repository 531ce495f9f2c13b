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

from .._blocks import slices
from .._typing import Float, Rows

#: Size of a block of pairs of columns that are compared at once, in bytes of packed rows.
BLOCK_BYTES = 2**24
#: The number of values that are compared with the values of their columns at once.
BLOCK = 2**17


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
        bits = [np.empty((0, -(-Xt.shape[1] // 8)), dtype=np.uint8)]
        for part in slices(len(Xt), Xt.shape[1], BLOCK):
            at_high = Xt[part] == high[part, None]
            two_valued = (at_high | (Xt[part] == low[part, None])).all(axis=1)
            self.two_valued[part] = two_valued
            bits.append(np.packbits(at_high[two_valued], axis=1))
        self._place = np.cumsum(self.two_valued) - 1
        self._high = np.concatenate(bits)
        self._low = ~self._high
        rest = Xt.shape[1] % 8
        if rest:  # clear the padding bits beyond the last row
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
