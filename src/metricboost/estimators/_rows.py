"""Which rows of a table a fit brings into memory, learns from, and keeps as neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Index
from ..engines import get_engine
from ..imputation import Imputation
from ..selection.whole import Pool, imputation_from
from ..sources import Source, corrected_weights, draw, draw_among, least_sample

#: What ``max_rows="auto"`` is: rows of a fit, and the most numbers that its rows may have.
ROWS, ROW_NUMBERS = 10_000, 10**8
#: What ``max_references="auto"`` is.
REFERENCES, REFERENCE_NUMBERS = 50_000, 2 * 10**8


@dataclass(frozen=True)
class Table:
    """A table as the fits take it: its pool of rows, imputed already.

    ``y`` are the labels of the table as it was given, or None if they are not in memory.
    """

    pool: Pool
    imputation: Imputation | None
    y: npt.NDArray[Any] | None

    @property
    def n_columns(self) -> int:
        return int(self.pool.X.shape[1])

    @property
    def n_indicators(self) -> int:
        return 0 if self.imputation is None else len(self.imputation.indicators)


@dataclass(frozen=True)
class RowLimits:
    """The most rows of a fit, of the neighbours of predictions, and of the pool; None for all."""

    fit: int | None
    references: int | None
    pool: int | None


def row_limits(model: Any, n_columns: int, counts: Index) -> RowLimits:
    """What ``max_rows`` and ``max_references`` are for a table with these rows of every class."""
    least, width = least_sample(counts), max(n_columns, 1)
    fit, references = model.max_rows, model.max_references
    if fit == "auto":
        on_device = get_engine(model.engine).most_rows(n_columns)
        fit = max(min(ROWS, ROW_NUMBERS // width), on_device or 0, least)
    if references == "auto":
        references = max(min(REFERENCES, REFERENCE_NUMBERS // width), least)
    if fit is None or references is None:
        return RowLimits(fit, references, None)
    pool = max(model.n_averaged * fit, references)
    if model.max_rows == "auto":
        pool = min(pool, max(REFERENCE_NUMBERS // width, 2 * fit, references))
    return RowLimits(int(fit), int(references), int(pool))


def pooled(model: Any, source: Source, seed: int | None) -> tuple[Pool, Imputation | None]:
    """The pool of a source, with missing values filled if the model imputes."""
    limits = row_limits(model, source.shape[1], source.class_count)
    for name, most in (("max_rows", limits.fit), ("max_references", limits.references)):
        _refuse_too_few(name, most, source.class_count)
    numbers = draw(source, limits.pool, seed or 0)
    X, labels, weight = source.take(numbers)
    is_part = len(numbers) < source.shape[0]
    imputation = None
    if model.missing == "impute":
        imputation = imputation_from(source, X) if is_part else Imputation.of(X)
        X, source = imputation.apply(X), source.imputed(imputation)
    if is_part:
        weight = corrected_weights(weight, labels, source.class_count)
    references = None
    if limits.references is not None and len(labels) > limits.references:
        references = draw_among(np.arange(len(labels)), labels, limits.references, seed or 0)
    return Pool(X, labels, weight, numbers, source, limits.fit, references), imputation


def _refuse_too_few(name: str, most: int | None, counts: Index) -> None:
    """A given limit may leave too few rows of some class."""
    if most is not None and counts.sum() > most and most < least_sample(counts):
        raise ValueError(
            f"{name}={most} is too small for {len(counts)} classes: a sample needs 50 rows of "
            f"every class, or all rows of a smaller class. Set {name} to at least "
            f"{least_sample(counts)}, or to None for all rows."
        )
