"""Weights of classes and rows: they move thresholds and probabilities, not only the loss."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import balanced_accuracy_score

from metricboost import SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_xor

CLASSIFIERS = pytest.mark.parametrize("classifier", ["margin", "hull", "knn", "kernel"])


#: Two short fits; what the defaults are does not matter here.
SHORT = {
    "max_iter": 8, "n_averaged": 2, "learning_rate": 0.1, "oob_gate": 1.5, "n_nonzero": 4,
    "clip": 3.0, "classifier": "margin", "random_state": 0,
}  # fmt: skip


def sdist(**params):
    return SDistClassifier(**{**SHORT, **params})


def rare(n, seed, n_classes=2):
    """One row in eight is of the rare class; two of six columns tell it apart, not by much."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.12).astype(int)
    if n_classes == 3:
        y[rng.random(n) < 0.12] = 2
    X = rng.normal(size=(n, 6))
    X[:, 2] += 1.3 * (y == 1) - 1.3 * (y == 2)
    X[:, 4] -= 0.8 * (y == 1)
    return X, y


@pytest.fixture(scope="module")
def train():
    return rare(400, 0)


@pytest.fixture(scope="module")
def unseen():
    return rare(3000, 1)


@pytest.fixture(scope="module")
def plain(train):
    return sdist().fit(*train)


@pytest.fixture(scope="module")
def five_fits(train):
    """With fewer folds the evidence is from too few rows: the rare class looks too likely."""
    return sdist(n_averaged=5).fit(*train)


@pytest.fixture(scope="module")
def balanced(train):
    return sdist(class_weight="balanced").fit(*train)


# --- classes


@CLASSIFIERS
def test_balanced_weights_raise_the_balanced_accuracy(classifier, train, unseen):
    """Under every readout: the threshold moves towards the rare class."""
    X, y = unseen
    params = {"classifier": classifier, "start_share": 0.0}
    none, even = (sdist(class_weight=weight, **params).fit(*train) for weight in (None, "balanced"))
    before, after = (balanced_accuracy_score(y, model.predict(X)) for model in (none, even))
    assert after > before + 0.03
    assert even.predict(X).mean() > none.predict(X).mean()


def test_balanced_weights_with_three_classes():
    """Both rare classes are found more often."""
    (X, y), (fresh, truth) = rare(500, 2, 3), rare(3000, 3, 3)
    none, even = (
        sdist(class_weight=weight, oob_gate=0.0).fit(X, y) for weight in (None, "balanced")
    )
    for c in (1, 2):
        found = [(model.predict(fresh)[truth == c] == c).mean() for model in (none, even)]
        assert found[1] > found[0] + 0.05
    scores = [balanced_accuracy_score(truth, model.predict(fresh)) for model in (none, even)]
    assert scores[1] > scores[0] + 0.03


def test_probabilities_are_those_of_the_weighted_population(
    train, unseen, five_fits, plain, balanced
):
    """Unweighted their mean is the share of the class; balanced it is near a half of the weight."""
    X, y = unseen
    assert five_fits.predict_proba(X)[:, 1].mean() == pytest.approx(train[1].mean(), abs=0.05)
    proba = balanced.predict_proba(X)[:, 1]
    assert proba.mean() > plain.predict_proba(X)[:, 1].mean() + 0.1
    weight = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    assert np.average(proba, weights=weight) == pytest.approx(0.5, abs=0.08)


def test_unweighted_probabilities_are_calibrated(unseen, five_fits):
    """Of the rows called likely more are of the class than of those called unlikely."""
    X, y = unseen
    proba = five_fits.predict_proba(X)[:, 1]
    order = np.argsort(proba)
    for band in np.array_split(order, 4):
        assert y[band].mean() == pytest.approx(proba[band].mean(), abs=0.12)
    assert y[order[-300:]].mean() > y[order[:300]].mean() + 0.2


@pytest.mark.parametrize("weight", [3.0, 10.0])
def test_a_heavier_class_is_predicted_more_often(weight, train, unseen, plain):
    """Step by step with its weight; predictions still agree with the probabilities."""
    X, _ = unseen
    heavy = sdist(class_weight={0: 1.0, 1: weight}).fit(*train)
    lighter = plain if weight == 3.0 else sdist(class_weight={0: 1.0, 1: 3.0}).fit(*train)
    assert heavy.predict(X).mean() > lighter.predict(X).mean()
    assert_array_equal(heavy.predict(X) == 1, heavy.decision_function(X) > 0)
    assert_array_equal(heavy.predict(X), heavy.predict_proba(X).argmax(axis=1))


def test_the_score_out_of_fold_is_weighted(train, plain, balanced):
    """Balanced it is a balanced accuracy: guessing the large class scores 0.88 and 0.5."""
    assert plain.oob_score_ > 0.85
    assert 0.6 < balanced.oob_score_ < 0.87


# --- rows


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 5.0}])
def test_the_caller_keeps_its_weights(class_weight, train):
    """A fit multiplies and scales weights of its own."""
    weight = np.random.default_rng(0).uniform(0, 2, 400)
    weight[:5] = 0.0
    before = weight.copy()
    params = {"max_iter": 2, "n_averaged": 1, "n_neighbors_predict": 5}
    sdist(class_weight=class_weight, **params).fit(*train, sample_weight=weight)
    assert_array_equal(weight, before)


def test_sample_weights_of_a_class_move_the_threshold(train, unseen, balanced):
    """Spelled out row by row they are the weights of the classes."""
    X, y = train
    share = y.mean()
    weight = np.where(y == 1, 0.5 / share, 0.5 / (1 - share))
    rows = sdist().fit(X, y, sample_weight=weight)
    assert_allclose(rows.predict_proba(unseen[0]), balanced.predict_proba(unseen[0]), atol=1e-8)


@CLASSIFIERS
def test_equal_weights_are_no_weights(classifier, train, unseen):
    X, y = train
    params = {"classifier": classifier, "max_iter": 4, "start_share": 0.0, "prune": None}
    a = sdist(**params).fit(X, y)
    b = sdist(**params).fit(X, y, sample_weight=np.full(400, 7.0))
    assert_allclose(a.decision_function(unseen[0]), b.decision_function(unseen[0]), atol=1e-8)
    assert a.oob_score_ == pytest.approx(b.oob_score_)


def test_heavier_rows_of_a_class_shift_its_threshold():
    """Classes of equal size, one with six times the weight: it is predicted more often."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    X[:, 0] += 1.0 * y
    weight = np.where(y == 1, 6.0, 1.0)
    plain, heavy = (sdist(n_nonzero=3).fit(X, y, sample_weight=w) for w in (None, weight))
    fresh = rng.normal(size=(1000, 3))
    assert heavy.predict(fresh).mean() > plain.predict(fresh).mean() + 0.1
    assert (heavy.predict_proba(fresh)[:, 1] - plain.predict_proba(fresh)[:, 1]).mean() > 0.1


@pytest.mark.parametrize("tuned", [False, True])
def test_neighbours_are_numbered_as_the_rows_were_given(tuned):
    """Rows without weight are no neighbours, and do not shift the numbers of the others."""
    X, y = make_xor(160, 4, informative=2, random_state=0)
    weight = (np.arange(160) % 4 != 0).astype(float)
    model = SDistClassifier(random_state=0, max_iter=10)
    if tuned:
        model = SDistClassifierCV(model, {"max_degree": [2]}, cv=3, random_state=0)
    model.fit(X, y, sample_weight=weight)
    given = np.flatnonzero(weight)
    distances, rows = model.kneighbors(X[given], 1)
    assert_array_equal(rows[:, 0], given)
    assert_allclose(distances, 0, atol=1e-6)
