"""The medians over all rows of a table, if only a sample of the rows is in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._blocks import column_panels
from .._typing import Data, Float
from ..inputs import Imputation
from ..sources import BLOCK_NUMBERS, Source
from ..sources.statistics import imputation_of

#: A median whose distance from a value is below this number of standard deviations is set to the
#: value, because such a difference is due to rounding.
ROUNDING = 1e-9


def imputation_from(source: Source, X: Data) -> Imputation:
    """The imputation with the medians of all rows. ``X`` is a sample with missing values.

    A median that differs from a value of the sample only by rounding is replaced by this value.
    A column with two different values then still has two different values after the imputation.
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
    """The mean and the standard deviation of the finite values of each column of a sample."""
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
