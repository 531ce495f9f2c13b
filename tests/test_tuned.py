"""``SDistClassifierCV``: what it searches, what it must not see, and what it hands over."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricboost import SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_madelon, make_xor
from metricboost.selection.choosing import out_of_fold
from metricboost.selection.crossfit import Variant
from metricboost.selection.readouts import Margin
from metricboost.selection.tuning import cheap_variants

GRID = {"max_degree": [1, 2]}


def search(**params):
    defaults = {"param_grid": GRID, "cv": 3, "random_state": 0}
    base = SDistClassifier(max_iter=15, n_neighbors=5)
    return SDistClassifierCV(**{"estimator": base, **defaults, **params})


@pytest.fixture(scope="module")
def xor():
    X, y = make_xor(400, 8, informative=2, random_state=1)
    return (X[:200], y[:200]), (X[200:], y[200:])


@pytest.fixture(scope="module")
def fitted(xor):
    return search().fit(*xor[0])


@parametrize_with_checks(
    [
        SDistClassifierCV(
            SDistClassifier(max_iter=3, n_neighbors=3, classifier="margin"), {"clip": [3.0]}, cv=3
        )
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "bags are drawn from row numbers"
    },
)
def test_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def test_finds_the_degree(fitted, xor):
    assert fitted.best_params_["max_degree"] == 2
    assert fitted.score(*xor[1]) > 0.75


def test_results_are_those_of_a_search(fitted):
    results = fitted.cv_results_
    scores = np.stack([results[f"split{j}_test_score"] for j in range(3)])
    assert_allclose(results["mean_test_score"], scores.mean(axis=0))
    assert_allclose(results["std_test_score"], scores.std(axis=0))
    best = int(np.argmax(results["mean_test_score"]))
    assert fitted.best_index_ == best
    assert results["rank_test_score"][best] == 1
    assert fitted.best_score_ == results["mean_test_score"][best]
    assert results["params"][best] == fitted.best_params_
    assert_array_equal(results["param_max_degree"], [p["max_degree"] for p in results["params"]])


def test_a_few_dozen_variants_of_each_fit(fitted):
    """Stops, penalties, sizes, recurrences and shares, none of which needs a fit."""
    variants = {
        tuple(p[k] for k in ("start_share", "recurrences", "size", "steps", "penalty"))
        for p in fitted.cv_results_["params"]
    }
    assert len(variants) >= 10
    for name in ("size", "steps"):
        assert len({p[name] for p in fitted.cv_results_["params"]}) > 2


def test_the_best_estimator_is_the_average_of_its_folds(fitted, xor):
    model = fitted.best_estimator_
    assert isinstance(model, SDistClassifier)
    assert repr(model.rule_) == fitted.best_params_["rule"]
    assert model.start_share_ == fitted.best_params_["start_share"]
    assert len(model._crossfit.fits) == 3
    X = xor[1][0]
    assert_array_equal(fitted.transform(X), model.transform(X))
    assert_array_equal(fitted.feature_importances_, model.feature_importances_)
    assert_array_equal(fitted.kneighbors(X[:3])[1], model.kneighbors(X[:3])[1])


def test_a_fold_knows_nothing_of_the_labels_it_leaves_out(xor):
    """With other labels on the rows left out, a fold learns the same and says the same of them."""
    X, y = xor[0]
    y = np.asarray(y).copy()
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    out = splits[0][1]
    other = y.copy()
    other[out] = np.random.default_rng(0).permutation(y[out])
    found = []
    for labels in (y, other):
        model = search(cv=splits, param_grid={"max_degree": [2]}).fit(X, labels)
        crossfit = model.best_estimator_._crossfit
        rows, evidence = out_of_fold(crossfit, Variant(), [Margin(5)])
        assert_array_equal(rows[: len(out)], out)
        found.append(evidence[Margin(5)][: len(out)])
    assert_array_equal(found[0], found[1])


def test_any_scorer(xor):
    X, y = xor[0]
    model = search(scoring="roc_auc", param_grid={"max_degree": [2]}).fit(X, y)
    candidate = model.best_estimator_
    rows, evidence = out_of_fold(candidate._crossfit, candidate._variant, [candidate.rule_])
    odds = candidate._candidate.calibration.log_odds(evidence[candidate.rule_])
    sizes = [len(fold.left_out) for fold in candidate._crossfit.folds]
    parts = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
    labels = candidate._crossfit.labels[rows]
    aucs = [roc_auc_score(labels[p], odds[p, 1] - odds[p, 0]) for p in parts]
    assert_allclose(model.best_score_, np.mean(aucs), atol=1e-12)


@pytest.mark.parametrize("scoring", ["error", "loss", "accuracy", "balanced_accuracy"])
def test_scores_by_name(scoring, xor):
    model = search(scoring=scoring, param_grid={"max_degree": [2]}).fit(*xor[0])
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    if scoring == "error":
        assert model.best_score_ <= 0
        assert_allclose(model.best_estimator_.oob_score_, 1 + model.best_score_, atol=0.02)


def test_predictions_blend_the_models(fitted, xor):
    """The mean of their log odds; probabilities and classes follow from it."""
    X = xor[1][0]
    models = fitted.estimators_
    assert models[0] is fitted.best_estimator_
    assert 1 < len(models) <= 6
    mean = np.mean([model.decision_function(X) for model in models], axis=0)
    assert_allclose(fitted.decision_function(X), mean)
    assert_allclose(fitted.predict_proba(X)[:, 1], 1 / (1 + np.exp(-mean)))
    assert_allclose(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)))
    assert_array_equal(fitted.predict(X), fitted.classes_[(mean > 0).astype(int)])


def test_blended_models_are_of_different_kinds_and_none_is_clearly_worse(fitted):
    kinds = [
        (model.max_degree, type(model.rule_), np.ceil(2 * model.start_share_))
        for model in fitted.estimators_
    ]
    assert len(set(kinds)) == len(kinds)
    results = fitted.cv_results_
    folds = [results[f"split{j}_test_score"][fitted.best_index_] for j in range(3)]
    least = fitted.best_score_ - np.std(folds, ddof=1) / np.sqrt(3)
    rules = {repr(model.rule_) for model in fitted.estimators_}
    close = [p["rule"] for p, s in zip(results["params"], results["mean_test_score"]) if s >= least]
    assert rules <= set(close)


@pytest.mark.parametrize("alone", [{"n_blended": 1}, {"one_standard_error": True}])
def test_one_model_predicts_by_itself(alone, xor):
    model = search(**alone).fit(*xor[0])
    X = xor[1][0]
    assert model.estimators_ == [model.best_estimator_]
    for method in ("predict", "predict_proba", "decision_function"):
        assert_allclose(getattr(model, method)(X), getattr(model.best_estimator_, method)(X))


def test_more_classes_are_blended_too():
    X, y = load_iris(return_X_y=True)
    model = search().fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert model.decision_function(X).shape == p.shape == (150, 3)
    assert_array_equal(model.predict(X), p.argmax(axis=1))


def test_one_standard_error_is_sparser(xor):
    X, y = make_madelon(240, 30, n_informative=3, n_redundant=0, random_state=0)
    plain, sparse = (search(one_standard_error=rule).fit(X, y) for rule in (False, True))
    size = [m.cv_results_["mean_n_variables"][m.best_index_] for m in (plain, sparse)]
    assert size[1] <= size[0]
    folds = [plain.cv_results_[f"split{j}_test_score"][plain.best_index_] for j in range(3)]
    error = np.std(folds, ddof=1) / np.sqrt(3)
    assert sparse.best_score_ >= plain.best_score_ - error


def test_processes_change_nothing(xor):
    one, two = (search(n_jobs=n).fit(*xor[0]) for n in (1, 2))
    assert one.best_params_ == two.best_params_
    assert_array_equal(one.predict_proba(xor[1][0]), two.predict_proba(xor[1][0]))


def test_a_random_part_of_the_grid(xor):
    grid = {"max_degree": [1, 2], "oob_gate": [1.0, 2.0], "clip": [2.0, 3.0]}
    model = search(param_grid=grid, n_iter=2).fit(*xor[0])
    tried = {tuple(p[name] for name in grid) for p in model.cv_results_["params"]}
    assert len(tried) == 2


@pytest.mark.parametrize("classifier", ["margin", "hull", "knn", "kernel", "mixture"])
def test_the_estimators_classifier_limits_the_readouts(classifier, xor):
    base = SDistClassifier(max_iter=8, n_neighbors=5, classifier=classifier)
    model = search(estimator=base, param_grid={"max_degree": [2]}).fit(*xor[0])
    kinds = {rule.split("(")[0] for rule in model.cv_results_["param_rule"]}
    expected = {"knn": "Votes"}.get(classifier, classifier.capitalize())
    assert kinds == {expected}


def test_more_classes_and_missing_values():
    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[::7, 1] = np.nan
    base = SDistClassifier(max_iter=10, n_neighbors=5, missing="impute")
    model = search(estimator=base).fit(X, load_iris().target_names[y])
    assert model.predict_proba(X).shape == (150, 3)
    assert model.score(X, load_iris().target_names[y]) > 0.9


def test_without_refit(xor):
    model = search(refit=False).fit(*xor[0])
    assert not hasattr(model, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False"):
        model.predict(xor[1][0])


def test_mistakes_are_named(xor):
    with pytest.raises(ValueError, match=r"param_grid has prune, start_share: .*max_degree"):
        search(param_grid={"start_share": [0, 1], "prune": [3]}).fit(*xor[0])
    with pytest.raises(ValueError, match="oob_gate"):
        search(param_grid={"oob_gate": ["high"]}).fit(*xor[0])
    X, y = xor[0]
    few = np.r_[np.flatnonzero(y == np.unique(y)[0])[:3], np.flatnonzero(y == np.unique(y)[1])]
    with pytest.raises(ValueError, match=r"leaves class .* with 1 rows to learn from"):
        search(cv=2).fit(X[few], np.asarray(y)[few])


def test_progress(xor, capsys):
    search(verbose=1, param_grid={"max_degree": [1]}).fit(*xor[0])
    shown = capsys.readouterr().err
    assert "fits" in shown
    assert "3/3" in shown


def test_penalties_of_the_paper_cut_paths(xor):
    """Those that cut where none does are not tried twice."""
    crossfit = search(param_grid={"max_degree": [2]}).fit(*xor[0]).best_estimator_._crossfit
    tried = cheap_variants(crossfit)
    assert len(tried) == len(set(tried))
    cuts = [v for v in tried if v.penalty is not None]
    for variant in cuts:
        metrics = crossfit.fold_metrics(variant)
        assert any(len(m.columns) for m in metrics)


def test_clone_keeps_parameters():
    model = search(scoring="error", n_iter=3)
    assert clone(model).get_params().keys() == model.get_params().keys()
