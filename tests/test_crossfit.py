"""Several fits made into one metric: honest evidence, averages, shares, choices."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from metricboost import SDist, SDistClassifier
from metricboost.boosting.path import Factor
from metricboost.boosting.scaling import Scaling
from metricboost.datasets import make_xor
from metricboost.selection import choosing, crossfit
from metricboost.selection.calibration import Calibration, calibrate
from metricboost.selection.choosing import (
    TO_KEEP_MORE,
    TO_TAKE_ALL,
    Candidate,
    candidates,
    choose,
    out_of_fold,
    scored_rows,
    variants,
    with_share,
)
from metricboost.selection.crossfit import FoldTask, Variant, learn_fold
from metricboost.selection.readouts import Margin, Training, evidence

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


#: Three short fits; what the defaults are does not matter here.
SHORT = {
    "max_iter": 8, "n_averaged": 3, "learning_rate": 0.1, "oob_gate": 1.5, "n_nonzero": 4,
    "clip": 3.0, "random_state": 0,
}  # fmt: skip


def sdist(cls=SDistClassifier, **params):
    return cls(**{**SHORT, **params})


@pytest.fixture(scope="module")
def table():
    """The product of columns 1 and 4 of six, and a little of column 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [1, 2, 3, 4, 5, 6] + 7
    signal = (X[:, 1] - 7) * (X[:, 4] - 7) / 10 + (X[:, 2] - 7) / 6
    return X, (signal + 0.3 * rng.normal(size=150) > 0).astype(int)


@pytest.fixture(scope="module")
def fitted(table):
    return sdist().fit(*table)


@pytest.fixture(scope="module")
def three_fits(fitted):
    return fitted._crossfit


def options_of(model, X):
    """The options of a fit to X, from a model that was fitted with a number as its seed."""
    y = np.arange(len(X)) % 2
    return model._options(model._prepared(X, y, None))


def used(metric):
    return {column for term in metric.columns for column in term}


def total_variance(rows):
    return rows.var(axis=0).sum()


def squared(metric, X, Y):
    return metric.pair_distance(X, Y) ** 2


def plain(X, fresh, clip):
    """The columns standardised with X and clipped."""
    standard = (fresh - X.mean(axis=0)) / X.std(axis=0)
    return standard if clip is None else np.clip(standard, -clip, clip)


# --- folds


@QUIET
@pytest.mark.parametrize("n_averaged", [2, 3, 5])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_folds_are_stratified_parts_of_the_rows(n_averaged, share):
    """Every row is left out once; the classes are shared out as evenly as they go."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(101, 3)), (rng.random(101) < share).astype(int)
    folds = sdist(SDist, n_averaged=n_averaged, max_iter=1, start_share=0.0, prune=None).fit(X, y)
    folds = folds._crossfit.folds
    assert len(folds) == n_averaged
    assert_array_equal(np.sort(np.concatenate([fold.left_out for fold in folds])), np.arange(101))
    for fold in folds:
        assert_array_equal(np.sort(np.r_[fold.kept, fold.left_out]), np.arange(101))
        assert abs(y[fold.left_out].sum() - y.sum() / n_averaged) < 1
    assert len({id(fold.learned) for fold in folds}) == n_averaged


def test_one_fit_sees_all_rows(table):
    """Its evidence still has folds of rows that are not their own neighbours."""
    made = sdist(n_averaged=1).fit(*table)._crossfit
    assert len(made.fits) == 1
    assert len(made.folds) == 5
    assert made.fits[0].path.steps
    assert_array_equal(np.sort(np.concatenate([f.left_out for f in made.folds])), np.arange(150))


@QUIET
@BOTH
@pytest.mark.parametrize(("smallest", "n_fits"), [(2, 1), (3, 3), (4, 4), (5, 5), (9, 5)])
def test_small_classes_have_fewer_folds(cls, smallest, n_fits):
    """As many as the smallest class has rows; with two of them one fit sees all."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30 + smallest, 2)), np.r_[np.zeros(30, int), np.ones(smallest, int)]
    model = sdist(cls, n_averaged=5, oob_gate=None, max_iter=2).fit(X, y)
    assert len(model._crossfit.fits) == n_fits
    assert np.isfinite(model.transform(X)).all()


@QUIET
@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_of_two_rows(cls, n_classes):
    """The smallest tables there are, with the default parameters."""
    labels = np.repeat(np.arange(n_classes), 2)
    X = np.random.default_rng(0).normal(size=(len(labels), 3)) + 3 * labels[:, None]
    model = cls(random_state=0).fit(X, labels)
    assert len(model._crossfit.fits) == 1
    assert np.isfinite(model.transform(X)).all()
    if cls is SDistClassifier:
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# --- a fold's metric knows nothing of the rows it leaves out


def test_a_fit_is_that_of_its_rows_alone(table):
    """Scaling, screening, bags and weights: as if the other rows did not exist."""
    X, y = table
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    weight *= 150 / weight.sum()
    made = sdist(SDist).fit(X, y, sample_weight=weight)._crossfit
    model = sdist(SDist)
    for number, fold in enumerate(made.folds):
        rows = fold.kept
        own = weight[rows] * (len(rows) / weight[rows].sum())
        alone = learn_fold(
            FoldTask(
                X[rows], np.arange(len(rows)), y[rows], own, made.engine, options_of(model, X),
                number,
            )
        )  # fmt: skip
        assert alone.terms == fold.learned.terms
        assert_array_equal(alone.factor.matrix, fold.learned.factor.matrix)
        assert_allclose(alone.scaling.center, X[rows].mean(axis=0))


def test_rows_left_out_cannot_change_the_metric_that_scores_them(table):
    """Their values may be anything: the fits without them stay, to the last bit."""
    X, y = table
    before = sdist(SDist).fit(X, y)._crossfit.folds
    for number, fold in enumerate(before):
        other = X.copy()
        other[fold.left_out] = 50 * np.random.default_rng(1).normal(size=(len(fold.left_out), 6))
        after = sdist(SDist).fit(other, y)._crossfit.folds
        assert_array_equal(after[number].left_out, fold.left_out)
        assert after[number].learned.terms == fold.learned.terms
        assert_array_equal(after[number].learned.factor.matrix, fold.learned.factor.matrix)
        changed = [j for j in range(3) if j != number]
        assert any(
            after[j].learned.terms != before[j].learned.terms
            or not np.array_equal(after[j].learned.factor.matrix, before[j].learned.factor.matrix)
            for j in changed
        )


def accuracy(made, metrics, rule):
    """Of rows out of fold under the folds' metrics."""
    right = []
    for fold, metric in zip(made.folds, metrics):
        kept, out = metric.transform(made.X[fold.kept]), metric.transform(made.X[fold.left_out])
        training = Training(kept, made.labels[fold.kept], np.ones(len(kept)), made.n_classes)
        found = evidence(made.engine, training, out, [rule])[rule].argmax(axis=1)
        right.append(found == made.labels[fold.left_out])
    return np.concatenate(right).mean()


def pruned_with_the_other_fits(made, variant):
    """What would be wrong: each fold on the columns that recur in fits that saw its rows."""
    columns = made.recurring(variant)
    for fold in made.folds:
        learned = fold.learned
        factor = crossfit._only(crossfit._cut(learned, variant), learned.terms, columns)
        yield crossfit._assembled(learned, factor, made.X, variant.share)


@pytest.fixture(scope="module")
def noise_fits():
    """Labels that have nothing to do with 400 columns, and fits that take what they can get."""
    params = {"max_iter": 4, "oob_gate": None, "n_nonzero": 20, "max_degree": 1, "n_averaged": 5}
    models = []
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(80, 400))
        models.append(sdist(**params, random_state=seed).fit(X, np.arange(80) % 2))
    return models


def test_noise_is_not_taken_for_evidence(noise_fits):
    """Out of fold it is classified as by chance: 800 rows have a standard error of 0.018."""
    scores = [model.oob_score_ for model in noise_fits]
    assert abs(np.mean(scores) - 0.5) < 0.055  # the best of several rules, so a little above
    for least in (1, 3, 5):
        variant = Variant(0.0, least)
        found = [
            accuracy(m._crossfit, m._crossfit.fold_metrics(variant), Margin(5)) for m in noise_fits
        ]
        assert abs(np.mean(found) - 0.5) < 0.055


@pytest.mark.parametrize("least", [3, 5])
def test_recurrence_in_other_fits_would_leak(noise_fits, least):
    """The others have seen the rows that a fold leaves out: choosing columns with them cheats."""
    found = [
        accuracy(
            m._crossfit, pruned_with_the_other_fits(m._crossfit, Variant(0.0, least)), Margin(5)
        )
        for m in noise_fits
    ]
    assert np.mean(found) > 0.6


def test_training_rows_flatter(noise_fits):
    """Why evidence is taken out of fold: on its own rows the metric looks good."""
    scores = [model.score(model._crossfit.X, model._crossfit.labels) for model in noise_fits]
    assert np.mean(scores) > 0.65


# --- the average


def literal_average(made, X):
    """(terms, W): the mean of the fits' matrices over unit variance, term by term."""
    total = {}
    for fit in made.fits:
        W = fit.factor.matrix @ fit.factor.matrix.T
        W = W / total_variance(fit.metric(fit.factor, None).transform(X))
        terms = [fit.terms[t] for t in fit.factor.index]
        for i, a in enumerate(terms):
            for j, b in enumerate(terms):
                total[a, b] = total.get((a, b), 0.0) + W[i, j] / len(made.fits)
    terms = sorted({a for a, _ in total}, key=lambda term: (-total[term, term], len(term), term))
    return terms, np.array([[total.get((a, b), 0.0) for b in terms] for a in terms])


def literal_terms(terms, X, fresh, clip):
    """The terms as columns: products of clipped columns, standardised with all rows of X."""
    own, new = plain(X, X, clip), plain(X, fresh, clip)
    columns = []
    for term in terms:
        a, b = (np.prod(rows[:, list(term)], axis=1) for rows in (own, new))
        centre, scale = (a.mean(), a.std()) if len(term) > 1 else (0.0, 1.0)
        columns.append((b - centre) / scale)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("clip", [3.0, 1.0, None])
def test_the_metric_is_the_average_of_the_fits(clip, table):
    """Over terms standardised with all rows, at unit variance, where nothing is pruned."""
    X, y = table
    model = sdist(SDist, prune=None, start_share=0.0, clip=clip).fit(X, y)
    terms, W = literal_average(model._crossfit, X)
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
    """They have no metric to add, and do not thin out the others'."""
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
    """That of its fit, at unit variance over all rows."""
    X = three_fits.X
    metrics = three_fits.fold_metrics(Variant())
    for fold, metric in zip(three_fits.folds, metrics):
        own = fold.learned.metric(fold.learned.factor, None)
        assert_allclose(total_variance(metric.transform(X)), 1.0)
        expected = own.transform(X) / np.sqrt(total_variance(own.transform(X)))
        assert_allclose(metric.transform(X), expected, atol=1e-12)


# --- the share of all columns


@pytest.mark.parametrize("clip", [2.0, None])
def test_a_share_of_one_is_the_plain_distance(clip, table):
    """Euclidean on standardised and clipped columns, up to a factor."""
    X, y = table
    model = sdist(SDist, start_share=1.0, clip=clip).fit(X, y)
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
    """Of the squared distances, each at unit variance: in the metric and in every fold's."""
    X, y = table
    made = replace(sdist(SDist, start_share=0.0, prune=None, clip=clip).fit(X, y)._crossfit, X=X)
    fresh = np.random.default_rng(5).normal(size=(40, 6)) * 8 + 7
    for of in (made.metric, lambda variant: made.fold_metrics(variant)[1]):
        nothing, some, everything = (
            squared(of(Variant(s)), fresh[:20], fresh[20:]) for s in (0.0, share, 1.0)
        )
        assert_allclose(some, (1 - share) * nothing + share * everything, rtol=1e-9)
        assert not np.allclose(nothing, everything, rtol=0.1)
    model = sdist(SDist, start_share=share, prune=None, clip=clip).fit(X, y)
    assert model.start_share_ == share
    expected = squared(made.metric(Variant(share)), fresh[:20], fresh[20:])
    assert_allclose(squared(model, fresh[:20], fresh[20:]), expected, rtol=1e-9)
    assert (model.feature_importances_ > 0).all()


def test_constant_columns_have_no_share(table):
    X, y = table
    wider = np.insert(X, 2, 5.0, axis=1)
    with pytest.warns(UserWarning, match="Constant column"):
        model = sdist(SDist, start_share=0.5).fit(wider, y)
    assert model.feature_importances_[2] == 0
    narrow = sdist(SDist, start_share=0.5).fit(X, y)
    assert_allclose(model.transform(wider), narrow.transform(X), atol=1e-12)


def test_the_share_helps_where_every_column_matters():
    """A little of 200 columns: a sparse metric alone does harm, and "auto" sees it."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, 200)) + 0.3 * y[:, None]
    params = {"max_iter": 10, "max_degree": 1, "classifier": "margin"}
    auto, sparse = (
        sdist(start_share=share, **params).fit(X[:120], y[:120]) for share in ("auto", 0.0)
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
    """Of columns in ``stability_``, of terms beside their weights."""
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
    """Its own heaviest: which ones recur is known from rows it must not have seen."""
    variant = Variant(0.0, 3)
    size = len(three_fits.recurring(variant))
    for fold, metric in zip(three_fits.folds, three_fits.fold_metrics(variant)):
        assert len(used(metric)) <= size
        weight = {}
        own = fold.learned.metric(fold.learned.factor, None)
        for term in own.terms:
            for column in set(term.columns):
                weight[column] = weight.get(column, 0) + term.weight / len(set(term.columns))
        assert used(metric) <= set(sorted(weight, key=lambda c: -weight[c])[:size])


@pytest.mark.parametrize("size", [1, 2, 3])
@BOTH
def test_prune_keeps_so_many_variables(cls, size, table):
    """The heaviest of the average, at most so many: a term stays if all its columns do."""
    X, y = table
    params = {"start_share": 0.0, "max_iter": 12}
    model = sdist(cls, prune=size, **params).fit(X, y)
    whole = sdist(cls, prune=None, **params).fit(X, y)
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

    The columns that recur in all fits would leave nothing here, and elsewhere something else than
    what was judged.
    """
    X = np.random.default_rng(0).normal(size=(60, 300))
    params = {"max_iter": 2, "n_nonzero": 1, "max_degree": 1, "oob_gate": None, "prune": None}
    made = sdist(SDist, **params).fit(X, np.arange(60) % 2)._crossfit
    variant = Variant(0.0, 3)
    assert not made.recurring(variant)
    folds, metric = made.fold_metrics(variant), made.metric(variant)
    assert all(len(used(own)) == 1 for own in folds)
    assert used(metric) == set().union(*map(used, folds))
    together = average_of(folds, made.X[:30], made.X[30:])
    assert np.corrcoef(squared(metric, made.X[:30], made.X[30:]), together)[0, 1] > 0.95


@pytest.mark.parametrize(("weight", "kept"), [(0.05, False), (0.2, True)])
def test_a_column_of_one_fit_is_dropped_if_the_others_hold_the_weight(weight, kept, three_fits):
    """A column that one of the pruned fits has alone stays if it matters for what was judged."""
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
def test_paths_are_cut_after_so_many_steps(steps, three_fits):
    """As if every fit had ended there."""
    variant = Variant(steps=steps)
    for fold, metric in zip(three_fits.folds, three_fits.fold_metrics(variant)):
        path = fold.learned.path
        factor = path.factor(min(steps, len(path)))
        own = fold.learned.metric(factor, None).transform(three_fits.X)
        expected = own / np.sqrt(total_variance(own))
        assert_allclose(metric.transform(three_fits.X), expected, atol=1e-12)


def test_a_large_penalty_cuts_paths_early(table):
    made = sdist(SDist, refresh_every=None).fit(*table)._crossfit
    strict, free = made.metric(Variant(penalty=1e9)), made.metric(Variant(penalty=0.0))
    assert strict.columns == made.metric(Variant(steps=1)).columns
    assert free.columns == made.metric(Variant()).columns
    assert len(strict.columns) < len(free.columns)


def test_stages_of_several_fits(table):
    """One for each step of the longest path; the last is the model where nothing was pruned."""
    X, y = table
    model = sdist(prune=None, start_share=0.5).fit(X, y)
    stages = list(model.staged_transform(X))
    assert len(stages) == max(len(fit.path) for fit in model._crossfit.fits)
    assert_allclose(stages[-1], model.transform(X), atol=1e-10)
    predictions = list(model.staged_predict(X))
    assert len(predictions) == len(stages)
    assert_array_equal(predictions[-1], model.predict(X))


def test_the_path_has_the_steps_of_all_fits(fitted, three_fits):
    """Fit after fit, each with its own attempts."""
    path = fitted.path_
    assert_array_equal(np.unique(path["fit"]), [0, 1, 2])
    assert (np.diff(path["fit"]) >= 0).all()
    for number, fit in enumerate(three_fits.fits):
        own = path[path["fit"] == number]
        assert own["attempt"].tolist() == [step.attempt for step in fit.path.steps]
        assert_allclose(own["loss"], [step.loss for step in fit.path.steps])
    assert fitted.n_iter_ == sum(fit.path.n_attempts for fit in three_fits.fits)
    assert fitted.best_iter_ == len(path)


# --- evidence and choices


def test_evidence_is_that_of_the_folds(fitted, three_fits):
    """Every row once, classified by its own fold's metric among the rows it was learned from."""
    variant, rule = Variant(0.5, 2), Margin(4)
    rows, found = out_of_fold(three_fits, variant, [rule])
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
    assert_allclose(found[rule], [expected[row] for row in rows], rtol=1e-9)


def test_oob_score_is_that_of_the_evidence(fitted, three_fits):
    """The calibration is fitted to all of it; the score is that of choices without the fold."""
    rows, found = out_of_fold(three_fits, fitted._variant, [fitted.rule_])
    values, labels = found[fitted.rule_], three_fits.labels[rows]
    calibration = calibrate(values, labels, np.ones(150))
    assert_allclose(fitted._candidate.calibration.slope, calibration.slope)
    assert_allclose(fitted._candidate.calibration.offsets, calibration.offsets)


def test_oob_score_foretells_the_score():
    """Of rows that nobody has seen: on average, for one table has the noise of its 200 rows."""
    kinder = []
    for seed in range(6):
        X, y = make_xor(1000, 10, informative=2, random_state=seed)
        model = sdist(max_iter=20, n_averaged=2, classifier="margin").fit(X[:200], y[:200])
        kinder.append(model.oob_score_ - model.score(X[200:], y[200:]))
    assert abs(np.mean(kinder)) < 0.045  # three standard errors and a half


def test_many_rows_are_not_all_scored(three_fits, monkeypatch):
    """Evenly spaced ones, of every fold its share."""
    whole = scored_rows(three_fits)
    assert sum(map(len, whole)) == 150
    monkeypatch.setattr(choosing, "MOST_SCORED", 60)
    some = scored_rows(three_fits)
    assert sum(map(len, some)) == 60
    for fold, part in zip(three_fits.folds, some):
        assert set(part) <= set(fold.left_out)
        assert len(set(part)) == len(part) == 20
    assert candidates(three_fits, [Variant()], [Margin(3)])[0].losses.shape == (60,)


def candidate(losses, share=0.0, recurrences=1, rule=None):
    return Candidate(
        Variant(share, recurrences), rule or Margin(5), Calibration.none(2), np.array(losses), 0.0
    )


LEVEL = np.full(400, 0.3)
#: Differences between two losses, row by row, with a mean of 0 and a standard error of 1.
NOISE = np.random.default_rng(0).normal(size=400)
NOISE = 20 * (NOISE - NOISE.mean()) / NOISE.std()


def worse(errors):
    """Losses that are worse than LEVEL by so many standard errors of the difference."""
    return LEVEL + 0.01 * (errors + NOISE)


def test_better_is_by_standard_errors_of_the_difference():
    """Row by row: what both find hard does not blur the comparison."""
    a, b = candidate(LEVEL), candidate(worse(1.5))
    assert a.better_than(b, 1.4)
    assert not a.better_than(b, 1.6)
    assert not b.better_than(a, 0.0)
    hard = 5 * np.random.default_rng(1).random(400)
    assert candidate(LEVEL + hard).better_than(candidate(worse(1.5) + hard), 1.4)
    assert not a.better_than(a, 0.0)


def test_the_smallest_loss_is_chosen():
    a, b = candidate(worse(9), rule=Margin(3)), candidate(LEVEL, rule=Margin(9))
    assert choose([a, b]) is b
    assert choose([b, a]) is b


def test_the_sparsest_that_is_not_clearly_worse():
    """Under the same rule; the sparsest come first."""
    best = candidate(LEVEL, recurrences=1)
    close, far = worse(0.9 * TO_KEEP_MORE), worse(1.1 * TO_KEEP_MORE)
    assert choose([candidate(close, recurrences=5), best]).variant.recurrences == 5
    assert choose([candidate(far, recurrences=5), best]).variant.recurrences == 1
    three = [candidate(far, recurrences=5), candidate(close, recurrences=3), best]
    assert choose(three).variant.recurrences == 3
    other_rule = candidate(close, recurrences=5, rule=Margin(3))
    assert choose([other_rule, best]) is best


def test_all_columns_come_in_only_where_they_clearly_help():
    """Else the best of the sparse ones is taken, or a sparser one as good."""
    shared = candidate(LEVEL, share=0.5)
    assert choose([candidate(worse(1.1 * TO_TAKE_ALL)), shared]) is shared
    nearly = candidate(worse(0.9 * TO_TAKE_ALL))
    assert choose([nearly, shared]) is nearly
    sparser = replace(nearly, variant=Variant(0.0, 5))
    assert choose([sparser, nearly, shared]) is sparser
    assert choose([shared]) is shared  # nothing else to take


@pytest.mark.parametrize("n_fits", [1, 2, 5])
def test_variants_to_choose_from(n_fits):
    """The sparsest first; a given share leaves only its own."""
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
    model = sdist(start_share=0.0, prune=None, classifier="margin", n_neighbors_predict=5)
    model.fit(X, y, sample_weight=weight)
    rows, found = out_of_fold(model._crossfit, Variant(), [Margin(5)])
    values, own = found[Margin(5)], weight[rows] * 150 / weight.sum()
    proba, fold = np.empty((150, 2)), np.repeat(np.arange(3), 50)
    for out in (fold == j for j in range(3)):  # calibrated with the other folds
        others = own[~out] * 100 / own[~out].sum()
        proba[out] = calibrate(values[~out], y[rows][~out], others).probabilities(values[out])
    right = np.average(proba.argmax(axis=1) == y[rows], weights=own)
    assert model.oob_score_ == pytest.approx(right)
    assert model.oob_score_ != pytest.approx((proba.argmax(axis=1) == y[rows]).mean(), abs=1e-4)


# --- what must not matter


@BOTH
def test_jobs_change_nothing(cls, table):
    """Fits side by side in processes are the fits one after the other, to the last bit."""
    X, y = table
    a, b = (sdist(cls, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert_array_equal(a.metric_.components, b.metric_.components)
    assert_array_equal(a.metric_.diagonal, b.metric_.diagonal)
    assert_array_equal(a.path_, b.path_)
    if cls is SDistClassifier:
        assert a.rule_ == b.rule_
        assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_the_same_seed_gives_the_same_model(table):
    X, y = table
    a, b, c = (sdist(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    assert_array_equal(a.path_, b.path_)
    assert not np.array_equal(a.path_["loss"], c.path_["loss"])
    assert not np.array_equal(a._crossfit.folds[0].kept, c._crossfit.folds[0].kept)


@BOTH
def test_rows_without_weight_are_as_if_removed(cls, table):
    """They are in no fold, not scored, and no neighbours."""
    X, y = table
    weight = np.where(np.random.default_rng(0).random(150) < 0.2, 0.0, 1.0)
    kept = weight > 0
    a = sdist(cls).fit(X, y, sample_weight=weight)
    b = sdist(cls).fit(X[kept], y[kept])
    assert_array_equal(a.path_, b.path_)
    assert_array_equal(a.transform(X), b.transform(X))
    assert_array_equal(a.stability_, b.stability_)
    if cls is SDistClassifier:
        assert a.oob_score_ == b.oob_score_
        assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_permuted_columns(share, table):
    """Columns go by their names wherever they stand."""
    X, y = table
    order = np.array([3, 1, 5, 0, 4, 2])
    a = sdist(start_share=share).fit(X, y)
    b = sdist(start_share=share).fit(X[:, order], y)
    assert_allclose(
        b.pair_distance(X[:75][:, order], X[75:][:, order]), a.pair_distance(X[:75], X[75:]),
        rtol=1e-6,
    )  # fmt: skip
    assert_allclose(b.feature_importances_, a.feature_importances_[order], rtol=1e-6)
    assert_array_equal(b.stability_, a.stability_[order])
    assert_allclose(b.predict_proba(X[:, order]), a.predict_proba(X), atol=1e-6)


def test_swapped_labels(table):
    X, y = table
    a, b = sdist().fit(X, y), sdist().fit(X, 1 - y)
    assert_allclose(a.transform(X), b.transform(X), atol=1e-12)
    assert_allclose(a.predict_proba(X), b.predict_proba(X)[:, ::-1], atol=1e-6)
    assert a.oob_score_ == b.oob_score_


def test_three_classes():
    """Folds, averages and choices are those of any number of classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 50)
    X = rng.normal(size=(150, 5))
    X[:, 3] += 3 * (y == "b") - 3 * (y == "c")
    model = sdist().fit(X, y)
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert model.oob_score_ > 0.85
    assert model.stability_[3] == 1.0
    for fold in model._crossfit.folds:
        assert {c: int((y[fold.left_out] == c).sum()) for c in "abc"} == {
            "a": pytest.approx(50 / 3, abs=1), "b": pytest.approx(50 / 3, abs=1),
            "c": pytest.approx(50 / 3, abs=1),
        }  # fmt: skip


# --- given starts


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_a_start_metric_is_taken_as_it_is(n_averaged, table, fitted):
    """Its terms keep their own constants on other rows; the distances change by a factor."""
    X, y = table
    params = {"init": fitted.metric_, "oob_gate": 1e6, "start_share": 0.0}
    kept = sdist(SDist, n_averaged=n_averaged, **params).fit(X[40:], y[40:])
    assert kept.best_iter_ == 0
    factor = squared(kept, X[:75], X[75:]) / squared(fitted, X[:75], X[75:])
    assert_allclose(factor, factor[0], rtol=1e-9)
    assert kept.start_share_ == 0.0
    assert kept._crossfit.fits[0].path.start.index.size


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_a_start_matrix_stays_where_nothing_is_accepted(n_averaged, table):
    X, y = table
    W = np.diag([1.0, 0, 0, 0, 0, 5.0])
    model = sdist(SDist, init=W, oob_gate=1e6, start_share=0.0, n_averaged=n_averaged).fit(X, y)
    found = dict(zip(model.metric_.columns, np.diag(model.metric_.matrix())))
    assert set(found) == {(0,), (5,)}
    assert found[5,] / found[0,] == pytest.approx(5.0)


# --- heavy tails


def with_outlier(table, value=1e6):
    X, y = table
    X = X.copy()
    X[0, 4] = value
    return X, y


def test_one_value_far_out_owns_the_distance_only_without_clipping(table):
    """Its row has a hundredth of the variance of 150 rows with a clip, a sixth without."""
    X, y = with_outlier(table)
    share = {}
    for clip in (3.0, None):
        rows = sdist(SDist, clip=clip, start_share=1.0).fit(X, y).transform(X)
        away = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        share[clip] = away[0] / away.sum()
    assert share[3.0] < 0.02
    assert share[None] > 0.15


def test_a_clipped_column_stays_a_small_one(table):
    """It is scaled with its outlier and not again: the clip bounds it, and it weighs little."""
    X, _ = with_outlier(table, 300.0)
    clipped, free = (Scaling.of(X, True, clip).transposed(X).T[:, 4] for clip in (3.0, None))
    assert clipped[0] == 3.0
    assert free[0] > 11
    assert_array_equal(clipped[1:], free[1:])
    assert clipped.var() < 0.2
    assert free.var() == pytest.approx(1.0)


@pytest.mark.parametrize("values", [[1e4], [-1e6], [1e4, 1e12], [3e200]])
def test_a_mistyped_value_leaves_the_column_to_the_others(values, table):
    """Nothing would be left of it: the deviation is that of the other rows."""
    X, y = table
    wrong = X.copy()
    wrong[: len(values), 4] = values
    found, expected = Scaling.of(wrong, True, 3.0), Scaling.of(X, True, 3.0)
    assert_allclose(found.scale, expected.scale, rtol=0.05)
    assert_allclose(found.center, expected.center, atol=0.05)
    scaled = found.transposed(wrong)[4]
    assert_array_equal(np.abs(scaled[: len(values)]), 3.0)
    away = (scaled**2 - (scaled**2).mean()) ** 2  # nor does it own the square of the column
    assert away[0] / away.sum() < 0.5
    model, clean = (sdist(SDist).fit(rows, y) for rows in (wrong, X))
    assert model.metric_.terms[0].columns == clean.metric_.terms[0].columns


def test_rare_values_are_no_mistakes():
    """Where all others are one value, or the rare ones not that few, they are what there is."""
    rng = np.random.default_rng(0)
    X = np.zeros((200, 2))
    X[:2, 0] = 1.0
    X[:, 1] = rng.normal(0, 0.001, 200) + (np.arange(200) < 8)
    found, free = (Scaling.of(X, True, clip) for clip in (3.0, None))
    assert_array_equal(found.scale, free.scale)


@pytest.mark.parametrize(("clip", "moved"), [(3.0, False), (None, True)])
def test_a_query_far_out_is_not_everything(clip, moved, table):
    """A new row with one wild value: its distances are bounded with a clip, endless without."""
    X, y = table
    model = sdist(SDist, clip=clip, start_share=1.0).fit(X, y)
    wild = X[:1].copy()
    wild[0, 4] = 1e6
    away = model.pair_distance(np.repeat(wild, 149, axis=0), X[1:])
    usual = model.pair_distance(np.repeat(X[:1], 149, axis=0), X[1:])
    assert ((away / usual).mean() > 100) == moved
    assert ((away / usual).mean() < 3) == (not moved)


# --- missing values


NAMES = ["age", "income", "height", "weight", "pulse", "dose"]


@pytest.fixture(scope="module")
def gaps(table):
    """Values of column 4 are missing half of the time where the class is 1, and seldom else."""
    X, y = table
    rng = np.random.default_rng(1)
    X = X.copy()
    X[rng.random(150) < np.where(y == 1, 0.7, 0.05), 4] = np.nan
    X[rng.random(150) < 0.1, 0] = np.nan
    return X, y


@BOTH
def test_missing_values_are_imputed_inside(cls, gaps):
    """That a value is missing is a column, named after its own, and it tells the classes apart."""
    frame = pd.DataFrame(gaps[0], columns=NAMES)
    model = sdist(cls, missing="impute").fit(frame, gaps[1])
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == NAMES
    assert model.metric_.n_features == 6
    assert model.metric_.imputation.indicators == (0, 4)
    names = {name for term in model.metric_.terms for name in term.name.split("*")}
    assert "missing(pulse)" in names
    assert "missing(pulse)^2" not in names  # 0 and 1 are their own squares
    assert model.feature_importances_.shape == model.stability_.shape == (6,)
    assert model.stability_[4] == 1.0
    assert_allclose(model.feature_importances_.sum(), 1.0)
    if cls is SDistClassifier:
        assert model.oob_score_ > 0.75


def test_values_missing_at_random_are_only_filled(table):
    """Indicators that say nothing about the classes are no candidates: medians by hand do it."""
    X, y = table
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)
    by_hand = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    a, b = sdist(missing="impute").fit(X, y), sdist().fit(by_hand, y)
    assert len(a.metric_.imputation.indicators) == 6
    assert_array_equal(a.transform(X), b.transform(by_hand))
    assert_array_equal(a.predict_proba(X), b.predict_proba(by_hand))
    assert_array_equal(a.feature_importances_, b.feature_importances_)


@pytest.mark.parametrize("params", [{"start_share": 1.0}, {"init": "identity", "max_iter": 1}])
def test_the_plain_distance_knows_no_indicators(gaps, params):
    """Two rows are not close because the same values were lost."""
    X, y = gaps
    model = sdist(SDist, missing="impute", oob_gate=1e9, **params).fit(X, y)
    assert [term.name for term in model.metric_.terms] == [f"x{j}" for j in range(6)]
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    assert_allclose(model.transform(X), model.transform(filled))


def test_a_metric_with_indicators_can_be_started_from(gaps):
    """Its columns are those of the input, and its indicators may stand in other places."""
    X, y = gaps
    first = sdist(SDist, missing="impute").fit(X, y)
    assert any("missing(x4)" in term.name for term in first.metric_.terms)
    again = sdist(SDist, missing="impute", init=first.metric_, oob_gate=1e9).fit(X, y)
    assert {term.name for term in again.metric_.terms} == {t.name for t in first.metric_.terms}
    more = X.copy()
    more[:3, 1] = np.nan  # one more indicator, before that of x4
    moved = sdist(SDist, missing="impute", init=first.metric_, oob_gate=1e9).fit(more, y)
    assert {term.name for term in moved.metric_.terms} == {t.name for t in first.metric_.terms}


@pytest.mark.parametrize("kind", ["metric", "matrix"])
def test_a_start_over_complete_columns_where_values_are_missing(gaps, table, kind):
    X, y = gaps
    start = np.eye(6) if kind == "matrix" else sdist(SDist).fit(*table).metric_
    model = sdist(SDist, missing="impute", init=start, oob_gate=1e9).fit(X, y)
    assert not any("missing" in term.name for term in model.metric_.terms)
    assert model.transform(X).shape[0] == len(X)


def test_a_start_that_needs_indicators_is_told_so(gaps, table):
    metric = sdist(SDist, missing="impute").fit(*gaps).metric_
    with pytest.raises(ValueError, match=r"whether .*'x4'.* is missing: set missing"):
        sdist(SDist, init=metric).fit(*table)


def test_indicators_alone_can_be_learned_from():
    """Where every value is the same or missing, that it is missing is all there is."""
    y = np.repeat([0, 1], 40)
    X = np.where((np.random.default_rng(0).random((80, 2)) < 0.8 * y[:, None]), np.nan, 1.0)
    model = sdist(missing="impute").fit(X, y)
    assert model.score(X, y) > 0.8


@BOTH
def test_missing_where_nothing_was_missing_in_training(cls, gaps):
    """Columns that were complete are filled with their medians in new rows."""
    X, y = gaps
    model = sdist(cls, missing="impute").fit(X, y)
    fresh = np.where(np.isnan(X), 7.0, X)[:20]
    missing, filled = fresh.copy(), fresh.copy()
    missing[:, 1:4] = np.nan
    filled[:, 1:4] = np.median(X[:, 1:4], axis=0)
    assert_array_equal(model.transform(missing), model.transform(filled))
    nothing = np.full((2, 6), np.nan)
    assert np.isfinite(model.transform(nothing)).all()
    if cls is SDistClassifier:
        assert_array_equal(model.predict_proba(missing), model.predict_proba(filled))
        assert_allclose(model.predict_proba(nothing).sum(axis=1), 1.0)
        assert len(list(model.staged_predict(missing))) == len(list(model.staged_transform(fresh)))


@BOTH
def test_no_gaps_no_indicators(cls, table):
    """Then it is the same model as without."""
    X, y = table
    a, b = sdist(cls, missing="impute").fit(X, y), sdist(cls).fit(X, y)
    assert_array_equal(a.transform(X), b.transform(X))
    assert a.metric_.columns == b.metric_.columns
    assert np.isfinite(a.transform(np.full((1, 6), np.nan))).all()


@BOTH
def test_gaps_survive_pickling_and_frames(cls, gaps):
    X, y = gaps
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(150) + 5)
    model = sdist(cls, missing="impute").set_output(transform="pandas").fit(frame, y)
    out = model.transform(frame)
    assert out.columns.tolist() == [f"sdist{i}" for i in range(model.metric_.rank)]
    assert out.index.equals(frame.index)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.transform(frame).to_numpy(), out.to_numpy())
    metric = pickle.loads(pickle.dumps(model.metric_))
    assert_array_equal(metric.transform(X), out.to_numpy())
    assert_array_equal(twin.stability_, model.stability_)
    if cls is SDistClassifier:
        assert_array_equal(twin.predict_proba(frame), model.predict_proba(frame))
        assert_array_equal(twin.kneighbors(frame)[1], model.kneighbors(frame)[1])


def test_a_column_that_is_missing_everywhere(table):
    """Nothing to learn from, nor from its indicator: both are constant."""
    X, y = table
    wider = np.insert(X, 3, np.nan, axis=1)
    with pytest.warns(UserWarning, match="Constant column"):
        model = sdist(missing="impute").fit(wider, y)
    assert model.feature_importances_[3] == 0
    assert_allclose(model.transform(wider), sdist().fit(X, y).transform(X), atol=1e-12)


def test_rows_without_weight_do_not_shape_the_medians(gaps):
    X, y = gaps
    weight = np.where(np.arange(150) < 30, 0.0, 1.0)
    wild = X.copy()
    wild[:30] = 1e9
    a = sdist(missing="impute").fit(wild, y, sample_weight=weight)
    b = sdist(missing="impute").fit(X[30:], y[30:])
    assert_array_equal(a.metric_.imputation.fill, b.metric_.imputation.fill)
    assert_array_equal(a.transform(X), b.transform(X))


# --- pickles


@BOTH
def test_a_pickle_is_the_same_model(cls, table):
    """With its paths, folds and choices, and ready for another fit."""
    X, y = table
    model = sdist(cls).fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    assert_array_equal(twin.transform(X), model.transform(X))
    assert_array_equal(twin.path_, model.path_)
    assert_array_equal(list(twin.staged_transform(X))[-1], list(model.staged_transform(X))[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin.fit(X, y)
    assert_array_equal(twin.transform(X), model.transform(X))
