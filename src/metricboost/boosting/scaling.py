"""Columns are centred, scaled and clipped once, before anything else; constant ones are left out.

A value far out then counts as lying at the end of the range, and no longer dominates the distances
of its row. The column is not scaled again after that (products of columns are). Its
deviation, which the value has inflated, keeps the column small, and that is as well: on SECOM, full
of such columns, scaling them up again loses what clipping gains.

Where a few values, a mistyped one say, leave so little of a column that no distance sees it, its
deviation is that of the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2_contingency

from .._blocks import PIECE, column_panels, dense
from .._typing import Data, Float, Index

#: A deviation below this share of the column's size is rounding: the column is constant.
CONSTANT = 1e-13
#: A column is lost where the rows within the clip have less than this share of its deviation...
INFLATED = 0.1
#: ... and those beyond it, which have made the rest, are no more than this share of the rows.
FEW = 0.01
#: Rows beyond which a table is read in smaller panels.
MANY_ROWS = 12_500
#: The chance that any indicator becomes a candidate where values are missing at random.
BY_CHANCE = 0.05


@dataclass(frozen=True)
class Scaling:
    """Constants of all columns, which of them vary, and where scaled values end.

    The table's last ``n_indicators`` columns say where values are missing. They are candidates like
    any other column, but no part of the plain distance: two rows are not close because the same
    values were lost.
    """

    center: Float
    scale: Float
    kept: Index
    clip: float | None = None
    n_indicators: int = 0

    @classmethod
    def of(
        cls,
        X: Data,
        standardize: bool,
        clip: float | None = None,
        n_indicators: int = 0,
        rows: Index | None = None,
    ) -> Scaling:
        """The constants of all rows, or of some."""
        clip = clip if standardize else None
        panels = [column_constants(panel, clip) for _, panel in column_panels(X, rows)]
        center, scale, varies = (np.concatenate(part) for part in zip(*panels))
        if not standardize:
            center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        return cls(center, scale, np.flatnonzero(varies), clip, n_indicators)

    @property
    def plain(self) -> Index:
        """The columns of the plain distance: those that vary, without the indicators.

        Where nothing but indicators varies, they are all there is.
        """
        plain = self.kept[self.kept < len(self.center) - self.n_indicators]
        return plain if len(plain) else self.kept

    def transposed(self, X: Data, rows: Index | None = None) -> Float:
        """The columns that vary, scaled and clipped, a row each: of all rows, or of some."""
        n = X.shape[0] if rows is None else len(rows)
        scaled = np.empty((len(self.kept), n))
        for columns, panel in column_panels(X, rows):
            first, last = np.searchsorted(self.kept, [columns.start, columns.stop])
            kept = self.kept[first:last]
            out = scaled[first:last]
            out[:] = panel.T[kept - columns.start]
            out -= self.center[kept, None]
            out /= self.scale[kept, None]
        return scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip, out=scaled)

    def prepared(self, X: Float) -> Float:
        """The columns that vary of some rows, scaled and clipped."""
        values: Float = np.take(X, self.kept, axis=1)
        values -= self.center[self.kept]
        values /= self.scale[self.kept]
        return values if self.clip is None else np.clip(values, -self.clip, self.clip, out=values)

    def plain_variance(self, X: Data) -> float:
        """The summed variance of the columns of the plain distance, scaled."""
        total = 0.0
        inside = np.zeros(len(self.center), dtype=bool)
        inside[self.plain] = True
        # The more rows, the smaller the panels: copies of a panel are made.
        piece = PIECE * MANY_ROWS // max(int(X.shape[0]), MANY_ROWS)
        for columns, panel in column_panels(X, piece=piece):
            plain = np.flatnonzero(inside[columns])
            center, scale = self.center[columns][plain], self.scale[columns][plain]
            scaled = panel[:, plain]
            scaled -= center
            scaled /= scale
            if self.clip is not None:
                np.clip(scaled, -self.clip, self.clip, out=scaled)
            total += float(scaled.var(axis=0).sum())
        return total


def column_constants(
    panel: Float, clip: float | None
) -> tuple[Float, Float, npt.NDArray[np.bool_]]:
    """Mean and deviation of some columns, and which of them vary.

    With a clip, a deviation that a few values beyond it have made is that of the other rows.
    """
    low, high = panel.min(axis=0), panel.max(axis=0)
    size = np.maximum(np.abs(low), np.abs(high))
    safe = np.where(size > 0, size, 1.0)
    unit = panel / safe  # squares of 1e150 overflow, those of numbers up to 1 do not
    mean, deviation = unit.mean(axis=0), unit.std(axis=0)
    # What is too small to divide by, below 1e-307, counts as constant.
    varies = (deviation > CONSTANT) & (high > low) & (deviation * safe >= np.finfo(float).tiny)
    center, scale = mean * safe, np.where(varies, deviation * safe, 1.0)
    if clip is not None:
        unit -= mean
        unit /= np.where(varies, deviation, 1.0)
        for j in np.flatnonzero(varies & inflated(beyond(unit, clip), len(unit))):
            others = panel[np.abs(unit[:, j]) <= clip, j]
            (own_center,), (own_scale,), (vary,) = column_constants(others[:, None], clip)
            if vary:  # else the values far out are all there is, as in a column of 0 and seldom 1
                center[j], scale[j] = own_center, own_scale
    return center, scale, varies


def beyond(scaled: Float, clip: float) -> Float:
    """Of the values beyond the clip: how many each column has, their sum, that of their squares."""
    rows, columns = np.nonzero(np.abs(scaled) > clip)
    values, n_columns = scaled[rows, columns], scaled.shape[1]
    each = (np.ones(len(values)), values, values**2)
    return np.stack([np.bincount(columns, weights, n_columns) for weights in each])


def inflated(far: Float, n: int) -> npt.NDArray[np.bool_]:
    """Columns whose deviation a few values have made; far is of columns with variance 1."""
    count, total, squares = far
    others = np.maximum(n - count, 1)
    variance = (n - squares) / others - (total / others) ** 2
    few = (count > 0) & (count <= np.ceil(FEW * n))
    result: npt.NDArray[np.bool_] = few & (variance < INFLATED**2)
    return result


def informed(scaling: Scaling, X: Data, labels: Index, rows: Index | None = None) -> Scaling:
    """Without the indicators whose rate is the same in all classes, as far as rows can tell.

    Values that are missing at random would add a noisy column, and its products, for every column
    that has any. The level is shared among the indicators (Bonferroni).
    """
    first = X.shape[1] - scaling.n_indicators
    marks = scaling.kept[scaling.kept >= first]
    place = slice(None) if rows is None else rows
    counts, n_classes = np.bincount(labels), int(labels.max()) + 1
    marked = {
        int(mark): np.bincount(labels[dense(X[place, mark]) > 0], minlength=n_classes)
        for mark in marks
    }
    return informed_by_counts(scaling, marked, counts)


def informed_by_counts(scaling: Scaling, marked: dict[int, Index], counts: Index) -> Scaling:
    """The same from counts: ``marked`` has the marked rows of every class for each indicator."""
    first = len(scaling.center) - scaling.n_indicators
    marks = scaling.kept[scaling.kept >= first]
    level = BY_CHANCE / max(len(marks), 1)
    said = [mark for mark in marks if _p_value(marked[int(mark)], counts) < level]
    columns = scaling.kept[scaling.kept < first]
    kept = np.concatenate([columns, np.array(said, dtype=np.intp)])
    return replace(scaling, kept=kept) if len(kept) else scaling


def _p_value(marked: Index, counts: Index) -> float:
    """Of the hypothesis that a mark, which varies, has the same rate in all classes."""
    table = np.stack([counts - marked, marked])
    return float(chi2_contingency(table, correction=False).pvalue)
