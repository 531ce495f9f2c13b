"""The pool: the rows of a table that come into memory. Fits and choices see no other rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Data, Float, Index
from ..inputs import Imputation
from ..sources import Source, corrected_weights, draw, draw_among, least_sample
from .medians import imputation_from

#: What ``max_rows="auto"`` is: rows of a fit, and the most numbers that its rows may have.
ROWS, ROW_NUMBERS = 10_000, 10**8
#: What ``max_references="auto"`` is.
REFERENCES, REFERENCE_NUMBERS = 50_000, 2 * 10**8


@dataclass(frozen=True)
class Pool:
    """Rows in memory, imputed.

    Attributes
    ----------
    X, labels, weight
        Their values, class numbers and weights. The weights sum to the number of rows, and give
        every class the weight that it has in the whole table.
    numbers : ndarray of int
        Their numbers in the table as it was given.
    source : Source
        All rows.
    imputation : Imputation or None
        How missing values were filled.
    max_rows : int or None
        The most rows that one fit learns from.
    references : ndarray of int or None
        The rows that serve as neighbours for predictions; None for all rows of the pool.
    """

    X: Data
    labels: Index
    weight: Float
    numbers: Index
    source: Source
    imputation: Imputation | None = None
    max_rows: int | None = None
    references: Index | None = None

    @property
    def n_columns(self) -> int:
        """The columns of the table, with the indicators of missing values."""
        return int(self.X.shape[1])

    @property
    def n_numbers(self) -> int:
        """Rows times columns."""
        return int(self.X.shape[0]) * self.n_columns

    @property
    def n_indicators(self) -> int:
        """The last columns of the table say where values were missing."""
        return 0 if self.imputation is None else len(self.imputation.indicators)

    @property
    def is_part(self) -> bool:
        """Whether the table has other rows too."""
        return len(self.labels) < self.source.shape[0]

    def needs_samples(self, n_kept: int) -> bool:
        """Whether fits on this number of rows learn from samples."""
        few = self.max_rows is not None and n_kept > self.max_rows
        return self.is_part or few or self.references is not None

    def among_references(self, rows: Index) -> Index:
        """Those of some rows that serve as neighbours for predictions."""
        return rows if self.references is None else np.intersect1d(rows, self.references)


@dataclass(frozen=True)
class RowLimits:
    """The most rows of a fit, of the neighbours of predictions, and of the pool; None for all."""

    fit: int | None
    references: int | None
    pool: int | None

    @classmethod
    def of(
        cls,
        max_rows: int | str | None,
        max_references: int | str | None,
        n_averaged: int,
        source: Source,
        on_device: int | None,
    ) -> RowLimits:
        """What ``max_rows`` and ``max_references`` are for a table.

        Parameters
        ----------
        max_rows, max_references, n_averaged
            The parameters of the estimator.
        source : Source
        on_device : int or None
            The rows that fit into the memory of the engine's GPU, if it has one.
        """
        least, width = least_sample(source.class_count), max(source.shape[1], 1)
        fit = _number(max_rows, max(min(ROWS, ROW_NUMBERS // width), on_device or 0, least))
        most = max(min(REFERENCES, REFERENCE_NUMBERS // width), least)
        references = _number(max_references, most)
        if fit is None or references is None:
            return cls(fit, references, None)
        pool = max(n_averaged * fit, references)
        if max_rows == "auto":
            pool = min(pool, max(REFERENCE_NUMBERS // width, 2 * fit, references))
        return cls(fit, references, pool)

    def need_seed(self, source: Source) -> bool:
        """Whether rows have to be drawn."""
        sizes = [size for size in (self.pool, self.references) if size is not None]
        return bool(sizes) and source.shape[0] > min(sizes)


def _number(given: int | str | None, auto: int) -> int | None:
    return None if given is None else auto if given == "auto" else int(given)


def pooled(source: Source, limits: RowLimits, impute: bool, seed: int) -> Pool:
    """The pool of a source."""
    for name, most in (("max_rows", limits.fit), ("max_references", limits.references)):
        _refuse_too_few(name, most, source.class_count)
    numbers = draw(source, limits.pool, seed)
    X, labels, weight = source.take(numbers)
    is_part = len(numbers) < source.shape[0]
    imputation = None
    if impute:
        imputation = imputation_from(source, X) if is_part else Imputation.of(X)
        X, source = imputation.apply(X), source.imputed(imputation)
    if is_part:
        weight = corrected_weights(weight, labels, source.class_count)
    references = None
    if limits.references is not None and len(labels) > limits.references:
        references = draw_among(np.arange(len(labels)), labels, limits.references, seed)
    return Pool(X, labels, weight, numbers, source, imputation, limits.fit, references)


def _refuse_too_few(name: str, most: int | None, counts: Index) -> None:
    """A given limit may leave too few rows of some class."""
    if most is not None and counts.sum() > most and most < least_sample(counts):
        raise ValueError(
            f"{name}={most} is too small for {len(counts)} classes: a sample needs 50 rows of "
            f"every class, or all rows of a smaller class. Set {name} to at least "
            f"{least_sample(counts)}, or to None for all rows."
        )
