"""A table in memory: an array of any layout, perhaps a memory-mapped file, or a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._blocks import dense, is_sparse, slices
from .._threads import allowed_threads, one_blas_thread
from .._typing import Data, Float, Index
from ..inputs import Imputation
from .base import Block, S, Source

#: The most numbers of a block. A reduction makes a few copies of a block in every thread.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True)
class InMemory(Source):
    """The rows of a table that have a weight.

    Parameters
    ----------
    X : array or sparse matrix
        The whole table. The source does not copy it.
    labels, weight : ndarray
        The number of the class and the weight of every row that has a weight.
    rows : ndarray of int, default=None
        The places in X of the rows that have a weight; None if all rows have one.
    imputation : Imputation, default=None
        How missing values are filled; None if they are not.
    first : int, default=0
        If X is a partition of a larger table: the number of its first row in that table.
    block_numbers : int, default=2**20
        The most numbers of a block, unless a block of so few numbers has too few rows.
    """

    X: Data
    labels: Index
    weight: Float
    rows: Index | None = None
    imputation: Imputation | None = None
    first: int = 0
    block_numbers: int = BLOCK_NUMBERS

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        extra = 0 if self.imputation is None else len(self.imputation.indicators)
        return len(self.labels), int(self.X.shape[1]) + extra

    @cached_property
    def class_count(self) -> Index:  # type: ignore[override]
        return np.bincount(self.labels)

    def imputed(self, imputation: Imputation) -> InMemory:
        return replace(self, imputation=imputation)

    def reduce(
        self, summarise: Callable[[Block], S], columns: bool = True, least_rows: int = 1
    ) -> S:
        n, width = self.shape[0], self.shape[1] if columns else 1
        parts = list(slices(n, width, max(self.block_numbers, least_rows * width)))
        table, threads = self._by_rows() if columns else self, allowed_threads()

        def of_part(part: slice) -> S:
            return summarise(table._block(part, columns))

        total: S | None = None
        with ThreadPoolExecutor(threads) as pool, one_blas_thread():
            # A summary may be large, so only one for each thread is in memory at a time.
            for start in range(0, len(parts), threads):
                for one in pool.map(of_part, parts[start : start + threads]):
                    total = one if total is None else total + one
        assert total is not None
        return total

    def _by_rows(self) -> InMemory:
        """The same source, with a sparse matrix stored by rows."""
        return replace(self, X=self.X.tocsr()) if is_sparse(self.X) else self

    def _block(self, part: slice, columns: bool) -> Block:
        rows = np.arange(part.start, part.stop) if self.rows is None else self.rows[part]
        X = self._values(part) if columns else np.empty((part.stop - part.start, 0))
        return Block(rows + self.first, self.labels[part], X)

    def _values(self, part: slice) -> Float:
        block = dense(self.X[part] if self.rows is None else self.X[self.rows[part]])
        return block if self.imputation is None else self.imputation.apply(block)

    def take(self, numbers: Index) -> tuple[Data, Index, Float]:
        inside = numbers - self.first
        places = inside if self.rows is None else np.searchsorted(self.rows, inside)
        if len(inside) == self.X.shape[0]:
            X = self.X
        else:
            X = self.X.tocsr()[inside] if is_sparse(self.X) else np.asarray(self.X[inside])
        X = X if self.imputation is None else self.imputation.apply(X)
        return X, self.labels[places], self.weight[places]
