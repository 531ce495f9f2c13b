"""The pool: the rows of a table that are held in memory. Fits and choices use only these rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Data, Float, Index
from ..inputs import Imputation
from ..sources import Source, corrected_weights, draw, draw_among, least_sample
from .medians import imputation_from

#: The limits of ``max_rows="auto"``: the rows of a fit, and the numbers in these rows.
ROWS, ROW_NUMBERS = 10_000, 10**8
#: The limits of ``max_references="auto"``: the reference rows, and the numbers in these rows.
REFERENCES, REFERENCE_NUMBERS = 50_000, 2 * 10**8


@dataclass(frozen=True)
class Pool:
    """The rows in memory, with missing values imputed.

    Attributes
    ----------
    X, labels, weight
        The values, class numbers and weights of the rows. The weights sum to the number of rows.
        The share of each class in the sum is the same as in the whole table.
    numbers : ndarray of int
        The numbers of the rows in the table that was given to ``fit``.
    source : Source
        All rows of the table.
    imputation : Imputation or None
        How missing values were replaced.
    max_rows : int or None
        The largest number of rows from which a fit learns. None sets no limit.
    references : ndarray of int or None
        The reference rows, among which predictions search for neighbours. None means all rows of
        the pool.
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
        """The number of columns, including the indicators."""
        return int(self.X.shape[1])

    @property
    def n_numbers(self) -> int:
        """The number of rows times the number of columns."""
        return int(self.X.shape[0]) * self.n_columns

    @property
    def n_indicators(self) -> int:
        """The number of indicators, which are the last columns of the table."""
        return 0 if self.imputation is None else len(self.imputation.indicators)

    @property
    def is_part(self) -> bool:
        """Whether the table has rows that are not in the pool."""
        return len(self.labels) < self.source.shape[0]

    def needs_samples(self, n_kept: int) -> bool:
        """Whether fits of folds that keep ``n_kept`` rows use the summaries of all rows.

        This is the case if a fit learns from a sample, or if only some rows are reference rows.
        """
        few = self.max_rows is not None and n_kept > self.max_rows
        return self.is_part or few or self.references is not None

    def among_references(self, rows: Index) -> Index:
        """The reference rows among some rows."""
        return rows if self.references is None else np.intersect1d(rows, self.references)


@dataclass(frozen=True)
class RowLimits:
    """The largest number of rows of a fit, of reference rows, and of the pool; None is no limit."""

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
        """The limits for a table, from the parameters ``max_rows`` and ``max_references``.

        Parameters
        ----------
        max_rows, max_references, n_averaged
            The parameters of the estimator.
        source : Source
        on_device : int or None
            The number of rows that fit into the memory of the GPU; None without a GPU.
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
        """Whether rows are drawn at random, so that a seed is needed."""
        sizes = [size for size in (self.pool, self.references) if size is not None]
        return bool(sizes) and source.shape[0] > min(sizes)


def _number(given: int | str | None, auto: int) -> int | None:
    return None if given is None else auto if given == "auto" else int(given)


def pooled(source: Source, limits: RowLimits, impute: bool, seed: int) -> Pool:
    """Draw the rows of the pool, impute their missing values, and correct their weights."""
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
    """Raise an error if a sample of ``most`` rows has too few rows of some class."""
    if most is not None and counts.sum() > most and most < least_sample(counts):
        raise ValueError(
            f"{name}={most} is too small for {len(counts)} classes: a sample needs 50 rows of "
            f"every class, or all rows of a smaller class. Set {name} to at least "
            f"{least_sample(counts)}, or to None for all rows."
        )
