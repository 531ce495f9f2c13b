"""Medians of all rows of a table, of which only a sample is in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._blocks import column_panels
from .._typing import Data, Float
from ..inputs import Imputation
from ..sources import BLOCK_NUMBERS, Source
from ..sources.statistics import imputation_of

#: A median this close to a value, in deviations of its column, differs from it by rounding.
ROUNDING = 1e-9


def imputation_from(source: Source, X: Data) -> Imputation:
    """The medians of all rows; ``X`` is a sample with missing values.

    A median that is a value of the sample but for rounding is that value: a column of two values
    then has two values when its missing values are filled.
    """
    center, scale = rough_constants(X)
    found = imputation_of(source, center, scale)
    fill = found.fill.copy()
    for columns, panel in column_panels(X, piece=BLOCK_NUMBERS):
        away = np.abs(panel - fill[columns])
        nearest = np.where(np.isnan(away), np.inf, away).argmin(axis=0), np.arange(panel.shape[1])
        close = away[nearest] <= ROUNDING * scale[columns]
        fill[columns][close] = panel[nearest][close]
    return replace(found, fill=fill)


def rough_constants(X: Data) -> tuple[Float, Float]:
    """Mean and deviation of the finite values of a sample."""
    centers, scales = [], []
    for _, panel in column_panels(X, piece=BLOCK_NUMBERS):
        there = np.isfinite(panel)
        count = np.maximum(there.sum(axis=0), 1)
        center = np.where(there, panel / count, 0.0).sum(axis=0)
        away = np.where(there, panel - center, 0.0)
        size = np.maximum(np.abs(away).max(axis=0), np.finfo(float).tiny)
        spread = size * np.sqrt(((away / size) ** 2).sum(axis=0) / count)
        centers.append(center)
        scales.append(np.where(spread > 0, spread, 1.0))
    return np.concatenate(centers), np.concatenate(scales)
