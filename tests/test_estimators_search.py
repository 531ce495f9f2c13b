"""``SDistClassifierCV``: what it searches, what it must not see, and what it hands over."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fits import searched
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricboost import SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_madelon, make_xor
from metricboost.model.readouts import Margin
from metricboost.training.choosing import out_of_fold
from metricboost.training.fits import Variant
from metricboost.training.tuning import Limits, cheap_variants

GRID = {"max_degree": [1, 2]}


def search(**params):
    defaults = {"param_grid": GRID, "cv": 3, "random_state": 0}
    base = SDistClassifier(max_iter=15, n_neighbors=5)
    return SDistClassifierCV(**{"estimator": base, **defaults, **params})


def quick(**params):
    """A search with the margin only, for tests that do not depend on the readouts."""
    limits = {"max_iter": 3, "n_neighbors": 3, "classifier": "margin", **params.pop("limits", {})}
    return search(
        **{"estimator": SDistClassifier(**limits), "param_grid": {"max_degree": [2]}, **params}
    )


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
    expected_failed_checks=lambda _: dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        "bags are drawn from row numbers",
    ),
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
    """Steps, penalties, sizes, recurrences and shares are tried without more fits."""
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
    assert repr(model.readout_) == fitted.best_params_["readout"]
    assert model.start_share_ == fitted.best_params_["start_share"]
    assert len(model.model_.history.fits) == 3
    X = xor[1][0]
    assert_array_equal(fitted.transform(X), model.transform(X))
    assert_array_equal(fitted.feature_importances_, model.feature_importances_)
    assert_array_equal(fitted.kneighbors(X[:3])[1], model.kneighbors(X[:3])[1])


def test_a_fold_knows_nothing_of_the_labels_it_leaves_out(xor):
    """Other labels of the rows left out change neither the fit nor the evidence for these rows."""
    X, y = xor[0]
    y = np.asarray(y).copy()
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    out = splits[0][1]
    other = y.copy()
    other[out] = np.random.default_rng(0).permutation(y[out])
    found = []
    for labels in (y, other):
        (tried,) = searched(search(cv=splits, param_grid={"max_degree": [2]}), X, labels)
        rows, evidence = out_of_fold(tried.crossfit, Variant(), [Margin(5)])
        assert_array_equal(rows[: len(out)], out)
        found.append(evidence[Margin(5)][: len(out)])
    assert_array_equal(found[0], found[1])


def test_any_scorer(xor):
    X, y = xor[0]
    model = search(scoring="roc_auc", param_grid={"max_degree": [2]}).fit(X, y)
    (tried,) = searched(model, X, y)
    best, reading = tried.found[model.best_index_], model.best_estimator_.model_.the_reading
    assert repr(best.readout) == model.best_params_["readout"] == repr(reading.readout)
    rows, evidence = out_of_fold(tried.crossfit, best.variant, [reading.readout])
    odds = reading.calibration.log_odds(evidence[reading.readout])
    sizes = [len(fold.left_out) for fold in tried.crossfit.folds]
    parts = np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1])
    labels = tried.crossfit.labels[rows]
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
    """The decision function is the mean of the log odds of the models."""
    X = xor[1][0]
    models = fitted.estimators_
    assert models[0].model_ is fitted.best_estimator_.model_ is fitted.model_.best
    assert 1 < len(models) <= 6
    mean = np.mean([model.decision_function(X) for model in models], axis=0)
    assert_allclose(fitted.decision_function(X), mean)
    assert_allclose(fitted.predict_proba(X)[:, 1], 1 / (1 + np.exp(-mean)))
    assert_allclose(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)))
    assert_array_equal(fitted.predict(X), fitted.classes_[(mean > 0).astype(int)])


def test_blended_models_are_of_different_kinds_and_none_is_clearly_worse(fitted):
    kinds = [
        (model.max_degree, type(model.readout_), np.ceil(2 * model.start_share_))
        for model in fitted.estimators_
    ]
    # The second model is the choice of a fit without a search, which may be of any kind.
    assert len(set(kinds)) >= len(kinds) - 1
    results = fitted.cv_results_
    folds = [results[f"split{j}_test_score"][fitted.best_index_] for j in range(3)]
    least = fitted.best_score_ - np.std(folds, ddof=1) / np.sqrt(3)
    readouts = {repr(model.readout_) for model in fitted.estimators_}
    entries = zip(results["params"], results["mean_test_score"])
    assert readouts <= {params["readout"] for params, score in entries if score >= least}


@pytest.mark.parametrize("alone", [{"n_blended": 1}, {"one_standard_error": True}])
def test_one_model_predicts_by_itself(alone, xor):
    model = search(**alone).fit(*xor[0])
    X = xor[1][0]
    (only,) = model.estimators_
    assert only.model_ is model.best_estimator_.model_
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


def test_threads_change_nothing(xor):
    one, two = (quick(n_jobs=n).fit(*xor[0]) for n in (1, 2))
    assert one.best_params_ == two.best_params_
    assert_array_equal(one.predict_proba(xor[1][0]), two.predict_proba(xor[1][0]))


def test_a_random_part_of_the_grid(xor):
    grid = {"max_degree": [1, 2], "oob_gate": [1.0, 2.0], "clip": [2.0, 3.0]}
    model = quick(param_grid=grid, n_iter=2).fit(*xor[0])
    tried = {tuple(p[name] for name in grid) for p in model.cv_results_["params"]}
    assert len(tried) == 2


@pytest.mark.parametrize("classifier", ["margin", "hull", "knn", "kernel", "mixture"])
def test_the_estimators_classifier_limits_the_readouts(classifier, xor):
    base = SDistClassifier(max_iter=8, n_neighbors=5, classifier=classifier)
    model = search(estimator=base, param_grid={"max_degree": [2]}).fit(*xor[0])
    kinds = {readout.split("(")[0] for readout in model.cv_results_["param_readout"]}
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
    with pytest.raises(ValueError, match=r"has 1 rows of class .* more folds"):
        search(cv=2).fit(X[few], np.asarray(y)[few])


def test_progress(xor, capsys):
    search(verbose=1, param_grid={"max_degree": [1]}).fit(*xor[0])
    shown = capsys.readouterr().err
    assert "fits" in shown
    assert "3/3" in shown


def test_penalties_of_the_paper_cut_paths(xor):
    """Penalties that cut no path, or cut the paths where another penalty does, are not tried."""
    (one,) = searched(search(param_grid={"max_degree": [2]}), *xor[0])
    crossfit = one.crossfit
    tried = cheap_variants(crossfit, Limits())
    assert len(tried) == len(set(tried))
    cuts = [v for v in tried if v.penalty is not None]
    for variant in cuts:
        metrics = crossfit.fold_metrics(variant)
        assert any(len(m.columns) for m in metrics)


def test_clone_keeps_parameters():
    model = search(scoring="error", n_iter=3)
    assert clone(model).get_params().keys() == model.get_params().keys()


# --- what the estimator holds


@pytest.mark.parametrize(
    ("limit", "kept_to"),
    [
        ({"start_share": 0.0}, lambda m: m.start_share_ == 0),
        ({"start_share": 0.3}, lambda m: m.start_share_ == 0.3),
        ({"start_share": 1.0}, lambda m: m.start_share_ == 1),
        ({"prune": 2}, lambda m: (m.feature_importances_ > 0).sum() == 2),
        ({"prune": None}, lambda m: m.prune is None),
    ],
)
def test_what_the_estimator_is_given_is_kept_to(limit, kept_to):
    """Every column matters here, so that the search alone would take all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    y = (X.sum(axis=1) + rng.normal(size=150) > 0).astype(int)
    model = quick(limits={"max_iter": 15, **limit}).fit(X, y)
    assert all(kept_to(one) for one in model.estimators_)
    if limit == {"prune": None}:
        tried = model.cv_results_["params"]
        assert all(params["recurrences"] == 1 and params["size"] is None for params in tried)


def test_the_estimators_seed_is_used(xor):
    a, b = (quick(limits={"random_state": 3}, random_state=None).fit(*xor[0]) for _ in range(2))
    assert_array_equal(a.decision_function(xor[1][0]), b.decision_function(xor[1][0]))


def test_a_second_fit_forgets_the_first(xor):
    pd = pytest.importorskip("pandas")
    X, y = xor[0]
    model = quick().fit(pd.DataFrame(X, columns=list("abcdefgh")), y)
    assert hasattr(model, "feature_names_in_")
    model.fit(X[:, :5], y)
    assert not hasattr(model, "feature_names_in_")
    assert model.metric_.feature_names == [f"x{j}" for j in range(5)]
    model.set_params(refit=False).fit(X, y)
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model, "estimators_")


def test_the_search_warns_as_a_fit_does(xor):
    X, y = xor[0]
    with pytest.warns(UserWarning, match="Constant column 'x8' is left out") as found:
        quick().fit(np.c_[X, np.ones(len(X))], y)
    assert {warning.filename for warning in found} == {__file__}


# --- folds


@pytest.fixture(scope="module")
def groups():
    return np.arange(200) % 4


def test_folds_that_number_all_rows_stay_what_they_are(xor, groups):
    """Rows without weight are in no fold, and do not change the folds of other rows."""
    X, y = xor[0]
    weight = np.ones(200)
    weight[::5] = 0
    by_splitter = quick(cv=PredefinedSplit(groups)).fit(X, y, weight)
    by_hand = quick(cv=list(PredefinedSplit(groups).split())).fit(X, y, weight)
    dropped = quick(cv=PredefinedSplit(groups[weight > 0])).fit(X[weight > 0], y[weight > 0])
    for other in (by_hand, dropped):
        assert_array_equal(by_splitter.decision_function(X), other.decision_function(X))


def test_a_fold_without_weight_is_left_away(xor, groups):
    X, y = xor[0]
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    model = quick(cv=splits).fit(X, y, (groups != 0).astype(float))
    assert model.n_splits_ == 3
    as_masks = [tuple(np.isin(np.arange(200), rows) for rows in split) for split in splits]
    assert quick(cv=as_masks).fit(X, y).n_splits_ == 4


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (ShuffleSplit(1, random_state=0), "cv has 1 folds .* at least 2"),
        ([], "cv has 0 folds .* pass a list"),
        ([(np.arange(100), [])] * 2, "cv has 0 folds"),
        ([(np.arange(100), np.arange(100, 230))] * 2, "not integers from 0 to 199"),
        ([(np.arange(100.0), np.arange(100, 200))] * 2, "not integers from 0 to 199"),
        (LeaveOneGroupOut(), r"list\(splitter.split\(X, y, groups\)\)"),
        (KFold(2), "stratified folds"),
        (150, "the largest class has .* rows: use at most"),
    ],
)
def test_folds_that_cannot_be_used(cv, message, xor):
    order = np.argsort(xor[0][1], kind="stable")
    with pytest.raises(ValueError, match=message):
        quick(cv=cv).fit(xor[0][0][order], xor[0][1][order])


def test_too_few_rows_for_any_folds(xor):
    X, y = xor[0]
    y = y.copy()
    y[:2] = 7
    with pytest.raises(ValueError, match=r"of class 7 .* has 2 rows in all, and a search needs 3"):
        quick().fit(X, y)


# --- scores


def test_a_score_that_is_undefined_in_a_fold(xor):
    X, _ = xor[0]
    y = np.zeros(200, dtype=int)
    y[:3] = 1
    with pytest.raises(ValueError, match="undefined in a fold for every candidate"):
        quick(cv=5, scoring="roc_auc").fit(X, y)
    with pytest.raises(ValueError, match="neg_log_loss failed on a fold with the classes 0"):
        quick(cv=5, scoring="neg_log_loss").fit(X, y)


def test_undefined_scores_rank_last(xor):
    X, y = xor[0]

    def picky(estimator, rows, labels):
        p = estimator.predict_proba(rows)
        return np.nan if p[0, 0] > 0.5 else float(p.mean())

    results = quick(cv=2, scoring=picky).fit(X, y).cv_results_
    undefined = np.isnan(results["mean_test_score"])
    assert 0 < undefined.sum() < len(undefined)
    assert (
        results["rank_test_score"][undefined].min() > results["rank_test_score"][~undefined].max()
    )


def test_scorers_count_rows_by_their_weights(xor):
    """Rows that weigh next to nothing change no score, by our own measure or scikit-learn's."""
    X, y = xor[0]
    wrong = np.arange(200) % 3 == 0
    y = np.where(wrong, y[::-1], y)
    weight = np.where(wrong, 1e-9, 1.0)
    ours = quick(scoring="error").fit(X, y, weight)
    theirs = quick(scoring="accuracy").fit(X, y, weight)
    assert_allclose(1 + ours.best_score_, theirs.best_score_, atol=1e-6)


def test_a_wrong_score_costs_no_fits(xor, monkeypatch):
    monkeypatch.setattr("metricboost.training.searching.learn_timed", None)
    with pytest.raises(ValueError, match="nonsense"):
        search(scoring="nonsense").fit(*xor[0])


def test_no_threads(xor):
    with pytest.raises(ValueError, match=r"'n_jobs' parameter of SDistClassifierCV.*Got 0"):
        quick(n_jobs=0).fit(*xor[0])


def test_an_empty_grid(xor):
    with pytest.raises(ValueError, match="param_grid is empty"):
        search(param_grid=[]).fit(*xor[0])


def test_grids_of_different_names(xor):
    model = quick()
    model.set_params(param_grid=[{"max_degree": [1]}, {"clip": [1.5, 3.0]}]).fit(*xor[0])
    results = model.cv_results_
    names = {tuple(sorted(set(p) & {"max_degree", "clip"})) for p in results["params"]}
    assert names == {("max_degree",), ("clip",)}
    assert results["param_clip"].mask.any()
    assert results["param_max_degree"].mask.any()
