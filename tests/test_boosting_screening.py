"""Tests of pair screening: the statistic, the threshold, and the engines."""

from __future__ import annotations

import numpy as np
import pytest
from literal_screening import screened_pairs
from rooms import Array
from scipy import stats

from metricboost.boosting import screening
from metricboost.boosting.screening import Screening, screen_pairs
from metricboost.engines import get_engine, native_available, pairs

NUMPY = get_engine("numpy")


def noise(seed: int, n: int = 300, p: int = 202) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.permutation(np.arange(n) % 2)


def planted(seed: int) -> tuple[Array, Array]:
    """In one class, columns 40 and 90 agree in sign, and column 150 has a larger spread."""
    X, labels = noise(seed)
    sign = np.where(labels == 1, 1.0, -1.0)
    X[:, 90] = sign * np.sign(X[:, 40]) * np.abs(X[:, 90])
    X[:, 150] *= np.where(labels == 1, 1.5, 0.7)
    return standardised(X), labels


def standardised(X: Array) -> Array:
    result: Array = (X - X.mean(axis=0)) / X.std(axis=0)
    return result


@pytest.mark.parametrize("seed", range(3))
def test_planted_pair_and_spread_are_found(seed: int) -> None:
    """An interaction without marginal effects and a difference in spread are found in noise."""
    X, labels = planted(seed)
    found = screen_pairs(X, labels, 202)
    assert set(found.pairs[:2]) == {(40, 90), (150, 150)}
    assert len(found.pairs) <= 4
    assert found.n_screened == 202
    assert found.scores == sorted(found.scores, reverse=True)


def test_pure_noise_is_mostly_left_alone() -> None:
    """At most three of twenty tables of noise have a pair above the threshold."""
    tables = [noise(seed, p=60) for seed in range(20)]
    found = [len(screen_pairs(X, labels, 60).pairs) for X, labels in tables]
    assert sum(count > 0 for count in found) <= 3


def test_scores_are_those_of_a_double_loop() -> None:
    """The scores and the order of the pairs agree with a loop over pairs."""
    X, labels = planted(1)
    columns = [*range(20), 40, 90, 150]
    X = X[:, columns]
    found = screen_pairs(X, labels, 23)
    expected = screened_pairs(X, labels, 23)
    assert found.pairs == [pair for _, pair in expected]
    assert np.allclose(found.scores, [score for score, _ in expected], rtol=1e-10)
    assert {(20, 21), (22, 22)} <= set(found.pairs)


def test_blocks_of_columns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on the blocks, also for pairs across blocks."""
    X, labels = planted(2)
    whole = screen_pairs(X, labels, 202, engine=NUMPY)
    monkeypatch.setattr(pairs, "TILE", 7)
    parts = screen_pairs(X, labels, 202, engine=get_engine("numpy", 2))
    assert parts.pairs == whole.pairs
    assert np.allclose(parts.scores, whole.scores, rtol=1e-12)


def test_number_of_pairs_caps_the_list() -> None:
    X, labels = planted(0)
    best = screen_pairs(X, labels, 202)
    assert screen_pairs(X, labels, 1).pairs == best.pairs[:1]


def test_small_budget_screens_among_the_columns_that_differ() -> None:
    """With a budget for 30 columns, the column with the spread is found, with its number."""
    X, labels = planted(0)
    found = screen_pairs(X, labels, 202, budget=300 * 30**2)
    assert found.n_screened == 30
    assert found.pairs[0] == (150, 150)
    assert screen_pairs(X, labels, 202, budget=300 * 202**2).n_screened == 202


def test_columns_without_variance_within_a_class_score_nothing() -> None:
    """A column that is constant within both classes has the score 0."""
    X, labels = noise(0, n=50, p=3)
    X[:, 1] = np.where(labels == 1, 1.0, -1.0)
    assert all(1 not in pair for pair in screen_pairs(X, labels, 9).pairs)
    three = (labels + 2 * (np.arange(50) % 2)) % 3
    X[:, 1] = three
    assert all(1 not in pair for pair in screen_pairs(X, three, 9, threshold=1e-9).pairs)


def three_classes(seed: int, n: int = 240, p: int = 60) -> tuple[Array, Array]:
    """Columns 4 and 9 are equal, opposite or unrelated by class. Column 15 differs in spread."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, p)), rng.permutation(np.arange(n) % 3)
    sign = np.array([1.0, -1.0, 0.0])[labels]
    X[:, 9] = np.where(sign == 0, X[:, 9], sign * np.sign(X[:, 4]) * np.abs(X[:, 9]))
    X[:, 15] *= np.array([0.6, 1.0, 1.6])[labels]
    return standardised(X), labels


@pytest.mark.parametrize("seed", range(3))
def test_interaction_and_spread_of_three_classes_are_found(seed: int) -> None:
    """The columns of the interaction have no marginal effects."""
    X, labels = three_classes(seed)
    found = screen_pairs(X, labels, 60)
    assert set(found.pairs[:2]) == {(4, 9), (15, 15)}
    assert len(found.pairs) <= 4


@pytest.mark.parametrize("counts", [[80, 80, 80], [100, 90, 12, 5], [30] * 8, [5] * 6])
def test_scores_of_several_classes_are_those_of_a_double_loop(counts: list[int]) -> None:
    """The scores and the threshold agree with a loop. A class with few rows is ignored."""
    rng = np.random.default_rng(len(counts))
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.normal(size=(len(labels), 12))
    X[:, 3] = np.where(labels % 2, 1.0, -1.0) * X[:, 2] + 0.2 * X[:, 3]
    X[:, 7] *= np.where(labels == 1, 3.0, 0.5)
    found = screen_pairs(standardised(X), labels, 12)
    expected = screened_pairs(standardised(X), labels, 12)
    assert found.pairs == [pair for _, pair in expected]
    assert (2, 3) in found.pairs
    assert np.allclose(found.scores, [score for score, _ in expected], rtol=1e-10)


def test_two_classes_are_a_special_case_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without shrinkage, the root of chi2 for two classes is the studentised difference."""
    rng = np.random.default_rng(0)
    means, errors = rng.normal(size=(3, 40)), rng.exponential(size=(3, 40))
    errors[2] = 1e12  # a third class without information
    monkeypatch.setattr(pairs, "PRIOR_ROWS", 0)
    three = pairs.separation(means, errors, [9, 9, 9])
    assert np.allclose(three, pairs.separation(means[:2], errors[:2], [9, 9]), rtol=1e-9)


def test_threshold_is_exceeded_as_often_with_several_classes() -> None:
    """The tail probabilities are equal, and the threshold stays finite if they underflow."""
    for z in (0.5, 3.0, 6.0, 12.0, 30.0):
        for n_classes in (3, 4, 10):
            bar = screening._as_rare(z, n_classes)
            tail = np.log(2) + stats.norm.logsf(z)
            assert stats.chi2.logsf(bar**2, n_classes - 1) == pytest.approx(tail, rel=1e-9)
    assert screening._as_rare(5.5, 2) == 5.5
    assert screening._as_rare(-np.inf, 3) == -np.inf
    assert 37 < screening._as_rare(100.0, 3) < np.inf


@pytest.mark.parametrize("counts", [[10] * 10, [60, 40, 20], [200, 80, 8], [50] * 4 + [4] * 4])
def test_noise_in_several_classes_is_left_alone(counts: list[int]) -> None:
    """This holds for small classes, too, whose variances are sometimes far too small."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = standardised(rng.normal(size=(sum(counts), 60)))
        found += len(screen_pairs(X, np.repeat(np.arange(len(counts)), counts), 60).pairs)
    assert found <= 2


def test_small_budget_with_three_classes() -> None:
    """Columns that differ in mean or in spread between the classes are screened."""
    X, labels = three_classes(0)
    X[:, 30] += 2.0 * (labels == 2)
    found = screen_pairs(X, labels, 60, budget=240 * 5**2, threshold=-np.inf)
    assert found.n_screened == 5
    assert {15, 30} <= {column for pair in found.pairs for column in pair}


def test_blocks_change_nothing_for_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = three_classes(1)
    labels = np.arange(240) % 12
    whole = screen_pairs(X, labels, 60, threshold=2.0, engine=NUMPY)
    monkeypatch.setattr(pairs, "TILE", 20)
    parts = screen_pairs(X, labels, 60, threshold=2.0, engine=NUMPY)
    assert parts.pairs == whole.pairs
    assert np.allclose(parts.scores, whole.scores, rtol=1e-12)


# --- the native engine

needs_native = pytest.mark.skipif(not native_available(), reason="the C++ kernels were not built")


def same_pairs(
    X: Array, labels: Array, n_pairs: int | None = None, margin: float = -0.5, threads: int = 1
) -> Screening:
    """The pairs that both engines find."""
    X, n = standardised(X[:, X.std(axis=0) > 0]), n_pairs or X.shape[1]
    expected = screen_pairs(X, labels, n, margin=margin, engine=NUMPY)
    found = screen_pairs(X, labels, n, margin=margin, engine=get_engine("native", threads))
    assert found.pairs == expected.pairs
    assert np.allclose(found.scores, expected.scores, rtol=1e-10)
    return found


def drawn(kind: str, seed: int, n: int, p: int) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if kind == "heavy tails":
        return rng.standard_t(2, size=(n, p))
    if kind == "two values":
        return np.where(X > 0, 1.0, -1.0)
    if kind == "rare ones":
        return (X > 1.5).astype(float)
    if kind == "all alike":
        return X[:, [0] * p] + 1e-3 * X
    if kind == "correlated":
        for j in range(1, p):
            X[:, j] = 0.9 * X[:, j - 1] + 0.19**0.5 * X[:, j]
    return X


KINDS = ["normal", "heavy tails", "two values", "rare ones", "all alike", "correlated"]


@needs_native
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [[60, 60], [90, 12], [40, 30, 20], [12] * 9, [300, 300, 5]])
@pytest.mark.parametrize("p", [10, 33, 150])
def test_float32_loses_no_pair(kind: str, counts: list[int], p: int) -> None:
    """The first class has another spread, so that many scores are near the threshold."""
    labels = np.repeat(np.arange(len(counts)), counts)
    X = drawn(kind, p, len(labels), p)
    X[labels == 0] *= 1.4
    same_pairs(X, labels)
    same_pairs(X, labels, margin=-2.0, threads=2)


@needs_native
@pytest.mark.parametrize("size", [1e-120, 1e-9, 1.0, 1e9, 1e120])
def test_size_of_a_column_does_not_matter(size: float) -> None:
    """Columns that are not standardised neither overflow nor underflow in float32."""
    X, labels = planted(0)
    expected = screen_pairs(X, labels, 10, engine=NUMPY).pairs
    X[:, 40] *= size
    X[:, 90] /= size
    assert screen_pairs(X, labels, 10, engine=get_engine("native")).pairs == expected


@needs_native
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_pairs", [1, 7, 500])
def test_best_of_many_pairs_are_kept(n_pairs: int, threads: int) -> None:
    """Almost all of the 45,150 pairs are above the threshold."""
    X = drawn("correlated", 3, 200, 300)
    labels = np.arange(200) % 2
    X[labels == 1] *= 3.0
    found = same_pairs(X, labels, n_pairs, margin=-3.5, threads=threads)
    assert len(found.pairs) == n_pairs


@needs_native
def test_equal_scores_are_in_the_order_of_the_columns() -> None:
    """Repeated columns have equal scores up to rounding, which do not decide."""
    X, labels = planted(1)
    found = same_pairs(X[:, [40, 90, 90, 40, 150, 150]], labels, 3)
    assert found.pairs == [(4, 4), (4, 5), (5, 5)] or found.pairs == [(0, 1), (0, 2), (1, 3)]
