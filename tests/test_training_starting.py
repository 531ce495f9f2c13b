"""Start metrics that are given, and values far out."""

from __future__ import annotations

import numpy as np
import pytest
from fits import (
    cross_fitted,
    product_table,
    short,
    squared,
)
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier
from metricboost.boosting.scaling import Scaling

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def table():
    return product_table()


@pytest.fixture(scope="module")
def fitted(table):
    return short().fit(*table)


@pytest.fixture(scope="module")
def three_fits(table):
    """The fits behind ``fitted``."""
    return cross_fitted(short(), *table)


# --- given starts


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_a_start_metric_is_taken_as_it_is(n_averaged, table, fitted):
    """Terms of a given metric keep their constants on other rows; distances change by a factor."""
    X, y = table
    params = {"init": fitted.metric_, "oob_gate": 1e6, "start_share": 0.0}
    kept = short(SDist, n_averaged=n_averaged, **params).fit(X[40:], y[40:])
    assert kept.best_iter_ == 0
    factor = squared(kept, X[:75], X[75:]) / squared(fitted, X[:75], X[75:])
    assert_allclose(factor, factor[0], rtol=1e-9)
    assert kept.start_share_ == 0.0
    assert all(fit.path.start.index.size for fit in kept.model_.history.fits)


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_a_start_matrix_stays_where_nothing_is_accepted(n_averaged, table):
    X, y = table
    W = np.diag([1.0, 0, 0, 0, 0, 5.0])
    model = short(SDist, init=W, oob_gate=1e6, start_share=0.0, n_averaged=n_averaged).fit(X, y)
    found = dict(zip(model.metric_.columns, np.diag(model.metric_.matrix())))
    assert set(found) == {(0,), (5,)}
    assert found[5,] / found[0,] == pytest.approx(5.0)


# --- heavy tails


def with_outlier(table, value=1e6):
    X, y = table
    X = X.copy()
    X[0, 4] = value
    return X, y


def test_one_value_far_out_owns_the_distance_only_without_clipping(table):
    """The row has a hundredth of the variance of all 150 rows with a clip, and a sixth without."""
    X, y = with_outlier(table)
    share = {}
    for clip in (3.0, None):
        rows = short(SDist, clip=clip, start_share=1.0).fit(X, y).transform(X)
        away = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        share[clip] = away[0] / away.sum()
    assert share[3.0] < 0.02
    assert share[None] > 0.15


def test_a_clipped_column_stays_a_small_one(table):
    """A column is scaled once, with its outlier; after clipping its variance is small."""
    X, _ = with_outlier(table, 300.0)
    clipped, free = (Scaling.of(X, True, clip).transposed(X).T[:, 4] for clip in (3.0, None))
    assert clipped[0] == 3.0
    assert free[0] > 11
    assert_array_equal(clipped[1:], free[1:])
    assert clipped.var() < 0.2
    assert free.var() == pytest.approx(1.0)


@pytest.mark.parametrize("values", [[1e4], [-1e6], [1e4, 1e12], [3e200]])
def test_a_mistyped_value_leaves_the_column_to_the_others(values, table):
    """The deviation is that of the other rows, so that the column keeps its variance."""
    X, y = table
    wrong = X.copy()
    wrong[: len(values), 4] = values
    found, expected = Scaling.of(wrong, True, 3.0), Scaling.of(X, True, 3.0)
    assert_allclose(found.scale, expected.scale, rtol=0.05)
    assert_allclose(found.center, expected.center, atol=0.05)
    scaled = found.transposed(wrong)[4]
    assert_array_equal(np.abs(scaled[: len(values)]), 3.0)
    away = (scaled**2 - (scaled**2).mean()) ** 2  # nor does it own the square of the column
    assert away[0] / away.sum() < 0.5
    model, clean = (short(SDist).fit(rows, y) for rows in (wrong, X))
    assert model.metric_.terms[0].columns == clean.metric_.terms[0].columns


def test_rare_values_are_no_mistakes():
    """Rare values count as values if all other rows are equal, or if they are not that rare."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 2))
    X[:2, 0] = 1.0
    X[:, 1] = rng.normal(0, 0.001, 200) + (np.arange(200) < 8)
    found, free = (Scaling.of(X, True, clip) for clip in (3.0, None))
    assert_array_equal(found.scale, free.scale)


@pytest.mark.parametrize(("clip", "moved"), [(3.0, False), (None, True)])
def test_a_query_far_out_is_not_everything(clip, moved, table):
    """The distances of a new row with one value far out are bounded only with a clip."""
    X, y = table
    model = short(SDist, clip=clip, start_share=1.0).fit(X, y)
    wild = X[:1].copy()
    wild[0, 4] = 1e6
    away = model.pair_distance(np.repeat(wild, 149, axis=0), X[1:])
    usual = model.pair_distance(np.repeat(X[:1], 149, axis=0), X[1:])
    assert ((away / usual).mean() > 100) == moved
    assert ((away / usual).mean() < 3) == (not moved)
