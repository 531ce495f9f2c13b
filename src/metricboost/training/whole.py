"""Summaries of all rows of a table, for fits that learn from samples of the rows.

Column constants, the rates of missing values and the moments of products are computed from all
rows, with one pass over the table for each. The fit of a fold must not depend on the labels of the
rows that the fold leaves out. The moments of these rows are therefore subtracted from the moments
of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .._blocks import column_panels, dense, row_blocks
from .._typing import Data, Float, Index
from ..boosting.scaling import (
    CONSTANT,
    FEW,
    INFLATED,
    Scaling,
    column_constants,
    informed_by_counts,
)
from ..boosting.screening import FEW_ROWS, Screening, pairs_of_moments
from ..boosting.start import start_scaling
from ..model import Term
from ..sources import BLOCK_NUMBERS, Block, corrected_weights, draw_among
from ..sources.statistics import (
    ColumnSums,
    PairSummary,
    PairSums,
    column_sums,
    term_moments,
)
from .learn import Known, screening_limits, screens
from .medians import rough_constants
from .options import LearningOptions
from .pool import Pool

#: The largest number of moments of products, for all classes together. If a table has more moments,
#: pairs are screened on the rows of each fit.
MOST_MOMENTS = 2**22
#: The number of rows of a block from which moments are computed.
ROWS_FOR_MOMENTS = 2048


@dataclass(frozen=True)
class Whole:
    """The summaries of all rows, for one set of options."""

    pool: Pool
    options: LearningOptions
    scaling: Scaling
    sums: ColumnSums
    pairs: PairSums | None = None
    summary: PairSummary | None = None

    @classmethod
    def of(cls, pool: Pool, options: LearningOptions) -> Whole:
        center, scale = rough_constants(pool.X)
        sums = column_sums(pool.source, center, scale, options.n_indicators)
        scaling = start_scaling(_scaling(sums, center, scale, pool.X, options), options.init)
        whole = cls(pool, options, scaling, sums)
        return whole._with_pairs() if screens(options) and len(scaling.kept) else whole

    def _with_pairs(self) -> Whole:
        """Add the moments of products, if they can be computed from more rows than a fit has."""
        pool, p = self.pool, len(self.scaling.kept)
        n, n_classes = pool.source.shape[0], len(pool.source.class_count)
        budget = screening_limits(p, pool.labels, self.options)[1]
        share = min(1.0, budget / (n * p**2))
        if n_classes * p**2 > MOST_MOMENTS or share * n <= (pool.max_rows or 0):
            return self
        seed = self.options.boosting.seed
        summary = PairSummary(self.scaling.prepared, self._class_means(), seed, share)
        pairs = pool.source.reduce(summary, least_rows=ROWS_FOR_MOMENTS)
        return replace(self, pairs=pairs, summary=summary)

    def _class_means(self) -> Float:
        """The means of the scaled columns in each class, computed from the rows of the pool."""
        labels = self.pool.labels
        n_classes = len(self.pool.source.class_count)
        total = np.zeros((n_classes, len(self.scaling.kept)))
        for part, block in row_blocks(self.pool.X, piece=BLOCK_NUMBERS):
            total += np.eye(n_classes)[labels[part]].T @ self.scaling.prepared(block)
        result: Float = total / np.maximum(np.bincount(labels, minlength=n_classes), 1)[:, None]
        return result

    def without(self, left_out: Index) -> Known:
        """The results for the fit of a fold, without the rows that the fold leaves out."""
        labels = self.pool.labels[left_out]
        counts = self.pool.source.class_count
        counts = counts - np.bincount(labels, minlength=len(counts))
        scaling = informed_by_counts(self.scaling, self._marked(left_out), counts)
        screening = None if self.pairs is None else self._screening(left_out, scaling)
        return Known(scaling, screening)

    def _marked(self, left_out: Index) -> dict[int, Index]:
        """For each indicator, the number of rows of each class in which the value is missing."""
        n_marks = self.options.n_indicators
        if not n_marks:
            return {}
        marks = self.sums.marks.copy()
        for part, block in row_blocks(self.pool.X, left_out, BLOCK_NUMBERS):
            own = np.eye(len(marks))[self.pool.labels[left_out[part]]]
            marks -= own.T @ block[:, -n_marks:]
        first = self.pool.X.shape[1] - n_marks
        return {first + j: marks[:, j].astype(np.intp) for j in range(n_marks)}

    def _screening(self, left_out: Index, scaling: Scaling) -> Screening:
        assert self.pairs is not None
        assert self.summary is not None
        pool, pairs = self.pool, self.pairs
        for part, block in row_blocks(pool.X, left_out, BLOCK_NUMBERS):
            rows = left_out[part]
            pairs = pairs - self.summary(Block(pool.numbers[rows], pool.labels[rows], block))
        columns = np.searchsorted(self.scaling.kept, scaling.kept)
        large = np.flatnonzero(pairs.count >= FEW_ROWS)
        classes = large if len(large) > 1 else np.flatnonzero(pairs.count > 0)
        n_pairs, _, margin = screening_limits(len(columns), pool.labels, self.options)
        counts = [int(pairs.count[c]) for c in classes]
        means, errors = pairs.moments(classes, columns)
        return pairs_of_moments(means, errors, counts, np.arange(len(columns)), n_pairs, margin)

    def sample(self, kept: Index, fold: int, n_folds: int) -> tuple[Index, Float]:
        """The rows from which the fit of a fold learns, and their weights.

        ``kept`` are the rows that the fold keeps.
        """
        labels, most = self.pool.labels[kept], self.pool.max_rows
        if most is None or len(kept) <= most:
            rows = kept
        else:
            turn = (fold % n_folds) / n_folds
            rows = draw_among(kept, labels, most, self.options.boosting.seed + 1, turn)
        counts = np.bincount(labels)
        return rows, corrected_weights(self.pool.weight[rows], self.pool.labels[rows], counts)

    def term_moments(self, terms: Iterable[Term]) -> dict[Term, tuple[float, float]]:
        """The mean and the deviation over all rows, for the terms that are products."""
        products = sorted(term for term in set(terms) if len(term) > 1)
        used = sorted({column for term in products for column in term})
        scaling = replace(self.scaling, kept=np.array(used, dtype=np.intp))
        place = {column: i for i, column in enumerate(used)}
        own = [tuple(place[column] for column in term) for term in products]
        if not own:
            return {}
        sample = dense(self.pool.X[: min(ROWS_FOR_MOMENTS, len(self.pool.labels))])
        moments = term_moments(self.pool.source, scaling.prepared, own, sample)
        return {term: (float(mean), float(size)) for term, (mean, size) in zip(products, moments)}


def _scaling(
    sums: ColumnSums, center: Float, scale: Float, X: Data, options: LearningOptions
) -> Scaling:
    """The scaling from the sums of all rows, which were computed with ``center`` and ``scale``."""
    mean, deviation = center + scale * sums.mean, scale * sums.deviation
    size = np.maximum(np.abs(sums.low), np.abs(sums.high))
    size = np.where(size > 0, size, 1.0)
    varies = (deviation > CONSTANT * size) & (sums.high > sums.low)
    varies &= deviation >= np.finfo(float).tiny
    clip = options.clip if options.standardize else None
    if options.standardize:
        deviation = np.where(varies, deviation, 1.0)
        if clip is not None:
            _leave_far_values_out(mean, deviation, varies, X, clip)
    else:
        mean, deviation = np.zeros(len(mean)), np.ones(len(mean))
    return Scaling(mean, deviation, np.flatnonzero(varies), clip, options.n_indicators)


def _leave_far_values_out(
    center: Float, scale: Float, varies: npt.NDArray[np.bool_], X: Data, clip: float
) -> None:
    """Recompute the constants of columns whose deviation is inflated by a few outliers.

    The new constants are those of the values within the clip, in the sample ``X``. The sample may
    not contain the outliers.
    """
    for columns, panel in column_panels(X, piece=BLOCK_NUMBERS):
        unit = np.abs((panel - center[columns]) / scale[columns])
        inside = unit <= clip
        n_inside = np.maximum(inside.sum(axis=0), 1)
        around = np.where(inside, (panel - center[columns]) / scale[columns], 0.0)
        mean = around.sum(axis=0) / n_inside
        variance = (around**2).sum(axis=0) / n_inside - mean**2
        few = (~inside).sum(axis=0) <= np.ceil(FEW * len(panel))
        for j in np.flatnonzero(varies[columns] & few & (variance < INFLATED**2)):
            others = panel[inside[:, j], j]
            (own_center,), (own_scale,), (vary,) = column_constants(others[:, None], clip)
            if vary:
                center[columns.start + j], scale[columns.start + j] = own_center, own_scale
