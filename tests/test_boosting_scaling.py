"""The constants of columns, and columns with two values: all columns at once against one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from metricboost.boosting.levels import Levels
from metricboost.boosting.scaling import BLOCK, FEW, INFLATED, column_constants

Array = npt.NDArray[Any]


def of_one_column(values: Array, clip: float | None) -> tuple[float, float, bool]:
    """Mean and deviation. A deviation that few outliers inflate is that of the other values."""
    size = np.abs(values).max() or 1.0
    mean, deviation = float(values.mean()), float((values / size).std() * size)
    if not deviation > 1e-13 * size:
        return mean, 1.0, False
    within = np.abs(values - mean) <= (np.inf if clip is None else clip) * deviation
    n_far = int((~within).sum())
    inflated = values[within].std() < INFLATED * deviation
    if 0 < n_far <= np.ceil(FEW * len(values)) and inflated:
        own_mean, own_deviation, varies = of_one_column(values[within], clip)
        if varies:
            return own_mean, own_deviation, True
    return mean, deviation, True


@pytest.fixture(scope="module")
def columns() -> Array:
    """Columns with mistyped numbers of several sizes, with few values, and constant ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 60)) * 10.0 ** rng.integers(-5, 6, 60)
    for j in range(40):
        rows = rng.integers(0, 700, j % 12)
        X[rows, j] *= 10.0 ** rng.integers(1, 9, len(rows))
    X[:, 40:44] = [0.0, 0.1, -3.0, 1e300]
    X[:, 44:50] = rng.random((700, 6)) < [0.5, 0.1, 0.009, 0.005, 0.002, 0.999]
    return X


@pytest.mark.parametrize("clip", [None, 3.0, 1.0])
def test_constants_of_columns(columns: Array, clip: float | None) -> None:
    expected = [of_one_column(column, clip) for column in columns.T]
    center, scale, varies = column_constants(columns, clip)
    np.testing.assert_allclose(center, [one[0] for one in expected], rtol=1e-11, atol=1e-17)
    np.testing.assert_allclose(scale, [one[1] for one in expected], rtol=1e-12)
    assert varies.tolist() == [one[2] for one in expected]


def test_some_outliers_hide_others() -> None:
    """The values within the first clip are inflated, too, and are clipped once more."""
    values = np.random.default_rng(0).normal(size=1000)
    values[:3], values[3:6] = 1e9, 1e4
    center, scale, _ = column_constants(values[:, None], 3.0)
    np.testing.assert_allclose([center[0], scale[0]], of_one_column(values, 3.0)[:2], rtol=1e-12)
    assert scale[0] < 2.0


def test_blocks_change_nothing(columns: Array) -> None:
    """Columns in several blocks have the bits of the columns in one block."""
    many = np.tile(columns, (1, 1 + BLOCK // columns.size))
    whole, part = column_constants(many, 3.0), column_constants(columns, 3.0)
    for found, expected in zip(whole, part):
        np.testing.assert_array_equal(found, np.resize(expected, len(found)))


def test_columns_with_two_values(columns: Array) -> None:
    """In several blocks, with numbers of rows that do not fill bytes."""
    Xt = np.ascontiguousarray(np.tile(columns.T, (6, 1)))
    assert Levels(Xt).two_valued.tolist() == [len(np.unique(column)) <= 2 for column in Xt]
