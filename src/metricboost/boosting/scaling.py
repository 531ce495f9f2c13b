"""Columns are centred, scaled and clipped once, before anything else; constant ones are left out.

A value far out then counts as lying at the end of the range, and no longer dominates the distances
of its row. The column is not scaled again after that (products of columns are). Its
deviation, which the value has inflated, keeps the column small, and that is as well: on SECOM, full
of such columns, scaling them up again loses what clipping gains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2_contingency

from .._typing import Float, Index

#: A deviation below this share of the column's size is rounding: the column is constant.
CONSTANT = 1e-13
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
        cls, X: Float, standardize: bool, clip: float | None = None, n_indicators: int = 0
    ) -> Scaling:
        size = np.abs(X).max(axis=0)
        safe = np.where(size > 0, size, 1.0)
        unit = X / safe  # squares of 1e150 overflow, those of numbers up to 1 do not
        mean, deviation = unit.mean(axis=0), unit.std(axis=0)
        varies = (deviation > CONSTANT) & (X.max(axis=0) > X.min(axis=0))
        if not standardize:
            center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
            return cls(center, scale, np.flatnonzero(varies), None, n_indicators)
        scale = np.where(varies, deviation * safe, 1.0)
        return cls(mean * safe, scale, np.flatnonzero(varies), clip, n_indicators)

    @property
    def plain(self) -> Index:
        """The columns of the plain distance: those that vary, without the indicators.

        Where nothing but indicators varies, they are all there is.
        """
        plain = self.kept[self.kept < len(self.center) - self.n_indicators]
        return plain if len(plain) else self.kept

    def apply(self, X: Float) -> Float:
        """The columns that vary, scaled and clipped, C order."""
        kept = self.kept
        scaled = np.ascontiguousarray((X[:, kept] - self.center[kept]) / self.scale[kept])
        return scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip, out=scaled)


def informed(scaling: Scaling, X: Float, labels: Index) -> Scaling:
    """Without the indicators whose rate is the same in all classes, as far as rows can tell.

    Values that are missing at random would add a noisy column, and its products, for every column
    that has any. The level is shared among the indicators (Bonferroni).
    """
    first = X.shape[1] - scaling.n_indicators
    marks = scaling.kept[scaling.kept >= first]
    said = [mark for mark in marks if _p_value(X[:, mark] > 0, labels) < BY_CHANCE / len(marks)]
    columns = scaling.kept[scaling.kept < first]
    kept = np.concatenate([columns, np.array(said, dtype=np.intp)])
    return replace(scaling, kept=kept) if len(kept) else scaling


def _p_value(mark: npt.NDArray[np.bool_], labels: Index) -> float:
    """Of the hypothesis that a mark, which varies, has the same rate in all classes."""
    counts = np.stack([np.bincount(labels[~mark], minlength=labels.max() + 1),
                       np.bincount(labels[mark], minlength=labels.max() + 1)])  # fmt: skip
    return float(chi2_contingency(counts, correction=False).pvalue)
