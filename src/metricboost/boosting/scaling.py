"""Scaling: columns are centred, scaled and clipped once. Constant columns are left out.

Clipping moves an outlying value to the end of the range, so that the value no longer dominates the
distances of its row. A clipped column is not scaled again (products of columns are). The outliers
have inflated the deviation of the column, so the scaled column is small, and it stays small on
purpose: on SECOM, which has many such columns, scaling them up again loses what clipping gains.

The exception is a column whose deviation is almost entirely due to a few outliers, for example one
mistyped value. After scaling, the other values of the column would be too close to each other to
affect any distance. The deviation of such a column is computed from the values within the clip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2_contingency

from .._blocks import PIECE, column_panels, dense, slices
from .._typing import Data, Float, Index

#: A column is constant if its deviation is below this share of its largest absolute value: the
#: deviation is then due to rounding.
CONSTANT = 1e-13
#: The deviation of a column is inflated by outliers if the values within the clip have less than
#: the share INFLATED of the deviation, and at most the share FEW of the rows is beyond the clip.
INFLATED = 0.1
FEW = 0.01
#: Tables with more rows than this are read in smaller pieces.
MANY_ROWS = 12_500
#: Constants are computed for blocks of columns with this many numbers (4 MiB).
BLOCK = 2**19
#: The probability that at least one indicator becomes a candidate if values are missing at random.
BY_CHANCE = 0.05


@dataclass(frozen=True)
class Scaling:
    """The scaling constants of the columns of a table.

    The last ``n_indicators`` columns of the table are indicators of missing values. Indicators are
    candidates like other columns, but they are not part of the plain distance: two rows are not
    close because the same values are missing.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and deviation of every column.
    kept : ndarray of int
        The columns that vary.
    clip : float or None
        Scaled values are clipped to [-clip, clip].
    n_indicators : int
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
        """Compute the constants from the given rows, or from all rows if ``rows`` is None."""
        clip = clip if standardize else None
        panels = [column_constants(panel, clip) for _, panel in column_panels(X, rows)]
        center, scale, varies = (np.concatenate(part) for part in zip(*panels))
        if not standardize:
            center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        return cls(center, scale, np.flatnonzero(varies), clip, n_indicators)

    @property
    def plain(self) -> Index:
        """The columns of the plain distance: the columns that vary, without the indicators.

        If only indicators vary, the plain distance is on the indicators.
        """
        plain = self.kept[self.kept < len(self.center) - self.n_indicators]
        return plain if len(plain) else self.kept

    def transposed(self, X: Data, rows: Index | None = None) -> Float:
        """The scaled and clipped table, transposed, with the columns that vary.

        If ``rows`` is given, the result has only these rows of the table.
        """
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
        """The rows ``X``, scaled and clipped, with the columns that vary."""
        values: Float = np.take(X, self.kept, axis=1)
        values -= self.center[self.kept]
        values /= self.scale[self.kept]
        return values if self.clip is None else np.clip(values, -self.clip, self.clip, out=values)

    def plain_variance(self, X: Data) -> float:
        """The sum of the variances of the scaled columns of the plain distance."""
        total = 0.0
        inside = np.zeros(len(self.center), dtype=bool)
        inside[self.plain] = True
        # Each piece is copied, so the pieces are smaller if the table has many rows.
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
    """Mean and deviation of the columns of ``panel``, and whether each column varies.

    If a clip is given, columns whose deviation is inflated by outliers get the mean and the
    deviation of the values within the clip.
    """
    n, p = panel.shape
    center, scale, varies = np.empty(p), np.empty(p), np.empty(p, dtype=bool)
    for part in slices(p, n, BLOCK):
        center[part], scale[part], varies[part] = _constants_of_block(panel[:, part], clip)
    return center, scale, varies


def _constants_of_block(
    block: Float, clip: float | None
) -> tuple[Float, Float, npt.NDArray[np.bool_]]:
    low, high = block.min(axis=0), block.max(axis=0)
    size = _size(low, high)
    unit = block / size  # numbers up to 1, because squares of larger numbers may overflow
    mean, deviation = unit.mean(axis=0), unit.std(axis=0)
    varies = _varies(low, high, size, deviation)
    center, scale = mean * size, np.where(varies, deviation * size, 1.0)
    if clip is not None:
        unit -= mean
        unit /= np.where(varies, deviation, 1.0)
        columns = np.flatnonzero(varies & inflated(beyond(unit, clip), len(unit)))
        inside = np.abs(unit.T[columns]) <= clip
        _leave_out(columns, block.T[columns], inside, clip, center, scale)
    return center, scale, varies


def _leave_out(
    columns: Index,
    values: Float,
    inside: npt.NDArray[np.bool_],
    clip: float,
    center: Float,
    scale: Float,
) -> None:
    """Set the constants of inflated columns to those of the values within the clip.

    ``values`` has a row for each of the columns, and ``inside`` says which values are within the
    clip. If the constants are still inflated, the values beyond the new clip are left out, too.
    """
    while len(columns):
        low = np.where(inside, values, np.inf).min(axis=1)
        high = np.where(inside, values, -np.inf).max(axis=1)
        some = high > low  # otherwise only the outliers vary, as in zeros and a few ones
        columns, values, inside = columns[some], values[some], inside[some]
        low, high, count = low[some], high[some], inside.sum(axis=1)
        size = _size(low, high)
        unit = np.where(inside, values / size[:, None], 0.0)
        mean = unit.sum(axis=1) / count
        unit = np.where(inside, unit - mean[:, None], 0.0)
        deviation = np.sqrt((unit**2).sum(axis=1) / count)
        vary = _varies(low, high, size, deviation)
        center[columns[vary]], scale[columns[vary]] = (mean * size)[vary], (deviation * size)[vary]
        unit /= np.where(vary, deviation, 1.0)[:, None]
        again = vary & inflated(beyond(unit.T, clip), count)
        columns, values = columns[again], values[again]
        inside = inside[again] & (np.abs(unit[again]) <= clip)


def _size(low: Float, high: Float) -> Float:
    """The largest absolute value of each column; 1 for columns of zeros."""
    size: Float = np.maximum(np.abs(low), np.abs(high))
    return np.where(size > 0, size, 1.0)


def _varies(low: Float, high: Float, size: Float, deviation: Float) -> npt.NDArray[np.bool_]:
    """Whether columns vary. ``deviation`` is the deviation of the columns divided by ``size``.

    A column with a deviation below 1e-307 counts as constant: dividing by it would overflow.
    """
    result: npt.NDArray[np.bool_] = (
        (deviation > CONSTANT) & (high > low) & (deviation * size >= np.finfo(float).tiny)
    )
    return result


def beyond(scaled: Float, clip: float) -> Float:
    """Count, sum and sum of squares of the values beyond the clip, for every column (3 x p)."""
    rows, columns = np.nonzero(np.abs(scaled) > clip)
    values, n_columns = scaled[rows, columns], scaled.shape[1]
    each = (np.ones(len(values)), values, values**2)
    return np.stack([np.bincount(columns, weights, n_columns) for weights in each])


def inflated(far: Float, n: int | Index) -> npt.NDArray[np.bool_]:
    """Whether the deviation of a column is inflated by a few outliers.

    ``far`` is the result of ``beyond`` for columns scaled to variance 1, and ``n`` the number of
    rows (or the number for each column).
    """
    count, total, squares = far
    others = np.maximum(n - count, 1)
    variance = (n - squares) / others - (total / others) ** 2
    few = (count > 0) & (count <= np.ceil(FEW * n))
    result: npt.NDArray[np.bool_] = few & (variance < INFLATED**2)
    return result


def informed(scaling: Scaling, X: Data, labels: Index, rows: Index | None = None) -> Scaling:
    """Drop the indicators whose rate does not differ significantly between the classes.

    If values are missing at random, every column with missing values would otherwise add an
    indicator that is noise, and the products of the indicator. The significance level is divided by
    the number of indicators (Bonferroni).
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
    """As ``informed``, from counts.

    ``marked[j]`` has the number of rows of each class with indicator j set, and ``counts`` the
    number of rows of each class.
    """
    first = len(scaling.center) - scaling.n_indicators
    marks = scaling.kept[scaling.kept >= first]
    level = BY_CHANCE / max(len(marks), 1)
    said = [mark for mark in marks if _p_value(marked[int(mark)], counts) < level]
    columns = scaling.kept[scaling.kept < first]
    kept = np.concatenate([columns, np.array(said, dtype=np.intp)])
    return replace(scaling, kept=kept) if len(kept) else scaling


def _p_value(marked: Index, counts: Index) -> float:
    """The p-value of the hypothesis that an indicator has the same rate in all classes.

    ``marked`` and ``counts`` have one number per class.
    """
    table = np.stack([counts - marked, marked])
    return float(chi2_contingency(table, correction=False).pvalue)
