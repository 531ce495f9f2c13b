"""What a fit leaves behind and what its methods return, against their definitions."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from joblib import Parallel, delayed, effective_n_jobs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from metricboost import SDist, SDistClassifier, SparseMetric
from metricboost.datasets import make_double_ring, make_madelon, make_xor
from metricboost.engines import native_available
from metricboost.estimators import _classifier, _options, _sdist
from metricboost.estimators._workers import workers
from metricboost.inspection import ScreenedPairs
from metricboost.selection.calibration import calibrate
from metricboost.selection.readouts import Margin

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

#: One fit from all rows, so that its path and its stages are those of the metric (what several
#: fits make of it is the subject of test_crossfit.py).
ONE_FIT = {
    "n_averaged": 1, "clip": None, "learning_rate": 0.05, "oob_gate": 2.25, "n_nonzero": 6
}  # fmt: skip


def sdist(cls=SDistClassifier, **params):
    return cls(**{"max_iter": 25, "random_state": 0, **ONE_FIT, **params})


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
    return sdist(classifier="margin").fit(*train)


@pytest.fixture(scope="module")
def unpruned(train):
    return sdist(classifier="margin", prune=None).fit(*train)


def as_learned(model, steps=None):
    """The metric of the only fit as boosting left it, before it is scaled."""
    (fit,) = model._crossfit.fits
    return fit.metric(fit.factor if steps is None else fit.path.factor(steps), None)


def variance(embedding):
    """The total variance of embedded rows."""
    return embedding.var(axis=0).sum()


def variables(model):
    return set(np.flatnonzero(model.feature_importances_).tolist())


def distances_agree(a, b, X, **tolerance):
    """Whether two metrics give the same distances (their embeddings may be rotated)."""
    half = len(X) // 2
    pairs = X[:half], X[half : 2 * half]
    assert_allclose(a.pair_distance(*pairs), b.pair_distance(*pairs), **tolerance)


def proportional(a, b, **tolerance):
    """Whether two lists of positive numbers are the same up to a factor."""
    assert_allclose(np.asarray(a) / np.sum(a), np.asarray(b) / np.sum(b), **tolerance)


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
    """Their types and ranges."""
    model = sdist(cls).fit(*train)
    assert isinstance(model.metric_, SparseMetric)
    assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 8
    assert 1 <= model.n_iter_ <= 25
    assert model.best_iter_ == len(model.path_)
    assert model.metric_.n_features == 8


def test_the_path_has_one_row_per_accepted_step(fitted):
    """Attempts increase; the metric only grows, in rank, terms and complexity."""
    path = fitted.path_
    assert {"attempt", "loss", "complexity", "rank", "terms"} <= set(path.dtype.names)
    assert len(path) > 3
    assert path["attempt"][0] >= 1
    assert path["attempt"][-1] <= fitted.n_iter_
    assert (np.diff(path["attempt"]) >= 1).all()
    for field in ("rank", "terms"):
        assert (np.diff(path[field]) >= 0).all()
    assert (np.diff(path["complexity"]) > 0).all()


def test_the_path_ends_at_the_unpruned_metric(unpruned):
    """Rank, terms and complexity (the sum of the singular values) are those of the metric."""
    last, metric = unpruned.path_[-1], unpruned.metric_
    assert last["rank"] == metric.rank
    assert last["terms"] == len(metric.columns)
    singular = np.linalg.svd(as_learned(unpruned).components, compute_uv=False)
    assert_allclose(last["complexity"], singular.sum(), rtol=1e-10)


def test_the_metric_is_what_was_learned_at_unit_variance(fitted, unpruned, train, unseen):
    """One factor for all distances: the training rows have a total variance of 1."""
    for model in (fitted, unpruned):
        learned = as_learned(model)
        assert set(model.metric_.columns) == set(learned.columns)
        assert_allclose(variance(model.transform(train[0])), 1.0)
        expected = learned.transform(unseen) / np.sqrt(variance(learned.transform(train[0])))
        assert_allclose(model.transform(unseen), expected, rtol=1e-9, atol=1e-12)


def test_loss_on_the_path_is_the_summed_exponential_loss(train):
    """With a refresh at every step the loss follows from the embedding alone."""
    X, y = train
    model = sdist(refresh_every=1, n_neighbors=6, oob_gate=None).fit(X, y)
    found = []
    for m, stage in enumerate(model.staged_transform(X), 1):
        rows = as_learned(model, m).transform(X)
        assert_allclose(stage, rows / np.sqrt(variance(rows)), atol=1e-10)
        found.append(np.exp(-margins(rows, y, 6)).sum())
    assert len(found) > 3
    assert_allclose(model.path_["loss"], found, rtol=1e-8)


def test_loss_falls_without_bags_and_refreshes(train):
    """On fixed neighbours and all rows every step lowers the loss, from n on."""
    model = sdist(subsample=1.0, refresh_every=None, oob_gate=None).fit(*train)
    loss = np.r_[200.0, model.path_["loss"]]
    assert len(loss) == 26
    assert (np.diff(loss) < 0).all()


def test_importances(fitted):
    """A term's weight W_aa is shared by its distinct columns; exact zeros for the unused."""
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
    model = sdist().fit(unseen, (unseen[:, 0] > 0).astype(int))
    assert len(model.path_)
    model.fit(*train)
    fresh = sdist().fit(*train)
    assert_array_equal(model.path_, fresh.path_)
    assert_array_equal(model.predict(unseen), fresh.predict(unseen))


# --- predictions


@CLASSIFIERS
def test_decision_function_agrees_with_predict(params, train, unseen):
    """Positive exactly where ``classes_[1]`` is predicted."""
    model = sdist(**params).fit(train[0], np.array(["a", "b"])[train[1]])
    score = model.decision_function(unseen)
    assert score.shape == (100,)
    assert_array_equal(score > 0, model.predict(unseen) == "b")
    assert 0 < (score > 0).mean() < 1


@CLASSIFIERS
def test_probabilities_agree_with_predict(params, train, unseen):
    """Rows sum to 1, the larger share is the prediction, and the score orders the rows."""
    model = sdist(**params).fit(*train)
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
    """The log of their ratio, with the slope and the threshold that were calibrated."""
    d = mean_squared(fitted, *train, unseen, fitted.n_neighbors_predict_)
    calibration = fitted._candidate.calibration
    threshold = calibration.offsets[1] - calibration.offsets[0]
    expected = calibration.slope * np.log(d[:, 0] / d[:, 1]) + threshold
    assert calibration.slope > 0
    assert_allclose(fitted.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    odds = np.exp(expected)
    assert_allclose(fitted.predict_proba(unseen)[:, 1], odds / (1 + odds), rtol=1e-9)


def vote_evidence(model, X, y, queries, k):
    """Logarithms of scikit-learn's votes on the embedding, none of them quite zero."""
    oracle = KNeighborsClassifier(k).fit(model.transform(X), y)
    return np.log(k * oracle.predict_proba(model.transform(queries)) + 0.5)


def test_votes_are_those_of_nearest_neighbours(train, unseen):
    """``classifier="knn"`` counts as scikit-learn's classifier does, and is calibrated."""
    model = sdist(classifier="knn", n_neighbors_predict=5).fit(*train)
    votes = vote_evidence(model, *train, unseen, 5)
    calibration = model._candidate.calibration
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
    model = sdist(cls).fit(*train)
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
    """More neighbours than a class has rows are all of its rows."""
    largest = int(np.bincount(train[1]).max())
    a = sdist(n_neighbors_predict=1000).fit(*train).decision_function(unseen)
    b = sdist(n_neighbors_predict=largest).fit(*train).decision_function(unseen)
    assert_allclose(a, b)


def test_number_of_neighbours_is_chosen_out_of_fold(fitted, train):
    """The smallest Brier score of the four, by brute force."""
    X, y = train
    brier = {}
    for k in (3, 5, 10, 20):
        evidence = np.empty((200, 2))
        for fold in fitted._crossfit.folds:
            kept, out = X[fold.kept], X[fold.left_out]
            near = mean_squared(fitted, kept, y[fold.kept], out, k)
            evidence[fold.left_out] = -np.log(near)
        proba = calibrate(evidence, y, np.ones(200)).probabilities(evidence)[:, 1]
        brier[k] = ((proba - y) ** 2).mean()
    chosen = fitted.n_neighbors_predict_
    assert brier[chosen] == min(brier.values())
    assert len(set(brier.values())) == 4
    assert fitted.rule_ == Margin(chosen)
    assert sdist(n_neighbors_predict=7).fit(X, y).n_neighbors_predict_ == 7


# --- more than two classes


NAMES = np.array(["low", "middle", "high"])


@pytest.fixture(scope="module")
def three():
    """Classes by the product of two columns of six, with noise: none by a column alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 6))
    signal = X[:, 1] * X[:, 4] + 0.1 * rng.normal(size=450)
    y = NAMES[np.digitize(signal, [-0.3, 0.3])]
    return X[:300], y[:300], X[300:], y[300:]


MULTICLASS = pytest.mark.parametrize("multiclass", ["common", "coded"])


@MULTICLASS
@CLASSIFIERS
def test_three_classes(params, multiclass, three):
    """Strings in, strings out; the decision function has a column a class and agrees."""
    X, y, unseen, truth = three
    model = sdist(multiclass=multiclass, max_iter=40, **params).fit(X, y)
    assert_array_equal(model.classes_, ["high", "low", "middle"])
    score, proba = model.decision_function(unseen), model.predict_proba(unseen)
    assert score.shape == proba.shape == (150, 3)
    predicted = model.predict(unseen)
    assert_array_equal(predicted, model.classes_[score.argmax(axis=1)])
    assert_array_equal(predicted, model.classes_[proba.argmax(axis=1)])
    assert_allclose(proba.sum(axis=1), 1)
    assert (predicted == truth).mean() > 0.7
    assert variables(model) >= {1, 4}
    unpruned = sdist(multiclass=multiclass, max_iter=40, prune=None, **params).fit(X, y)
    assert_array_equal(list(unpruned.staged_predict(unseen))[-1], unpruned.predict(unseen))


def test_margin_of_three_classes(three):
    """Of each class: less the log of the mean squared distance to it, calibrated."""
    X, y, unseen, _ = three
    model = sdist(classifier="margin", n_neighbors_predict=5).fit(X, y)
    evidence = -np.log(mean_squared(model, X, y, unseen, 5))
    calibration = model._candidate.calibration
    expected = calibration.slope * evidence + calibration.offsets
    assert_allclose(model.decision_function(unseen), expected, rtol=1e-9, atol=1e-12)
    share = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(unseen), share, rtol=1e-9)


def test_votes_of_three_classes(three):
    """``classifier="knn"`` counts as scikit-learn's classifier does, ties included."""
    X, y, unseen, _ = three
    model = sdist(classifier="knn", n_neighbors_predict=4).fit(X, y)
    votes = vote_evidence(model, X, y, unseen, 4)
    tied = votes == votes.max(axis=1, keepdims=True)
    assert (tied.sum(axis=1) > 1).any()
    expected = model._candidate.calibration.log_odds(votes)
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
        model = sdist(cls, multiclass=multiclass, n_neighbors=20).fit(X[kept], y[kept])
    assert model.transform(unseen).shape[0] == 150


@MULTICLASS
def test_names_of_three_classes_do_not_matter(multiclass, three):
    """Labels in another order, or numbers: the same distance."""
    X, y, unseen, _ = three
    a = sdist(multiclass=multiclass).fit(X, y)
    b = sdist(multiclass=multiclass).fit(X, np.select([y == "low", y == "high"], [7, 3], -1))
    distances_agree(a, b, unseen, rtol=1e-8)
    assert_array_equal(b.classes_, [-1, 3, 7])


def test_two_classes_are_alike_under_either_reading(train, unseen):
    a, b = (sdist(multiclass=m).fit(*train) for m in ("common", "coded"))
    assert_array_equal(a.transform(unseen), b.transform(unseen))


def test_screened_pairs_of_three_classes(three):
    """The product that the classes are made of, of twenty-one."""
    X, y, _, _ = three
    found = ScreenedPairs().fit(X, y)
    assert found.pairs_[0] == (1, 4)
    assert found.scores_[0] > 5


# --- stages and truncation


def test_stages_end_at_the_unpruned_model(fitted, unpruned, unseen):
    """One stage an accepted step; the last is the model before pruning."""
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
    """The same steps, the same losses, the same metric: nothing depends on what is to come."""
    params = {"prune": None, "oob_gate": 0.0, **params}
    long = sdist(SDist, **params).fit(*train)
    short = sdist(SDist, max_iter=max_iter, **params).fit(*train)
    m = int((long.path_["attempt"] <= max_iter).sum())
    assert 0 < m < len(long.path_)
    assert_array_equal(short.path_, long.path_[:m])
    stages = list(long.staged_transform(unseen))
    assert_array_equal(short.transform(unseen), stages[m - 1])


def test_the_penalty_stops_earlier(train, unseen):
    """A large complexity penalty takes the first step, none takes them all."""
    strict = sdist(complexity_penalty=1e9, refresh_every=None, prune=None).fit(*train)
    assert strict.best_iter_ == 1
    assert len(strict.path_) > 3
    assert_allclose(strict.transform(unseen), next(strict.staged_transform(unseen)))


def test_the_penalty_minimises_its_criterion(train):
    """loss + penalty * complexity is smallest at ``best_iter_``."""
    path = sdist(refresh_every=None).fit(*train).path_
    penalty = (path["loss"][3] - path["loss"][-3]) / np.ptp(path["complexity"][3:-2])
    model = sdist(complexity_penalty=penalty, refresh_every=None).fit(*train)
    criterion = model.path_["loss"] + penalty * model.path_["complexity"]
    assert model.best_iter_ == np.argmin(criterion) + 1
    assert 1 < model.best_iter_ < len(model.path_)


# --- golden answers for fixed seeds, with the default parameters


def error(model, X, y, n_train):
    model.fit(X[:n_train], y[:n_train])
    return 1 - model.score(X[n_train:], y[n_train:])


def test_golden_xor():
    """The interaction of the two columns that matter weighs most; the Bayes error is 0.148."""
    X, y, info = make_xor(600, 30, informative=2, random_state=0, return_info=True)
    model = SDistClassifier(random_state=0)
    assert error(model, X, y, 300) < 0.2
    assert set(model.metric_.terms[0].columns) == set(info.informative)
    assert len(variables(model)) <= 10
    assert model.feature_importances_[info.informative].sum() > 0.8


def test_golden_double_ring():
    """The squares of the two columns that matter weigh most; the Bayes error is 0.150."""
    X, y, info = make_double_ring(600, 30, informative=2, random_state=0, return_info=True)
    model = SDistClassifier(random_state=0)
    assert error(model, X, y, 300) < 0.21
    squares = {term.columns for term in model.metric_.terms[:2]}
    assert squares == {(j, j) for j in info.informative}


def test_golden_madelon():
    """Only relevant columns among 50 are kept, and clusters are told apart."""
    X, y, info = make_madelon(
        800, 50, n_informative=3, n_redundant=3, return_info=True, random_state=0
    )
    model = SDistClassifier(random_state=0)
    assert error(model, X, y, 400) < 0.13
    assert model.feature_importances_[info.relevant].sum() > 0.9


# --- what must not matter


@pytest.mark.parametrize("classifier", ["margin", "knn"])
def test_swapped_labels_give_the_same_metric(classifier, train, unseen):
    """And the opposite scores."""
    X, y = train
    a = sdist(classifier=classifier).fit(X, y)
    b = sdist(classifier=classifier).fit(X, 1 - y)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-12)
    assert_allclose(a.decision_function(unseen), -b.decision_function(unseen), atol=1e-12)


@pytest.mark.skipif(not native_available(), reason="the C++ kernels were not built")
@pytest.mark.parametrize("params", [{}, {"max_degree": 1}, {"max_degree": 3, "oob_gate": None}])
def test_engines_agree(params, train, unseen):
    """The C++ kernels take the same steps as NumPy and give the same distances."""
    a, b = (sdist(engine=engine, **params).fit(*train) for engine in ("numpy", "native"))
    assert a.metric_.columns == b.metric_.columns
    assert_array_equal(a.path_["attempt"], b.path_["attempt"])
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-8)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-8)
    assert_allclose(a.decision_function(unseen), b.decision_function(unseen), atol=1e-8)


# --- weights


@pytest.fixture(scope="module")
def weight():
    rng = np.random.default_rng(0)
    return rng.uniform(0.1, 3, 200) * (rng.random(200) < 0.8)


@BOTH
@pytest.mark.parametrize(
    "params", [{}, {"class_weight": "balanced"}, {"complexity_penalty": 1.0, "oob_gate": None}]
)
def test_rows_without_weight_are_as_if_removed(cls, params, train, unseen, weight):
    """The same path, losses included, and the same metric."""
    X, y = train
    kept = weight > 0
    a = sdist(cls, **params).fit(X, y, sample_weight=weight)
    b = sdist(cls, **params).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert a.best_iter_ == b.best_iter_
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-10)
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-10)


def test_rows_without_weight_do_not_vote(train, unseen, weight):
    """Nor are they neighbours of a new row."""
    X, y = train
    kept = weight > 0
    a = sdist().fit(X, y, sample_weight=weight)
    b = sdist().fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_allclose(a.decision_function(unseen), b.decision_function(unseen), atol=1e-10)
    assert_allclose(a.kneighbors(unseen)[0], b.kneighbors(unseen)[0], atol=1e-10)


@pytest.mark.parametrize("factor", [1e-300, 3.0, 1e300])
def test_the_scale_of_the_weights_does_not_matter(factor, train, weight):
    """Weights are normalised to sum to the number of rows."""
    a = sdist(SDist).fit(*train, sample_weight=weight)
    b = sdist(SDist).fit(*train, sample_weight=weight * factor)
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-10)
    assert a.metric_.columns == b.metric_.columns


def test_weights_matter(train):
    """Weighing the first half of the rows ten times as much changes what is learned."""
    plain = sdist().fit(*train)
    weighted = sdist().fit(*train, sample_weight=np.repeat([10.0, 1.0], 100))
    assert not np.array_equal(plain.path_["weight"][:3], weighted.path_["weight"][:3])


@BOTH
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}])
def test_class_weights_are_sample_weights(cls, class_weight, train, unseen):
    """Both spellings give the same model; they multiply with weights of the rows."""
    rows = np.r_[np.flatnonzero(train[1] == 0)[:60], np.flatnonzero(train[1] == 1)[:90]]
    X, y = train[0][rows], train[1][rows]
    own = np.random.default_rng(0).uniform(0.5, 2, 150)
    each = {0: 150 / 120, 1: 150 / 180} if class_weight == "balanced" else class_weight
    explicit = own * np.array([each[label] for label in y])
    a = sdist(cls, class_weight=class_weight, oob_gate=0.0).fit(X, y, sample_weight=own)
    b = sdist(cls, oob_gate=0.0).fit(X, y, sample_weight=explicit)
    plain = sdist(cls, oob_gate=0.0).fit(X, y, sample_weight=own)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-10)
    assert_allclose(a.path_["loss"], b.path_["loss"])
    assert not np.array_equal(a.path_["loss"][:1], plain.path_["loss"][:1])


def test_class_weights_go_by_label(train):
    """A dictionary is keyed by the labels themselves."""
    X, y = train
    a = sdist(class_weight={"no": 1.0, "yes": 4.0}).fit(X, np.array(["no", "yes"])[y])
    b = sdist(class_weight={0: 1.0, 1: 4.0}).fit(X, y)
    assert_array_equal(a.path_, b.path_)


# --- parameters


@QUIET
@pytest.mark.parametrize("init", ["identity", np.eye(8)], ids=["word", "matrix"])
def test_identity_start(init, train, unseen):
    """All columns alike, then what boosting adds; the word is the identity matrix."""
    X, y = train
    model = sdist(init=init, oob_gate=1.0, prune=None).fit(X, y)
    assert model.best_iter_ > 0
    start = sdist(init=init, oob_gate=1e6).fit(X, y)
    assert start.best_iter_ == 0
    standard = (unseen - X.mean(axis=0)) / X.std(axis=0)
    expected = np.linalg.norm(standard[:50] - standard[50:], axis=1)
    assert_allclose(start.pair_distance(unseen[:50], unseen[50:]), expected / np.sqrt(8))
    assert (as_learned(model).pair_distance(unseen[:50], unseen[50:]) >= expected - 1e-9).all()
    assert variables(model) == set(range(8))


def test_zero_matrix_is_no_start(train, unseen, fitted):
    """``init="zero"`` is the zero matrix."""
    model = sdist(init=np.zeros((8, 8)), classifier="margin").fit(*train)
    assert_allclose(model.path_["loss"], fitted.path_["loss"])
    distances_agree(model, fitted, unseen)


@QUIET
def test_start_from_a_matrix(train, unseen):
    """A given matrix refers to the standardised columns."""
    X, y = train
    root = np.random.default_rng(0).standard_normal((8, 3))
    model = sdist(init=root @ root.T, oob_gate=1e6).fit(X, y)
    embedded = (unseen - X.mean(axis=0)) / X.std(axis=0) @ root
    expected = np.linalg.norm(embedded[:50] - embedded[50:], axis=1)
    proportional(model.pair_distance(unseen[:50], unseen[50:]), expected)
    assert model.metric_.rank == 3
    assert model.start_share_ == 0  # of the plain distance nothing


@QUIET
def test_start_from_a_metric(train, xor, unseen, fitted):
    """A given metric is taken as it is, constants included, on other rows too."""
    start = fitted.metric_
    kept = sdist(init=start, oob_gate=1e6).fit(xor[0][100:], xor[1][100:])
    assert kept.best_iter_ == 0
    a, b = unseen[:50], unseen[50:]
    distances_agree(as_learned(kept), fitted, unseen, rtol=1e-9, atol=1e-12)
    proportional(kept.pair_distance(a, b), fitted.pair_distance(a, b), rtol=1e-9)
    grown = sdist(init=start, oob_gate=0.0, prune=None).fit(xor[0][100:], xor[1][100:])
    assert grown.best_iter_ > 0
    assert (as_learned(grown).pair_distance(a, b) >= fitted.pair_distance(a, b) - 1e-9).all()
    assert {term.columns for term in start.terms} <= {t.columns for t in grown.metric_.terms}


@pytest.mark.parametrize("size", [2, 3])
def test_prune_keeps_the_heaviest_variables(size, train, unpruned):
    """As many as asked for, those with the largest share, and the weights they had."""
    model = sdist(prune=size).fit(*train)
    heaviest = np.argsort(-unpruned.feature_importances_)[:size]
    assert len(variables(unpruned)) > size
    assert variables(model) == set(heaviest.tolist())
    before = {term.columns: term.weight for term in as_learned(unpruned).terms}
    for term in as_learned(model).terms:
        assert_allclose(term.weight, before[term.columns], rtol=1e-8)
    kept = model.metric_.terms
    proportional([t.weight for t in kept], [before[t.columns] for t in kept], rtol=1e-8)


def test_prune_to_more_than_there_are(train, unseen, unpruned):
    """Keeping more variables than were used keeps all."""
    distances_agree(sdist(prune=8).fit(*train), unpruned, unseen, atol=1e-12)


def test_automatic_pruning_drops_what_one_step_used(train, fitted, unpruned):
    """No variable is new, and each of those kept was worth more than one step."""
    assert variables(fitted) <= variables(unpruned)
    X, y = make_madelon(500, 40, n_informative=3, n_redundant=0, random_state=2)
    params = {"oob_gate": 1.0, "n_nonzero": 8}
    auto, off = (sdist(prune=prune, **params).fit(X, y) for prune in ("auto", None))
    assert variables(auto) < variables(off)
    (fit,) = off._crossfit.fits
    steps = [{j for t in step.support for j in fit.terms[t]} for step in fit.path.steps]
    uses = {j: sum(j in step for step in steps) for j in variables(off)}
    assert variables(auto) == {j for j, count in uses.items() if count > 1}


@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_degree_is_capped(max_degree, train):
    """``max_degree=1`` learns a linear metric; higher caps are reached and never passed."""
    model = sdist(max_degree=max_degree, oob_gate=None, prune=None, max_iter=40).fit(*train)
    assert max(len(term) for term in model.metric_.columns) == max_degree


def test_a_linear_metric_is_linear(train):
    """Moving both rows by the same amount does not change their distance."""
    X, y = train
    model = sdist(max_degree=1).fit(X, y)
    shift = np.linspace(-5, 5, 8)
    a, b = X[:80], X[80:160]
    assert_allclose(model.pair_distance(a + shift, b + shift), model.pair_distance(a, b))


@pytest.mark.parametrize("n_nonzero", [1, 0.1, 3, 1.0])
def test_steps_are_sparse(n_nonzero, train):
    """A first step combines n_nonzero terms; a float is their share of the candidates."""
    params = {"oob_gate": None, "max_iter": 1, "max_degree": 1, "prune": None}
    model = sdist(n_nonzero=n_nonzero, **params).fit(*train)
    kappa = n_nonzero if isinstance(n_nonzero, int) else max(1, round(n_nonzero * 8))
    assert len(model.metric_.columns) == kappa
    assert model.metric_.rank == 1


@QUIET
def test_the_gate_decides(train):
    """A higher gate accepts fewer steps; a hopeless one ends the fit after 30 attempts."""
    accepted = [
        len(sdist(SDist, oob_gate=gate, max_iter=100).fit(*train).path_)
        for gate in (None, 2.0, 4.0, 1e6)
    ]
    assert accepted[0] == 100
    assert accepted == sorted(accepted, reverse=True)
    assert accepted[-1] == 0
    assert sdist(oob_gate=1e6, max_iter=100).fit(*train).n_iter_ == 30


def test_refreshes_are_counted_in_accepted_steps(train):
    """Every third accepted step, or never."""
    path = sdist(refresh_every=3).fit(*train).path_
    assert_array_equal(path["refreshed"], np.arange(1, len(path) + 1) % 3 == 0)
    assert not sdist(refresh_every=None).fit(*train).path_["refreshed"].any()


@QUIET
def test_without_standardisation_columns_are_as_given(train):
    """``standardize=False`` neither centres nor scales."""
    X, y = train
    model = sdist(standardize=False, oob_gate=1e6).fit(X, y)
    expected = np.linalg.norm(X[:50] - X[50:100], axis=1) / np.sqrt(variance(X))
    assert_allclose(model.pair_distance(X[:50], X[50:100]), expected)


def test_screening_finds_a_pair_among_noise():
    """Without marginal effects only screening makes the product a candidate in time."""
    X, y, info = make_xor(200, 100, informative=2, random_state=3, return_info=True)
    found = [
        set(sdist(SDist, screen_pairs=pairs, oob_gate=None, max_iter=3).fit(X, y).metric_.columns)
        for pairs in ("auto", 5, 0)
    ]
    pair = tuple(sorted(info.informative.tolist()))
    assert [pair in columns for columns in found] == [True, True, False]


# --- separable classes


@pytest.mark.parametrize("gap", [3.0, 100.0, 1e6])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_averaged": 3, "clip": 3.0},
        {"subsample": 1.0, "oob_gate": None, "learning_rate": 1.0},
    ],
)
def test_separable_classes(gap, params):
    """No step weight runs away: everything stays finite, and the classes are told apart."""
    X = np.random.default_rng(0).standard_normal((80, 4))
    y = np.repeat([0, 1], 40)
    X[:, 1] += gap * y
    model = sdist(max_iter=60, n_neighbors=10, n_nonzero=4, **params).fit(X, y)
    for field in ("weight", "loss", "complexity"):
        assert np.isfinite(model.path_[field]).all()
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert len(model.path_)
    if "oob_gate" not in params:  # without the gate full steps go on to fit noise
        assert np.argmax(model.feature_importances_) == 1
    assert model.score(X, y) > 0.95


# --- the progress line


@BOTH
def test_progress_line(cls, train, capsys):
    """Attempts, accepted steps, loss, terms and time left on standard error, ending the line."""
    model = sdist(cls, verbose=1).fit(*train)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n")
    last = captured.err.split("\r")[-1]
    assert f"{model.n_iter_}/25" in last
    assert f"accepted {len(model.path_)}" in last
    assert f"loss {model.path_['loss'][-1]:.4g}" in last
    assert f"terms {model.path_['terms'][-1]}" in last
    assert "s left" in last


@QUIET
def test_progress_line_with_nothing_accepted(train, capsys):
    """There is no loss to show then, and still a line."""
    sdist(verbose=1, oob_gate=1e6).fit(*train)
    assert "accepted 0" in capsys.readouterr().err


@BOTH
def test_silent_by_default(cls, train, capsys):
    """Nothing is written."""
    sdist(cls).fit(*train)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


# --- documentation


@pytest.mark.parametrize("module", [_sdist, _classifier])
def test_examples_run(module):
    """The examples in the docstrings are true."""
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_how_many_candidates_there_may_be_by_default(monkeypatch):
    """No more products than fit, but always room for as many as there are columns."""
    X, y = make_xor(120, 6, informative=1.0, random_state=0)
    everything = sdist(SDist, max_features=None, oob_gate=None, prune=None).fit(X, y)
    most = max(step.n_candidates for step in everything._crossfit.fits[0].path.steps)
    assert most > 12
    monkeypatch.setattr(_options, "MOST_CANDIDATES", 3)
    few = sdist(SDist, oob_gate=None, prune=None).fit(X, y)
    assert max(step.n_candidates for step in few._crossfit.fits[0].path.steps) == 12
    monkeypatch.undo()
    same = sdist(SDist, oob_gate=None, prune=None).fit(X, y)
    assert_array_equal(same.transform(X), everything.transform(X))


def test_the_share_of_a_start_that_nothing_was_added_to():
    """All columns alike are the plain distance, wherever they come from."""
    X, y = np.random.default_rng(1).normal(size=(120, 5)), np.arange(120) % 2
    for init in ("zero", "identity"):
        with pytest.warns(UserWarning, match="No step was accepted"):
            model = SDistClassifier(init=init, oob_gate=1e9, random_state=0).fit(X, y)
        assert model.best_iter_ == 0
        assert model.start_share_ == 1.0
        W = model.metric_.matrix()
        assert_allclose(W, W[0, 0] * np.eye(5))


# --- processes and threads


@pytest.mark.parametrize(
    ("n_jobs", "size", "tasks", "expected"),
    [
        (1, 100, 5, (1, 1)),
        (3, 100, 5, (3, 1)),
        (3, 100, 2, (2, 1)),
        (3, 100, 1, (1, 3)),
        (3, 2**25, 5, (1, 3)),
    ],
)
def test_processes_or_threads(n_jobs, size, tasks, expected):
    """Either, never both: together they would be more than was asked for."""
    shared = workers(n_jobs, size, tasks)
    assert (shared.processes, shared.threads) == expected


@pytest.mark.parametrize("limit", [1, 2])
def test_threads_are_those_that_blas_may_have(limit):
    with threadpool_limits(limit, user_api="blas"):
        assert workers(None, 2**25, 5).threads == limit


def test_workers_of_joblib_are_not_oversubscribed():
    """Inside a worker fits get the threads that joblib leaves to it."""
    inside = Parallel(2)(delayed(workers)(None, 2**25, 5) for _ in range(2))
    cores = effective_n_jobs(-1)
    assert all(shared.processes == 1 for shared in inside)
    assert sum(shared.threads for shared in inside) <= max(cores, 2)
