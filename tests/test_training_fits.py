"""Several fits made into one metric: averages, shares of the plain distance, pruning, cut paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fits import (
    cross_fitted,
    plain,
    product_table,
    short,
    squared,
    total_variance,
    used,
)
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier
from metricboost.model import Factor
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


# --- the average


def literal_average(made, X):
    """The terms, and the mean of the matrices of the fits, each divided by its total variance."""
    total = {}
    for fit in made.fits:
        W = fit.factor.matrix @ fit.factor.matrix.T
        W = W / total_variance(fit.metric(fit.factor).transform(X))
        terms = [fit.terms[t] for t in fit.factor.index]
        for i, a in enumerate(terms):
            for j, b in enumerate(terms):
                total[a, b] = total.get((a, b), 0.0) + W[i, j] / len(made.fits)
    terms = sorted({a for a, _ in total}, key=lambda term: (-total[term, term], len(term), term))
    return terms, np.array([[total.get((a, b), 0.0) for b in terms] for a in terms])


def literal_terms(terms, X, fresh, clip):
    """The columns of the terms: products of clipped columns, standardised with all rows of X."""
    own, new = plain(X, X, clip), plain(X, fresh, clip)
    columns = []
    for term in terms:
        a, b = (np.prod(rows[:, list(term)], axis=1) for rows in (own, new))
        centre, scale = (a.mean(), a.std()) if len(term) > 1 else (0.0, 1.0)
        columns.append((b - centre) / scale)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("clip", [3.0, 1.0, None])
def test_the_metric_is_the_average_of_the_fits(clip, table):
    """Without pruning W is that average, over terms standardised with all rows."""
    X, y = table
    model = short(SDist, prune=None, start_share=0.0, clip=clip).fit(X, y)
    terms, W = literal_average(cross_fitted(model, X, y), X)
    assert model.metric_.columns == terms
    phi = literal_terms(terms, X, X, clip)
    variance = np.trace(np.cov(phi.T, bias=True) @ W)
    assert_allclose(model.metric_.matrix(), W / variance, rtol=1e-9, atol=1e-12)
    assert_allclose(total_variance(model.transform(X)), 1.0)
    assert np.linalg.eigvalsh(model.metric_.matrix()).min() > -1e-12
    fresh = np.random.default_rng(5).normal(size=(40, 6)) * 8 + 7
    phi = literal_terms(terms, X, fresh, clip)
    difference = phi[:20] - phi[20:]
    expected = np.einsum("ij,jk,ik->i", difference, W / variance, difference)
    assert_allclose(squared(model, fresh[:20], fresh[20:]), expected, rtol=1e-8)


def test_fits_that_learned_nothing_are_left_out_of_the_average(three_fits):
    """The weights of the average are those of the fits that learned something."""
    nothing = replace(three_fits.fits[0], best_iter=0)
    folds = [replace(three_fits.folds[0], learned=nothing), *three_fits.folds[1:]]
    some = replace(three_fits, folds=folds)
    two = replace(three_fits, folds=three_fits.folds[1:])
    X = three_fits.X
    a, b = (made.metric(Variant()) for made in (some, two))
    assert a.columns == b.columns
    assert_allclose(squared(a, X[:75], X[75:]), squared(b, X[:75], X[75:]))
    assert a.stability.max() == pytest.approx(2 / 3)


def test_the_same_fit_several_times_is_that_fit(three_fits):
    """The average of equal metrics is the metric."""
    one = three_fits.folds[0].learned
    same = replace(three_fits, folds=[replace(f, learned=one) for f in three_fits.folds])
    assert len(same.fits) == 1
    copies = [replace(f, learned=replace(one)) for f in three_fits.folds]
    several = replace(three_fits, folds=copies)
    assert len(several.fits) == 3
    X = three_fits.X
    a, b = same.metric(Variant()), several.metric(Variant())
    assert_allclose(squared(a, X[:75], X[75:]), squared(b, X[:75], X[75:]), rtol=1e-9)


def test_every_fold_has_its_own_metric(three_fits):
    """The metric of a fold is that of its fit, with a total variance of 1 over all rows."""
    X = three_fits.X
    metrics = three_fits.fold_metrics(Variant())
    for fold, metric in zip(three_fits.folds, metrics):
        own = fold.learned.metric(fold.learned.factor)
        assert_allclose(total_variance(metric.transform(X)), 1.0)
        expected = own.transform(X) / np.sqrt(total_variance(own.transform(X)))
        assert_allclose(metric.transform(X), expected, atol=1e-12)


# --- the share of all columns


@pytest.mark.parametrize("clip", [2.0, None])
def test_a_share_of_one_is_the_plain_distance(clip, table):
    """It is the Euclidean distance on standardised and clipped columns, up to a factor."""
    X, y = table
    model = short(SDist, start_share=1.0, clip=clip).fit(X, y)
    fresh = np.random.default_rng(5).normal(size=(40, 6)) * 8 + 7
    rows = plain(X, fresh, clip) / np.sqrt(total_variance(plain(X, X, clip)))
    expected = np.linalg.norm(rows[:20] - rows[20:], axis=1)
    assert_allclose(model.pair_distance(fresh[:20], fresh[20:]), expected, rtol=1e-9)
    assert model.start_share_ == 1.0
    assert model.best_iter_ > 0
    assert_allclose(model.feature_importances_, 1 / 6)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("clip", [1.0, None])
def test_a_share_in_between_is_a_weighted_sum(share, clip, table):
    """Squared distances are the weighted sum of both, in the metric and in that of every fold."""
    X, y = table
    made = cross_fitted(short(SDist, start_share=0.0, prune=None, clip=clip), X, y)
    fresh = np.random.default_rng(5).normal(size=(40, 6)) * 8 + 7
    for of in (made.metric, lambda variant: made.fold_metrics(variant)[1]):
        nothing, some, everything = (
            squared(of(Variant(s)), fresh[:20], fresh[20:]) for s in (0.0, share, 1.0)
        )
        assert_allclose(some, (1 - share) * nothing + share * everything, rtol=1e-9)
        assert not np.allclose(nothing, everything, rtol=0.1)
    model = short(SDist, start_share=share, prune=None, clip=clip).fit(X, y)
    assert model.start_share_ == share
    expected = squared(made.metric(Variant(share)), fresh[:20], fresh[20:])
    assert_allclose(squared(model, fresh[:20], fresh[20:]), expected, rtol=1e-9)
    assert (model.feature_importances_ > 0).all()


def test_constant_columns_have_no_share(table):
    X, y = table
    wider = np.insert(X, 2, 5.0, axis=1)
    with pytest.warns(UserWarning, match="Constant column"):
        model = short(SDist, start_share=0.5).fit(wider, y)
    assert model.feature_importances_[2] == 0
    narrow = short(SDist, start_share=0.5).fit(X, y)
    assert_allclose(model.transform(wider), narrow.transform(X), atol=1e-12)


def test_the_share_helps_where_every_column_matters():
    """Each of 200 columns matters a little: "auto" takes a share of the plain distance."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, 200)) + 0.3 * y[:, None]
    params = {"max_iter": 10, "max_degree": 1, "classifier": "margin"}
    auto, sparse = (
        short(start_share=share, **params).fit(X[:120], y[:120]) for share in ("auto", 0.0)
    )
    assert auto.start_share_ > 0
    assert sparse.start_share_ == 0
    assert auto.oob_score_ > sparse.oob_score_
    assert auto.score(X[120:], y[120:]) > sparse.score(X[120:], y[120:])


# --- recurrence, sizes, cuts


def counted(made):
    """In how many fits every column, and every term, occurs."""
    columns, terms = {}, {}
    for fit in made.fits:
        own = [fit.terms[t] for t in fit.factor.index]
        for term in own:
            terms[term] = terms.get(term, 0) + 1
        for column in {column for term in own for column in term}:
            columns[column] = columns.get(column, 0) + 1
    return columns, terms


def test_stability_is_the_share_of_fits(fitted, three_fits):
    """``stability_`` has the share for columns, and ``metric_.terms`` has the share for terms."""
    columns, terms = counted(three_fits)
    assert_allclose(fitted.stability_, [columns.get(j, 0) / 3 for j in range(6)])
    for term in fitted.metric_.terms:
        assert term.stability == pytest.approx(terms[term.columns] / 3)
    assert set(columns.values()) > {3}  # some recur in all fits, some do not


def test_columns_that_recur(three_fits):
    columns, _ = counted(three_fits)
    for least in (1, 2, 3):
        recurring = {column for column, count in columns.items() if count >= least}
        assert three_fits.recurring(Variant(0.0, least)) == recurring
        metric = three_fits.metric(Variant(0.0, least))
        assert np.linalg.eigvalsh(metric.matrix()).min() > -1e-12
    assert three_fits.recurring(Variant(0.0, 99)) == three_fits.recurring(Variant(0.0, 3))


def test_a_fold_keeps_as_many_columns_as_recur_not_which(three_fits):
    """A fold keeps its own heaviest columns, because the other fits have seen the rows left out."""
    variant = Variant(0.0, 3)
    size = len(three_fits.recurring(variant))
    for fold, metric in zip(three_fits.folds, three_fits.fold_metrics(variant)):
        assert len(used(metric)) <= size
        weight = {}
        own = fold.learned.metric(fold.learned.factor)
        for term in own.terms:
            for column in set(term.columns):
                weight[column] = weight.get(column, 0) + term.weight / len(set(term.columns))
        assert used(metric) <= set(sorted(weight, key=lambda c: -weight[c])[:size])


@pytest.mark.parametrize("size", [1, 2, 3])
@BOTH
def test_prune_keeps_that_number_of_variables(cls, size, table):
    """The heaviest columns of the average stay, and the terms that are made of these columns."""
    X, y = table
    params = {"start_share": 0.0, "max_iter": 12}
    model = short(cls, prune=size, **params).fit(X, y)
    whole = short(cls, prune=None, **params).fit(X, y)
    kept = np.flatnonzero(model.feature_importances_)
    heaviest = np.argsort(-whole.feature_importances_, kind="stable")[:size]
    assert set(kept) == set(heaviest)
    assert len(np.flatnonzero(whole.feature_importances_)) > size
    a, b = model.metric_, whole.metric_
    place = [b.columns.index(term) for term in a.columns]
    kept_part = b.matrix()[np.ix_(place, place)]
    assert_allclose(a.matrix() / np.trace(a.matrix()), kept_part / np.trace(kept_part), atol=1e-9)


def average_of(metrics, X, Y):
    """The mean of several metrics' squared distances."""
    return np.mean([squared(metric, X, Y) for metric in metrics], axis=0)


@QUIET
def test_what_is_judged_is_what_is_used():
    """Fits that disagree: the final metric is the average of the pruned metrics of the folds.

    No column recurs in all fits, so a metric of such columns would not be the one that was judged.
    """
    X = np.random.default_rng(0).normal(size=(60, 300))
    params = {"max_iter": 2, "n_nonzero": 1, "max_degree": 1, "oob_gate": None, "prune": None}
    made = cross_fitted(short(SDist, **params), X, np.arange(60) % 2)
    variant = Variant(0.0, 3)
    assert not made.recurring(variant)
    folds, metric = made.fold_metrics(variant), made.metric(variant)
    assert all(len(used(own)) == 1 for own in folds)
    assert used(metric) == set().union(*map(used, folds))
    together = average_of(folds, made.X[:30], made.X[30:])
    assert np.corrcoef(squared(metric, made.X[:30], made.X[30:]), together)[0, 1] > 0.95


@pytest.mark.parametrize(("weight", "kept"), [(0.05, False), (0.2, True)])
def test_a_column_of_one_fit_is_dropped_if_the_others_hold_the_weight(weight, kept, three_fits):
    """A column of one fit stays if the other columns hold less than 0.9 of the weight."""
    shared, own = np.sqrt([[1.0], [0.0]]), np.sqrt([[1 - 3 * weight], [3 * weight]])
    fits = [replace(fit, terms=[(0,), (1,)], moments=np.tile([0.0, 1.0], (2, 1)), best_iter=1,
                    factor=Factor(np.arange(2), own if i == 0 else shared).restricted(
                        np.array([True, i == 0])))
            for i, fit in enumerate(three_fits.fits)]  # fmt: skip
    folds = [replace(fold, learned=fit) for fold, fit in zip(three_fits.folds, fits)]
    metric = replace(three_fits, folds=folds).metric(Variant(size=2))
    assert used(metric) == ({0, 1} if kept else {0})


@QUIET
def test_pruning_does_not_ruin_a_model_unseen():
    """Three-way parity: the columns that recur in all fits are other columns than those judged.

    The error on new rows was 0.498 and the out-of-fold error 0.132; 0.064 without pruning.
    """
    rng = np.random.default_rng(100)
    signs = rng.choice([-1.0, 1.0], size=(1200, 20))
    X, y = signs + 0.4 * rng.standard_normal(signs.shape), signs[:, [2, 8, 11]].prod(axis=1) > 0
    model = SDistClassifier(max_degree=3, random_state=0).fit(X[:400], y[:400])
    assert model.oob_score_ - model.score(X[400:], y[400:]) < 0.1


@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_paths_are_cut_after_that_number_of_steps(steps, three_fits):
    """The metric of every fold is the one after that number of its accepted steps."""
    variant = Variant(steps=steps)
    for fold, metric in zip(three_fits.folds, three_fits.fold_metrics(variant)):
        path = fold.learned.path
        factor = path.factor(min(steps, len(path)))
        own = fold.learned.metric(factor).transform(three_fits.X)
        expected = own / np.sqrt(total_variance(own))
        assert_allclose(metric.transform(three_fits.X), expected, atol=1e-12)


def test_a_large_penalty_cuts_paths_early(table):
    made = cross_fitted(short(SDist, refresh_every=None), *table)
    strict, free = made.metric(Variant(penalty=1e9)), made.metric(Variant(penalty=0.0))
    assert strict.columns == made.metric(Variant(steps=1)).columns
    assert free.columns == made.metric(Variant()).columns
    assert len(strict.columns) < len(free.columns)


def test_stages_of_several_fits(table):
    """There is a stage for each step of the longest path; without pruning the last is the model."""
    X, y = table
    model = short(prune=None, start_share=0.5).fit(X, y)
    stages = list(model.staged_transform(X))
    assert len(stages) == max(len(fit.path) for fit in cross_fitted(model, X, y).fits)
    assert_allclose(stages[-1], model.transform(X), atol=1e-10)
    predictions = list(model.staged_predict(X))
    assert len(predictions) == len(stages)
    assert_array_equal(predictions[-1], model.predict(X))


def test_the_path_has_the_steps_of_all_fits(fitted, three_fits):
    """``path_`` has the steps of one fit after the other, with the attempts of each fit."""
    path = fitted.path_
    assert_array_equal(np.unique(path["fit"]), [0, 1, 2])
    assert (np.diff(path["fit"]) >= 0).all()
    for number, fit in enumerate(three_fits.fits):
        own = path[path["fit"] == number]
        assert own["attempt"].tolist() == [step.attempt for step in fit.path.steps]
        assert_allclose(own["loss"], [step.loss for step in fit.path.steps])
    assert fitted.n_iter_ == sum(fit.path.n_attempts for fit in three_fits.fits)
    assert fitted.best_iter_ == len(path)
