"""Evidence out of fold, and what is chosen on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fits import (
    choice,
    cross_fitted,
    product_table,
    short,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from metricboost import SDist, SDistClassifier
from metricboost.datasets import make_xor
from metricboost.model import Calibration, calibrate
from metricboost.model.readouts import Hull, Linear, Margin, Ridge
from metricboost.training.choosing import (
    MOST_SCORED,
    TO_KEEP_MORE,
    TO_TAKE_ALL,
    TO_TAKE_TERMS,
    Candidate,
    averaged_by,
    calibrated,
    candidates,
    choose,
    chosen,
    out_of_fold,
    scored_rows,
    variants,
    with_share,
)
from metricboost.training.fits import Variant

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


# --- evidence and choices


def test_evidence_is_that_of_the_folds(three_fits):
    """Every row is classified once, by its fold's metric among the rows that the fold keeps."""
    variant, readout = Variant(0.5, 2), Margin(4)
    rows, found = out_of_fold(three_fits, variant, [readout])
    assert_array_equal(np.sort(rows), np.arange(150))
    expected = {}
    X, labels = three_fits.X, three_fits.labels
    for fold, metric in zip(three_fits.folds, three_fits.fold_metrics(variant)):
        away = cdist(
            metric.transform(X[fold.left_out]), metric.transform(X[fold.kept]), "sqeuclidean"
        )
        for c in (0, 1):
            near = np.sort(away[:, labels[fold.kept] == c], axis=1)[:, :4].mean(axis=1)
            for row, value in zip(fold.left_out, near):
                expected.setdefault(row, []).append(-np.log(value))
    assert_allclose(found[readout], [expected[row] for row in rows], rtol=1e-9)


def test_the_calibration_is_fitted_to_all_of_the_evidence(table, fitted):
    """The evidence is that of the chosen variant and of the chosen readout."""
    made, best = choice(short(), *table)
    assert fitted.readout_ == best.readout
    assert fitted.start_share_ == best.variant.share
    rows, found = out_of_fold(made, best.variant, [best.readout])
    calibration = calibrate(found[best.readout], made.labels[rows], np.ones(150))
    reading = fitted.model_.the_reading
    assert_allclose(reading.calibration.slope, calibration.slope)
    assert_allclose(reading.calibration.offsets, calibration.offsets)
    assert fitted.oob_score_ == 1 - best.error
    assert fitted.oob_gain_ == best.gain


def test_oob_score_foretells_the_score():
    """On average over six tables, because the score of one table has the noise of its 200 rows."""
    kinder = []
    for seed in range(6):
        X, y = make_xor(1000, 10, informative=2, random_state=seed)
        model = short(max_iter=20, n_averaged=2, classifier="margin").fit(X[:200], y[:200])
        kinder.append(model.oob_score_ - model.score(X[200:], y[200:]))
    assert abs(np.mean(kinder)) < 0.045  # three standard errors and a half


@QUIET
def test_many_rows_are_not_all_scored(three_fits):
    """Of more rows 2500 are scored: evenly spaced rows, the same number of every fold."""
    assert sum(map(len, scored_rows(three_fits))) == 150
    X = np.random.default_rng(0).normal(size=(5000, 2))
    made = cross_fitted(short(SDist, max_iter=1, n_averaged=2), X, (X[:, 0] > 0).astype(int))
    some = scored_rows(made)
    assert sum(map(len, some)) == MOST_SCORED == 2500
    for fold, part in zip(made.folds, some):
        assert set(part) <= set(fold.left_out)
        assert len(set(part)) == len(part) == 1250
        assert np.diff(np.searchsorted(fold.left_out, part)).max() <= 3
    assert candidates(made, [Variant()], [Margin(3)])[0].losses.shape == (2500,)


def candidate(losses, share=0.0, recurrences=1, readout=None):
    variant, readout = Variant(share, recurrences), readout or Margin(5)
    return Candidate(variant, readout, Calibration.none(2), np.array(losses), 0.0)


LEVEL = np.full(400, 0.3)
#: Differences between two losses, row by row, with a mean of 0 and a standard error of 1.
NOISE = np.random.default_rng(0).normal(size=400)
NOISE = 20 * (NOISE - NOISE.mean()) / NOISE.std()


def worse(errors):
    """Losses that are worse than LEVEL by this number of standard errors of the difference."""
    return LEVEL + 0.01 * (errors + NOISE)


def test_better_is_by_standard_errors_of_the_difference():
    """Losses are compared row by row, so rows that are hard for both candidates do not matter."""
    a, b = candidate(LEVEL), candidate(worse(1.5))
    assert a.better_than(b, 1.4)
    assert not a.better_than(b, 1.6)
    assert not b.better_than(a, 0.0)
    hard = 5 * np.random.default_rng(1).random(400)
    assert candidate(LEVEL + hard).better_than(candidate(worse(1.5) + hard), 1.4)
    assert not a.better_than(a, 0.0)


def test_the_smallest_loss_is_chosen():
    a, b = candidate(worse(9), readout=Margin(3)), candidate(LEVEL, readout=Margin(9))
    assert choose([a, b]) is b
    assert choose([b, a]) is b


def test_the_sparsest_that_is_not_clearly_worse():
    """Among the variants with the same readout; the sparsest come first."""
    best = candidate(LEVEL, recurrences=1)
    close, far = worse(0.9 * TO_KEEP_MORE), worse(1.1 * TO_KEEP_MORE)
    assert choose([candidate(close, recurrences=5), best]).variant.recurrences == 5
    assert choose([candidate(far, recurrences=5), best]).variant.recurrences == 1
    three = [candidate(far, recurrences=5), candidate(close, recurrences=3), best]
    assert choose(three).variant.recurrences == 3
    other_readout = candidate(close, recurrences=5, readout=Margin(3))
    assert choose([other_readout, best]) is best


def test_all_columns_come_in_only_where_they_clearly_help():
    """Otherwise the best sparse variant is chosen, or a sparser one that is not clearly worse."""
    shared = candidate(LEVEL, share=0.5)
    assert choose([candidate(worse(1.1 * TO_TAKE_ALL)), shared]) is shared
    nearly = candidate(worse(0.9 * TO_TAKE_ALL))
    assert choose([nearly, shared]) is nearly
    sparser = replace(nearly, variant=Variant(0.0, 5))
    assert choose([sparser, nearly, shared]) is sparser
    assert choose([shared]) is shared  # nothing else to take


@pytest.mark.parametrize("n_fits", [1, 2, 5])
def test_variants_to_choose_from(n_fits):
    """The sparsest variants come first. A given share leaves only variants with that share."""
    tried = variants(n_fits)
    sparse = [variant.recurrences for variant in tried if variant.share == 0]
    assert sparse == sorted({1, (n_fits + 1) // 2, n_fits}, reverse=True)
    assert [v.share for v in tried if v.share > 0] == [0.5, 0.8, 1.0]
    assert [v.recurrences for v in with_share(tried, 0.3)] == sparse
    assert {v.share for v in with_share(tried, 0.3)} == {0.3}
    assert with_share(tried, 1.0) == [Variant(1.0)]


def test_candidates_are_weighted(table):
    """Rows count by their weights in the loss and in the score."""
    X, y = table
    weight = np.random.default_rng(0).uniform(0.1, 5, 150)
    model = short(start_share=0.0, prune=None, classifier="margin", n_neighbors_predict=5)
    model.fit(X, y, sample_weight=weight)
    rows, found = out_of_fold(cross_fitted(model, X, y, weight), Variant(), [Margin(5)])
    values, own = found[Margin(5)], weight[rows] * 150 / weight.sum()
    proba, fold = np.empty((150, 2)), np.repeat(np.arange(3), 50)
    for out in (fold == j for j in range(3)):  # calibrated with the other folds
        others = own[~out] * 100 / own[~out].sum()
        proba[out] = calibrate(values[~out], y[rows][~out], others).probabilities(values[out])
    right = np.average(proba.argmax(axis=1) == y[rows], weights=own)
    assert model.oob_score_ == pytest.approx(right)
    assert model.oob_score_ != pytest.approx((proba.argmax(axis=1) == y[rows]).mean(), abs=1e-4)


def test_a_readout_on_the_terms_must_be_clearly_better():
    """It is chosen if it is clearly better than all readouts of distances, or alone."""
    linear, near = candidate(LEVEL, readout=Linear(1.0)), worse(0.9 * TO_TAKE_TERMS)
    assert choose([candidate(near), linear]).readout == Margin(5)
    assert choose([candidate(worse(1.1 * TO_TAKE_TERMS)), linear]) is linear
    assert choose([linear]) is linear


@QUIET
def test_readouts_on_the_terms_are_tried_once(three_fits):
    """With one variant, and the first of them only if it is clearly worse."""
    tried = variants(3)
    found = candidates(three_fits, tried, [Margin(5), *Linear.grid(None)])
    on_terms = [one for one in found if one.readout.on_terms]
    assert len({one.variant for one in on_terms}) == 1
    assert {one.variant.share for one in on_terms} == {0.0}
    assert [one.readout for one in on_terms] in (Linear.grid(None)[:1], Linear.grid(None))
    alone = candidates(three_fits, tried, Linear.grid(None))
    assert [one.readout for one in alone] == Linear.grid(None)
    only_shared = candidates(three_fits, [Variant(0.5)], [Linear(1.0)])
    assert len(only_shared) == 1


# --- averages


def noisy(readout, labels, seed, noise=1.0, share=0.0):
    """A candidate whose evidence is the class with its own noise."""
    rng = np.random.default_rng(seed)
    values = np.eye(2)[labels] + noise * rng.normal(size=(len(labels), 2))
    return calibrated(Variant(share), readout, values, labels, np.ones(len(labels)))


def test_readouts_of_different_kinds_are_averaged_if_this_predicts_better():
    labels = np.arange(400) % 2
    near, terms = noisy(Margin(5), labels, 0), noisy(Linear(1.0), labels, 1)
    ridge = noisy(Ridge(1.0), labels, 2, share=1.0)
    found = averaged_by([terms, ridge, near], labels, np.ones(400))
    assert found[0] is near  # unless another one is clearly better
    assert {id(one) for one in found} == {id(near), id(terms), id(ridge)}
    useless = noisy(Linear(1.0), labels, 3, noise=1e6)
    assert averaged_by([near, useless], labels, np.ones(400)) == [near]
    same_kind = noisy(Hull(10, 0.3), labels, 4)
    assert len(averaged_by([near, same_kind], labels, np.ones(400))) == 1


def test_averages_are_chosen_without_the_rows_they_predict(three_fits):
    """For the rows of a fold, the other folds decide what is averaged and how it is calibrated."""
    found = candidates(three_fits, variants(3), [Margin(5), *Linear.grid(None), *Ridge.grid(None)])
    choice = chosen(three_fits, found)
    rows, sizes = choice.rows, [len(part) for part in scored_rows(three_fits)]
    labels, weight = three_fits.labels[rows], np.ones(len(rows))
    first = np.arange(len(rows)) < sizes[0]
    changed = [replace(one, losses=np.where(first, 1 - one.losses, one.losses)) for one in found]
    expected = averaged_by(found, labels[~first], weight[~first], ~first)
    again = averaged_by(changed, labels[~first], weight[~first], ~first)
    assert [one.readout for one in again] == [one.readout for one in expected]
    assert_allclose(chosen(three_fits, changed).log_odds[first], choice.log_odds[first])


def test_a_blend_predicts_the_mean_of_its_models(table):
    X, y = table
    model = short(classifier="auto").fit(X, y)
    models = getattr(model.model_, "models", [model.model_])
    assert [type(one) for one in model.readouts_] == [
        type(one.the_reading.readout) for one in models
    ]
    parts = [one.probabilities(X) for one in models]
    mean = np.exp(np.mean(np.log(parts), axis=0))
    assert_allclose(model.predict_proba(X), mean / mean.sum(axis=1, keepdims=True), rtol=1e-9)
