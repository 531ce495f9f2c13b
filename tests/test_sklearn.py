"""The estimators among scikit-learn's own tools: checks, pipelines, names, labels, routing."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from joblib import parallel_backend
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from threadpoolctl import threadpool_limits

from metricboost import SDist, SDistClassifier
from metricboost.datasets import make_xor

NAMES = ["age", "income", "height", "weight", "pulse", "dose"]
BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
OUTPUTS = pytest.mark.parametrize("output", ["default", "pandas", "polars"])

WEIGHTS_ARE_NOT_ROWS = "a weight of 2 is not a repeated row for sets of k nearest neighbours"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_NOT_ROWS,
}


def expected_failures(estimator):
    return EXPECTED_FAILURES


def sdist(cls=SDistClassifier, **params):
    """A short fit: two metrics averaged, and nothing left to choose."""
    chosen = {"n_averaged": 2, "oob_gate": 1.5, "prune": None, "start_share": 0.0}
    if cls is SDistClassifier:
        chosen |= {"classifier": "margin", "n_neighbors_predict": 5}
    return cls(**{"max_iter": 12, "random_state": 0, **chosen, **params})


@pytest.fixture(scope="module")
def xor():
    """A table in which two of six columns matter, and only together."""
    return make_xor(160, 6, informative=2, random_state=0)


@pytest.fixture(scope="module")
def frame(xor):
    return pd.DataFrame(xor[0], columns=NAMES, index=np.arange(160) * 3 + 7)


@pytest.fixture(scope="module")
def fitted(xor):
    return sdist().fit(*xor)


# --- scikit-learn's own checks


@parametrize_with_checks(
    [
        SDist(max_iter=2, n_averaged=2),
        SDistClassifier(max_iter=2, n_averaged=2),
        SDistClassifier(max_iter=3, n_averaged=1, classifier="knn", missing="impute"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimator_checks(estimator, check):
    """Every check passes but for those listed with their reason."""
    check(estimator)


@BOTH
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_listed_checks_do_fail(cls):
    """The list of expected failures is not out of date."""
    checks = {
        getattr(check, "func", check).__name__: (model, check)
        for model, check in estimator_checks_generator(cls(max_iter=2))
    }
    for name in EXPECTED_FAILURES:
        model, check = checks[name]
        with pytest.raises((AssertionError, ValueError)):
            check(model)


@BOTH
def test_warm_start_is_a_documented_no(cls):
    """There is no such parameter, and the documentation says why."""
    assert "warm_start" not in cls().get_params()
    assert "warm_start" in SDist.__doc__


# --- clone, copies, pickles


@BOTH
def test_clone_keeps_parameters_and_drops_the_fit(cls, xor):
    """A clone has the parameters, is not fitted, and learns the same model."""
    model = sdist(cls, n_neighbors=7, init=0.01 * np.eye(6)).fit(*xor)
    twin = clone(model)
    assert not hasattr(twin, "metric_")
    assert twin.get_params()["n_neighbors"] == 7
    assert_array_equal(twin.fit(*xor).transform(xor[0]), model.transform(xor[0]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_predict_alike(copied, xor, fitted):
    """A deep copy and a pickle give the very same numbers, and the same path."""
    X, _ = xor
    twin = copied(fitted)
    assert_array_equal(twin.transform(X), fitted.transform(X))
    assert_array_equal(twin.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(twin.kneighbors(X)[1], fitted.kneighbors(X)[1])
    assert_array_equal(twin.path_, fitted.path_)


def test_the_metric_function_survives_pickling(xor, fitted):
    """A nearest-neighbour model that holds the metric can be stored."""
    X, y = xor
    model = KNeighborsClassifier(3, metric=fitted.get_metric()).fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.predict(X[:20]), model.predict(X[:20]))


# --- the same model for the same seed


@BOTH
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_n_jobs_changes_nothing(cls, n_jobs, xor):
    """The metric is bit for bit the same at any number of jobs."""
    a, b = sdist(cls, n_jobs=None).fit(*xor), sdist(cls, n_jobs=n_jobs).fit(*xor)
    assert_array_equal(a.metric_.components, b.metric_.components)
    assert a.metric_.columns == b.metric_.columns


def test_blas_threads_change_nothing(xor):
    """The metric does not depend on the number of threads of BLAS."""
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(sdist().fit(*xor).metric_.components)
    assert_array_equal(*found)


@pytest.mark.parametrize("classifier", ["auto", "kernel", "mixture"])
def test_blas_threads_change_no_prediction(classifier):
    """The metric has so many terms that BLAS would use several threads."""
    X, y = make_classification(150, 300, n_informative=100, n_redundant=0, random_state=1)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            model = SDistClassifier(
                max_iter=10, n_averaged=2, n_nonzero=60, oob_gate=None, classifier=classifier,
                random_state=0,
            ).fit(X, y)  # fmt: skip
            found.append((model.metric_.components, model.transform(X), model.predict_proba(X)))
    for one, other in zip(*found):
        assert_array_equal(one, other)


@BOTH
def test_seeds(cls, xor):
    """The same seed gives the same model, also as a RandomState; another gives another."""
    X, _ = xor
    embed = [
        sdist(cls, random_state=seed).fit(*xor).transform(X)
        for seed in (3, 3, np.random.RandomState(3), 4)
    ]
    assert_array_equal(embed[0], embed[1])
    assert_array_equal(embed[0], embed[2])
    assert embed[0].shape != embed[3].shape or not np.allclose(embed[0], embed[3])


def test_fit_leaves_its_input_alone(xor):
    """Neither the table nor the parameters are changed by a fit."""
    X, y = xor[0].copy(), xor[1].copy()
    init, weight = np.eye(6), np.ones(160)
    model = sdist(init=init)
    before = str(model.get_params())
    model.fit(X, y, sample_weight=weight).predict(X)
    assert_array_equal(X, xor[0])
    assert_array_equal(init, np.eye(6))
    assert_array_equal(weight, 1)
    assert str(model.get_params()) == before


# --- pipelines and searches


def test_transformer_before_neighbours(xor):
    """Nearest neighbours after ``SDist`` are better than on the raw table."""
    X, y = xor
    plain = KNeighborsClassifier(5).fit(X[:100], y[:100]).score(X[100:], y[100:])
    pipe = make_pipeline(StandardScaler(), sdist(SDist), KNeighborsClassifier(5))
    assert pipe.fit(X[:100], y[:100]).score(X[100:], y[100:]) > plain


def test_fit_transform_is_fit_then_transform(xor):
    """``fit_transform`` gives the result of ``fit`` and then ``transform``."""
    X, y = xor
    together = sdist(SDist).fit_transform(X, y)
    assert_array_equal(together, sdist(SDist).fit(X, y).transform(X))


def test_metric_function_agrees_with_the_embedding(xor, fitted):
    """``metric=get_metric()`` and Euclidean distances on ``transform`` predict the same."""
    X, y = xor
    by_metric = KNeighborsClassifier(3, metric=fitted.get_metric()).fit(X[:80], y[:80])
    embedded = fitted.transform(X)
    by_embedding = KNeighborsClassifier(3).fit(embedded[:80], y[:80])
    assert_array_equal(by_metric.predict(X[80:]), by_embedding.predict(embedded[80:]))
    distances, rows = by_metric.kneighbors(X[80:])
    expected, expected_rows = by_embedding.kneighbors(embedded[80:])
    assert_allclose(distances, expected, atol=1e-10)
    assert_array_equal(rows, expected_rows)


def test_grid_search(xor):
    """A grid over nested parameters, refitted with the best of them."""
    X, y = xor
    pipe = make_pipeline(StandardScaler(), sdist())
    grid = {"sdistclassifier__max_degree": [1, 2], "sdistclassifier__oob_gate": [1.0, 50.0]}
    with pytest.warns(UserWarning, match="No step was accepted"):
        search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["sdistclassifier__oob_gate"] == 1.0
    assert search.best_score_ > 0.7
    alone = clone(pipe).set_params(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict(X), alone.predict(X))


def test_parallel_search_finds_the_same(xor):
    """Fits that run side by side do not disturb each other."""
    grid = {"n_nonzero": [1, 2, 3], "n_neighbors": [5, 10]}
    alone = GridSearchCV(sdist(), grid, cv=2, error_score="raise").fit(*xor)
    with parallel_backend("threading", n_jobs=2):
        beside = GridSearchCV(sdist(), grid, cv=2, error_score="raise").fit(*xor)
    for key in ("split0_test_score", "split1_test_score"):
        assert_array_equal(alone.cv_results_[key], beside.cv_results_[key])


def test_cross_val_score(xor):
    """Cross-validation by accuracy and by the area under the curve, well above chance."""
    for scoring in ("accuracy", "roc_auc", "neg_log_loss"):
        scores = cross_val_score(sdist(), *xor, cv=3, scoring=scoring, error_score="raise")
        assert scores.mean() > (0.7 if scoring != "neg_log_loss" else -0.7)


@pytest.mark.parametrize("classifier", ["margin", "knn"])
def test_calibration(classifier, xor):
    """``CalibratedClassifierCV`` takes the scores of either classifier."""
    X, y = xor
    model = CalibratedClassifierCV(sdist(classifier=classifier), cv=3).fit(X[:120], y[:120])
    proba = model.predict_proba(X[120:])
    assert_allclose(proba.sum(axis=1), 1)
    assert model.score(X[120:], y[120:]) > 0.7


def test_permutation_importance(xor, fitted):
    """Shuffling the two columns that matter hurts most, as the model's own importances say."""
    found = permutation_importance(fitted, *xor, n_repeats=3, random_state=0).importances_mean
    own = fitted.feature_importances_
    assert set(np.argsort(-found)[:2]) == set(np.argsort(-own)[:2])


def test_select_from_model(xor):
    """``SelectFromModel`` reads ``feature_importances_``."""
    X, y, info = make_xor(160, 6, informative=2, random_state=0, return_info=True)
    chosen = SelectFromModel(sdist(SDist), max_features=2, threshold=-np.inf).fit(X, y)
    assert_array_equal(chosen.get_support(indices=True), np.sort(info.informative))


def test_more_than_two_classes_by_one_against_the_rest(xor):
    """``OneVsRestClassifier`` makes several fits of two classes from three."""
    X, _ = xor
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    assert OneVsRestClassifier(sdist()).fit(X, y).score(X, y) > 0.7


# --- names and data frames


@BOTH
def test_names_of_columns(cls, xor, frame):
    """Names are kept, and terms go by them."""
    model = sdist(cls).fit(frame, xor[1])
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 6
    assert model.metric_.feature_names == NAMES
    used = {name for term in model.metric_.terms for name in term.name.split("*")}
    assert used <= {name + power for name in NAMES for power in ("", "^2")}
    assert any("*" in term.name for term in model.metric_.terms)


@BOTH
def test_arrays_have_no_names(cls, xor, frame):
    """Fitted on an array there are no names, also after an earlier fit that had some."""
    model = sdist(cls).fit(frame, xor[1]).fit(*xor)
    assert not hasattr(model, "feature_names_in_")
    assert model.metric_.feature_names == [f"x{j}" for j in range(6)]


@BOTH
def test_names_of_dimensions(cls, xor, frame):
    """The dimensions of the embedding are sdist0, sdist1, ..."""
    model = sdist(cls).fit(frame, xor[1])
    names = model.get_feature_names_out()
    assert names.tolist() == [f"sdist{i}" for i in range(model.metric_.rank)]
    assert len(names) == model.transform(frame).shape[1]


def test_names_through_a_column_transformer(xor, frame):
    """``ColumnTransformer`` prefixes them."""
    columns = ColumnTransformer([("near", sdist(SDist), NAMES)]).fit(frame, xor[1])
    assert columns.get_feature_names_out()[0] == "near__sdist0"


@pytest.mark.parametrize(
    ("cls", "method"),
    [(SDist, "transform"), (SDist, "staged_transform")]
    + [(SDistClassifier, name) for name in ("transform", "predict", "kneighbors")],
)
def test_order_of_columns_is_checked(cls, method, xor, frame):
    """Columns in another order, or under other names, are refused."""
    call = getattr(sdist(cls).fit(frame, xor[1]), method)
    with pytest.raises(ValueError, match="same order"):
        next(iter(call(frame[NAMES[::-1]])))
    with pytest.raises(ValueError, match="feature names should match"):
        next(iter(call(frame.rename(columns={"age": "years"}))))


def test_frames_and_arrays_give_one_model(xor, frame):
    """pandas, polars, lists, float32 and Fortran order: the container does not matter."""
    X, y = xor[0].astype(np.float32), xor[1]
    expected = sdist().fit(X.astype(float), y).metric_.components
    for table in (
        X, np.asfortranarray(X), X.tolist(), pd.DataFrame(X, columns=NAMES),
        pl.DataFrame(X, schema=NAMES),
    ):  # fmt: skip
        assert_array_equal(sdist().fit(table, y).metric_.components, expected)


def test_columns_of_numbers_of_any_type():
    """Booleans, integers and nullable integers are numbers."""
    rng = np.random.default_rng(0)
    flag, count, size = rng.random(80) < 0.5, rng.integers(-3, 4, 80), rng.random(80)
    y = (flag ^ (count > 0)).astype(int)
    table = pd.DataFrame({"flag": flag, "count": pd.array(count, "Int64"), "size": size})
    model = sdist(n_neighbors=5).fit(table, y)
    plain = sdist(n_neighbors=5).fit(np.c_[flag, count, size].astype(float), y)
    assert_array_equal(model.metric_.components, plain.metric_.components)
    assert_array_equal(model.predict(table), plain.predict(table.to_numpy(dtype=float)))


# --- set_output


@BOTH
def test_pandas_output(cls, xor, frame):
    """A frame with names, and with the index of the input."""
    model = sdist(cls).set_output(transform="pandas").fit(frame, xor[1])
    out = model.transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == model.get_feature_names_out().tolist()
    assert out.index.equals(frame.index)
    assert_array_equal(out.to_numpy(), sdist(cls).fit(frame, xor[1]).transform(frame))


@BOTH
def test_polars_output(cls, xor):
    """polars in, polars out."""
    table = pl.DataFrame(xor[0], schema=NAMES)
    model = sdist(cls).set_output(transform="polars").fit(table, xor[1])
    out = model.transform(table)
    assert isinstance(out, pl.DataFrame)
    assert out.columns == model.get_feature_names_out().tolist()
    assert_array_equal(out.to_numpy(), sdist(cls).fit(table, xor[1]).transform(table))


@OUTPUTS
@pytest.mark.parametrize(
    "method", ["predict", "decision_function", "predict_proba", "kneighbors", "staged_predict"]
)
def test_output_setting_does_not_reach_predictions(output, method, xor, frame, fitted):
    """Predictions are the same arrays whatever ``transform`` returns."""
    model = sdist().set_output(transform=output).fit(frame, xor[1])
    found = list(getattr(model, method)(frame))
    expected = list(getattr(fitted, method)(xor[0]))
    assert isinstance(found[0], type(expected[0]))
    assert_array_equal(found, expected)


@BOTH
@OUTPUTS
def test_output_setting_does_not_reach_distances(cls, output, xor, frame, fitted):
    """Pairs are taken row by row, never by their index labels."""
    model = sdist(cls).set_output(transform=output).fit(frame, xor[1])
    expected = fitted.pair_distance(xor[0][:50], xor[0][30:80])
    assert_allclose(model.pair_distance(frame[:50], frame[30:80]), expected, atol=1e-12)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_output_of_a_pipeline(output, xor, frame):
    """``set_output`` on a whole pipeline, with the classifier at its end."""
    pipe = make_pipeline(StandardScaler(), sdist())
    expected = clone(pipe).fit(frame, xor[1]).predict(frame)
    pipe.set_output(transform=output).fit(frame, xor[1])
    assert_array_equal(pipe.predict(frame), expected)


# --- labels


def coded(values, dtype=object):
    """Labels as an array of the given type: ``values[y]``."""
    return lambda y: np.array(values, dtype=dtype)[y]


LABELS = {
    "str": (["no", "yes"], coded(["no", "yes"], str)),
    "str-list": (["no", "yes"], lambda y: coded(["no", "yes"])(y).tolist()),
    "str-object": (["no", "yes"], coded(["no", "yes"])),
    "bool": ([False, True], coded([False, True], bool)),
    "bool-object": ([False, True], coded([False, True])),
    "negative-int": ([-7, -3], coded([-7, -3], int)),
    "int-object": ([0, 1], coded([0, 1])),
    "uint8": ([1, 2], coded([1, 2], np.uint8)),
    "float": ([-1.0, 1.0], coded([-1.0, 1.0], float)),
    "float-object": ([-1.0, 1.0], coded([-1.0, 1.0])),
    "pandas-str": (["no", "yes"], lambda y: pd.Series(coded(["no", "yes"])(y)).astype("string")),
    "pandas-category": (["a", "b"], lambda y: pd.Categorical.from_codes(y, ["a", "b"])),
    "pandas-category-series": (
        ["a", "b"],
        lambda y: pd.Series(pd.Categorical.from_codes(y, ["a", "b"], ordered=True)),
    ),
    "pandas-category-int": ([3, 5], lambda y: pd.Categorical.from_codes(y, [3, 5])),
    "pandas-category-bool": ([False, True], lambda y: pd.Categorical(y == 1)),
    "pandas-Int64": ([-2, 2], lambda y: pd.Series(4 * y - 2, dtype="Int64")),
    "pandas-boolean": ([False, True], lambda y: pd.Series(y == 1, dtype="boolean")),
    "polars-str": (["no", "yes"], lambda y: pl.Series(coded(["no", "yes"])(y).tolist())),
    "polars-category": (
        ["no", "yes"],
        lambda y: pl.Series(coded(["no", "yes"])(y).tolist(), dtype=pl.Categorical),
    ),
    "polars-bool": ([False, True], lambda y: pl.Series(y == 1)),
}


@BOTH
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type(cls, kind, xor, fitted):
    """The model does not depend on what the classes are called; predictions are labels."""
    X, y = xor
    values, label = LABELS[kind]
    model = sdist(cls).fit(X, label(y))
    assert list(model.classes_) == values
    assert_array_equal(model.transform(X), fitted.transform(X))
    if cls is SDistClassifier:
        assert_array_equal(model.decision_function(X), fitted.decision_function(X))
        assert_array_equal(model.predict(X), np.array(values)[fitted.predict(X)])


@pytest.mark.parametrize(
    "kind", sorted(set(LABELS) - {"bool-object", "int-object", "float-object"})
)
def test_score_with_labels_of_any_type(kind, xor, fitted):
    """``score`` compares with labels as they were given."""
    X, y = xor
    label = LABELS[kind][1]
    assert sdist().fit(X, label(y)).score(X, label(y)) == fitted.score(X, y)


def test_classes_are_sorted_not_in_order_of_appearance(xor):
    """``classes_[1]`` is the positive class, also when it comes first."""
    X, y = xor
    model = sdist().fit(X, np.array(["z", "a"])[y])
    assert model.classes_.tolist() == ["a", "z"]
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "z")


# --- metadata routing


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).uniform(0.01, 5, 160)


@pytest.mark.usefixtures("routing")
def test_weights_reach_the_classifier(xor, weight):
    """A pipeline passes ``sample_weight`` on to a classifier that asks for it."""
    X, y = xor
    pipe = make_pipeline(MinMaxScaler(), sdist().set_fit_request(sample_weight=True))
    pipe.fit(X, y, sample_weight=weight)
    scaled = MinMaxScaler().fit_transform(X)
    assert_array_equal(pipe[-1].path_, sdist().fit(scaled, y, sample_weight=weight).path_)
    assert not np.array_equal(pipe[-1].path_, sdist().fit(scaled, y).path_)


@pytest.mark.usefixtures("routing")
def test_weights_reach_the_transformer(xor, weight):
    """A pipeline passes ``sample_weight`` on to ``SDist`` as a step."""
    X, y = xor
    pipe = make_pipeline(sdist(SDist).set_fit_request(sample_weight=True), KNeighborsClassifier())
    pipe.fit(X, y, sample_weight=weight)
    assert_array_equal(pipe[0].path_, sdist(SDist).fit(X, y, sample_weight=weight).path_)


@pytest.mark.usefixtures("routing")
def test_weights_nobody_asked_for_are_refused(xor, weight):
    """Without a request scikit-learn refuses rather than guesses."""
    pipe = make_pipeline(MinMaxScaler(), sdist())
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        pipe.fit(*xor, sample_weight=weight)


@pytest.mark.usefixtures("routing")
def test_weights_in_cross_validation(xor, weight):
    """``cross_validate`` splits the weights with the rows."""
    model = sdist().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    found = cross_validate(
        model, *xor, cv=2, params={"sample_weight": weight}, error_score="raise",
        return_estimator=True, return_indices=True,
    )  # fmt: skip
    rows = found["indices"]["train"][0]
    X, y = xor
    alone = sdist().fit(X[rows], y[rows], sample_weight=weight[rows])
    assert_array_equal(found["estimator"][0].path_, alone.path_)
