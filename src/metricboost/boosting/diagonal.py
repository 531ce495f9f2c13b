"""The diagonal of A over all candidates, from margins in single columns that are kept.

``A_cc = sum_i u_i (D_i)_cc``, and ``(D_i)_cc``, the margin of row i in column c alone, does not
change between two refreshes. It is computed once for as many candidates as there is room for. If
there are many rows, a sample of them gives the diagonal: the diagonal only says where the power
method starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Float, Index
from ..engines import Array, NeighborGraph, Table, Terms

#: Margins of columns are computed for this many candidates at a time: for more if there are few
#: rows, for fewer if there are many.
BLOCK, FEW_NUMBERS, MANY_NUMBERS = 64, 2**18, 2**23
#: The most bytes of margins that are kept, or as many as the table has if these are more.
KEPT_BYTES = 2**27
#: Margins are computed on at most MARGIN_ROWS rows, evenly spaced. Tables with more rows, or more
#: than DOUBLE_MARGINS numbers, keep them in float32.
MARGIN_ROWS, DOUBLE_MARGINS = 2**14, 2**23


def is_rough(n_rows: int) -> bool:
    """Whether the diagonal of a table with this many rows is an estimate."""
    return n_rows > MARGIN_ROWS


def sampled_rows(n_rows: int) -> Index:
    """The rows whose margins give the diagonal if there are many rows."""
    return np.linspace(0, n_rows - 1, MARGIN_ROWS).astype(np.intp)


class ColumnMargins:
    """The margins in single columns for the neighbours of a graph."""

    def __init__(self, table: Table, graph: NeighborGraph) -> None:
        n, p = table.n_rows, table.n_columns
        arrays = table.engine.arrays
        self._table, self._graph, self._arrays = table, graph, arrays
        self._sample = arrays.made(sampled_rows(n)) if is_rough(n) else None
        in_double = n * p <= DOUBLE_MARGINS and not is_rough(n)
        n_margins = min(n, MARGIN_ROWS)
        room = max(8 * n * p, KEPT_BYTES) // (n_margins * (8 if in_double else 4))
        dtype = arrays.xp.float64 if in_double else arrays.xp.float32
        self._kept = KeptColumns(table, n_margins, room, dtype)
        self._block = max(min(BLOCK, MANY_NUMBERS // n), FEW_NUMBERS // n, 8)

    def weighted(self, terms: Terms, weight: Array) -> Float:
        """The sums over the rows of weight times margin, for all candidates."""
        weight = weight if self._sample is None else weight[self._sample]
        kept = self._kept
        kept.reserve(len(terms))
        while kept.size < len(terms) and kept.room_left:
            kept.add(self._of(terms, kept.size, min(self._block, kept.room_left)))
        weight = self._arrays.xp.asarray(weight, dtype=kept.dtype)
        parts = [kept.columns.T @ weight]
        for start in range(kept.size, len(terms), self._block):
            parts.append(self._of(terms, start, self._block).T @ weight)
        return np.concatenate([self._arrays.host(part) for part in parts], dtype=np.float64)

    def _of(self, terms: Terms, start: int, size: int) -> Array:
        """The margins in the columns of ``size`` candidates."""
        columns = self._table.columns(terms[start : start + size])
        return self._graph.column_margins(columns, self._kept.dtype, self._sample)


class KeptColumns:
    """Columns that are appended until there is no more room."""

    def __init__(self, table: Table, n_rows: int, room: int, dtype: Any) -> None:
        self._arrays = table.engine.arrays
        self._buffer = self._arrays.empty((n_rows, 0), dtype)
        self._room = room
        self.dtype = dtype
        self.size = 0

    @property
    def columns(self) -> Array:
        """The columns so far."""
        return self._buffer[:, : self.size]

    @property
    def room_left(self) -> int:
        """How many more columns are kept."""
        return self._room - self.size

    def reserve(self, size: int) -> None:
        """Allocate memory for this many columns in all, and for a few more."""
        size = min(size, self._room)
        if size > self._buffer.shape[1]:
            wider = min(size + size // 8, self._room)
            grown = self._arrays.empty((self._buffer.shape[0], wider), self.dtype)
            grown[:, : self.size] = self.columns
            self._buffer = grown

    def add(self, columns: Array) -> None:
        """Append as many of the columns as there is room for."""
        size = min(self.size + columns.shape[1], self._room)
        if size > self._buffer.shape[1]:
            self.reserve(2 * size)
        self._buffer[:, self.size : size] = columns[:, : size - self.size]
        self.size = size
