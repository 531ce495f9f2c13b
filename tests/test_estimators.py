"""What a fit leaves behind and what its methods return, against their definitions."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from fits import (
    as_learned,
    cross_fitted,
    distances_agree,
    one_fit,
    total_variance,
    variables,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from metricboost import SDist, SDistClassifier, SparseMetric
from metricboost.datasets import make_xor
from metricboost.engines import native_available
from metricboost.estimators import _classifier, _sdist
from metricboost.inspection import ScreenedPairs
from metricboost.model import calibrate
from metricboost.model.readouts import Margin

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
CLASSIFIERS = pytest.mark.parametrize(
    "params",
    [
        {"classifier": "margin"},
        {"classifier": "margin", "n_neighbors_predict": 1},
        {"classifier": "knn"},
        {"classifier": "knn", "n_neighbors_predict": 4},  # votes may be tied
    ],
    ids=lambda params: "-".join(map(str, params.values())),
)
QUIET = pytest.mark.filterwarnings("ignore:No step was accepted")


@pytest.fixture(scope="module")
def xor():
    return make_xor(300, 8, informative=2, random_state=1)


@pytest.fixture(scope="module")
def train(xor):
    return xor[0][:200], xor[1][:200]


@pytest.fixture(scope="module")
def unseen(xor):
    return xor[0][200:]


@pytest.fixture(scope="module")
def fitted(train):
    return one_fit(classifier="margin").fit(*train)


@pytest.fixture(scope="module")
def unpruned(train):
    return one_fit(classifier="margin", prune=None).fit(*train)


def margins(embedding, y, k):
    """The margins of training rows from their definition: k nearest rows of each class."""
    squared = cdist(embedding, embedding, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    same = y[:, None] == y
    near = [np.sort(np.where(own, squared, np.inf), axis=1)[:, :k] for own in (same, ~same)]
    return near[1].mean(axis=1) - near[0].mean(axis=1)


# --- fitted attributes


@BOTH
def test_fitted_attributes(cls, train):
    """Fitted attributes have the documented types and ranges."""
    model = one_fit(cls).fit(*train)
    assert isinstance(model.metric_, SparseMetric)
    assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 8
    assert 1 <= model.n_iter_ <= 25
    assert model.best_iter_ == len(model.path_)
    assert model.metric_.n_features == 8


def test_the_path_has_one_row_per_accepted_step(fitted):
    """Attempts increase, and the rank, the terms and the complexity of the metric never shrink."""
    path = fitted.path_
    assert {"attempt", "loss", "complexity", "rank", "terms"} <= set(path.dtype.names)
    assert len(path) > 3
    assert path["attempt"][0] >= 1
    assert path["attempt"][-1] <= fitted.n_iter_
    assert (np.diff(path["attempt"]) >= 1).all()
    for field in ("rank", "terms"):
        assert (np.diff(path[field]) >= 0).all()
    assert (np.diff(path["complexity"]) > 0).all()


def test_the_path_ends_at_the_unpruned_metric(unpruned, train):
    """Rank, terms and complexity (the sum of the singular values) are those of the metric."""
    last, metric = unpruned.path_[-1], unpruned.metric_
    assert last["rank"] == metric.rank
    assert last["terms"] == len(metric.columns)
    singular = np.linalg.svd(as_learned(unpruned, train).components, compute_uv=False)
    assert_allclose(last["complexity"], singular.sum(), rtol=1e-10)


def test_the_metric_is_what_was_learned_at_unit_variance(fitted, unpruned, train, unseen):
    """All distances have one factor, with which the training rows have a total variance of 1."""
    for model in (fitted, unpruned):
        learned = as_learned(model, train)
        assert set(model.metric_.columns) == set(learned.columns)
        assert_allclose(total_variance(model.transform(train[0])), 1.0)
        expected = learned.transform(unseen) / np.sqrt(total_variance(learned.transform(train[0])))
        assert_allclose(model.transform(unseen), expected, rtol=1e-9, atol=1e-12)


def test_loss_on_the_path_is_the_summed_exponential_loss(train):
    """With a refresh at every step the loss follows from the embedding alone."""
    X, y = train
    model = one_fit(refresh_every=1, n_neighbors=6, oob_gate=None).fit(X, y)
    (fit,), found = cross_fitted(model, X, y).fits, []
    for m, stage in enumerate(model.staged_transform(X), 1):
        rows = fit.metric(fit.path.factor(m)).transform(X)
        assert_allclose(stage, rows / np.sqrt(total_variance(rows)), atol=1e-10)
        found.append(np.exp(-margins(rows, y, 6)).sum())
    assert len(found) > 3
    assert_allclose(model.path_["loss"], found, rtol=1e-8)


def test_loss_falls_without_bags_and_refreshes(train):
    """With fixed neighbours and all rows every step lowers the loss, which starts from n."""
    model = one_fit(subsample=1.0, refresh_every=None, oob_gate=None).fit(*train)
    loss = np.r_[200.0, model.path_["loss"]]
    assert len(loss) == 26
    assert (np.diff(loss) < 0).all()


def test_importances(fitted):
    """The weight W_aa of a term is shared by its distinct columns; unused columns have 0."""
    weight = np.diag(fitted.metric_.matrix())
    expected = np.zeros(8)
    for columns, share in zip(fitted.metric_.columns, weight):
        for column in set(columns):
            expected[column] += share / len(set(columns))
    found = fitted.feature_importances_
    assert_allclose(found, expected / expected.sum(), rtol=1e-12)
    assert_allclose(found.sum(), 1)
    unused = set(range(8)) - {column for term in fitted.metric_.columns for column in term}
    assert unused
    assert (found[sorted(unused)] == 0).all()


def test_a_second_fit_forgets_the_first(train, unseen):
    """Nothing of an earlier fit is left, not even a path that was looked at."""
    model = one_fit().fit(unseen, (unseen[:, 0] > 0).astype(int))
    assert len(model.path_)
    model.fit(*train)
    fresh = one_fit().fit(*train)
    assert_array_equal(model.path_, fresh.path_)
    assert_array_equal(model.predict(unseen), fresh.predict(unseen))


# --- predictions


@CLASSIFIERS
def test_decision_function_agrees_with_predict(params, train, unseen):
    """The decision function is positive exactly where ``classes_[1]`` is predicted."""
    model = one_fit(**params).fit(train[0], np.array(["a", "b"])[train[1]])
    score = model.decision_function(unseen)
    assert score.shape == (100,)
    assert_array_equal(score > 0, model.predict(unseen) == "b")
    assert 0 < (score > 0).mean() < 1


@CLASSIFIERS
def test_probabilities_agree_with_predict(params, train, unseen):
    """Rows sum to 1, the larger share is the prediction, and the score orders the rows."""
    model = one_fit(**params).fit(*train)
    proba = model.predict_proba(unseen)
    assert proba.shape == (100, 2)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba[:, 1] > 0.5, model.predict(unseen) == 1)
    order = np.argsort(model.decision_function(unseen), kind="stable")
    assert (np.diff(proba[order, 1]) >= 0).all()
    with np.errstate(divide="ignore"):
        assert_allclose(model.predict_log_proba(unseen), np.log(proba))


def mean_squared(model, X, y, queries, k):
    """The mean squared distance of every query to the k nearest rows of every class."""
    squared = cdist(model.transform(queries), model.transform(X), "sqeuclidean")
    near = [np.sort(squared[:, y == c], axis=1)[:, :k].mean(axis=1) for c in model.classes_]
    return np.stack(near, axis=1)


def test_margin_compares_mean_squared_distances(fitted, train, unseen):
    """The decision function is the calibrated log of their ratio."""
    d = mean_squared(fitted, *train, unseen, fitted.n_neighbors_predict_)
    calibration = fitted.model_.the_reading.calibration
    threshold = calibration.offsets[1] - calibration.offsets[0]
    expected = calibration.slope * np.log(d[:, 0] / d[:, 1]) + threshold
    assert calibration.slope > 0
    assert_allclose(fitted.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    odds = np.exp(expected)
    assert_allclose(fitted.predict_proba(unseen)[:, 1], odds / (1 + odds), rtol=1e-9)


def vote_evidence(model, X, y, queries, k):
    """Logarithms of scikit-learn's votes on the embedding plus one half."""
    oracle = KNeighborsClassifier(k).fit(model.transform(X), y)
    return np.log(k * oracle.predict_proba(model.transform(queries)) + 0.5)


def test_votes_are_those_of_nearest_neighbours(train, unseen):
    """``classifier="knn"`` counts as scikit-learn's classifier does, and is calibrated."""
    model = one_fit(classifier="knn", n_neighbors_predict=5).fit(*train)
    votes = vote_evidence(model, *train, unseen, 5)
    calibration = model.model_.the_reading.calibration
    expected = calibration.log_odds(votes) @ [-1, 1]
    assert len(set(expected.round(8))) == 6  # as many as there are counts of five votes
    assert_allclose(model.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(unseen), (expected > 0).astype(int))


def test_kneighbors(fitted, train, unseen):
    """The nearest training rows on the embedding, with distances, not squares."""
    oracle = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(fitted.transform(train[0]))
    expected, expected_rows = oracle.kneighbors(fitted.transform(unseen))
    distances, rows = fitted.kneighbors(unseen, n_neighbors=7)
    assert_allclose(distances, expected, atol=1e-7)
    assert_array_equal(rows, expected_rows)
    assert_array_equal(fitted.kneighbors(unseen, 7, return_distance=False), rows)
    assert fitted.kneighbors(unseen)[0].shape == (100, fitted.n_neighbors_predict_)


@BOTH
def test_pair_distance(cls, train, unseen):
    """The norm of the difference of embeddings; the function of two rows is the same."""
    model = one_fit(cls).fit(*train)
    a, b = unseen[:40], unseen[40:80]
    expected = np.linalg.norm(model.transform(a) - model.transform(b), axis=1)
    assert_allclose(model.pair_distance(a, b), expected)
    assert_allclose(model.metric_.pair_distance(a, b), expected)
    distance = model.get_metric()
    assert_allclose([distance(x, y) for x, y in zip(a, b)], expected)
    assert (expected > 0).all()


def test_one_row_at_a_time(fitted, unseen):
    """A row's prediction does not depend on the rows beside it."""
    alone = [fitted.decision_function(row[None])[0] for row in unseen[:20]]
    assert_allclose(alone, fitted.decision_function(unseen)[:20], rtol=1e-9, atol=1e-12)


def test_more_neighbours_than_rows(train, unseen):
    """If a class has fewer rows than neighbours are asked for, all of its rows count."""
    largest = int(np.bincount(train[1]).max())
    a = one_fit(n_neighbors_predict=1000).fit(*train).decision_function(unseen)
    b = one_fit(n_neighbors_predict=largest).fit(*train).decision_function(unseen)
    assert_allclose(a, b)


def test_number_of_neighbours_is_chosen_out_of_fold(fitted, train):
    """The chosen number has the smallest Brier score of the four numbers, by brute force."""
    X, y = train
    brier = {}
    for k in (3, 5, 10, 20):
        evidence = np.empty((200, 2))
        for fold in cross_fitted(fitted, X, y).folds:
            kept, out = X[fold.kept], X[fold.left_out]
            near = mean_squared(fitted, kept, y[fold.kept], out, k)
            evidence[fold.left_out] = -np.log(near)
        proba = calibrate(evidence, y, np.ones(200)).probabilities(evidence)[:, 1]
        brier[k] = ((proba - y) ** 2).mean()
    chosen = fitted.n_neighbors_predict_
    assert brier[chosen] == min(brier.values())
    assert len(set(brier.values())) == 4
    assert fitted.readout_ == Margin(chosen)
    assert one_fit(n_neighbors_predict=7).fit(X, y).n_neighbors_predict_ == 7


# --- more than two classes


NAMES = np.array(["low", "middle", "high"])


@pytest.fixture(scope="module")
def three():
    """The classes depend on the product of two of six columns, and on no column by itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 6))
    signal = X[:, 1] * X[:, 4] + 0.1 * rng.normal(size=450)
    y = NAMES[np.digitize(signal, [-0.3, 0.3])]
    return X[:300], y[:300], X[300:], y[300:]


MULTICLASS = pytest.mark.parametrize("multiclass", ["common", "coded"])


@MULTICLASS
@CLASSIFIERS
def test_three_classes(params, multiclass, three):
    """Predictions are strings as the labels; the decision function has one column per class."""
    X, y, unseen, truth = three
    model = one_fit(multiclass=multiclass, max_iter=40, **params).fit(X, y)
    assert_array_equal(model.classes_, ["high", "low", "middle"])
    score, proba = model.decision_function(unseen), model.predict_proba(unseen)
    assert score.shape == proba.shape == (150, 3)
    predicted = model.predict(unseen)
    assert_array_equal(predicted, model.classes_[score.argmax(axis=1)])
    assert_array_equal(predicted, model.classes_[proba.argmax(axis=1)])
    assert_allclose(proba.sum(axis=1), 1)
    assert (predicted == truth).mean() > 0.7
    assert variables(model) >= {1, 4}
    unpruned = one_fit(multiclass=multiclass, max_iter=40, prune=None, **params).fit(X, y)
    assert_array_equal(list(unpruned.staged_predict(unseen))[-1], unpruned.predict(unseen))


def test_margin_of_three_classes(three):
    """The evidence for a class is minus the log of the mean squared distance to it, calibrated."""
    X, y, unseen, _ = three
    model = one_fit(classifier="margin", n_neighbors_predict=5).fit(X, y)
    evidence = -np.log(mean_squared(model, X, y, unseen, 5))
    calibration = model.model_.the_reading.calibration
    expected = calibration.slope * evidence + calibration.offsets
    assert_allclose(model.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    share = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(unseen), share, rtol=1e-9)


def test_votes_of_three_classes(three):
    """``classifier="knn"`` counts as scikit-learn's classifier does, ties included."""
    X, y, unseen, _ = three
    model = one_fit(classifier="knn", n_neighbors_predict=4).fit(X, y)
    votes = vote_evidence(model, X, y, unseen, 4)
    tied = votes == votes.max(axis=1, keepdims=True)
    assert (tied.sum(axis=1) > 1).any()
    expected = model.model_.the_reading.calibration.log_odds(votes)
    assert_allclose(model.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(unseen), model.classes_[expected.argmax(axis=1)])


@BOTH
@MULTICLASS
def test_a_class_with_fewer_rows_than_neighbours(cls, multiclass, three):
    """One warning names the class and its rows."""
    X, y, unseen, _ = three
    kept = np.r_[np.flatnonzero(y == "low")[:6], np.flatnonzero(y != "low")]
    message = r"n_neighbors=20, but class 'low' has too few rows \(6\)"
    with pytest.warns(UserWarning, match=message):
        model = one_fit(cls, multiclass=multiclass, n_neighbors=20).fit(X[kept], y[kept])
    assert model.transform(unseen).shape[0] == 150


@MULTICLASS
def test_names_of_three_classes_do_not_matter(multiclass, three):
    """Labels in another order, or numbers as labels, give the same distance."""
    X, y, unseen, _ = three
    a = one_fit(multiclass=multiclass).fit(X, y)
    b = one_fit(multiclass=multiclass).fit(X, np.select([y == "low", y == "high"], [7, 3], -1))
    distances_agree(a, b, unseen, rtol=1e-8)
    assert_array_equal(b.classes_, [-1, 3, 7])


def test_two_classes_are_alike_under_either_reading(train, unseen):
    a, b = (one_fit(multiclass=m).fit(*train) for m in ("common", "coded"))
    assert_array_equal(a.transform(unseen), b.transform(unseen))


def test_screened_pairs_of_three_classes(three):
    """The first of twenty-one pairs is the product that the classes are made of."""
    X, y, _, _ = three
    found = ScreenedPairs().fit(X, y)
    assert found.pairs_[0] == (1, 4)
    assert found.scores_[0] > 5


# --- stages and truncation


def test_stages_end_at_the_unpruned_model(fitted, unpruned, unseen):
    """There is one stage for each accepted step; the last is the model before pruning."""
    stages = list(fitted.staged_transform(unseen))
    assert [stage.shape[1] for stage in stages] == fitted.path_["rank"].tolist()
    assert_allclose(stages[-1], unpruned.transform(unseen), atol=1e-10)
    predictions = list(unpruned.staged_predict(unseen))
    assert len(predictions) == len(stages)
    assert_array_equal(predictions[-1], unpruned.predict(unseen))


@pytest.mark.parametrize(
    "params", [{}, {"max_features": "sqrt", "n_nonzero": 3}, {"refresh_every": 2}]
)
@pytest.mark.parametrize("max_iter", [3, 11, 20])
def test_a_shorter_fit_is_the_beginning_of_a_longer(params, max_iter, train, unseen):
    """The same steps, the same losses, the same metric: nothing depends on later steps."""
    params = {"prune": None, "oob_gate": 0.0, **params}
    long = one_fit(SDist, **params).fit(*train)
    short = one_fit(SDist, max_iter=max_iter, **params).fit(*train)
    m = int((long.path_["attempt"] <= max_iter).sum())
    assert 0 < m < len(long.path_)
    assert_array_equal(short.path_, long.path_[:m])
    a, b = as_learned(short, train), as_learned(long, train, m)
    assert a.columns == b.columns
    assert_array_equal(a.transform(unseen), b.transform(unseen))
    stages = list(long.staged_transform(unseen))
    assert_allclose(short.transform(unseen), stages[m - 1], rtol=1e-10, atol=1e-13)


def test_the_penalty_stops_earlier(train, unseen):
    """With a large complexity penalty only the first step is kept."""
    strict = one_fit(complexity_penalty=1e9, refresh_every=None, prune=None).fit(*train)
    assert strict.best_iter_ == 1
    assert len(strict.path_) > 3
    assert_allclose(strict.transform(unseen), next(strict.staged_transform(unseen)))


def test_the_penalty_minimises_its_criterion(train):
    """loss + penalty * complexity is smallest at ``best_iter_``."""
    path = one_fit(refresh_every=None).fit(*train).path_
    penalty = (path["loss"][3] - path["loss"][-3]) / np.ptp(path["complexity"][3:-2])
    model = one_fit(complexity_penalty=penalty, refresh_every=None).fit(*train)
    criterion = model.path_["loss"] + penalty * model.path_["complexity"]
    assert model.best_iter_ == np.argmin(criterion) + 1
    assert 1 < model.best_iter_ < len(model.path_)


# --- what must not matter


@pytest.mark.parametrize("classifier", ["margin", "knn"])
def test_swapped_labels_give_the_same_metric(classifier, train, unseen):
    """The scores have the opposite sign."""
    X, y = train
    a = one_fit(classifier=classifier).fit(X, y)
    b = one_fit(classifier=classifier).fit(X, 1 - y)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-12)
    assert_allclose(a.decision_function(unseen), -b.decision_function(unseen), atol=1e-12)


@pytest.mark.skipif(not native_available(), reason="the C++ kernels were not built")
@pytest.mark.parametrize("params", [{}, {"max_degree": 1}, {"max_degree": 3, "oob_gate": None}])
def test_engines_agree(params, train, unseen):
    """The C++ kernels take the same steps as NumPy and give the same distances."""
    a, b = (one_fit(engine=engine, **params).fit(*train) for engine in ("numpy", "native"))
    assert a.metric_.columns == b.metric_.columns
    assert_array_equal(a.path_["attempt"], b.path_["attempt"])
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-8)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-8)
    assert_allclose(a.decision_function(unseen), b.decision_function(unseen), atol=1e-8)


# --- documentation


@pytest.mark.parametrize("module", [_sdist, _classifier])
def test_examples_run(module):
    """The examples in the docstrings are true."""
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
