"""A matrix to which rows are appended."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingRows:
    """Rows of a fixed width, appended in amortised constant time."""

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        self._buffer: npt.NDArray[Any] = np.empty((16, width), dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> npt.NDArray[Any]:
        return self._buffer[: self._size]

    def extend(self, rows: npt.NDArray[Any]) -> None:
        size = self._size + len(rows)
        if size > len(self._buffer):
            grown = np.empty((2 * size, self._buffer.shape[1]), dtype=self._buffer.dtype)
            grown[: self._size] = self.rows
            self._buffer = grown
        self._buffer[self._size : size] = rows
        self._size = size
