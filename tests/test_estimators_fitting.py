"""What the parameters and the weights of a fit do, and how good its models are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fits import (
    as_learned,
    cross_fitted,
    distances_agree,
    one_fit,
    prepared,
    total_variance,
    variables,
)
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier
from metricboost.datasets import make_double_ring, make_madelon, make_xor
from metricboost.training.folds import cross_fit
from metricboost.training.run import Run

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
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


def proportional(a, b, **tolerance):
    """Whether two lists of positive numbers are the same up to a factor."""
    assert_allclose(np.asarray(a) / np.sum(a), np.asarray(b) / np.sum(b), **tolerance)


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
    """The path with its losses and the metric are those of a fit without these rows."""
    X, y = train
    kept = weight > 0
    a = one_fit(cls, **params).fit(X, y, sample_weight=weight)
    b = one_fit(cls, **params).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert a.best_iter_ == b.best_iter_
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-10)
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-10)


def test_rows_without_weight_do_not_vote(train, unseen, weight):
    """Rows without weight are no neighbours of a new row."""
    X, y = train
    kept = weight > 0
    a = one_fit().fit(X, y, sample_weight=weight)
    b = one_fit().fit(X[kept], y[kept], sample_weight=weight[kept])
    assert_allclose(a.decision_function(unseen), b.decision_function(unseen), atol=1e-10)
    assert_allclose(a.kneighbors(unseen)[0], b.kneighbors(unseen)[0], atol=1e-10)


@pytest.mark.parametrize("factor", [1e-300, 3.0, 1e300])
def test_the_scale_of_the_weights_does_not_matter(factor, train, weight):
    """Weights are normalised to sum to the number of rows."""
    a = one_fit(SDist).fit(*train, sample_weight=weight)
    b = one_fit(SDist).fit(*train, sample_weight=weight * factor)
    assert_allclose(a.path_["loss"], b.path_["loss"], rtol=1e-10)
    assert a.metric_.columns == b.metric_.columns


def test_weights_matter(train):
    """Weighing the first half of the rows ten times as much changes what is learned."""
    plain = one_fit().fit(*train)
    weighted = one_fit().fit(*train, sample_weight=np.repeat([10.0, 1.0], 100))
    assert not np.array_equal(plain.path_["weight"][:3], weighted.path_["weight"][:3])


@BOTH
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 3.0}])
def test_class_weights_are_sample_weights(cls, class_weight, train, unseen):
    """Class weights equal weights of rows, and are multiplied with given weights of rows."""
    rows = np.r_[np.flatnonzero(train[1] == 0)[:60], np.flatnonzero(train[1] == 1)[:90]]
    X, y = train[0][rows], train[1][rows]
    own = np.random.default_rng(0).uniform(0.5, 2, 150)
    each = {0: 150 / 120, 1: 150 / 180} if class_weight == "balanced" else class_weight
    explicit = own * np.array([each[label] for label in y])
    a = one_fit(cls, class_weight=class_weight, oob_gate=0.0).fit(X, y, sample_weight=own)
    b = one_fit(cls, oob_gate=0.0).fit(X, y, sample_weight=explicit)
    plain = one_fit(cls, oob_gate=0.0).fit(X, y, sample_weight=own)
    assert_allclose(a.transform(unseen), b.transform(unseen), atol=1e-10)
    assert_allclose(a.path_["loss"], b.path_["loss"])
    assert not np.array_equal(a.path_["loss"][:1], plain.path_["loss"][:1])


def test_class_weights_go_by_label(train):
    """A dictionary is keyed by the labels themselves."""
    X, y = train
    a = one_fit(class_weight={"no": 1.0, "yes": 4.0}).fit(X, np.array(["no", "yes"])[y])
    b = one_fit(class_weight={0: 1.0, 1: 4.0}).fit(X, y)
    assert_array_equal(a.path_, b.path_)


# --- parameters


@QUIET
@pytest.mark.parametrize("init", ["identity", np.eye(8)], ids=["word", "matrix"])
def test_identity_start(init, train, unseen):
    """The start has equal weights for all columns; "identity" is the identity matrix."""
    X, y = train
    model = one_fit(init=init, oob_gate=1.0, prune=None).fit(X, y)
    assert model.best_iter_ > 0
    start = one_fit(init=init, oob_gate=1e6).fit(X, y)
    assert start.best_iter_ == 0
    standard = (unseen - X.mean(axis=0)) / X.std(axis=0)
    expected = np.linalg.norm(standard[:50] - standard[50:], axis=1)
    assert_allclose(start.pair_distance(unseen[:50], unseen[50:]), expected / np.sqrt(8))
    assert (
        as_learned(model, train).pair_distance(unseen[:50], unseen[50:]) >= expected - 1e-9
    ).all()
    assert variables(model) == set(range(8))


def test_zero_matrix_is_no_start(train, unseen, fitted):
    """``init="zero"`` is the zero matrix."""
    model = one_fit(init=np.zeros((8, 8)), classifier="margin").fit(*train)
    assert_allclose(model.path_["loss"], fitted.path_["loss"])
    distances_agree(model, fitted, unseen)


@QUIET
def test_start_from_a_matrix(train, unseen):
    """A given matrix refers to the standardised columns."""
    X, y = train
    root = np.random.default_rng(0).standard_normal((8, 3))
    model = one_fit(init=root @ root.T, oob_gate=1e6).fit(X, y)
    embedded = (unseen - X.mean(axis=0)) / X.std(axis=0) @ root
    expected = np.linalg.norm(embedded[:50] - embedded[50:], axis=1)
    proportional(model.pair_distance(unseen[:50], unseen[50:]), expected)
    assert model.metric_.rank == 3
    assert model.start_share_ == 0  # of the plain distance nothing


@QUIET
def test_start_from_a_metric(xor, unseen, fitted):
    """A given metric keeps its constants, also if it is fitted to other rows."""
    start = fitted.metric_
    other = xor[0][100:], xor[1][100:]
    kept = one_fit(init=start, oob_gate=1e6).fit(*other)
    assert kept.best_iter_ == 0
    a, b = unseen[:50], unseen[50:]
    distances_agree(as_learned(kept, other), fitted, unseen, rtol=1e-9, atol=1e-12)
    proportional(kept.pair_distance(a, b), fitted.pair_distance(a, b), rtol=1e-9)
    grown = one_fit(init=start, oob_gate=0.0, prune=None).fit(*other)
    assert grown.best_iter_ > 0
    assert (as_learned(grown, other).pair_distance(a, b) >= fitted.pair_distance(a, b) - 1e-9).all()
    assert {term.columns for term in start.terms} <= {t.columns for t in grown.metric_.terms}


@pytest.mark.parametrize("size", [2, 3])
def test_prune_keeps_the_heaviest_variables(size, train, unpruned):
    """The variables with the largest share stay, and their terms keep their weights."""
    model = one_fit(prune=size).fit(*train)
    heaviest = np.argsort(-unpruned.feature_importances_)[:size]
    assert len(variables(unpruned)) > size
    assert variables(model) == set(heaviest.tolist())
    before = {term.columns: term.weight for term in as_learned(unpruned, train).terms}
    for term in as_learned(model, train).terms:
        assert_allclose(term.weight, before[term.columns], rtol=1e-8)
    kept = model.metric_.terms
    proportional([t.weight for t in kept], [before[t.columns] for t in kept], rtol=1e-8)


def test_prune_to_more_than_there_are(train, unseen, unpruned):
    """If fewer variables were used than ``prune`` keeps, all of them stay."""
    distances_agree(one_fit(prune=8).fit(*train), unpruned, unseen, atol=1e-12)


def test_automatic_pruning_drops_what_one_step_used(train, fitted, unpruned):
    """Pruning adds no variable, and keeps those that more than one step used."""
    assert variables(fitted) <= variables(unpruned)
    X, y = make_madelon(500, 40, n_informative=3, n_redundant=0, random_state=2)
    params = {"oob_gate": 1.0, "n_nonzero": 8}
    auto, off = (one_fit(prune=prune, **params).fit(X, y) for prune in ("auto", None))
    assert variables(auto) < variables(off)
    (fit,) = cross_fitted(off, X, y).fits
    steps = [{j for t in step.support for j in fit.terms[t]} for step in fit.path.steps]
    uses = {j: sum(j in step for step in steps) for j in variables(off)}
    assert variables(auto) == {j for j, count in uses.items() if count > 1}


@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_degree_is_capped(max_degree, train):
    """The highest degree of a term is ``max_degree``."""
    model = one_fit(max_degree=max_degree, oob_gate=None, prune=None, max_iter=40).fit(*train)
    assert max(len(term) for term in model.metric_.columns) == max_degree


def test_a_linear_metric_is_linear(train):
    """Moving both rows by the same amount does not change their distance."""
    X, y = train
    model = one_fit(max_degree=1).fit(X, y)
    shift = np.linspace(-5, 5, 8)
    a, b = X[:80], X[80:160]
    assert_allclose(model.pair_distance(a + shift, b + shift), model.pair_distance(a, b))


@pytest.mark.parametrize("n_nonzero", [1, 0.1, 3, 1.0])
def test_steps_are_sparse(n_nonzero, train):
    """A first step combines n_nonzero terms; a float is their share of the candidates."""
    params = {"oob_gate": None, "max_iter": 1, "max_degree": 1, "prune": None}
    model = one_fit(n_nonzero=n_nonzero, **params).fit(*train)
    kappa = n_nonzero if isinstance(n_nonzero, int) else max(1, round(n_nonzero * 8))
    assert len(model.metric_.columns) == kappa
    assert model.metric_.rank == 1


@QUIET
def test_the_gate_decides(train):
    """A higher gate accepts fewer steps; after ten rejected attempts in a row the fit ends."""
    accepted = [
        len(one_fit(SDist, oob_gate=gate, max_iter=100).fit(*train).path_)
        for gate in (None, 2.0, 4.0, 1e6)
    ]
    assert accepted[0] == 100
    assert accepted == sorted(accepted, reverse=True)
    assert accepted[-1] == 0
    assert one_fit(oob_gate=1e6, max_iter=100).fit(*train).n_iter_ == 10


def test_refreshes_are_counted_in_accepted_steps(train):
    """``refresh_every=3`` refreshes at every third accepted step, and None never."""
    path = one_fit(refresh_every=3).fit(*train).path_
    assert_array_equal(path["refreshed"], np.arange(1, len(path) + 1) % 3 == 0)
    assert not one_fit(refresh_every=None).fit(*train).path_["refreshed"].any()


@QUIET
def test_without_standardisation_columns_are_as_given(train):
    """``standardize=False`` neither centres nor scales."""
    X, y = train
    model = one_fit(standardize=False, oob_gate=1e6).fit(X, y)
    expected = np.linalg.norm(X[:50] - X[50:100], axis=1) / np.sqrt(total_variance(X))
    assert_allclose(model.pair_distance(X[:50], X[50:100]), expected)


def test_screening_finds_a_pair_among_noise():
    """Without marginal effects only screening makes the product a candidate in time."""
    X, y, info = make_xor(200, 100, informative=2, random_state=3, return_info=True)
    found = [
        set(one_fit(SDist, screen_pairs=pairs, oob_gate=None, max_iter=3).fit(X, y).metric_.columns)
        for pairs in ("auto", 5, 0)
    ]
    pair = tuple(sorted(info.informative.tolist()))
    assert [pair in columns for columns in found] == [True, True, False]


def test_how_many_candidates_there_may_be_by_default():
    """At most 4096 candidates, or twice as many as columns; no more products are made then."""
    X, y = make_xor(120, 6, informative=1.0, random_state=0)
    params = {"oob_gate": None, "prune": None}
    everything = one_fit(SDist, max_features=None, **params).fit(X, y)
    (fit,) = everything.model_.history.fits
    assert max(step.n_candidates for step in fit.path.steps) > 12
    default = prepared(one_fit(SDist, **params), X, y)
    assert default.options.max_candidates == 4096
    assert prepared(one_fit(SDist, max_features=None), X, y).options.max_candidates is None
    assert prepared(one_fit(SDist), np.ones((4, 3000)), y[:4]).options.max_candidates == 6000
    limited = replace(default.options, max_candidates=12)
    (few,) = cross_fit(default.pool, limited, 1, Run()).fits
    assert max(step.n_candidates for step in few.path.steps) == 12
    same = one_fit(SDist, **params).fit(X, y)
    assert_array_equal(same.transform(X), everything.transform(X))


def test_the_share_of_a_start_that_nothing_was_added_to():
    """Equal weights of all columns are the plain distance, whatever the start was."""
    X, y = np.random.default_rng(1).normal(size=(120, 5)), np.arange(120) % 2
    for init in ("zero", "identity"):
        with pytest.warns(UserWarning, match="No step was accepted"):
            model = SDistClassifier(init=init, oob_gate=1e9, random_state=0).fit(X, y)
        assert model.best_iter_ == 0
        assert model.start_share_ == 1.0
        W = model.metric_.matrix()
        assert_allclose(W, W[0, 0] * np.eye(5))


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
    """The weights of steps stay finite, and the classes are told apart."""
    X = np.random.default_rng(0).standard_normal((80, 4))
    y = np.repeat([0, 1], 40)
    X[:, 1] += gap * y
    model = one_fit(max_iter=60, n_neighbors=10, n_nonzero=4, **params).fit(X, y)
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
    """Attempts, accepted steps, loss, terms and the time left are written to standard error."""
    model = one_fit(cls, verbose=1).fit(*train)
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
    """Without an accepted step the line shows no loss."""
    one_fit(verbose=1, oob_gate=1e6).fit(*train)
    assert "accepted 0" in capsys.readouterr().err


@BOTH
def test_silent_by_default(cls, train, capsys):
    """Nothing is written by default."""
    one_fit(cls).fit(*train)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
