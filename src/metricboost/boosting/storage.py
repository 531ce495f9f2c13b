"""Arrays that grow: rows appended in amortised constant time, and a bounded store of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float


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


class KeptColumns:
    """Columns appended until there is no more room; those beyond it are not kept."""

    def __init__(self, n_rows: int, room: int, dtype: npt.DTypeLike = np.float64) -> None:
        self._buffer = np.empty((n_rows, 0), dtype=dtype)
        self._room = room
        self.size = 0

    @property
    def columns(self) -> Float:
        return self._buffer[:, : self.size]

    @property
    def room_left(self) -> int:
        return self._room - self.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._buffer.dtype

    def reserve(self, size: int) -> None:
        """Room for so many at once, where it is known that they will come; a few more will."""
        size = min(size, self._room)
        if size > self._buffer.shape[1]:
            wider = min(size + size // 8, self._room)
            grown = np.empty((len(self._buffer), wider), dtype=self.dtype)
            grown[:, : self.size] = self.columns
            self._buffer = grown

    def add(self, columns: Float) -> None:
        size = min(self.size + columns.shape[1], self._room)
        if size > self._buffer.shape[1]:
            self.reserve(2 * size)
        self._buffer[:, self.size : size] = columns[:, : size - self.size]
        self.size = size
