"""Bad input is refused before any work, and the message names what is wrong."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from containers import CONTAINERS, NAMES, methods, named, run, small
from sklearn.exceptions import NotFittedError

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_xor

CLASSES = [SDist, SDistClassifier]
BOTH = pytest.mark.parametrize("cls", CLASSES)
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")
IN_CONTAINERS = pytest.mark.parametrize("kind", CONTAINERS)


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

    monkeypatch.setattr("metricboost.training.fitting.cross_fit", cross_fit)


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
    """The message says which column is wrong, what is wrong with it, and what to do."""
    bad, remedy = NOT_FINITE[value]
    X[17, 2] = bad
    with pytest.raises(ValueError, match=re.escape(named(kind, 2))) as caught:
        small(cls).fit(CONTAINERS[kind](X), y)
    assert re.search("nan|infinity", str(caught.value), re.IGNORECASE)
    assert re.search(remedy, str(caught.value))
    assert not any(re.search(rf"\b{named(kind, j)}\b", str(caught.value)) for j in (0, 1, 3, 4))


@BOTH
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_methods_name_the_column_that_is_not_finite(cls, kind, X, y):
    """Every method of a fitted model names the column too."""
    model = small(cls).fit(CONTAINERS[kind](X), y)
    X[3, 4] = np.nan
    for method in methods(model).values():
        with pytest.raises(ValueError, match=f"{named(kind, 4)}.*impute"):
            run(method, CONTAINERS[kind](X))


def test_many_bad_columns_are_counted(y):
    """A wide table does not flood the message."""
    with pytest.raises(ValueError, match=r"'x0'.*and 195 more"):
        small().fit(np.full((150, 200), np.nan), y)


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
        small().fit(missing(X), y)


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
        small(cls).fit(with_text(dtype)(X), y)


@pytest.mark.parametrize("dtype", ["pandas object", "pandas category", "polars string"])
def test_text_is_refused_in_prediction(dtype, X, y):
    """A column that was a number in training and is text now is named as well."""
    kind = dtype.split()[0]
    model = small().fit(CONTAINERS[kind](X), y)
    with pytest.raises(ValueError, match=r"\bincome\b"):
        model.predict(with_text(dtype)(X))


@BOTH
@pytest.mark.usefixtures("no_work")
def test_shape_of_the_table(cls, X, y):
    """Tables of one dimension, without rows, without columns, or of another length are refused."""
    with pytest.raises(ValueError, match="Expected 2D"):
        small(cls).fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"0 sample"):
        small(cls).fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 feature"):
        small(cls).fit(X[:, :0], y)
    with pytest.raises(ValueError, match="inconsistent"):
        small(cls).fit(X, y[:-1])


@BOTH
@pytest.mark.parametrize("n_columns", [4, 6])
def test_number_of_columns(cls, n_columns, X, y):
    """A table of another width is refused by every method, with both widths."""
    model = small(cls).fit(X, y)
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
        small(cls).fit(X, y).pair_distance(X[:9], X[:n_rows])


@BOTH
def test_not_fitted(cls, X):
    """Every method and attribute says that ``fit`` comes first."""
    model = small(cls)
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
    model = small(cls)
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.zeros(150))
    with pytest.raises(NotFittedError):
        model.transform(X)


@pytest.mark.parametrize("n_neighbors", [0, -1, 151, 2.5, "all"])
def test_number_of_neighbours_asked_for(n_neighbors, X, y):
    """``kneighbors`` names its parameter and the value."""
    with pytest.raises((ValueError, TypeError), match=f"n_neighbors.*{n_neighbors}"):
        small().fit(X, y).kneighbors(X, n_neighbors=n_neighbors)


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


def test_complex_numbers_beside_nullable_ones():
    """A frame that scikit-learn would convert column by column."""
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": np.arange(4) + 1j})
    with pytest.raises(ValueError, match="Column 'b' holds complex numbers"):
        SDist().fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize("value", [1e80, 1e200, -1e300])
@pytest.mark.parametrize("clip", [None, 1e300])
@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_one_value_that_other_folds_cannot_reach(value, clip, engine, X, y):
    """Without a clip the value is too far from the rows of the folds that leave it out."""
    X = X.copy()
    X[0, 0] = value
    model = SDistClassifier(clip=clip, max_iter=3, n_averaged=2, engine=engine, random_state=0)
    with pytest.raises(ValueError, match="Column 'x0' has values so far from those of other rows"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="Column 'x0' has values so far"):
        SDistClassifierCV(model, cv=2, param_grid={"max_degree": [2]}, random_state=0).fit(X, y)
    assert np.isfinite(model.set_params(clip=3.0).fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_a_value_that_other_folds_cannot_reach_is_named(kind, X, y):
    """The message has the name of the column, in a fit and in a search."""
    X[0, 3] = 1e200
    model = small(clip=None, max_iter=3, n_averaged=2)
    search = SDistClassifierCV(model, cv=2, param_grid={"max_degree": [2]}, random_state=0)
    for estimator in (model, search):
        with pytest.raises(ValueError, match=f"Column '{named(kind, 3)}' has values so far"):
            estimator.fit(CONTAINERS[kind](X), y)


def test_integers_beyond_floats():
    X = np.array([[1, 10**400], [2, 3], [3, 4], [4, 5]], dtype=object)
    with pytest.raises(ValueError, match="Column 'x1' holds integers too large for a float"):
        SDistClassifier().fit(X, [0, 1, 0, 1])


# --- labels


@BOTH
@pytest.mark.usefixtures("no_work")
def test_labels_are_needed(cls, X):
    """A fit without labels is refused."""
    with pytest.raises(ValueError, match=r"\by\b.*labels"):
        small(cls).fit(X, None)


@BOTH
@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("label", [1, "ill", True, -1.0])
def test_one_class_only(cls, label, X):
    """The message names the only class, and says what to check."""
    with pytest.raises(ValueError, match=rf"(?i)one class.*{label}.*check"):
        small(cls).fit(X, np.full(150, label))


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_class_of_one_row(cls, X):
    """The class is named, and how many rows it needs."""
    labels = np.array(["well"] * 149 + ["ill"])
    with pytest.raises(ValueError, match=r"ill.*at least 2 rows"):
        small(cls).fit(X, labels)


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_third_class_of_one_row(cls, X):
    """With three classes each class needs two rows too."""
    with pytest.raises(ValueError, match=r"Class 7 .*at least 2 rows"):
        small(cls).fit(X, np.r_[np.arange(149) % 2, 7])


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_continuous_target(cls, X):
    """A regression target is no set of classes."""
    with pytest.raises(ValueError, match="continuous"):
        small(cls).fit(X, X[:, 0])


@BOTH
@pytest.mark.usefixtures("no_work")
def test_a_target_of_two_columns(cls, X, y):
    """y must have one label per row."""
    with pytest.raises(ValueError, match=r"\by\b"):
        small(cls).fit(X, np.c_[y, y])


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
    """The message names y, and says that every row needs a label."""
    with pytest.raises(ValueError, match=r"\by\b.*label"):
        small(cls).fit(X, MISSING_LABELS[kind](y))


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
        small(cls, **{name: value}).fit(X, y)


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
        small(cls, init=INITS[kind]).fit(X, y)


@BOTH
def test_start_from_a_metric_over_other_columns(cls, X, y):
    """A start metric over other columns, or of a higher degree, is refused."""
    narrow = small(cls).fit(X[:, :4], y).metric_
    with pytest.raises(ValueError, match=r"init has 4 columns.*5"):
        small(cls, init=narrow).fit(X, y)
    curved = small(cls).fit(X, y).metric_
    with pytest.raises(ValueError, match=r"init.*degree 2.*max_degree"):
        small(cls, init=curved, max_degree=1).fit(X, y)


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
    """Weights must be finite, not negative, one per row, and not all zero."""
    weight, message = SAMPLE_WEIGHTS[kind]
    with pytest.raises(ValueError, match=message):
        small(cls).fit(X, y, sample_weight=weight)


@BOTH
@pytest.mark.usefixtures("no_work")
def test_weights_that_leave_one_class(cls, X, y):
    """The message says that it is the weights that leave only one class."""
    with pytest.raises(ValueError, match=r"(?i)one class.*weight|weight.*one class"):
        small(cls).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"(?i)one class.*weight|weight.*one class"):
        small(cls, class_weight={0: 0.0, 1: 1.0}).fit(X, y)


@BOTH
@pytest.mark.parametrize(
    "weight",
    [{0: 1.0, 1: -2.0}, {0: 3.0, 1: -2.0}, {0: 1.0, 1: np.nan}, {0: 1.0, 1: np.inf}, {0: 1, 7: 2}],
)
@pytest.mark.usefixtures("no_work")
def test_impossible_class_weights(cls, weight, X, y):
    """Negative, NaN and infinite weights, and classes that are not there."""
    with pytest.raises(ValueError, match="class_weight"):
        small(cls, class_weight=weight).fit(X, y)


def test_class_weights_that_are_no_numbers():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="gives class 0 the weight heavy"):
        SDist(class_weight={0: "heavy"}).fit(X, np.arange(60) % 2)
