"""Missing values: the imputation, metrics with an imputation, and the checks of tables."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from metricboost import SparseMetric
from metricboost.inputs import Imputation, check_table, check_training
from metricboost.inputs import imputation as imputation_module

NAN = np.nan
PROPERTY = settings(max_examples=60, deadline=None)
TABLES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.just(NAN), st.floats(-1e300, 1e300)),
)


@pytest.fixture
def X():
    """Values of income are missing in some rows, values of height in all rows."""
    return np.array([[1.0, NAN, NAN], [2.0, 5.0, NAN], [4.0, 7.0, NAN], [8.0, NAN, NAN]])


@pytest.fixture
def metric(X):
    """A metric on age, missing(income), income*missing(income) and age*missing(height)."""
    imputation = Imputation.of(X)
    extended = imputation.apply(X)
    return SparseMetric(
        [(0,), (3,), (1, 3), (0, 4)],
        np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
        extended.mean(axis=0),
        np.ones(5),
        np.zeros(4),
        np.ones(4),
        feature_names=["age", "income", "height"],
        diagonal=[0.0, 0.0, 0.0, 2.0],
        imputation=imputation,
    )


# --- filling


@given(TABLES)
@PROPERTY
def test_what_is_there_stays_and_what_is_missing_is_filled(X):
    """The filled table and its indicators determine the original table."""
    imputation = Imputation.of(X)
    before = X.copy()
    found = imputation.apply(X)
    assert_array_equal(X, before)
    assert np.isfinite(found).all()
    filled, marks = found[:, : X.shape[1]], found[:, X.shape[1] :]
    back = filled.copy()
    back[:, list(imputation.indicators)] = np.where(
        marks == 1, NAN, filled[:, list(imputation.indicators)]
    )
    assert_array_equal(back, X)
    assert list(imputation.indicators) == np.flatnonzero(np.isnan(X).any(axis=0)).tolist()


@given(TABLES)
@PROPERTY
def test_medians(X):
    """The medians are those of NumPy over the values that are not missing."""
    expected = [np.median(x[~np.isnan(x)]) if not np.isnan(x).all() else 0.0 for x in X.T]
    assert_allclose(Imputation.of(X).fill, expected, rtol=1e-15, atol=1e-300)


def test_medians_are_of_finite_values_and_do_not_overflow():
    """Infinite values do not count, and the mean of two huge values does not overflow."""
    X = np.array([[np.inf, 1.7e308], [3.0, 1.7e308], [-np.inf, NAN]])
    assert_array_equal(Imputation.of(X).fill, [3.0, 1.7e308])
    assert Imputation.of(X).indicators == (1,)


def test_a_complete_table():
    """A complete table has no indicators, and the result is a copy."""
    X = np.arange(6.0).reshape(3, 2)
    found = Imputation.of(X).apply(X)
    assert_array_equal(found, X)
    assert not np.shares_memory(found, X)
    assert Imputation.of(X).names(["a", "b"]) == ["a", "b"]


def test_a_column_that_is_always_missing(X):
    """The column is filled with zero, and its indicator is constant in training."""
    imputation = Imputation.of(X)
    assert_array_equal(imputation.fill, [3.0, 6.0, 0.0])
    assert imputation.indicators == (1, 2)
    assert_array_equal(imputation.apply(X)[:, 2], 0.0)
    assert_array_equal(imputation.apply(X)[:, 4], 1.0)
    assert_array_equal(imputation.apply([[1.0, 2.0, 9.0]]), [[1.0, 2.0, 9.0, 0.0, 0.0]])


def test_missing_only_in_new_rows(X):
    """A column without missing values in training is filled and has no indicator."""
    assert_array_equal(Imputation.of(X).apply([[NAN, 5.0, 1.0]]), [[3.0, 5.0, 1.0, 0.0, 0.0]])


def test_no_rows(X):
    """Without training rows the fill is zero. An empty table stays empty."""
    assert_array_equal(Imputation.of(np.empty((0, 2))).fill, [0.0, 0.0])
    assert Imputation.of(X).apply(np.empty((0, 3))).shape == (0, 5)


def test_names(X):
    """The names of the input come first, then the names of the indicators."""
    found = Imputation.of(X).names(["age", "income", "height"])
    assert found == ["age", "income", "height", "missing(income)", "missing(height)"]


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 4)])
def test_tables_of_another_shape(X, shape):
    """The error has the shape and the expected number of columns."""
    with pytest.raises(ValueError, match=r"shape.*3 columns"):
        Imputation.of(X).apply(np.zeros(shape))


@pytest.mark.parametrize(
    ("fill", "indicators", "named"),
    [
        (np.array([NAN]), (), "fill"),
        (np.zeros((2, 2)), (), "fill"),
        (np.zeros(2), (2,), "indicators"),
        (np.zeros(2), (-1,), "indicators"),
        (np.zeros(2), (1, 1), "indicators"),
    ],
)
def test_parts_that_do_not_fit_together(fill, indicators, named):
    """The constructor refuses impossible values."""
    with pytest.raises(ValueError, match=named):
        Imputation(fill, indicators)


def test_examples_run():
    """The examples in the docstrings run and give the results that they show."""
    result = doctest.testmod(imputation_module)
    assert result.attempted > 0
    assert result.failed == 0


# --- in a metric


def test_names_in_a_metric(metric):
    """Indicators have the names of their columns, and their numbers in the extended table."""
    names = {term.columns: term.name for term in metric.terms}
    assert names == {
        (0,): "age",
        (3,): "missing(income)",
        (1, 3): "income*missing(income)",
        (0, 4): "age*missing(height)",
    }
    assert [term.name for term in metric.interactions()] == [
        "age*missing(height)",
        "income*missing(income)",
    ]


def test_default_names_in_a_metric(metric, X):
    """Without names, columns are called x0, x1, ... and indicators missing(x1)."""
    parts = (metric.columns, metric.components, metric.center, metric.scale, np.zeros(4))
    twin = SparseMetric(*parts, np.ones(4), imputation=metric.imputation)
    assert "missing(x1)" in [term.name for term in twin.terms]


def test_importances_belong_to_the_columns_of_the_input(metric):
    """Age has weight 1, income and its indicator 4 and 1, age and missing(height) share 2."""
    assert metric.n_features == 3
    assert_allclose(metric.importances(), np.array([2.0, 5.0, 1.0]) / 8)
    assert repr(metric) == "SparseMetric(rank=3, n_terms=4, variables=3 of 3)"


def test_distances_are_those_of_the_extended_table(metric, X):
    """Distances are those of the same metric without the imputation on the filled table."""
    inner = SparseMetric(
        metric.columns, metric.components, metric.center, metric.scale, metric.term_center,
        metric.term_scale, diagonal=metric.diagonal,
    )  # fmt: skip
    filled = metric.imputation.apply(X)
    assert_array_equal(metric.term_features(X), inner.term_features(filled))
    assert_array_equal(metric.transform(X), inner.transform(filled))
    assert_array_equal(metric.pairwise_distance(X), inner.pairwise_distance(filled))
    assert metric.median_gamma(X) == inner.median_gamma(filled)
    assert np.isfinite(metric.kernel(X, gamma=1.0)).all()


def test_missing_only_in_new_rows_of_a_metric(metric):
    """A missing age counts as the median age."""
    unknown, median = [[NAN, 5.0, 1.0]], [[3.0, 5.0, 1.0]]
    assert metric.pair_distance(unknown, median) == 0
    assert metric.pair_distance([[3.0, NAN, 1.0]], median) > 0


def test_without_imputation_nan_stays_nan():
    """Only the rows with NaN have NaN in their embedding."""
    plain = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0])
    assert_array_equal(np.isnan(plain.transform([[NAN], [1.0]])).ravel(), [True, False])


def test_tables_have_the_columns_of_the_input(metric):
    """A table with the columns of the extended table is refused."""
    with pytest.raises(ValueError, match=r"\(2, 5\).*3 columns"):
        metric.transform(np.zeros((2, 5)))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("center", np.zeros(3)),
        ("scale", np.ones(3)),
        ("feature_names", list("abcde")),
        ("columns", [(5,)]),
    ],
)
def test_parts_of_a_metric_that_do_not_fit(X, part, value):
    """Constants belong to the extended table, and names to the input."""
    arguments = {
        "columns": [(4,)], "components": [[1.0]], "center": np.zeros(5), "scale": np.ones(5),
        "term_center": [0.0], "term_scale": [1.0], "imputation": Imputation.of(X),
    }  # fmt: skip
    with pytest.raises(ValueError, match=part):
        SparseMetric(**arguments | {part: value})


def test_pickling(metric, X):
    """A pickled metric has its imputation."""
    twin = pickle.loads(pickle.dumps(metric))
    assert_array_equal(twin.transform(X), metric.transform(X))
    assert twin.terms == metric.terms


# --- checks of tables


class Imputing(BaseEstimator):
    """An estimator with a parameter ``missing``."""

    def __init__(self, missing="impute"):
        self.missing = missing


def frame(income):
    return pd.DataFrame({"age": [1.0, NAN, 3.0], "income": income})


MISSING = {
    "array": np.array([[1.0, NAN], [NAN, 2.0], [3.0, 3.0]]),
    "objects": np.array([[1.0, None], [pd.NA, 2], [3.0, 3]], dtype=object),
    "list": [[1.0, None], [pd.NA, 2], [3.0, 3]],
    "Int64": frame(pd.array([None, 2, 3], dtype="Int64")),
    "Float64": frame(pd.array([None, 2, 3], dtype="Float64")),
    "None": frame(pd.Series([None, 2, 3], dtype=object)),
    "NA": frame(pd.Series([pd.NA, 2, 3], dtype=object)),
    "category": frame(pd.Series([None, 2, 3], dtype="category")),
    "polars": pl.DataFrame({"age": [1.0, None, 3.0], "income": [None, 2, 3]}),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_values_are_let_through(kind):
    """Missing values of any kind become NaN, and the given table does not change."""
    table, expected = MISSING[kind], MISSING["array"]
    found = check_table(Imputing(), table, reset=True, missing="impute")
    assert found.dtype == np.float64
    assert_array_equal(found, expected)
    found, labels = check_training(Imputing(), table, [0, 1, 1], missing="impute")
    assert_array_equal(found, expected)
    assert_array_equal(labels, [0, 1, 1])
    with pytest.raises(ValueError, match="NaN"):  # the given table still has missing values
        check_table(Imputing(), table, reset=True)


@pytest.mark.parametrize("dtype", [object, "string", "boolean", "Int64", float])
def test_a_column_of_nothing(dtype):
    """A column of any type without values becomes NaN."""
    table = frame(pd.Series([pd.NA] * 3, dtype=object).astype(dtype) if dtype is not float else NAN)
    found = check_table(Imputing(), table, reset=True, missing="impute")
    assert np.isnan(found[:, 1]).all()


@pytest.mark.parametrize(
    ("income", "complaint"),
    [
        ([np.inf, NAN, 1.0], "infinity"),
        (pd.Series([pd.NA, -np.inf, 1], dtype=object), "infinity"),
        (pd.Series([pd.NA, "low", 1], dtype=object), "text"),
        (pd.Series([None, "low", "high"], dtype="string"), "text"),
        (pd.Series([None, "low", "high"], dtype="category"), "text"),
        (pd.to_datetime(["2020-01-01", None, "2021-01-01"]), "dates"),
    ],
    ids=["infinity", "infinity-objects", "objects", "string", "category", "dates"],
)
def test_what_cannot_be_imputed(income, complaint):
    """The error about infinity, text or dates names the column, also beside missing values."""
    for check in (
        lambda table: check_table(Imputing(), table, reset=True, missing="impute"),
        lambda table: check_training(Imputing(), table, [0, 1, 1], missing="impute"),
    ):
        with pytest.raises(ValueError, match=complaint) as caught:
            check(frame(income))
        assert "'income'" in str(caught.value)
        assert "age" not in str(caught.value)


@pytest.mark.parametrize("kind", ["array", "objects", "NA", "Int64", "polars"])
def test_the_remedy(kind):
    """The error proposes missing="impute" if the estimator has it, and SimpleImputer otherwise."""
    able, other = Imputing("error"), BaseEstimator()
    with pytest.raises(ValueError, match=r'NaN.*SimpleImputer.*missing="impute"'):
        check_table(able, MISSING[kind], reset=True)
    with pytest.raises(ValueError, match=r"NaN.*SimpleImputer\)\.$"):
        check_table(other, MISSING[kind], reset=True)
