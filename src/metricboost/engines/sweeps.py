"""Passes over all candidates by the NumPy and PyTorch engines.

The column margin ``(D_i)_cc`` is the margin of row i in candidate c alone. Column margins do not
change between two refreshes. They are therefore stored, for as many candidates as there is memory
for. In large tables the diagonal is estimated from a sample of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, Float, Index
from .base import NeighborGraph, Sweeps, Table, Terms

#: Column margins are computed for BLOCK candidates at a time. The number is larger for tables with
#: few rows (a block has at least FEW_NUMBERS numbers) and smaller for tables with many rows (at
#: most MANY_NUMBERS numbers, but at least 8 candidates).
BLOCK, FEW_NUMBERS, MANY_NUMBERS = 64, 2**18, 2**23
#: Memory for stored column margins, in bytes. It is the size of the table if the table is larger.
KEPT_BYTES = 2**27
#: Column margins are computed on at most MARGIN_ROWS rows, evenly spaced. They are stored in
#: float32 if the table has more rows than MARGIN_ROWS or more numbers than DOUBLE_MARGINS.
MARGIN_ROWS, DOUBLE_MARGINS = 2**14, 2**23


def evenly_spaced(n_rows: int, most: int) -> Index:
    """Row numbers: all of them, or ``most`` of them if there are more."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


class StoredSweeps(Sweeps):
    """Passes with stored column margins, over the arrays of an engine."""

    def __init__(self, table: Table) -> None:
        n, p = table.n_rows, table.n_columns
        self._table, self._arrays = table, table.engine.arrays
        few = n <= MARGIN_ROWS
        self._sample = None if few else self._arrays.made(evenly_spaced(n, MARGIN_ROWS))
        in_double = few and n * p <= DOUBLE_MARGINS
        self._n_margins = min(n, MARGIN_ROWS)
        self._room = max(8 * n * p, KEPT_BYTES) // (self._n_margins * (8 if in_double else 4))
        self._dtype = self._arrays.xp.float64 if in_double else self._arrays.xp.float32
        self._block = max(min(BLOCK, MANY_NUMBERS // n), FEW_NUMBERS // n, 8)

    def use(self, graph: NeighborGraph) -> None:
        self._graph = graph
        self._kept = KeptColumns(self._table, self._n_margins, self._room, self._dtype)

    def diagonal(self, terms: Terms, weight: Array) -> Float:
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

    def pulled_back(self, terms: Terms, y: Array) -> Float:
        return self._table.pulled_back(terms, y)

    def _of(self, terms: Terms, start: int, size: int) -> Array:
        """The column margins of ``size`` candidates from ``start`` on."""
        columns = self._table.columns(terms[start : start + size])
        return self._graph.column_margins(columns, self._dtype, self._sample)


class KeptColumns:
    """A matrix to which columns are appended, up to ``room`` columns."""

    def __init__(self, table: Table, n_rows: int, room: int, dtype: Any) -> None:
        self._arrays = table.engine.arrays
        self._buffer = self._arrays.empty((n_rows, 0), dtype)
        self._room = room
        self.dtype = dtype
        self.size = 0

    @property
    def columns(self) -> Array:
        """The columns that have been appended."""
        return self._buffer[:, : self.size]

    @property
    def room_left(self) -> int:
        """The number of columns that can still be appended."""
        return self._room - self.size

    def reserve(self, size: int) -> None:
        """Allocate memory for ``size`` columns in total, plus an eighth more."""
        size = min(size, self._room)
        if size > self._buffer.shape[1]:
            wider = min(size + size // 8, self._room)
            grown = self._arrays.empty((self._buffer.shape[0], wider), self.dtype)
            grown[:, : self.size] = self.columns
            self._buffer = grown

    def add(self, columns: Array) -> None:
        """Append the columns. Columns beyond ``room`` are dropped."""
        size = min(self.size + columns.shape[1], self._room)
        if size > self._buffer.shape[1]:
            self.reserve(2 * size)
        self._buffer[:, self.size : size] = columns[:, : size - self.size]
        self.size = size
