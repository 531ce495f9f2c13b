"""Columns are centred and scaled once, before anything else; constant ones are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index

#: A deviation below this share of the column's size is rounding: the column is constant.
CONSTANT = 1e-13


@dataclass(frozen=True)
class Scaling:
    """Constants of all columns, and which of them vary."""

    center: Float
    scale: Float
    kept: Index

    @classmethod
    def of(cls, X: Float, standardize: bool) -> Scaling:
        size = np.abs(X).max(axis=0)
        safe = np.where(size > 0, size, 1.0)
        unit = X / safe  # squares of 1e150 overflow, those of numbers up to 1 do not
        mean, deviation = unit.mean(axis=0), unit.std(axis=0)
        varies = (deviation > CONSTANT) & (X.max(axis=0) > X.min(axis=0))
        if not standardize:
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]), np.flatnonzero(varies))
        scale = np.where(varies, deviation * safe, 1.0)
        return cls(mean * safe, scale, np.flatnonzero(varies))

    def apply(self, X: Float) -> Float:
        """The columns that vary, scaled, C order."""
        kept = self.kept
        return np.ascontiguousarray((X[:, kept] - self.center[kept]) / self.scale[kept])
