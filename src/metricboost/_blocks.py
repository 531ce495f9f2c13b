"""Reading large tables in pieces.

A table is the data of the user: a float32 or float64 array in any memory layout, possibly a memory
map on disk, or a scipy sparse matrix. The functions return pieces of a table as dense float64
arrays. They never copy a whole table, except for the three arrays of a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._typing import Data, Float, Index

#: Number of entries in a piece: 32 MiB as float64.
PIECE = 2**22
#: Whole rows are not copied first if at most one of FEW_COLUMNS columns is needed.
FEW_COLUMNS = 8


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix of any format. scipy.sparse is not imported."""
    return hasattr(X, "tocsr")


def dense(block: Any) -> Float:
    """A dense float64 copy of a piece of a table, or of a small table."""
    if is_sparse(block):
        block = block.toarray()
    # C order, so that sums have the same bits for every layout of the table.
    result: Float = np.ascontiguousarray(block, dtype=np.float64)
    return result


def slices(n: int, width: int, piece: int | None = None) -> Iterator[slice]:
    """Slices of ``range(n)`` whose pieces have at most ``piece`` entries.

    Parameters
    ----------
    n : int
        The number of rows (or columns) to divide.
    width : int
        The number of entries of a row (or column).
    piece : int, optional
        The largest number of entries in a piece, ``PIECE`` by default. A slice has at least one
        row.
    """
    size = max((PIECE if piece is None else piece) // max(width, 1), 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def column_panels(
    X: Data, rows: Index | None = None, piece: int | None = None
) -> Iterator[tuple[slice, Float]]:
    """Yield pieces of the table by columns, with the slice of the columns.

    If ``rows`` is given, the pieces have only these rows.
    """
    n = X.shape[0] if rows is None else len(rows)
    if is_sparse(X):  # select the rows and convert to columns once for all pieces
        X, rows = (X if rows is None else X[rows]).tocsc(), None
    for columns in slices(X.shape[1], n, piece):
        yield columns, dense(X[:, columns] if rows is None else X[rows, columns])


def row_blocks(
    X: Data, rows: Index | None = None, piece: int | None = None, columns: Index | None = None
) -> Iterator[tuple[slice, Float]]:
    """Yield pieces of the table by rows, with the slice of the rows.

    If ``rows`` is given, the slices refer to this array of row numbers. If ``columns`` is given,
    the pieces have only these columns.
    """
    n = X.shape[0] if rows is None else len(rows)
    X = X.tocsr() if is_sparse(X) else X
    for part in slices(n, X.shape[1], piece):
        yield part, dense(_selected(X, part if rows is None else rows[part], columns))


def _selected(X: Data, rows: slice | Index, columns: Index | None) -> Data:
    """Some rows of a table, and only some columns if ``columns`` is given."""
    if columns is None or len(columns) == X.shape[1]:
        return X[rows]
    if is_sparse(X):
        return X[rows][:, columns]
    if isinstance(rows, slice) or FEW_COLUMNS * len(columns) > X.shape[1]:
        return np.take(X[rows], columns, axis=1)
    return X[rows[:, None], columns]
