"""What an estimator holds after ``fit``: a model, and no reference to the table of the user."""

from __future__ import annotations

import dataclasses
import gc
import json
import pickle
import weakref
import zipfile

import numpy as np
import pandas as pd
import pytest
from fits import variables
from numpy.testing import assert_array_equal, assert_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.inspection import explain_model, explain_rows
from metricboost.report import make_report

SHORT = {"max_iter": 5, "n_averaged": 2, "n_nonzero": 4, "random_state": 0}
READOUTS = ("margin", "hull", "knn", "kernel", "mixture", "linear")


def searching(**params):
    """A search that blends several models."""
    base = SDistClassifier(**SHORT, **params)
    return SDistClassifierCV(base, {"max_degree": [2], "clip": [2.0, 3.0]}, cv=2, random_state=0)


#: Estimators of every kind.
ESTIMATORS = {
    **{name: SDistClassifier(**SHORT, classifier=name) for name in READOUTS},
    "one fit": SDistClassifier(**{**SHORT, "n_averaged": 1}),
    "all columns": SDistClassifier(**SHORT, start_share=0.5),
    "identity": SDistClassifier(**SHORT, init="identity"),
    "samples": SDistClassifier(**SHORT, max_rows=100, max_references=110),
    "search": searching(),
    "metric": SDist(**SHORT),
    "metric of all columns": SDist(**SHORT, start_share=0.5),
}


@pytest.fixture(scope="module")
def table():
    """Two of six columns matter together, and a third one by itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140, 6))
    signal = X[:, 1] * X[:, 4] + 0.7 * X[:, 2] + 0.3 * rng.normal(size=140)
    return X, np.where(signal > 0, "yes", "no").astype(object)


# --- what happens to X after fit does not matter


class Dense:
    """A float64 array, which ``fit`` takes as it is."""

    def __init__(self, X):
        self.given = X.copy()
        self.values = self.given

    def overwrite(self):
        self.values[:] = 1e6 * np.random.default_rng(9).normal(size=self.values.shape)


class Fortran(Dense):
    """An array stored by columns."""

    def __init__(self, X):
        self.given = np.array(X, order="F")
        self.values = self.given


class Single(Dense):
    """A float32 array."""

    def __init__(self, X):
        self.given = X.astype(np.float32)
        self.values = self.given


class Csr(Dense):
    """A sparse matrix stored by rows."""

    make = sparse.csr_matrix

    def __init__(self, X):
        self.given = type(self).make(np.where(np.abs(X) < 0.2, 0.0, X))
        self.values = self.given.data


class Csc(Csr):
    """A sparse matrix stored by columns."""

    make = sparse.csc_matrix


class Frame(Dense):
    """A DataFrame over one block of memory."""

    def __init__(self, X):
        self.values = X.copy()
        self.given = pd.DataFrame(self.values, columns=list("abcdef"), copy=False)

    def overwrite(self):
        super().overwrite()
        self.given.iloc[:, :] = self.values


class Gaps(Dense):
    """An array with missing values."""

    def __init__(self, X):
        super().__init__(with_gaps(X))


class FrameWithGaps(Frame):
    """A DataFrame with missing values."""

    def __init__(self, X):
        super().__init__(with_gaps(X))


def with_gaps(X):
    return np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)


def answers(model, X, y):
    """Everything that a fitted estimator says about itself and about rows."""
    found = {
        "transform": model.transform(X),
        "pair_distance": model.pair_distance(X[:10], X[10:20]),
        "feature_importances_": model.feature_importances_,
        "stability_": model.stability_,
        "classes_": model.classes_,
        "class_count_": model.class_count_,
        "explanation": dataclasses.asdict(model.explain()),
    }
    if isinstance(model, SDist):
        found["path_"] = model.path_.tolist()
        found["staged_transform"] = list(model.staged_transform(X))
    if not hasattr(model, "predict"):
        return found
    for name in ("predict", "predict_proba", "decision_function", "kneighbors", "staged_predict"):
        found[name] = list(getattr(model, name)(X))
    found["explained rows"] = [dataclasses.asdict(one) for one in model.explain(X[:4])]
    found["report"] = model.report(X, y).html
    return found


def check_overwriting(estimator, kind, table):
    """An estimator whose data are overwritten before it is asked anything answers as another one.

    The two have been fitted with equal data. Both are asked about rows that are not overwritten.
    """
    pytest.importorskip("jinja2")
    (X, y), weight = table, np.random.default_rng(1).uniform(0.5, 2, len(table[1]))
    mine, theirs, asked = kind(X), kind(X), kind(X[:30]).given
    labels, weights = y.copy(), weight.copy()
    expected = answers(fresh(estimator).fit(theirs.given, y, weight), asked, y[:30])
    model = fresh(estimator).fit(mine.given, labels, weights)
    mine.overwrite()
    labels[:], weights[:] = "no", 0.0
    assert_equal(answers(model, asked, y[:30]), expected)


def fresh(estimator):
    return pickle.loads(pickle.dumps(estimator))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_overwriting_an_array_changes_nothing(name, table):
    check_overwriting(ESTIMATORS[name], Dense, table)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, "hull") for kind in (Fortran, Single, Csr, Csc, Frame)),
        (Frame, "search"),
        *((kind, "metric") for kind in (Csr, Frame)),
        (Csc, "samples"),
        (Frame, "all columns"),
    ],
)
def test_overwriting_any_table_changes_nothing(name, kind, table):
    check_overwriting(ESTIMATORS[name], kind, table)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [Gaps, FrameWithGaps])
@pytest.mark.parametrize(
    "estimator",
    [SDistClassifier(**SHORT, missing="impute"), searching(missing="impute"),
     SDist(**SHORT, missing="impute")],
    ids=["classifier", "search", "metric"],
)  # fmt: skip
def test_overwriting_a_table_with_missing_values_changes_nothing(kind, estimator, table):
    check_overwriting(estimator, kind, table)


@pytest.mark.parametrize("estimator", [SDistClassifier(**SHORT), searching(), SDist(**SHORT)])
def test_the_table_is_not_kept_alive(estimator, table):
    """Nothing in a fitted estimator refers to the array that was given to ``fit``."""
    X, y = table[0].copy(), table[1]
    model, alive = fresh(estimator).fit(X, y), weakref.ref(X)
    model.transform(X)
    del X
    gc.collect()
    assert alive() is None


# --- what an estimator and its file hold of the table


def numbers_in(data):
    """All numbers of eight bytes that occur in some bytes at any place, as integers."""
    ends = [len(data) - (len(data) - start) % 8 for start in range(8)]
    parts = [np.frombuffer(data[start:end], "<u8") for start, end in enumerate(ends)]
    return np.unique(np.concatenate(parts))


def held(data, values):
    """Which of some float64 values occur in some bytes; zeros do not count."""
    values = np.ascontiguousarray(values, dtype="<f8")
    return np.isin(values.view("<u8"), numbers_in(data)) & (values != 0)


def arrays_in(thing, seen=None):
    """All arrays that can be reached from an object."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
    inside = list(thing.values()) if isinstance(thing, dict) else []
    inside += list(thing) if isinstance(thing, list | tuple | set) else []
    inside += list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    for one in inside:
        if not isinstance(one, type):
            yield from arrays_in(one, seen)


@pytest.fixture(scope="module")
def wide():
    """Only column 7 of 300 matters."""
    X = np.random.default_rng(0).normal(size=(401, 300))
    return X, (X[:, 7] > 0.2).astype(int)


@pytest.fixture(scope="module")
def metric_of_one_column(wide):
    model = SDist(**SHORT, start_share=0.0, prune=1).fit(*wide)
    assert variables(model) == {7}
    return model


def contents(path):
    """The unzipped bytes of all members of a model file, and the text of its manifest."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    return b"\n".join(members.values()), members["manifest.json"].decode()


def numbers_of(document):
    """All numbers in a JSON document."""
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        return [number for part in document for number in numbers_of(part)]
    return [float(document)] if isinstance(document, int | float) else []


def traces(X):
    """Forms in which rows could be held: as given, in float32, centred, standardised, clipped."""
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    return {
        "as given": X,
        "centred": X - X.mean(axis=0),
        "standardised": standard,
        "clipped": np.where(np.abs(standard) < 3, standard, 0.0),
    }


def check_no_row(data, model, X):
    """Neither the values of rows, nor their embedding, nor anything with a number for each row."""
    for values in (*traces(X).values(), model.transform(X)):
        assert not held(data, values).any()
    pairs = np.ascontiguousarray(X, dtype="<f4")
    assert not np.isin(pairs.view("<u8"), numbers_in(data)).any()  # two columns of a row
    pairs = np.ascontiguousarray(X.T[:, :400], dtype="<f4")
    assert not np.isin(pairs.view("<u8"), numbers_in(data)).any()  # two rows of a column
    assert not any(len(X) in array.shape for array in arrays_in(model))


def test_a_metric_of_one_column_is_small(metric_of_one_column, wide):
    assert len(pickle.dumps(metric_of_one_column)) < 0.05 * wide[0].nbytes


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "params",
    [{}, {"prune": None}, {"start_share": 0.5}, {"start_share": 1.0}, {"n_averaged": 1},
     {"init": "identity"}, {"max_rows": 200, "max_references": 250}, {"max_degree": 1}],
    ids=str,
)  # fmt: skip
def test_a_pickled_metric_holds_no_row(params, wide):
    X, y = wide
    model = SDist(**{**SHORT, **params}).fit(X, y)
    check_no_row(pickle.dumps(model), model, X)
    list(model.staged_transform(X[:2]))  # nothing that was computed meanwhile is kept either
    check_no_row(pickle.dumps(model), model, X)


def test_a_pickled_metric_knows_nothing_of_its_fit(metric_of_one_column):
    """A model does not depend on the code that fits models."""
    data = pickle.dumps(metric_of_one_column.model_)
    for package in (b"metricboost.training", b"metricboost.boosting", b"metricboost.engines",
                    b"metricboost.estimators", b"metricboost.sources"):  # fmt: skip
        assert package not in data


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pickled_metric_of_imputed_rows_holds_medians_only(wide):
    """The median of an odd number of values is one of them; no other value is held."""
    X = np.where(np.random.default_rng(1).random(wide[0].shape) < 0.1, np.nan, wide[0])
    model = SDist(**SHORT, missing="impute").fit(X, wide[1])
    fill = model.metric_.imputation.fill
    assert (held(pickle.dumps(model), X) <= (fill == X)).all()
    assert not any(len(X) in array.shape for array in arrays_in(model))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["metric", *READOUTS, "all columns", "samples", "search"])
def test_a_file_without_rows_holds_no_row(name, wide, tmp_path):
    """Neither in its arrays nor as numbers in its manifest."""
    X, y = wide
    model = fresh(ESTIMATORS[name]).fit(X, y)
    model.save(tmp_path / "model.mbz", rows=False)
    data, manifest = contents(tmp_path / "model.mbz")
    for values in (*traces(X).values(), model.transform(X)):
        assert not held(data, values).any()
        assert not np.isin(values[values != 0], numbers_of(json.loads(manifest))).any()
    with zipfile.ZipFile(tmp_path / "model.mbz") as file:
        for member in file.namelist():
            if member.endswith(".npy"):
                with file.open(member) as opened:
                    assert len(X) not in np.load(opened).shape


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*READOUTS, "search"])
def test_a_classifier_holds_the_columns_that_it_uses(name, wide):
    """And no others: neither before nor after predictions."""
    X, y = wide
    model = fresh(ESTIMATORS[name]).fit(X, y)
    best = model.best_estimator_.model_ if name == "search" else model.model_
    used = best.rows.columns
    assert 7 in used
    assert len(used) < 100
    for _ in range(2):
        found = held(pickle.dumps(model), X)
        assert found[:, used].all()
        assert not np.delete(found, used, axis=1).any()
        model.predict(X[:5])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*READOUTS, "search"])
def test_predictions_do_not_make_the_pickle_larger(name, table):
    """The embedding of the training rows is computed for predictions, and is not pickled."""
    X, y = table
    model = fresh(ESTIMATORS[name]).fit(X, y)
    before = pickle.dumps(model)
    expected = model.predict_proba(X)
    after = pickle.dumps(model)
    assert len(after) < 1.05 * len(before)
    best = model.best_estimator_.model_ if name == "search" else model.model_
    assert not held(after, best.training.rows).any()
    assert_array_equal(pickle.loads(after).predict_proba(X), expected)


# --- using an estimator, and fits that fail


@pytest.mark.parametrize("estimator", [SDistClassifier(**SHORT), searching()])
def test_predictions_change_no_pickle(estimator, table):
    model = fresh(estimator).fit(*table)
    before = pickle.dumps(model)
    model.predict(table[0])
    assert pickle.dumps(model) == before


def test_the_best_estimator_of_a_search_is_one_object(table):
    search = searching().fit(*table)
    assert search.best_estimator_ is search.best_estimator_
    search.best_estimator_.set_params(engine="numpy")
    assert search.estimators_[0].engine == "numpy"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", [SDist(**SHORT), SDistClassifier(**SHORT), searching()])
def test_a_fit_that_fails_leaves_no_earlier_model(estimator, table):
    X, y = table
    model = fresh(estimator).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X[:, :3], np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        model.transform(X[:, :3])


def test_functions_of_a_model_name_what_to_give(table):
    model = SDistClassifier(**SHORT).fit(*table)
    for function in (explain_model, make_report, lambda one: explain_rows(one, table[0])):
        with pytest.raises(TypeError, match="give model_ of a fitted"):
            function(model)


def test_no_rows_give_no_predictions(table):
    model = SDistClassifier(**SHORT).fit(*table).model_
    assert model.log_odds(table[0][:0]).shape == (0, 2)
