"""Large tables in pieces: nothing here copies one whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._typing import Float, Index

#: Numbers of a piece: 32 MiB as float64.
PIECE = 2**22


def slices(n: int, width: int) -> Iterator[slice]:
    """The numbers 0..n in runs, each with at most ``PIECE`` numbers where one has ``width``."""
    size = max(PIECE // max(width, 1), 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def column_panels(X: Float, rows: Index | None = None) -> Iterator[tuple[slice, Float]]:
    """Some columns after others, of all rows or of some, as float64."""
    n = len(X) if rows is None else len(rows)
    for columns in slices(X.shape[1], n):
        panel = X[:, columns] if rows is None else X[rows, columns]
        yield columns, np.asarray(panel, dtype=np.float64)


def row_blocks(X: Float, rows: Index | None = None) -> Iterator[tuple[slice, Float]]:
    """Some rows after others, of all or of those numbered, as float64."""
    n = len(X) if rows is None else len(rows)
    for part in slices(n, X.shape[1]):
        block = X[part] if rows is None else X[rows[part]]
        yield part, np.asarray(block, dtype=np.float64)
