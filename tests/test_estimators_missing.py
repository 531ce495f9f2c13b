"""Missing values in the estimators: filled with medians, and told by indicators."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from fits import (
    cross_fitted,
    product_table,
    short,
)
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier

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


# --- missing values


NAMES = ["age", "income", "height", "weight", "pulse", "dose"]


@pytest.fixture(scope="module")
def gaps(table):
    """Values of column 4 are often missing in class 1, and seldom in class 0."""
    X, y = table
    rng = np.random.default_rng(1)
    X = X.copy()
    X[rng.random(150) < np.where(y == 1, 0.7, 0.05), 4] = np.nan
    X[rng.random(150) < 0.1, 0] = np.nan
    return X, y


@BOTH
def test_missing_values_are_imputed_inside(cls, gaps):
    """The indicator of a column with missing values is named after it, and tells classes apart."""
    frame = pd.DataFrame(gaps[0], columns=NAMES)
    model = short(cls, missing="impute").fit(frame, gaps[1])
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == NAMES
    assert model.metric_.n_features == 6
    assert model.metric_.imputation.indicators == (0, 4)
    names = {name for term in model.metric_.terms for name in term.name.split("*")}
    assert "missing(pulse)" in names
    assert "missing(pulse)^2" not in names  # 0 and 1 are their own squares
    assert model.feature_importances_.shape == model.stability_.shape == (6,)
    assert model.stability_[4] == 1.0
    assert_allclose(model.feature_importances_.sum(), 1.0)
    if cls is SDistClassifier:
        assert model.oob_score_ > 0.75


def test_values_missing_at_random_are_only_filled(table):
    """Indicators that are independent of the classes are no candidates; medians are filled in."""
    X, y = table
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)
    by_hand = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    a, b = short(missing="impute").fit(X, y), short().fit(by_hand, y)
    assert len(a.metric_.imputation.indicators) == 6
    assert_array_equal(a.transform(X), b.transform(by_hand))
    assert_array_equal(a.predict_proba(X), b.predict_proba(by_hand))
    assert_array_equal(a.feature_importances_, b.feature_importances_)


@pytest.mark.parametrize("params", [{"start_share": 1.0}, {"init": "identity", "max_iter": 1}])
def test_the_plain_distance_knows_no_indicators(gaps, params):
    """Indicators of missing values have no share in the plain distance."""
    X, y = gaps
    model = short(SDist, missing="impute", oob_gate=1e9, **params).fit(X, y)
    assert [term.name for term in model.metric_.terms] == [f"x{j}" for j in range(6)]
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    assert_allclose(model.transform(X), model.transform(filled))


def test_a_metric_with_indicators_can_be_started_from(gaps):
    """The indicators of a start metric may have other numbers in the new table."""
    X, y = gaps
    first = short(SDist, missing="impute").fit(X, y)
    assert any("missing(x4)" in term.name for term in first.metric_.terms)
    again = short(SDist, missing="impute", init=first.metric_, oob_gate=1e9).fit(X, y)
    assert {term.name for term in again.metric_.terms} == {t.name for t in first.metric_.terms}
    more = X.copy()
    more[:3, 1] = np.nan  # one more indicator, before that of x4
    moved = short(SDist, missing="impute", init=first.metric_, oob_gate=1e9).fit(more, y)
    assert {term.name for term in moved.metric_.terms} == {t.name for t in first.metric_.terms}


@pytest.mark.parametrize("kind", ["metric", "matrix"])
def test_a_start_over_complete_columns_where_values_are_missing(gaps, table, kind):
    X, y = gaps
    start = np.eye(6) if kind == "matrix" else short(SDist).fit(*table).metric_
    model = short(SDist, missing="impute", init=start, oob_gate=1e9).fit(X, y)
    assert not any("missing" in term.name for term in model.metric_.terms)
    assert model.transform(X).shape[0] == len(X)


def test_a_start_that_needs_indicators_is_told_so(gaps, table):
    metric = short(SDist, missing="impute").fit(*gaps).metric_
    with pytest.raises(ValueError, match=r"whether .*'x4'.* is missing: set missing"):
        short(SDist, init=metric).fit(*table)


def test_indicators_alone_can_be_learned_from():
    """Every value is the same or missing, so that only the indicators vary."""
    y = np.repeat([0, 1], 40)
    X = np.where((np.random.default_rng(0).random((80, 2)) < 0.8 * y[:, None]), np.nan, 1.0)
    model = short(missing="impute").fit(X, y)
    assert model.score(X, y) > 0.8


@BOTH
def test_missing_where_nothing_was_missing_in_training(cls, gaps):
    """Columns that were complete are filled with their medians in new rows."""
    X, y = gaps
    model = short(cls, missing="impute").fit(X, y)
    fresh = np.where(np.isnan(X), 7.0, X)[:20]
    missing, filled = fresh.copy(), fresh.copy()
    missing[:, 1:4] = np.nan
    filled[:, 1:4] = np.median(X[:, 1:4], axis=0)
    assert_array_equal(model.transform(missing), model.transform(filled))
    nothing = np.full((2, 6), np.nan)
    assert np.isfinite(model.transform(nothing)).all()
    if cls is SDistClassifier:
        assert_array_equal(model.predict_proba(missing), model.predict_proba(filled))
        assert_allclose(model.predict_proba(nothing).sum(axis=1), 1.0)
        assert len(list(model.staged_predict(missing))) == len(list(model.staged_transform(fresh)))


@BOTH
def test_no_gaps_no_indicators(cls, table):
    """Without missing values missing="impute" makes the same model as missing="error"."""
    X, y = table
    a, b = short(cls, missing="impute").fit(X, y), short(cls).fit(X, y)
    assert_array_equal(a.transform(X), b.transform(X))
    assert a.metric_.columns == b.metric_.columns
    assert np.isfinite(a.transform(np.full((1, 6), np.nan))).all()


@BOTH
def test_gaps_survive_pickling_and_frames(cls, gaps):
    X, y = gaps
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(150) + 5)
    model = short(cls, missing="impute").set_output(transform="pandas").fit(frame, y)
    out = model.transform(frame)
    assert out.columns.tolist() == [f"sdist{i}" for i in range(model.metric_.rank)]
    assert out.index.equals(frame.index)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.transform(frame).to_numpy(), out.to_numpy())
    metric = pickle.loads(pickle.dumps(model.metric_))
    assert_array_equal(metric.transform(X), out.to_numpy())
    assert_array_equal(twin.stability_, model.stability_)
    if cls is SDistClassifier:
        assert_array_equal(twin.predict_proba(frame), model.predict_proba(frame))
        assert_array_equal(twin.kneighbors(frame)[1], model.kneighbors(frame)[1])


def test_a_column_that_is_missing_everywhere(table):
    """The column and its indicator are constant, and are left out."""
    X, y = table
    wider = np.insert(X, 3, np.nan, axis=1)
    with pytest.warns(UserWarning, match="Constant column"):
        model = short(missing="impute").fit(wider, y)
    assert model.feature_importances_[3] == 0
    assert_allclose(model.transform(wider), short().fit(X, y).transform(X), atol=1e-12)


def test_rows_without_weight_do_not_shape_the_medians(gaps):
    X, y = gaps
    weight = np.where(np.arange(150) < 30, 0.0, 1.0)
    wild = X.copy()
    wild[:30] = 1e9
    a = short(missing="impute").fit(wild, y, sample_weight=weight)
    b = short(missing="impute").fit(X[30:], y[30:])
    assert_array_equal(a.metric_.imputation.fill, b.metric_.imputation.fill)
    assert_array_equal(a.transform(X), b.transform(X))


# --- pickles


@BOTH
def test_a_pickle_is_the_same_model(cls, table):
    """A pickled model has its path and its stages, and can be fitted again."""
    X, y = table
    model = short(cls).fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.transform(X), model.transform(X))
    assert_array_equal(twin.path_, model.path_)
    assert_array_equal(list(twin.staged_transform(X))[-1], list(model.staged_transform(X))[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin.fit(X, y)
    assert_array_equal(twin.transform(X), model.transform(X))
