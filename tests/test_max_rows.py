"""Tests of fits from samples (``max_rows``) and of a limit of neighbours (``max_references``)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fits import cross_fitted, new_seed, prepared
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

import metricboost
from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.boosting.screening import screen_pairs
from metricboost.datasets import make_xor
from metricboost.inputs import Imputation
from metricboost.sources import InMemory, quotas
from metricboost.training import folds, learn
from metricboost.training.fitting import fit_model
from metricboost.training.folds import FoldTask
from metricboost.training.pool import RowLimits, pooled
from metricboost.training.run import Run

Array = npt.NDArray[Any]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

#: Two short fits, with a single candidate.
SHORT = {
    "max_iter": 10, "n_averaged": 2, "prune": None, "start_share": 0.0, "classifier": "knn",
    "n_neighbors_predict": 10, "random_state": 0,
}  # fmt: skip
#: Limits with which only a part of a table of 3000 rows is in memory.
PART = {"max_rows": 400, "max_references": 500}


def sdist(**params: Any) -> SDistClassifier:
    return SDistClassifier(**{**SHORT, **params})


def xor(n: int = 6000) -> tuple[Array, Array]:
    """An exclusive or of columns 4 and 7 of 20. float32 represents all values exactly."""
    X, y = make_xor(n, 20, informative=2, random_state=0)[:2]
    return np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32).astype(np.float64), y


X, Y = (part[:3000] for part in xor())
#: The class numbers of Y.
LABELS = np.unique(Y, return_inverse=True)[1]
UNSEEN, Y_UNSEEN = (part[3000:] for part in xor())


@pytest.fixture(scope="module")
def part() -> SDistClassifier:
    """A model that was fitted with the limits ``PART``."""
    return sdist(**PART).fit(X, Y)


def rows_of(model: SDistClassifier) -> Array:
    """The numbers of the training rows among which a model searches for neighbours."""
    return model.model_.rows.numbers


def same_model(found: SDistClassifier, expected: SDistClassifier) -> bool:
    """Whether two models are equal bit for bit."""
    return (
        found.metric_.columns == expected.metric_.columns
        and np.array_equal(found.metric_.components, expected.metric_.components)
        and np.array_equal(rows_of(found), rows_of(expected))
        and np.array_equal(found.predict_proba(UNSEEN), expected.predict_proba(UNSEEN))
    )


# --- fits from samples


@pytest.fixture(scope="module")
def whole() -> SDistClassifier:
    return sdist(max_rows=None).fit(X, Y)


@pytest.mark.parametrize("given", [{"max_rows": 600}, PART, {**PART, "n_averaged": 1}])
def test_a_sample_is_nearly_as_good_as_all_rows(
    whole: SDistClassifier, given: dict[str, Any]
) -> None:
    found = sdist(**given).fit(X, Y)
    assert found.metric_.terms[0].name == whole.metric_.terms[0].name == "x4*x7"
    assert found.score(UNSEEN, Y_UNSEEN) > whole.score(UNSEEN, Y_UNSEEN) - 0.03
    assert abs(found.oob_score_ - found.score(UNSEEN, Y_UNSEEN)) < 0.04
    assert found.class_count_.tolist() == np.bincount(LABELS).tolist()


def test_auto_takes_all_rows_of_a_small_table() -> None:
    few, y = X[:400], Y[:400]
    expected = sdist(max_rows=None, max_references=None).fit(few, y)
    assert same_model(sdist().fit(few, y), expected)
    assert same_model(sdist(max_rows=400, max_references=400).fit(few, y), expected)


def test_the_transformer_takes_samples_too() -> None:
    model = SDist(max_iter=10, n_averaged=2, start_share=0.0, random_state=0, **PART).fit(X, Y)
    assert model.metric_.terms[0].name == "x4*x7"
    assert model.transform(UNSEEN).shape[0] == 3000


def tasks_of(monkeypatch: pytest.MonkeyPatch, fit: Callable[[], Any]) -> list[FoldTask]:
    """The inputs of all fits of folds that a call of ``fit`` runs."""
    seen, learn_fold = [], folds.learn_fold

    def watched(task: FoldTask, *rest: Any) -> Any:
        seen.append(task)
        return learn_fold(task, *rest)

    monkeypatch.setattr(folds, "learn_fold", watched)
    fit()
    return seen


def rare(n: int = 6000) -> tuple[Array, Array]:
    """A table with a rare class, one row in a hundred, which differs in two columns."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, 6)), (np.arange(n) % 100 == 0).astype(int)
    X[y == 1, 1:3] += 2.5
    return X, y


def test_a_rare_class_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of the rare class are in every fit and among the neighbours."""
    X, y = rare()
    model = sdist(max_rows=1000, max_references=1000, class_weight="balanced")
    tasks = tasks_of(monkeypatch, lambda: model.fit(X, y))
    assert len(tasks) == 2
    for task in tasks:
        n = len(task.labels)
        assert np.bincount(task.labels)[1] == 30  # all rows of the class that the fold keeps
        assert 900 < n <= 1000
        assert np.bincount(task.labels, task.weight) / n == pytest.approx([0.5, 0.5])
    assert np.bincount(model.model_.rows.labels).tolist() == [940, 60]
    assert set(np.flatnonzero(y)) <= set(rows_of(model))
    new, labels = rare(6010)
    assert balanced_accuracy_score(labels[6000:], model.predict(new[6000:])) > 0.9
    assert balanced_accuracy_score(y, model.predict(X)) > 0.9


def test_weights_have_the_proportions_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rare()
    model = sdist(max_rows=200, max_references=300)
    for task in tasks_of(monkeypatch, lambda: model.fit(X, y)):
        assert np.bincount(task.labels)[1] == 30
        shares = np.bincount(task.labels, task.weight) / len(task.labels)
        assert shares == pytest.approx([0.99, 0.01])
    assert model.predict_proba(X)[:, 1].mean() < 0.05


@pytest.mark.parametrize("classifier", ["knn", "margin"])
def test_scores_out_of_fold_have_the_proportions_of_the_table(classifier: str) -> None:
    """60 of 310 rows in memory are of the rare class. Without weights the score would be 0.8."""
    y = rare()[1]
    noise = np.random.default_rng(0).normal(size=(6000, 6))
    model = sdist(max_rows=150, max_references=310, classifier=classifier).fit(noise, y)
    assert np.bincount(model.model_.rows.labels)[1] == 60
    assert model.oob_score_ == pytest.approx(0.99, abs=0.01)
    assert model.predict_proba(noise)[:, 1].mean() < 0.05  # 0.2 without weights


def test_column_constants_and_moments_come_from_all_rows() -> None:
    """The constants of a sample of 400 rows would differ by a twentieth of a deviation."""
    model = sdist(**PART, clip=None).fit(X, Y)
    metric = model.metric_
    assert np.allclose(metric.center, X.mean(axis=0), rtol=1e-9, atol=1e-12)
    assert np.allclose(metric.scale, X.std(axis=0), rtol=1e-9)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    products = [(i, term) for i, term in enumerate(metric.columns) if len(term) > 1]
    assert products
    for i, term in products:
        product = Z[:, list(term)].prod(axis=1)
        assert metric.term_center[i] == pytest.approx(product.mean(), rel=1e-9, abs=1e-12)
        assert metric.term_scale[i] == pytest.approx(product.std(), rel=1e-9)


def test_a_column_that_hardly_varies() -> None:
    """Three of 3000 values differ from the others, so the column may be constant in a sample."""
    own = X.copy()
    own[:, 2], own[:, 3] = 0.0, 5.0
    own[[10, 1000, 2500], 2] = 1.0
    own[:, 5] = np.arange(3000) % 3 == 0
    model = sdist(**PART).fit(own, Y)
    assert model.metric_.terms[0].name == "x4*x7"
    assert model.feature_importances_[3] == 0
    assert np.isfinite(model.predict_proba(own)).all()


# --- the same rows in other layouts and orders


def in_a_file(X: Array, folder: Path) -> Array:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


LAYOUTS: dict[str, Callable[[Array, Path], Any]] = {
    "float32": lambda X, _: X.astype(np.float32),
    "Fortran": lambda X, _: np.asfortranarray(X),
    "file": in_a_file,
    "CSR": lambda X, _: sparse.csr_matrix(X),
    "CSC array, float32": lambda X, _: sparse.csc_array(X.astype(np.float32)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_makes_no_difference(part: SDistClassifier, layout: str, tmp_path: Path) -> None:
    table = LAYOUTS[layout](X, tmp_path)
    found = sdist(**PART).fit(table, Y)
    assert same_model(found, part)
    kept = found.model_.rows
    assert kept.values.shape == (len(kept.numbers), len(kept.columns))
    assert np.array_equal(found.predict(table), part.predict(X))


def test_blocks_of_another_size_make_no_difference(part: SDistClassifier) -> None:
    """The rows are the same. Constants differ by rounding, because sums have other blocks."""
    made, limits = prepared(sdist(**PART), X, Y), RowLimits(400, 500, 800)
    assert isinstance(made.pool.source, InMemory)
    source = replace(made.pool.source, block_numbers=3000)
    pool = pooled(source, limits, False, new_seed(SHORT["random_state"]))
    model = fit_model(pool, made.classes, None, made.options, made.choices, Run(), len(X)).model
    assert np.array_equal(model.rows.numbers, rows_of(part))
    assert model.metric.columns == part.metric_.columns
    assert np.allclose(model.embed(UNSEEN), part.transform(UNSEEN), rtol=1e-6, atol=1e-8)


def test_a_seed_chooses_the_rows(part: SDistClassifier) -> None:
    assert same_model(clone(part).fit(X, Y), part)
    other = clone(part).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(rows_of(other), rows_of(part))


def test_fits_learn_from_different_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three samples of 400 of 3000 rows have no row in common."""
    model = sdist(max_rows=400, n_averaged=3)
    seen = [task.rows for task in tasks_of(monkeypatch, lambda: model.fit(X, Y))]
    assert [len(rows) for rows in seen] == [pytest.approx(400, abs=2)] * 3
    assert len(np.unique(np.concatenate(seen))) == sum(map(len, seen))


# --- neighbours


def test_neighbours_have_the_numbers_of_the_table(part: SDistClassifier) -> None:
    """At most ``max_references`` rows are neighbours, with the row numbers of the whole table."""
    distances, rows = part.kneighbors(UNSEEN[:40], 7)
    training = part.model_.rows
    assert np.bincount(training.labels).tolist() == quotas(part.class_count_, 500).tolist()
    assert len(training.numbers) == len(training.labels)
    assert set(rows.ravel()) <= set(training.numbers)
    embedded, table = part.transform(UNSEEN[:40]), part.transform(X)
    expected = np.linalg.norm(embedded[:, None] - table[rows], axis=2)
    assert np.allclose(distances, expected, rtol=1e-9, atol=1e-9)
    every = np.linalg.norm(embedded[:, None] - table[training.numbers], axis=2)
    assert np.allclose(distances, np.sort(every, axis=1)[:, :7], rtol=1e-9, atol=1e-9)
    own = training.numbers[:5]
    assert (part.kneighbors(X[own], 1)[1][:, 0] == own).all()
    with pytest.raises(ValueError, match="n_neighbors"):
        part.kneighbors(UNSEEN[:2], 501)


def test_explanations_have_the_numbers_of_the_table(part: SDistClassifier) -> None:
    rows = part.kneighbors(UNSEEN[:3], 3)[1]
    for explanation, expected in zip(part.explain(UNSEEN[:3]), rows):
        assert {neighbor.row for neighbor in explanation.neighbors} <= set(rows_of(part))
        assert set(expected) & {neighbor.row for neighbor in explanation.neighbors}


@pytest.mark.parametrize("given", [{"max_references": 300}, {"max_rows": 500}])
def test_one_limit_alone(given: dict[str, int]) -> None:
    model = sdist(**{"max_rows": None, "max_references": None, **given}).fit(X, Y)
    assert len(rows_of(model)) == pytest.approx(given.get("max_references", 3000), abs=2)
    assert model.score(UNSEEN, Y_UNSEEN) > 0.75


# --- rows without weight, and missing values


def test_rows_without_weight_are_left_out() -> None:
    """The values and labels of rows with the weight 0 have no influence."""
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 3000)
    weight[1::3] = 0.0
    found = sdist(**PART).fit(X, Y, sample_weight=weight)
    assert (weight[rows_of(found)] > 0).all()
    assert found.class_count_.sum() == 2000
    other, y = X.copy(), Y.copy()
    other[1::3], y[1::3] = 100.0, Y[::-1][1::3]
    again = sdist(**PART).fit(other, y, sample_weight=weight)
    assert same_model(again, found)
    assert (weight[found.kneighbors(UNSEEN[:50])[1]] > 0).all()


def test_missing_values_are_filled_with_medians_of_all_rows() -> None:
    """A column of two values still has two values, and an indicator can separate the classes."""
    own = X.copy()
    own[:, 0] = np.arange(3000) % 5 == 0
    own[:, 1] = 3.0 * (np.arange(3000) % 7) - 20.0
    rng = np.random.default_rng(2)
    for column, share in ((0, 0.2), (1, 0.3), (4, 0.05), (9, 0.1)):
        own[rng.random(3000) < share, column] = np.nan
    own[(LABELS == 1) & (rng.random(3000) < 0.4), 12] = np.nan
    model = sdist(missing="impute", **PART).fit(own, Y)
    imputation, expected = model.metric_.imputation, Imputation.of(own)
    assert imputation is not None
    assert imputation.indicators == expected.indicators == (0, 1, 4, 9, 12)
    assert imputation.fill[0] == 0.0
    assert imputation.fill[1] == expected.fill[1]
    apart = np.abs(imputation.fill - expected.fill) / np.nanstd(own, axis=0)
    assert apart.max() < 2e-3
    assert "missing(x12)" in [term.name for term in model.metric_.terms]
    found = model.predict(np.where(np.arange(20) == 3, np.nan, UNSEEN))
    assert (found == Y_UNSEEN).mean() > 0.7


# --- wrong limits


@pytest.mark.parametrize("name", ["max_rows", "max_references"])
def test_too_few_rows_for_the_classes(name: str) -> None:
    """A sample needs 50 rows of each class, or all rows of a smaller class."""
    y = np.arange(3000) % 10
    y[y == 9] = np.where(np.arange((y == 9).sum()) < 20, 9, 8)
    assert np.bincount(y)[9] == 20
    for given in (1, 469):
        with pytest.raises(ValueError, match=rf"{name}={given} .*{name} to at least 470"):
            sdist(**{name: given}).fit(X, y)
    assert sdist(**{name: 470}, max_iter=1).fit(X[:, :3], y).class_count_[9] == 20


def test_a_limit_beyond_the_rows_needs_no_rows_of_a_class() -> None:
    y = np.arange(300) % 10
    model = sdist(max_rows=300, max_iter=1).fit(X[:300, :3], y)
    assert len(rows_of(model)) == 300


# --- searches, files and checkpoints


def test_a_search() -> None:
    search = SDistClassifierCV(
        sdist(**PART), param_grid={"max_degree": [1, 2]}, cv=2, n_blended=2, random_state=0
    ).fit(X, Y)
    assert search.best_params_["max_degree"] == 2
    assert search.score(UNSEEN, Y_UNSEEN) > 0.75
    for model in search.estimators_:
        assert len(rows_of(model)) == pytest.approx(500, abs=2)
    rows = search.kneighbors(UNSEEN[:5])[1]
    assert set(rows.ravel()) <= set(rows_of(search.best_estimator_))


@pytest.mark.parametrize("n_averaged", [1, 2])
@pytest.mark.parametrize("given", [PART, {"max_references": 300}])
def test_a_saved_model_is_the_same(given: dict[str, int], n_averaged: int, tmp_path: Path) -> None:
    """The stages are the same too, because the file contains the moments of the products."""
    model = sdist(**given, n_averaged=n_averaged).fit(X[:1500], Y[:1500])
    model.save(tmp_path / "model.mbz")
    for found in (metricboost.load(tmp_path / "model.mbz"), pickle.loads(pickle.dumps(model))):
        assert same_model(found, model)
        assert np.array_equal(found.kneighbors(UNSEEN[:9])[1], model.kneighbors(UNSEEN[:9])[1])
        stages = list(zip(found.staged_transform(UNSEEN[:50]), model.staged_transform(UNSEEN[:50])))
        assert stages
        assert all(np.allclose(*stage, rtol=1e-9, atol=1e-10) for stage in stages)
        assert found.get_params()["max_references"] == given["max_references"]


def test_checkpoints_tell_samples_apart(tmp_path: Path) -> None:
    """A stored fit is only used again if rows and constants are the same."""
    given = {**PART, "checkpoint": tmp_path}
    first = sdist(**given).fit(X, Y)
    files = set(tmp_path.iterdir())
    assert same_model(sdist(**given).fit(X, Y), first)
    assert set(tmp_path.iterdir()) == files
    sdist(**{**given, "max_rows": 300}).fit(X, Y)
    assert len(set(tmp_path.iterdir())) == 2 * len(files)


# --- the rows that a fold leaves out


def test_pairs_are_screened_on_the_rows_that_a_fold_keeps() -> None:
    """The screening uses all kept rows, not only the sample, and no row that is left out."""
    model = sdist(max_rows=400, max_references=None, clip=None)
    made = cross_fitted(model, X, Y)
    assert len(made.folds) == 2
    for fold in made.folds:
        fit = fold.learned
        Z = (X[fold.kept] - fit.scaling.center) / fit.scaling.scale
        expected = screen_pairs(Z, LABELS[fold.kept], 20, margin=-0.5)
        assert fit.screening is not None
        found = dict(zip(fit.screening.pairs, fit.screening.scores))
        assert (4, 7) in found
        for pair, score in zip(expected.pairs, expected.scores):
            assert found[pair] == pytest.approx(score, rel=0.02)


def test_labels_of_rows_left_out_do_not_leak_into_the_screening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On noise the score is 0.5, even if each fit screens 100 pairs. With a leak it is 0.56."""
    monkeypatch.setattr(learn, "MARGIN_BEFORE_GATE", -2.5)
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise, y = rng.normal(size=(3000, 100)), rng.permutation(3000) % 2
        model = sdist(
            max_rows=500, max_references=1000, max_iter=5, oob_gate=0.0, classifier="margin",
            n_neighbors_predict=20, random_state=seed,
        ).fit(noise, y)  # fmt: skip
        screened = [fit.screening for fit in cross_fitted(model, noise, y).fits]
        assert all(found is not None and len(found.pairs) == 100 for found in screened)
        scores.append(model.oob_score_)
    assert abs(np.mean(scores) - 0.5) < 0.03


def test_noise_is_not_taken_for_evidence() -> None:
    """On noise the score is 0.5 with the default screening and gate."""
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(100 + seed)
        noise, y = rng.normal(size=(3000, 100)), rng.permutation(3000) % 2
        scores.append(sdist(**PART, max_iter=5, random_state=seed).fit(noise, y).oob_score_)
    assert abs(np.mean(scores) - 0.5) < 0.03
