"""The rounds of fits: folds of the rows, fits that know nothing of the rows they leave out."""

from __future__ import annotations

import numpy as np
import pytest
from fits import (
    cross_fitted,
    prepared,
    product_table,
    short,
)
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier
from metricboost.model.readouts import Margin, Training, evidence
from metricboost.training.fits import Variant
from metricboost.training.folds import FoldTask, learn_fold
from metricboost.training.pruning import keep_only

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def table():
    return product_table()


@pytest.fixture(scope="module")
def fitted(table):
    return short().fit(*table)


@pytest.fixture(scope="module")
def three_fits(table):
    """The fits behind ``fitted``."""
    return cross_fitted(short(), *table)


# --- folds


@QUIET
@pytest.mark.parametrize("n_averaged", [2, 3, 5])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_folds_are_stratified_parts_of_the_rows(n_averaged, share):
    """Every row is left out once, and the folds have nearly equal numbers of rows of each class."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(101, 3)), (rng.random(101) < share).astype(int)
    params = {"n_averaged": n_averaged, "max_iter": 1, "start_share": 0.0, "prune": None}
    folds = cross_fitted(short(SDist, **params), X, y).folds
    assert len(folds) == n_averaged
    assert_array_equal(np.sort(np.concatenate([fold.left_out for fold in folds])), np.arange(101))
    for fold in folds:
        assert_array_equal(np.sort(np.r_[fold.kept, fold.left_out]), np.arange(101))
        assert abs(y[fold.left_out].sum() - y.sum() / n_averaged) < 1
    assert len({id(fold.learned) for fold in folds}) == n_averaged


def test_one_fit_sees_all_rows(table):
    """The rows still have folds, so that no row is its own neighbour in the evidence."""
    made = cross_fitted(short(n_averaged=1), *table)
    assert len(made.fits) == 1
    assert len(made.folds) == 5
    assert made.fits[0].path.steps
    assert_array_equal(np.sort(np.concatenate([f.left_out for f in made.folds])), np.arange(150))


@QUIET
@BOTH
@pytest.mark.parametrize(("smallest", "n_fits"), [(2, 1), (3, 3), (4, 4), (5, 5), (9, 5)])
def test_small_classes_have_fewer_folds(cls, smallest, n_fits):
    """There are at most as many folds as the smallest class has rows, and one fit for two rows."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30 + smallest, 2)), np.r_[np.zeros(30, int), np.ones(smallest, int)]
    model = short(cls, n_averaged=5, oob_gate=None, max_iter=2).fit(X, y)
    assert len(model.model_.best.history.fits) == n_fits
    assert np.isfinite(model.transform(X)).all()


@QUIET
@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_of_two_rows(cls, n_classes):
    """The smallest tables there are, with the default parameters."""
    labels = np.repeat(np.arange(n_classes), 2)
    X = np.random.default_rng(0).normal(size=(len(labels), 3)) + 3 * labels[:, None]
    model = cls(random_state=0).fit(X, labels)
    assert len(model.model_.history.fits) == 1
    assert np.isfinite(model.transform(X)).all()
    if cls is SDistClassifier:
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# --- a fold's metric knows nothing of the rows it leaves out


def test_a_fit_is_that_of_its_rows_alone(table):
    """Scaling, screening, bags and weights do not depend on the rows that the fold leaves out."""
    X, y = table
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    weight *= 150 / weight.sum()
    made = cross_fitted(short(SDist), X, y, weight)
    options = prepared(short(SDist), X, y, weight).options
    for number, fold in enumerate(made.folds):
        rows = fold.kept
        own = weight[rows] * (len(rows) / weight[rows].sum())
        alone = learn_fold(
            FoldTask(X[rows], np.arange(len(rows)), y[rows], own, made.engine, options, number)
        )
        assert alone.terms == fold.learned.terms
        assert_array_equal(alone.factor.matrix, fold.learned.factor.matrix)
        assert_allclose(alone.scaling.center, X[rows].mean(axis=0))


def test_rows_left_out_cannot_change_the_metric_that_scores_them(table):
    """Other values in the rows left out do not change the fit of that fold, to the last bit."""
    X, y = table
    before = cross_fitted(short(SDist), X, y).folds
    for number, fold in enumerate(before):
        other = X.copy()
        other[fold.left_out] = 50 * np.random.default_rng(1).normal(size=(len(fold.left_out), 6))
        after = cross_fitted(short(SDist), other, y).folds
        assert_array_equal(after[number].left_out, fold.left_out)
        assert after[number].learned.terms == fold.learned.terms
        assert_array_equal(after[number].learned.factor.matrix, fold.learned.factor.matrix)
        changed = [j for j in range(3) if j != number]
        assert any(
            after[j].learned.terms != before[j].learned.terms
            or not np.array_equal(after[j].learned.factor.matrix, before[j].learned.factor.matrix)
            for j in changed
        )


def accuracy(made, metrics, readout):
    """The share of the rows out of fold that a readout classifies correctly."""
    right = []
    for fold, metric in zip(made.folds, metrics):
        kept, out = metric.transform(made.X[fold.kept]), metric.transform(made.X[fold.left_out])
        training = Training(kept, made.labels[fold.kept], np.ones(len(kept)), made.n_classes)
        found = evidence(made.engine, training, out, [readout])[readout].argmax(axis=1)
        right.append(found == made.labels[fold.left_out])
    return np.concatenate(right).mean()


def pruned_with_the_other_fits(made, variant):
    """A wrong way to prune: to the columns that recur in fits that have seen the rows left out."""
    columns = made.recurring(variant)
    for fold in made.folds:
        learned = fold.learned
        yield learned.metric(keep_only(learned.factor, learned.terms, columns))


@pytest.fixture(scope="module")
def noise_fits():
    """Fits of labels that are independent of all 400 columns; no gate rejects a step."""
    params = {"max_iter": 4, "oob_gate": None, "n_nonzero": 20, "max_degree": 1, "n_averaged": 5}
    params["max_features"] = None
    found = []
    for seed in range(10):
        X, y = np.random.default_rng(seed).normal(size=(80, 400)), np.arange(80) % 2
        model = short(**params, random_state=seed).fit(X, y)
        found.append((model, cross_fitted(model, X, y)))
    return found


def test_noise_is_not_taken_for_evidence(noise_fits):
    """The score out of fold is 0.5; the standard error of 800 rows is 0.018."""
    scores = [model.oob_score_ for model, _ in noise_fits]
    assert abs(np.mean(scores) - 0.5) < 0.055  # the best of several rules, so a little above
    for least in (1, 3, 5):
        variant = Variant(0.0, least)
        found = [accuracy(made, made.fold_metrics(variant), Margin(5)) for _, made in noise_fits]
        assert abs(np.mean(found) - 0.5) < 0.055


@pytest.mark.parametrize("least", [3, 5])
def test_recurrence_in_other_fits_would_leak(noise_fits, least):
    """The other fits have seen the rows that a fold leaves out: their choice of columns leaks."""
    variant = Variant(0.0, least)
    found = [
        accuracy(made, pruned_with_the_other_fits(made, variant), Margin(5))
        for _, made in noise_fits
    ]
    assert np.mean(found) > 0.6


def test_training_rows_flatter(noise_fits):
    """On its own training rows a metric of noise looks good, so evidence is taken out of fold."""
    scores = [model.score(made.X, made.labels) for model, made in noise_fits]
    assert np.mean(scores) > 0.65


# --- what must not matter


@BOTH
def test_jobs_change_nothing(cls, table):
    """Fits in several threads equal the fits in one thread, to the last bit."""
    X, y = table
    a, b = (short(cls, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert_array_equal(a.metric_.components, b.metric_.components)
    assert_array_equal(a.metric_.diagonal, b.metric_.diagonal)
    assert_array_equal(a.path_, b.path_)
    if cls is SDistClassifier:
        assert a.readout_ == b.readout_
        assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_the_same_seed_gives_the_same_model(table):
    X, y = table
    a, b, c = (short(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert_array_equal(a.path_, b.path_)
    assert not np.array_equal(a.path_["loss"], c.path_["loss"])
    one, other = (cross_fitted(short(random_state=seed), X, y).folds[0].kept for seed in (1, 2))
    assert not np.array_equal(one, other)


@BOTH
def test_rows_without_weight_are_as_if_removed(cls, table):
    """Rows without weight are in no fold, are not scored, and are no neighbours."""
    X, y = table
    weight = np.where(np.random.default_rng(0).random(150) < 0.2, 0.0, 1.0)
    kept = weight > 0
    a = short(cls).fit(X, y, sample_weight=weight)
    b = short(cls).fit(X[kept], y[kept])
    assert_array_equal(a.path_, b.path_)
    assert_array_equal(a.transform(X), b.transform(X))
    assert_array_equal(a.stability_, b.stability_)
    if cls is SDistClassifier:
        assert a.oob_score_ == b.oob_score_
        assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_permuted_columns(share, table):
    """The model does not depend on the order of the columns."""
    X, y = table
    order = np.array([3, 1, 5, 0, 4, 2])
    a = short(start_share=share).fit(X, y)
    b = short(start_share=share).fit(X[:, order], y)
    assert_allclose(
        b.pair_distance(X[:75][:, order], X[75:][:, order]), a.pair_distance(X[:75], X[75:]),
        rtol=1e-6,
    )  # fmt: skip
    assert_allclose(b.feature_importances_, a.feature_importances_[order], rtol=1e-6)
    assert_array_equal(b.stability_, a.stability_[order])
    assert_allclose(b.predict_proba(X[:, order]), a.predict_proba(X), atol=1e-6)


def test_swapped_labels(table):
    X, y = table
    a, b = short().fit(X, y), short().fit(X, 1 - y)
    assert_allclose(a.transform(X), b.transform(X), atol=1e-12)
    assert_allclose(a.predict_proba(X), b.predict_proba(X)[:, ::-1], atol=1e-6)
    assert a.oob_score_ == b.oob_score_


def test_three_classes():
    """Folds, averages and choices work for three classes as for two."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 50)
    X = rng.normal(size=(150, 5))
    X[:, 3] += 3 * (y == "b") - 3 * (y == "c")
    model = short().fit(X, y)
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.oob_score_ > 0.85
    assert model.stability_[3] == 1.0
    for fold in cross_fitted(short(), X, y).folds:
        assert {c: int((y[fold.left_out] == c).sum()) for c in "abc"} == {
            "a": pytest.approx(50 / 3, abs=1), "b": pytest.approx(50 / 3, abs=1),
            "c": pytest.approx(50 / 3, abs=1),
        }  # fmt: skip
