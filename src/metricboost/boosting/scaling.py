"""Columns are centred, scaled and clipped once, before anything else; constant ones are left out.

A value far out then counts as lying at the end of the range, and no longer dominates the distances
of its row. The column is not scaled again after that (products of columns are). Its
deviation, which the value has inflated, keeps the column small, and that is as well: on SECOM, full
of such columns, scaling them up again loses what clipping gains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index

#: A deviation below this share of the column's size is rounding: the column is constant.
CONSTANT = 1e-13


@dataclass(frozen=True)
class Scaling:
    """Constants of all columns, which of them vary, and where scaled values end."""

    center: Float
    scale: Float
    kept: Index
    clip: float | None = None

    @classmethod
    def of(cls, X: Float, standardize: bool, clip: float | None = None) -> Scaling:
        size = np.abs(X).max(axis=0)
        safe = np.where(size > 0, size, 1.0)
        unit = X / safe  # squares of 1e150 overflow, those of numbers up to 1 do not
        mean, deviation = unit.mean(axis=0), unit.std(axis=0)
        varies = (deviation > CONSTANT) & (X.max(axis=0) > X.min(axis=0))
        if not standardize:
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]), np.flatnonzero(varies))
        scale = np.where(varies, deviation * safe, 1.0)
        return cls(mean * safe, scale, np.flatnonzero(varies), clip)

    def apply(self, X: Float) -> Float:
        """The columns that vary, scaled and clipped, C order."""
        kept = self.kept
        scaled = np.ascontiguousarray((X[:, kept] - self.center[kept]) / self.scale[kept])
        return scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip, out=scaled)
