"""Large tables in pieces.

A table is what a user gave: float32 or float64 in any layout, perhaps on disk, or a scipy sparse
matrix. Nothing here copies one whole, but for the three arrays of a sparse one; its pieces are
dense and float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._typing import Data, Float, Index

#: Numbers of a piece: 32 MiB as float64.
PIECE = 2**22


def is_sparse(X: Any) -> bool:
    """A matrix of scipy.sparse, of any format; a metric needs no more than NumPy to tell."""
    return hasattr(X, "tocsr")


def dense(block: Any) -> Float:
    """Some rows or columns of a table, or one that is small."""
    if is_sparse(block):
        block = block.toarray()
    # In one order, so that sums over it have the same bits whatever it came from.
    result: Float = np.ascontiguousarray(block, dtype=np.float64)
    return result


def slices(n: int, width: int, piece: int | None = None) -> Iterator[slice]:
    """The numbers 0..n in runs, each with at most ``piece`` numbers where one has ``width``.

    If ``piece`` is None, a run has at most ``PIECE`` numbers.
    """
    size = max((PIECE if piece is None else piece) // max(width, 1), 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def only_columns(X: Data, columns: Index) -> Data:
    """A copy of some columns of a table in a table of the same shape; the others are zero.

    The copy is a sparse matrix unless all columns are copied.
    """
    if len(columns) == X.shape[1]:
        return X.copy() if is_sparse(X) else np.array(X)
    from scipy.sparse import csr_matrix

    values = X.tocsc()[:, columns].toarray() if is_sparse(X) else X[:, columns]
    n, width = values.shape
    places = np.tile(columns.astype(np.int32), n), np.arange(0, n * width + 1, max(width, 1))
    return csr_matrix((np.ravel(values), *places), shape=X.shape) if width else csr_matrix(X.shape)


def column_panels(
    X: Data, rows: Index | None = None, piece: int | None = None
) -> Iterator[tuple[slice, Float]]:
    """Some columns after others, of all rows or of some."""
    n = X.shape[0] if rows is None else len(rows)
    if is_sparse(X):  # by columns, and of some rows, once for all panels
        X, rows = (X if rows is None else X[rows]).tocsc(), None
    for columns in slices(X.shape[1], n, piece):
        yield columns, dense(X[:, columns] if rows is None else X[rows, columns])


def row_blocks(
    X: Data, rows: Index | None = None, piece: int | None = None
) -> Iterator[tuple[slice, Float]]:
    """Some rows after others, of all or of those numbered."""
    n = X.shape[0] if rows is None else len(rows)
    X = X.tocsr() if is_sparse(X) else X
    for part in slices(n, X.shape[1], piece):
        yield part, dense(X[part] if rows is None else X[rows[part]])
