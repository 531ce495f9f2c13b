"""Bad input is refused by name before any work; odd input is handled, or simply works."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_xor
from metricboost.errors import GuessingWarning

NAMES = ["age", "income", "height", "weight", "pulse"]
CLASSES = [SDist, SDistClassifier]
BOTH = pytest.mark.parametrize("cls", CLASSES)
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")

CONTAINERS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}
IN_CONTAINERS = pytest.mark.parametrize("kind", CONTAINERS)


def sdist(cls=SDistClassifier, **params):
    """One short fit; where folds may matter a test says how many."""
    return cls(**{"max_iter": 12, "n_averaged": 1, "oob_gate": 1.5, "random_state": 0, **params})


def named(kind, column):
    """What a column is called in messages."""
    return NAMES[column] if kind in ("pandas", "polars") else f"x{column}"


@pytest.fixture(scope="module")
def table():
    return make_xor(150, 5, informative=2, random_state=0)


@pytest.fixture
def X(table):
    return table[0].copy()


@pytest.fixture
def y(table):
    return table[1].copy()


@pytest.fixture
def no_work(monkeypatch):
    """Learning must not even begin."""

    def cross_fit(*args, **kwargs):
        pytest.fail("work started before the input was refused")

    monkeypatch.setattr("metricboost.estimators._sdist.cross_fit", cross_fit)


def methods(model):
    """All methods that take a table."""
    names = ["transform", "staged_transform"]
    if isinstance(model, SDistClassifier):
        names += [
            "predict", "predict_proba", "predict_log_proba", "decision_function", "kneighbors",
            "staged_predict",
        ]  # fmt: skip
    return {name: getattr(model, name) for name in names}


def run(method, X):
    """Call a method to the end, also where it is a generator."""
    return list(method(X))


# --- tables: NaN, infinity, text


NOT_FINITE = {
    "NaN": (np.nan, "impute"),
    "infinity": (np.inf, "replace|drop"),
    "negative-infinity": (-np.inf, "replace|drop"),
}


@BOTH
@IN_CONTAINERS
@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.usefixtures("no_work")
def test_fit_names_the_column_that_is_not_finite(cls, kind, value, X, y):
    """Which column, what is wrong with it, and what to do."""
    bad, remedy = NOT_FINITE[value]
    X[17, 2] = bad
    with pytest.raises(ValueError, match=re.escape(named(kind, 2))) as caught:
        sdist(cls).fit(CONTAINERS[kind](X), y)
    assert re.search("nan|infinity", str(caught.value), re.IGNORECASE)
    assert re.search(remedy, str(caught.value))
    assert not any(re.search(rf"\b{named(kind, j)}\b", str(caught.value)) for j in (0, 1, 3, 4))


@BOTH
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_methods_name_the_column_that_is_not_finite(cls, kind, X, y):
    """So does every method of a fitted model."""
    model = sdist(cls).fit(CONTAINERS[kind](X), y)
    X[3, 4] = np.nan
    for method in methods(model).values():
        with pytest.raises(ValueError, match=f"{named(kind, 4)}.*impute"):
            run(method, CONTAINERS[kind](X))


def test_many_bad_columns_are_counted(y):
    """A wide table does not flood the message."""
    with pytest.raises(ValueError, match=r"'x0'.*and 195 more"):
        sdist().fit(np.full((150, 200), np.nan), y)


def nullable(X):
    """A nullable pandas column with a missing value."""
    frame = pd.DataFrame(X, columns=NAMES)
    return frame.assign(income=pd.array([None, *range(149)], dtype="Int64"))


def nullable_objects(X):
    """A column of Python objects, one of them pandas' NA."""
    frame = pd.DataFrame(X, columns=NAMES)
    return frame.assign(income=pd.Series([pd.NA, *range(149)], dtype=object))


def null(X):
    """A polars column with a null."""
    frame = pl.DataFrame(X, schema=NAMES)
    return frame.with_columns(pl.when(pl.col("income") > 0).then(pl.col("income")))


@pytest.mark.parametrize("missing", [nullable, nullable_objects, null])
@pytest.mark.usefixtures("no_work")
def test_missing_values_of_data_frames(missing, X, y):
    """pandas' NA and polars' null are missing values too."""
    with pytest.raises(ValueError, match=r"NaN.*income.*impute"):
        sdist().fit(missing(X), y)


def with_text(dtype):
    """A table whose second column holds text, in one of the ways text is kept."""
    words = ["low", "high", "mid"] * 50

    def build(X):
        if dtype in ("array of objects", "list"):
            X = X.astype(object)
            X[:, 1] = words
            return X.tolist() if dtype == "list" else X
        if dtype == "array of str":
            X = X.astype("U32")
            X[:, 1] = words
            return X
        if dtype.startswith("polars"):
            kind = pl.Categorical if "categorical" in dtype else pl.String
            column = pl.Series("income", words, dtype=kind)
            return pl.DataFrame(X, schema=NAMES).with_columns(column)
        column = pd.Series(words, dtype=object)
        if dtype == "pandas one word":
            column = pd.Series([*range(149), "unknown"], dtype=object)
        elif dtype != "pandas object":
            column = column.astype(dtype.split()[1])
        return pd.DataFrame(X, columns=NAMES).assign(income=column)

    return build


@BOTH
@pytest.mark.parametrize(
    "dtype",
    [
        "pandas object",
        "pandas one word",
        "pandas str",
        "pandas string",
        "pandas category",
        "polars string",
        "polars categorical",
        "array of objects",
        "array of str",
        "list",
    ],
)
@pytest.mark.usefixtures("no_work")
def test_text_is_refused_by_name(cls, dtype, X, y):
    """The column is named, and so are ways to encode it."""
    name = "income" if dtype.startswith(("pandas", "polars")) else "x1"
    with pytest.raises(ValueError, match=rf"\b{name}\b.*(?i:encode|OneHotEncoder)"):
        sdist(cls).fit(with_text(dtype)(X), y)


@pytest.mark.parametrize("dtype", ["pandas object", "pandas category", "polars string"])
def test_text_is_refused_in_prediction(dtype, X, y):
    """A column that was a number in training and is text now is named as well."""
    kind = dtype.split()[0]
    model = sdist().fit(CONTAINERS[kind](X), y)
    with pytest.raises(ValueError, match=r"\bincome\b"):
        model.predict(with_text(dtype)(X))


@BOTH
@pytest.mark.usefixtures("no_work")
def test_shape_of_the_table(cls, X, y):
    """One dimension, no rows, no columns, sparse: each refused."""
    with pytest.raises(ValueError, match="Expected 2D"):
        sdist(cls).fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"0 sample"):
        sdist(cls).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 feature"):
        sdist(cls).fit(X[:, :0], y)
    with pytest.raises(ValueError, match="inconsistent"):
        sdist(cls).fit(X, y[:-1])


@BOTH
@pytest.mark.parametrize("n_columns", [4, 6])
def test_number_of_columns(cls, n_columns, X, y):
    """A table of another width is refused by every method, with both widths."""
    model = sdist(cls).fit(X, y)
    other = np.zeros((3, n_columns))
    for method in methods(model).values():
        with pytest.raises(ValueError, match=rf"{n_columns} features.*5 features"):
            run(method, other)
    with pytest.raises(ValueError, match=rf"{n_columns} features"):
        model.pair_distance(other, other)


@BOTH
@pytest.mark.parametrize("n_rows", [1, 3])
def test_pairs_need_as_many_rows_on_both_sides(cls, n_rows, X, y):
    """Distances are row by row, so nothing is broadcast."""
    with pytest.raises(ValueError, match=rf"(?i)rows|samples.*{n_rows}"):
        sdist(cls).fit(X, y).pair_distance(X[:9], X[:n_rows])


@BOTH
def test_not_fitted(cls, X):
    """Every method and attribute says that ``fit`` comes first."""
    model = sdist(cls)
    for method in methods(model).values():
        with pytest.raises(NotFittedError, match="fit"):
            run(method, X)
    for call in (model.get_metric, model.get_feature_names_out):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        model.pair_distance(X, X)
    for attribute in ("metric_", "path_", "feature_importances_", "best_iter_", "classes_"):
        assert not hasattr(model, attribute)


@BOTH
def test_a_refused_fit_leaves_no_half_fitted_model(cls, X, y):
    """After an error the model is not fitted."""
    model = sdist(cls)
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.zeros(150))
    with pytest.raises(NotFittedError):
        model.transform(X)


@pytest.mark.parametrize("n_neighbors", [0, -1, 151, 2.5, "all"])
def test_number_of_neighbours_asked_for(n_neighbors, X, y):
    """``kneighbors`` names its parameter and the value."""
    with pytest.raises((ValueError, TypeError), match=f"n_neighbors.*{n_neighbors}"):
        sdist().fit(X, y).kneighbors(X, n_neighbors=n_neighbors)


# --- labels


@BOTH
@pytest.mark.usefixtures("no_work")
def test_labels_are_needed(cls, X):
    """No target, no metric."""
    with pytest.raises(ValueError, match=r"\by\b.*labels"):
        sdist(cls).fit(X, None)


@BOTH
@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("label", [1, "ill", True, -1.0])
def test_one_class_only(cls, label, X):
    """The class there is, is named, with what to check."""
    with pytest.raises(ValueError, match=rf"(?i)one class.*{label}.*check"):
        sdist(cls).fit(X, np.full(150, label))


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_class_of_one_row(cls, X):
    """The class is named, and how many rows it needs."""
    labels = np.array(["well"] * 149 + ["ill"])
    with pytest.raises(ValueError, match=r"ill.*at least 2 rows"):
        sdist(cls).fit(X, labels)


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_third_class_of_one_row(cls, X):
    """Several classes are welcome, but each needs rows to be a neighbour of."""
    with pytest.raises(ValueError, match=r"Class 7 .*at least 2 rows"):
        sdist(cls).fit(X, np.r_[np.arange(149) % 2, 7])


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_continuous_target(cls, X):
    """A regression target is no set of classes."""
    with pytest.raises(ValueError, match="continuous"):
        sdist(cls).fit(X, X[:, 0])


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_target_of_two_columns(cls, X, y):
    """One label a row."""
    with pytest.raises(ValueError, match=r"\by\b"):
        sdist(cls).fit(X, np.c_[y, y])


MISSING_LABELS = {
    "float": lambda y: np.where(np.arange(len(y)) == 3, np.nan, y),
    "infinite": lambda y: np.where(np.arange(len(y)) == 3, np.inf, y),
    "object": lambda y: np.where(np.arange(len(y)) == 3, None, np.array(["no", "yes"])[y]),
    "pandas-str": lambda y: pd.Series(MISSING_LABELS["object"](y)).astype("string"),
    "pandas-category": lambda y: pd.Series(MISSING_LABELS["object"](y)).astype("category"),
    "pandas-Int64": lambda y: pd.Series(y, dtype="Int64").where(np.arange(len(y)) != 3),
    "polars": lambda y: pl.Series(["no" if i else None for i in y]),
}


@BOTH
@pytest.mark.parametrize("kind", MISSING_LABELS)
@pytest.mark.usefixtures("no_work")
def test_missing_labels(cls, kind, X, y):
    """y is named, and that every row needs a label."""
    with pytest.raises(ValueError, match=r"\by\b.*label"):
        sdist(cls).fit(X, MISSING_LABELS[kind](y))


# --- parameters


IMPOSSIBLE = [
    ("max_iter", 0), ("max_iter", -3), ("max_iter", 2.5), ("max_iter", None),
    ("n_neighbors", 0), ("n_neighbors", "20"),
    ("n_nonzero", 0), ("n_nonzero", 1.5), ("n_nonzero", -0.1), ("n_nonzero", 0.0),
    ("learning_rate", 0.0), ("learning_rate", 1.5), ("learning_rate", np.nan),
    ("subsample", 0.0), ("subsample", 1.01), ("subsample", None),
    ("max_features", 0), ("max_features", 1.5), ("max_features", "log2"),
    ("max_degree", 0), ("max_degree", 2.0), ("max_degree", 10**30),
    ("refresh_every", 0), ("refresh_every", 1.5),
    ("complexity_penalty", -1.0), ("complexity_penalty", np.nan),
    ("oob_gate", "high"), ("oob_gate", np.nan),
    ("screen_pairs", -1), ("screen_pairs", "all"), ("screen_pairs", None),
    ("prune", 0), ("prune", "always"), ("prune", 0.5),
    ("init", "random"), ("init", 3), ("standardize", "yes"),
    ("class_weight", "even"), ("multiclass", "pairwise"),
    ("engine", "fortran"), ("engine", "torch:"), ("engine", "torch:abacus"),
    ("engine", "torch:cuda:"), ("engine", "native:cpu"), ("engine", 1), ("engine", None),
    ("max_rows", 0), ("max_rows", -1), ("max_rows", 0.5), ("max_rows", "all"),
    ("max_references", 0), ("max_references", 100.0), ("max_references", "all"),
    ("missing", "drop"), ("missing", None),
    ("clip", 0.0), ("clip", -1.0), ("clip", "auto"), ("clip", np.inf),
    ("n_averaged", 0), ("n_averaged", 2.5), ("n_averaged", None),
    ("start_share", -0.1), ("start_share", 1.1), ("start_share", None), ("start_share", "half"),
    ("random_state", "seed"), ("random_state", -1),
    ("n_jobs", 0), ("n_jobs", 1.5), ("verbose", -1),
]  # fmt: skip
FOR_CLASSIFIERS = [
    ("classifier", "svm"), ("classifier", None),
    ("n_neighbors_predict", 0), ("n_neighbors_predict", 1.5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [(cls, *case) for cls in CLASSES for case in IMPOSSIBLE]
    + [(SDistClassifier, *case) for case in FOR_CLASSIFIERS],
)
@pytest.mark.usefixtures("no_work")
def test_impossible_parameters(cls, name, value, X, y):
    """The message names the parameter, what it must be, and what it is."""
    with pytest.raises((ValueError, TypeError), match=rf"{name}.* must be .*{value}"):
        sdist(cls, **{name: value}).fit(X, y)


INITS = {
    "shape": np.eye(4),
    "not square": np.ones((5, 4)),
    "vector": np.ones(5),
    "NaN": np.full((5, 5), np.nan),
    "negative": -np.eye(5),
    "indefinite": np.diag([1.0, 1, 1, 1, -0.5]),
    "asymmetric": np.eye(5) + np.eye(5, k=1),
    "text": [["a"] * 5] * 5,
}


@BOTH
@pytest.mark.parametrize("kind", INITS)
@pytest.mark.usefixtures("no_work")
def test_impossible_start(cls, kind, X, y):
    """A start that is no metric over these columns is refused, by its name."""
    with pytest.raises(ValueError, match=r"\binit\b"):
        sdist(cls, init=INITS[kind]).fit(X, y)


@BOTH
def test_start_from_a_metric_over_other_columns(cls, X, y):
    """Nor can a metric over other columns, or of a higher degree, be the start."""
    narrow = sdist(cls).fit(X[:, :4], y).metric_
    with pytest.raises(ValueError, match=r"init has 4 columns.*5"):
        sdist(cls, init=narrow).fit(X, y)
    curved = sdist(cls).fit(X, y).metric_
    with pytest.raises(ValueError, match=r"init.*degree 2.*max_degree"):
        sdist(cls, init=curved, max_degree=1).fit(X, y)


# --- weights


SAMPLE_WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(149)], "(?i)negative.*sample_weight"),
    "NaN": (np.r_[np.nan, np.ones(149)], "sample_weight.*NaN"),
    "infinite": (np.r_[np.inf, np.ones(149)], "sample_weight.*infinity"),
    "length": (np.ones(7), "sample_weight.*150"),
    "two-dimensional": (np.ones((150, 2)), "(?i)sample.weight"),
    "zero": (np.zeros(150), "(?i)sample.weight"),
    "text": (["heavy"] * 150, "(?i)sample.weight|could not convert"),
}


@BOTH
@pytest.mark.parametrize("kind", SAMPLE_WEIGHTS)
@pytest.mark.usefixtures("no_work")
def test_impossible_sample_weights(cls, kind, X, y):
    """Weights are finite, not negative, one a row, and not all zero."""
    weight, message = SAMPLE_WEIGHTS[kind]
    with pytest.raises(ValueError, match=message):
        sdist(cls).fit(X, y, sample_weight=weight)


@BOTH
@pytest.mark.usefixtures("no_work")
def test_weights_that_leave_one_class(cls, X, y):
    """The message says that it is the weights that leave only one class."""
    with pytest.raises(ValueError, match=r"(?i)one class.*weight|weight.*one class"):
        sdist(cls).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"(?i)one class.*weight|weight.*one class"):
        sdist(cls, class_weight={0: 0.0, 1: 1.0}).fit(X, y)


@BOTH
@pytest.mark.parametrize(
    "weight",
    [{0: 1.0, 1: -2.0}, {0: 3.0, 1: -2.0}, {0: 1.0, 1: np.nan}, {0: 1.0, 1: np.inf}, {0: 1, 7: 2}],
)
@pytest.mark.usefixtures("no_work")
def test_impossible_class_weights(cls, weight, X, y):
    """Negative, NaN and infinite weights, and classes that are not there."""
    with pytest.raises(ValueError, match="class_weight"):
        sdist(cls, class_weight=weight).fit(X, y)


# --- warned about once, and handled


def warned(call):
    """The result of a call, and the warnings it gave, except that a model only guesses.

    A few rows are seldom enough to be better than guessing.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", GuessingWarning)
        result = call()
    return result, [str(warning.message) for warning in caught]


@BOTH
def test_an_ordinary_fit_is_silent(cls, X, y):
    """Nothing to warn about, in fitting or after."""
    model, messages = warned(lambda: sdist(cls, n_averaged=5).fit(X, y))
    assert messages == []
    assert warned(lambda: [run(method, X) for method in methods(model).values()])[1] == []


@BOTH
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
@pytest.mark.parametrize("value", [0.0, 4.5, -1e150, 0.1])
def test_constant_columns_are_dropped(cls, kind, value, X, y):
    """One warning that names them; the metric is that of the other columns."""
    X[:, 1], X[:, 3] = value, value
    rest = [0, 2, 4]
    model, messages = warned(lambda: sdist(cls, oob_gate=0.0).fit(CONTAINERS[kind](X), y))
    assert len(messages) == 1
    assert re.search("(?i)constant", messages[0])
    for j in range(5):
        assert (repr(named(kind, j)) in messages[0]) == (j in (1, 3))
    other = sdist(cls, oob_gate=0.0).fit(X[:, rest], y)
    assert_allclose(model.transform(CONTAINERS[kind](X)), other.transform(X[:, rest]))
    assert_array_equal(model.feature_importances_[rest], other.feature_importances_)
    assert (model.feature_importances_[[1, 3]] == 0).all()


@BOTH
def test_only_constant_columns(cls, y):
    """With nothing left there is nothing to learn: a clear error."""
    with pytest.raises(ValueError, match=r"(?i)constant"):
        sdist(cls).fit(np.ones((150, 3)), y)


@BOTH
@pytest.mark.parametrize("rare", [2, 5])
def test_fewer_rows_than_neighbours(cls, rare, X, y):
    """One warning with the parameter, its value, the class and its rows, however many fits."""
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:rare]]
    params = {"n_neighbors": 8, "oob_gate": None, "n_averaged": 5}
    model, messages = warned(lambda: sdist(cls, **params).fit(X[rows], y[rows]))
    assert len(messages) == 1
    assert "n_neighbors=8" in messages[0]
    assert f"class '1' has too few rows ({rare})" in messages[0]
    assert np.isfinite(model.transform(X)).all()


@BOTH
def test_just_enough_rows_for_the_neighbours(cls, X, y):
    """A class of k + 1 rows has k neighbours for each: nothing to say."""
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:9]]
    fit = sdist(cls, n_neighbors=8, oob_gate=None, n_averaged=5).fit
    assert warned(lambda: fit(X[rows], y[rows]))[1] == []


@BOTH
@pytest.mark.parametrize(
    ("params", "panel"), [({"n_nonzero": 9}, 5), ({"n_nonzero": 3, "max_features": 2}, 2)]
)
def test_more_nonzeros_than_candidates(cls, params, panel, X, y):
    """One warning with both numbers; the fit is that with as many as there are."""
    params |= {"max_degree": 1, "oob_gate": None}
    model, messages = warned(lambda: sdist(cls, **params).fit(X, y))
    assert len(messages) == 1
    assert f"n_nonzero={params['n_nonzero']}" in messages[0]
    assert f"{panel} candidates" in messages[0]
    same = sdist(cls, **params | {"n_nonzero": panel}).fit(X, y)
    assert_array_equal(model.path_, same.path_)


@BOTH
def test_screened_pairs_are_candidates_too(cls, X, y):
    """Six nonzeros fit a panel of five columns and a screened pair: nothing to say."""
    assert warned(lambda: sdist(cls, n_nonzero=6, screen_pairs=1).fit(X, y))[1] == []


@BOTH
def test_default_nonzeros_on_a_narrow_table(cls, X, y):
    """A default is no choice of the user's: a table of two columns gives no warning."""
    assert warned(lambda: sdist(cls, oob_gate=None).fit(X[:, :2], y))[1] == []


@BOTH
def test_screening_within_its_budget(cls, X, y, monkeypatch):
    """Where not all pairs can be screened it says so once; a number of pairs screens all."""
    monkeypatch.setattr(import_module("metricboost.boosting.learn"), "BUDGET", 1000)
    _, messages = warned(lambda: sdist(cls, oob_gate=None).fit(X, y))
    assert len(messages) == 1
    assert re.search(r"(?i)screened among the 2 columns.*screen_pairs", messages[0])
    assert warned(lambda: sdist(cls, oob_gate=None, screen_pairs=3).fit(X, y))[1] == []
    assert warned(lambda: sdist(cls, oob_gate=None, max_degree=1).fit(X, y))[1] == []


@BOTH
def test_warnings_do_not_hide_each_other(cls, X, y):
    """Two things to say are two warnings."""
    X[:, 0] = 1.0
    _, messages = warned(lambda: sdist(cls, n_neighbors=500, oob_gate=None).fit(X, y))
    assert len(messages) == 2


# --- nothing accepted


@BOTH
@pytest.mark.parametrize(
    "init", ["zero", "identity", 2 * np.eye(5)], ids=["zero", "identity", "matrix"]
)
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_nothing_accepted(cls, init, n_averaged, X):
    """On noise behind a high gate: the start metric on all columns, and one warning."""
    rng = np.random.default_rng(0)
    noise, labels = rng.standard_normal((150, 5)) * 3 + 1, rng.integers(0, 2, 150)
    params = {"oob_gate": 30.0, "init": init, "n_averaged": n_averaged}
    model, messages = warned(lambda: sdist(cls, **params).fit(noise, labels))
    assert len(messages) == 1
    assert re.search(r"(?i)no step was accepted.*oob_gate", messages[0])
    assert model.best_iter_ == 0
    assert len(model.path_) == 0
    assert model.n_iter_ == 12 * n_averaged
    assert sorted(model.metric_.columns) == [(j,) for j in range(5)]
    W = model.metric_.matrix()
    assert_allclose(W, W[0, 0] * np.eye(5), atol=1e-12)
    assert_allclose(model.transform(noise).var(axis=0).sum(), 1.0)
    assert_allclose(model.feature_importances_, 0.2)
    assert (model.stability_ == 0).all()
    assert model.transform(X).shape == (150, 5)


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
@pytest.mark.parametrize("clip", [None, 1.5])
def test_nothing_accepted_is_plain_nearest_neighbours(n_averaged, clip, X, y):
    """The identity on standardised columns, so distances there are Euclidean."""
    model = sdist(oob_gate=1e6, n_averaged=n_averaged, clip=clip).fit(X, y)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    if clip is not None:
        assert np.abs(standard).max() > clip
        standard = np.clip(standard, -clip, clip)
    expected = standard / np.sqrt(standard.var(axis=0).sum())
    assert_allclose(model.transform(X), expected, atol=1e-12)
    assert model.start_share_ == 1.0
    assert list(model.staged_predict(X)) == []
    assert set(model.predict(X)) <= {0, 1}


@QUIET
@BOTH
def test_pure_noise_with_the_default_gate(cls):
    """Little of it gets through, and whatever does is a working model."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((100, 20)), rng.integers(0, 2, 100)
    model = cls(random_state=0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert_allclose(model.feature_importances_.sum(), 1)


# --- must simply work


SCALES = 10.0 ** np.array([-150, -75, 0, 75, 150])


@BOTH
def test_scales_do_not_matter(cls, X, y):
    """Columns from 1e-150 to 1e150 in one table: the same metric, and no floating-point noise."""
    plain = sdist(cls).fit(X, y)
    assert plain.best_iter_ > 0
    model, messages = warned(lambda: sdist(cls).fit(X * SCALES, y))
    assert messages == []
    assert model.metric_.columns == plain.metric_.columns
    assert_allclose(model.transform(X * SCALES), plain.transform(X), atol=1e-8)
    assert warned(lambda: [run(m, X * SCALES) for m in methods(model).values()])[1] == []


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("params", [{"max_degree": 3}, {"init": "identity"}, {"engine": "numpy"}])
def test_tiny_and_huge_tables(scale, params, X, y):
    """All columns tiny, or all huge, with and without products."""
    params |= {"oob_gate": 0.0}
    plain, model = sdist(**params).fit(X, y), sdist(**params).fit(X * scale, y)
    assert_allclose(model.decision_function(X * scale), plain.decision_function(X), atol=1e-6)


@BOTH
def test_scales_mixed_within_a_column(cls, X, y):
    """Tiny and huge values in one column do no harm either."""
    X[:, 1] = np.random.default_rng(0).choice([1e-150, -1e-150, 1.0, 1e150], 150)
    model = sdist(cls, oob_gate=0.0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()


def test_extreme_scales_as_given(X, y):
    """Without standardisation such a table works, or the error names ``standardize``."""
    try:
        model = sdist(standardize=False).fit(X * SCALES, y)
    except ValueError as error:
        assert "standardize" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.predict_proba(X * SCALES)).all()


HUGE = """
import warnings, numpy as np
from metricboost import SDistClassifier
from metricboost.datasets import make_xor
warnings.simplefilter("error", RuntimeWarning)
X, y = make_xor(150, 5, informative=2, random_state=0)
one = {"max_iter": 12, "n_averaged": 1, "random_state": 0}
for params in (
    {}, {"clip": None}, {"clip": None, "max_degree": 1}, {"clip": None, "classifier": "knn"},
    {"clip": None, "classifier": "hull"}, {"clip": None, "engine": "numpy"},
):
    model = SDistClassifier(**one, **params).fit(X, y)
    for value in (1e80, 1e150, 1e200, 1e308):
        row = np.full((1, 5), value)
        try:
            assert np.isfinite(model.predict_proba(row)).all(), (params, value)
        except ValueError as error:
            assert "column" in str(error), error
"""


def test_huge_values_in_prediction():
    """A finite value far beyond those of training: an answer, or an error that names columns.

    In a process of its own: a kernel that reads out of bounds ends it.
    """
    done = subprocess.run(
        [sys.executable, "-c", HUGE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@BOTH
def test_large_offsets(cls, X, y):
    """Columns far from zero are still told from constant ones."""
    plain, model = sdist(cls).fit(X, y), sdist(cls).fit(X + 1e6, y)
    assert model.metric_.columns == plain.metric_.columns


@QUIET
@BOTH
@pytest.mark.parametrize("shape", [(20, 200), (30, 1000)])
def test_more_columns_than_rows(cls, shape):
    """p > n, with a column that matters."""
    X = np.random.default_rng(0).standard_normal(shape)
    y = np.arange(shape[0]) % 2
    X[:, 7] += 4 * y
    model = sdist(cls, n_averaged=5).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert np.argmax(model.feature_importances_) == 7


@QUIET
@BOTH
@pytest.mark.parametrize("n_rows", [4, 5, 6])
@pytest.mark.parametrize("n_columns", [1, 2, 7])
@pytest.mark.parametrize(
    "params",
    [
        {"n_averaged": 5},
        {"n_averaged": 5, "oob_gate": None},
        {"oob_gate": None, "subsample": 1.0, "max_degree": 3},
    ],
)
def test_the_smallest_tables(cls, n_rows, n_columns, params):
    """Two rows a class and one column are enough to run."""
    X = np.random.default_rng(n_rows).standard_normal((n_rows, n_columns))
    y = np.arange(n_rows) % 2
    model = sdist(cls, **params).fit(X, y)
    assert all(np.isfinite(run(model.transform, X)).ravel())
    if cls is SDistClassifier:
        assert np.isfinite(model.predict_proba(X)).all()
        assert set(model.predict(X)) <= {0, 1}


@QUIET
@pytest.mark.parametrize("classifier", ["margin", "hull", "knn"])
def test_more_neighbours_than_training_rows(classifier):
    """Predictions look at as many rows as there are."""
    X, y = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]]), np.array([0, 0, 1, 1, 1])
    model = sdist(classifier=classifier, n_neighbors_predict=50).fit(X, y)
    assert model.decision_function(X).shape == (5,)
    if classifier != "knn":
        assert_array_equal(model.predict(X), y)


@BOTH
def test_one_column(cls):
    """A single column that matters, linearly and not."""
    x = np.random.default_rng(0).standard_normal((120, 1))
    for y in ((x[:, 0] > 0).astype(int), (np.abs(x[:, 0]) > 0.7).astype(int)):
        model = sdist(cls, max_iter=40).fit(x, y)
        assert model.best_iter_ > 0
        assert_array_equal(model.feature_importances_, [1.0])


@BOTH
def test_only_zeros_and_ones(cls):
    """Squares of such columns carry nothing new; the interaction is found."""
    X = np.random.default_rng(0).integers(0, 2, (120, 6)).astype(float)
    y = (X[:, 1] != X[:, 4]).astype(int)
    model = sdist(cls).fit(X, y)
    assert model.metric_.terms[0].columns == (1, 4)
    assert np.isfinite(model.transform(X)).all()


@QUIET
@BOTH
def test_duplicated_rows(cls, X, y):
    """Every row several times, also with contradicting labels."""
    X, y = np.repeat(X[:12], 8, axis=0), np.repeat(y[:12], 8)
    y[::8] = 1 - y[::8]
    model = sdist(cls, n_neighbors=5, oob_gate=0.0, n_averaged=3).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert_allclose(model.pair_distance(X[:8], X[[0] * 8]), 0, atol=1e-12)
    if cls is SDistClassifier:
        assert np.isfinite(model.predict_proba(X)).all()


@QUIET
@BOTH
def test_all_rows_alike(cls, X):
    """Two distinct rows, each in both classes: nothing can be learned, and nothing breaks."""
    model = sdist(cls, n_averaged=3).fit(np.repeat(X[:2], 30, axis=0), np.arange(60) % 2)
    assert model.best_iter_ == 0
    assert np.isfinite(model.transform(X)).all()
    if cls is SDistClassifier:
        assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)


@QUIET
@BOTH
def test_a_column_that_varies_in_one_row_only(cls):
    """Folds without that row have a constant column, which is left out there."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:, 1] = 0.0
    X[7, 1] = 1.0
    model = sdist(cls, n_averaged=4).fit(X, np.arange(40) % 2)
    assert model.metric_.n_features == 3
    assert np.isfinite(model.transform(X)).all()


def test_one_informative_column_among_a_hundred_thousand():
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 100_000)).astype(np.float32)
    X[:, 77_777] += 4 * y
    model = SDistClassifier(max_iter=5, n_averaged=1, screen_pairs=0, random_state=0).fit(X, y)
    assert model.metric_.terms[0].columns == (77_777,)
    assert model.score(X, y) > 0.95


@QUIET
def test_a_table_that_varies_in_one_row_only():
    """The only column varies, if not in every fold."""
    X = np.zeros((20, 1))
    X[7] = 1.0
    assert np.isfinite(sdist(n_averaged=5).fit(X, np.arange(20) % 2).transform(X)).all()


@BOTH
def test_duplicated_columns(cls, X, y):
    """Copies of a column share its place; the answers stay good."""
    model = sdist(cls).fit(np.hstack([X, X, X]), y)
    assert model.best_iter_ > 0
    assert np.isfinite(model.transform(np.hstack([X, X, X]))).all()
    single = sdist(cls).fit(X, y).feature_importances_
    shared = model.feature_importances_.reshape(3, 5).sum(axis=0)
    assert set(np.argsort(-shared)[:2]) == set(np.argsort(-single)[:2])


@pytest.mark.parametrize("cls", [SDist, SDistClassifier])
def test_warnings_point_to_the_line_that_called_fit(cls):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(UserWarning, match="Constant column") as found:
        cls(random_state=0, max_iter=2).fit(np.c_[X, np.ones(60)], np.arange(60) % 2)
    assert {warning.filename for warning in found} == {__file__}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda pd: [datetime.date(2020, 1, 1)] * 60, "Column 'a' holds dates"),
        (lambda pd: pd.period_range("2020", periods=60), "Column 'a' holds dates"),
        (lambda pd: [datetime.date(2020, 1, 1)] * 59 + [None], "Column 'a' holds dates"),
    ],
)
def test_dates_of_any_kind_are_named(make, message):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": make(pd), "b": np.arange(60.0)})
    with pytest.raises(ValueError, match=message):
        SDist().fit(frame, np.arange(60) % 2)


def test_text_in_columns_of_the_same_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([["u", 1.0]] * 60, columns=["a", "a"])
    with pytest.raises(ValueError, match="Column 'a' holds text"):
        SDist().fit(frame, np.arange(60) % 2)


def test_class_weights_that_are_no_numbers():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="gives class 0 the weight heavy"):
        SDist(class_weight={0: "heavy"}).fit(X, np.arange(60) % 2)


def test_complex_numbers_beside_nullable_ones():
    """A frame that scikit-learn would convert column by column."""
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": np.arange(4) + 1j})
    with pytest.raises(ValueError, match="Column 'b' holds complex numbers"):
        SDist().fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize("value", [1e80, 1e200, -1e300])
@pytest.mark.parametrize("clip", [None, 1e300])
@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_one_value_that_other_folds_cannot_reach(value, clip, engine, X, y):
    """Not clipped, it is too far from the rows of the folds that do not have it."""
    X = X.copy()
    X[0, 0] = value
    model = SDistClassifier(clip=clip, max_iter=3, n_averaged=2, engine=engine, random_state=0)
    with pytest.raises(ValueError, match="Column 'x0' has values so far from those of other rows"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="Column 'x0' has values so far"):
        SDistClassifierCV(model, cv=2, param_grid={"max_degree": [2]}, random_state=0).fit(X, y)
    assert np.isfinite(model.set_params(clip=3.0).fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize("low", [1e308, 1e-310, 1e-320, 1e300])
def test_weights_of_any_size(low, X, y):
    """Only their ratios matter; what is nothing beside the others is nothing."""
    ratio = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.5 if low > 1e-300 else 1.0)
    weight, scaled = low * ratio, ratio
    found, expected = (sdist(SDistClassifier).fit(X, y, w) for w in (weight, scaled))
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-6)
    tiny = np.where(np.arange(len(y)) < 4, 1e-300, 1.0)
    a, b = (sdist(SDistClassifier).fit(X, y, w) for w in (tiny, tiny.round()))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    ratio = {label: 1e308 if label else 1e-308 for label in np.unique(y)}
    with pytest.raises(ValueError, match="at least two classes"):
        SDistClassifier(class_weight=ratio).fit(X, y)


def test_integers_beyond_floats():
    X = np.array([[1, 10**400], [2, 3], [3, 4], [4, 5]], dtype=object)
    with pytest.raises(ValueError, match="Column 'x1' holds integers too large for a float"):
        SDistClassifier().fit(X, [0, 1, 0, 1])


def test_parameters_as_numpy_has_them(X, y, tmp_path):
    sdist(SDistClassifier, clip=np.float32(2.5)).fit(X, y).save(tmp_path / "model.mbz")
