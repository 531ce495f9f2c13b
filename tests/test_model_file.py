"""Model files: what comes back is what was saved."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import metricboost
from metricboost import SDist, SDistClassifier, SDistClassifierCV, SparseMetric, load
from metricboost.datasets import make_xor
from metricboost.storage import Saved, read, write


def table(n_rows=120, n_features=6, missing=False):
    X, y = make_xor(n_samples=n_rows, n_features=n_features, informative=2, random_state=0)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X, np.array(["no", "yes"])[y]


def classifier(**given):
    return SDistClassifier(**{"max_iter": 20, "random_state": 0, **given})


MODELS = {
    "defaults": classifier(),
    "one fit": classifier(n_averaged=1),
    "imputing": classifier(missing="impute"),
    "all columns": classifier(start_share=0.5),
    "plain": classifier(start_share=1.0),
    "kernel": classifier(classifier="kernel"),
    "mixture": classifier(classifier="mixture"),
    "linear": classifier(classifier="linear"),
    "votes": classifier(classifier="knn", class_weight={"no": 1, "yes": 2.5}),
    "a start": classifier(init=np.eye(6)),
    "samples": classifier(max_rows=100, max_references=100, n_averaged=1),
    "search": SDistClassifierCV(classifier(), {"max_degree": [1, 2]}, cv=3, random_state=0),
    "one model": SDistClassifierCV(
        classifier(), {"clip": [2.0]}, cv=3, n_blended=1, random_state=0
    ),
}


@pytest.fixture(params=MODELS, scope="module")
def fitted(request):
    model = MODELS[request.param]
    X, y = table(missing=request.param == "imputing")
    return model.fit(X, y), X


def test_a_loaded_model_is_the_same(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    assert type(other) is type(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(other.stability_, model.stability_)
    np.testing.assert_array_equal(other.class_count_, model.class_count_)
    assert other.metric_.terms == model.metric_.terms
    for a, b in zip(other.kneighbors(X, 3), model.kneighbors(X, 3)):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(other.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_saving_again_gives_the_same_bytes(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "a.mbz")
    load(tmp_path / "a.mbz").save(tmp_path / "b.mbz")
    assert (tmp_path / "a.mbz").read_bytes() == (tmp_path / "b.mbz").read_bytes()


def test_fitted_attributes_come_back(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=3, max_iter=40).fit(X, y)
    model.save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    for name in (
        "best_iter_",
        "n_iter_",
        "start_share_",
        "oob_score_",
        "readout_",
        "n_features_in_",
    ):
        assert getattr(other, name) == getattr(model, name)
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.path_, model.path_)
    np.testing.assert_array_equal(other.classes_, model.classes_)


def test_a_search_keeps_what_it_chose(tmp_path):
    X, y = table()
    search = SDistClassifierCV(cv=3, param_grid={"max_degree": [2]}, random_state=0).fit(X, y)
    search.save(tmp_path / "search.mbz")
    other = load(tmp_path / "search.mbz")
    assert other.best_params_ == search.best_params_
    assert other.best_score_ == search.best_score_
    assert len(other.estimators_) == len(search.estimators_)


def test_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=["Alter", "größe", "x 3", "y*z", "e^2", "f"])
    SDistClassifier(random_state=0).fit(frame, y).save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    assert list(other.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame.rename(columns={"f": "g"}))


@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], [False, True], [1.0, 2.0], ["a", "b"], np.array(["a", "b"], object)]
)
def test_labels_of_any_kind(labels, tmp_path):
    X, y = table()
    y = np.asarray(labels)[(y == "yes").astype(int)]
    model = SDistClassifier(random_state=0, max_iter=10).fit(X, y)
    model.save(tmp_path / "model.mbz")
    classes = load(tmp_path / "model.mbz").classes_
    assert classes.dtype == model.classes_.dtype
    assert classes.tolist() == model.classes_.tolist()


def test_labels_without_a_form_in_the_file_are_refused(tmp_path):
    X, y = table()
    model = SDistClassifier(classifier="margin", random_state=0, max_iter=10).fit(X, y)
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    model.model_ = replace(model.model_, classes=days)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "model.mbz")
    assert not list(tmp_path.iterdir())


def test_a_generator_is_not_part_of_a_model(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=np.random.RandomState(0), max_iter=10).fit(X, y)
    model.save(tmp_path / "model.mbz")
    assert load(tmp_path / "model.mbz").random_state is None


def test_without_rows(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "model.mbz", rows=False)
    other = load(tmp_path / "model.mbz")
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    np.testing.assert_array_equal(other.path_, model.path_)
    assert other.oob_score_ == model.oob_score_
    for call in (other.predict, other.predict_proba, other.kneighbors):
        with pytest.raises(ValueError, match="without its training rows"):
            call(X)
    with pytest.raises(ValueError, match="without its training rows"):
        next(other.staged_predict(X))
    # The metrics on the way need no training row: the file has the variance of each step.
    for a, b in zip(other.staged_transform(X), model.staged_transform(X), strict=True):
        np.testing.assert_array_equal(a, b)
    with zipfile.ZipFile(tmp_path / "model.mbz") as members:
        assert not [name for name in members.namelist() if "rows" in name]


def test_only_the_columns_that_matter_are_saved(tmp_path):
    X, y = table(n_rows=300, n_features=40)
    model = SDistClassifier(random_state=0, start_share=0.0).fit(X, y)
    model.save(tmp_path / "model.mbz")
    with zipfile.ZipFile(tmp_path / "model.mbz") as members:
        columns = np.load(io.BytesIO(members.read("arrays/model/rows/columns.npy")))
        values = np.load(io.BytesIO(members.read("arrays/model/rows/values.npy")))
    used = {column for term in model.model_.best.history.terms for column in term}
    assert set(columns) == used
    assert len(used) < 40
    np.testing.assert_array_equal(values, X[:, columns])


def test_a_metric_and_a_transformer(tmp_path):
    X, y = table()
    sdist = SDist(random_state=0).fit(X, y)
    sdist.save(tmp_path / "sdist.mbz")
    metricboost.save(sdist.metric_, tmp_path / "metric.mbz")
    np.testing.assert_array_equal(load(tmp_path / "sdist.mbz").transform(X), sdist.transform(X))
    metric = load(tmp_path / "metric.mbz")
    assert isinstance(metric, SparseMetric)
    np.testing.assert_array_equal(metric.kernel(X), sdist.metric_.kernel(X))


def test_an_unfitted_model_is_not_saved(tmp_path):
    for model in (SDist(), SDistClassifier(), SDistClassifierCV()):
        with pytest.raises(ValueError, match="not fitted"):
            model.save(tmp_path / "model.mbz")
    with pytest.raises(TypeError, match="metrics and fitted estimators"):
        metricboost.save({}, tmp_path / "model.mbz")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    X, y = table()
    path = tmp_path / "model.mbz"
    model = SDistClassifier(random_state=0, max_iter=10).fit(X, y)
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


VALUES = {
    "numbers": [1, 2.5, -3, 2**70, True, None, "text"],
    "nested": {"a": [{"b": (1, 2)}, {}], 3: None},
    "array": np.arange(6.0).reshape(2, 3),
    "integers": np.arange(-3, 3),
    "flags": np.array([True, False]),
    "scalars": {"of NumPy": [np.float64(0.5), np.int8(3), np.str_("x"), np.bool_(True)]},
    "lists": [np.zeros(2), [np.ones((2, 2))]],
}


def test_values_of_every_kind(tmp_path):
    """A file keeps the types of values, except that scalars of NumPy become those of Python."""
    write(Saved("x", more=VALUES), tmp_path / "values.mbz")
    more = read(tmp_path / "values.mbz").more
    assert list(more) == list(VALUES)
    assert repr(more["numbers"]) == repr(VALUES["numbers"])
    assert more["nested"] == VALUES["nested"]
    for name in ("array", "integers", "flags"):
        np.testing.assert_array_equal(more[name], VALUES[name], strict=True)
    assert repr(more["scalars"]) == "{'of NumPy': [0.5, 3, 'x', True]}"
    np.testing.assert_array_equal(more["lists"][1][0], np.ones((2, 2)))


@pytest.mark.parametrize(
    "value",
    [
        np.inf, object(), [1, print], {(1, 2): 3}, {1: object}, np.array([np.nan]),
        np.zeros((2, 2, 2)), np.array(["text"]), {1, 2}, b"bytes",
    ],
)  # fmt: skip
def test_values_that_a_file_cannot_hold(value, tmp_path):
    write(Saved("x", more={"left out": value, "kept": 1}), tmp_path / "values.mbz")
    assert read(tmp_path / "values.mbz").more == {"kept": 1}


def test_a_value_that_contains_itself_is_left_out(tmp_path):
    endless, pairs = [1], {}
    endless.append(endless)
    pairs[1] = pairs
    write(Saved("x", more={"list": endless, "pairs": pairs}), tmp_path / "values.mbz")
    assert read(tmp_path / "values.mbz").more == {}


def test_a_start_of_any_kind_comes_back(tmp_path):
    """A matrix as an array, as lists and as a frame; a metric as a metric."""
    pd = pytest.importorskip("pandas")
    X, y = table()
    metric = SDist(random_state=0, max_iter=5).fit(X, y).metric_
    for start in (np.eye(6), np.eye(6).tolist(), pd.DataFrame(np.eye(6)), metric):
        model = SDist(init=start, random_state=0, max_iter=5).fit(X, y)
        model.save(tmp_path / "model.mbz")
        again = load(tmp_path / "model.mbz").fit(X, y)
        np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_wide_table_of_names(tmp_path):
    """Values for 100,000 columns fit into a file."""
    columns = [{"name": f"column {j}", "kind": "number", "levels": []} for j in range(100_000)]
    write(Saved("x", more={"columns": columns}), tmp_path / "values.mbz")
    assert read(tmp_path / "values.mbz").more["columns"] == columns
