"""From a path to a metric: where the path is cut, pruning, and evidence for the classes."""

from __future__ import annotations

import itertools
from typing import Any

import literal
import numpy as np
import pytest
from rooms import ENGINE, Array, noisy, several_classes
from scipy.linalg import sqrtm

from metricboost.model import Factor, Path, Step, best_step
from metricboost.training.leave_one_out import leave_one_out_errors, margin_score
from metricboost.training.pruning import harms, heaviest, keep_only, recurring

# --- the path


def step(
    support: list[int], xi: list[float], weight: float = 1.0, loss: float = 1.0, new: bool = False
) -> Step:
    return Step(1, np.array(support), np.array(xi), weight, loss, new, 0, 0)


def random_path(seed: int, steps: int = 6) -> Path:
    rng = np.random.default_rng(seed)
    path = Path(Factor(np.array([1, 4]), rng.normal(size=(2, 2))))
    for _ in range(steps):
        support = np.sort(rng.choice(8, 3, replace=False))
        path.steps.append(step(support.tolist(), rng.normal(size=3).tolist(), rng.exponential()))
    return path


def explicit(path: Path, m: int, size: int = 8) -> Array:
    """W_m written out."""
    W = np.zeros((size, size))
    W[np.ix_(path.start.index, path.start.index)] += path.start.matrix @ path.start.matrix.T
    for s in path.steps[:m]:
        W[np.ix_(s.support, s.support)] += s.weight * np.outer(s.xi, s.xi)
    return W


@pytest.mark.parametrize("m", [0, 1, 6])
def test_factor_is_the_sum_of_the_steps(m: int) -> None:
    """Start and steps written out as one matrix; the factor's columns are orthogonal."""
    path = random_path(0)
    factor = path.factor(m)
    W = np.zeros((8, 8))
    W[np.ix_(factor.index, factor.index)] = factor.matrix @ factor.matrix.T
    assert np.allclose(W, explicit(path, m), atol=1e-12)
    gram = factor.matrix.T @ factor.matrix
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    assert np.allclose(factor.weights(), np.diag(explicit(path, m))[factor.index])


def test_complexity_is_the_trace_of_the_root() -> None:
    """The sum of the factor's singular values, SciPy's matrix root, and the literal trace."""
    factor = random_path(1).factor(6)
    W = factor.matrix @ factor.matrix.T
    values = np.linalg.svd(factor.matrix, compute_uv=False)
    assert factor.complexity() == pytest.approx(values.sum(), rel=1e-12)
    assert factor.complexity() == pytest.approx(np.trace(sqrtm(W)).real, rel=1e-5)
    assert factor.complexity() == pytest.approx(literal.trace_of_root(W), rel=1e-6)


def test_complexity_does_not_depend_on_the_order_of_columns() -> None:
    factor = random_path(2).factor(6)
    turned = Factor(factor.index, factor.matrix[::-1])
    assert turned.complexity() == pytest.approx(factor.complexity(), rel=1e-12)


def test_complexity_of_nothing_and_of_the_identity() -> None:
    assert Factor.empty().complexity() == 0.0
    assert Factor.identity(5).complexity() == pytest.approx(5.0)


def test_repeated_steps_do_not_raise_the_rank() -> None:
    path = Path(Factor.empty(), [step([0, 3], [0.6, 0.8]) for _ in range(5)])
    assert path.factor(5).matrix.shape == (2, 1)
    assert path.factor(5).complexity() == pytest.approx(np.sqrt(5))


def test_plus_adds_a_rank_one_update() -> None:
    factor = Factor(np.array([1, 4]), np.eye(2)).plus(np.array([0, 4]), np.array([0.6, 0.8]), 4.0)
    expected = np.diag([0.0, 1.0, 1.0]) + 4 * np.outer([0.6, 0, 0.8], [0.6, 0, 0.8])
    assert factor.index.tolist() == [0, 1, 4]
    assert np.allclose(factor.matrix @ factor.matrix.T, expected)


def test_only_refreshed_steps_are_compared_where_there_are_any() -> None:
    never = Path(Factor.empty(), [step([0], [1.0]) for _ in range(4)])
    assert never.comparable() == [1, 2, 3, 4]
    flags = [False, True, False, True, False]
    now_and_then = Path(Factor.empty(), [step([0], [1.0], new=new) for new in flags])
    assert now_and_then.comparable() == [2, 4]


def test_stop_weighs_loss_against_complexity() -> None:
    """Losses 10, 6, 5, 4.9 and complexities 1, 2, 3, 4 (orthogonal unit steps)."""
    losses = [10.0, 6.0, 5.0, 4.9]
    path = Path(Factor.empty(), [step([m], [1.0], loss=x) for m, x in enumerate(losses)])
    chosen = {penalty: best_step(path, penalty) for penalty in (0, 0.09, 0.11, 0.9, 1.1, 3.9, 4.1)}
    assert chosen == {0: 4, 0.09: 4, 0.11: 3, 0.9: 3, 1.1: 2, 3.9: 2, 4.1: 1}


def test_stop_ignores_lower_losses_between_refreshes() -> None:
    flags, losses = [False, True, False, True], [1.0, 8.0, 2.0, 7.0]
    steps = [step([m], [1.0], loss=x, new=f) for m, (x, f) in enumerate(zip(losses, flags))]
    assert best_step(Path(Factor.empty(), steps), 1e-9) == 4
    assert best_step(Path(Factor.empty(), steps), 10.0) == 2


def test_stop_of_an_empty_path() -> None:
    assert best_step(Path(Factor.identity(2)), 1.0) == 0


# --- pruning

TERMS = [(0,), (1,), (2,), (0, 1), (2, 3)]


def test_columns_of_a_single_step_do_not_recur() -> None:
    """Uses are counted by step: twice in one step is once."""
    steps = [step([0, 3], [1.0, 1.0]), step([3], [1.0]), step([2, 4], [1.0, 1.0])]
    assert recurring(steps, TERMS) == {0, 1}
    assert recurring([*steps, step([4], [1.0])], TERMS) == {0, 1, 2, 3}
    assert recurring(steps[:1], TERMS) == set()


def test_heaviest_columns_share_the_weight_of_products() -> None:
    """Weights 3, 1 and 4 on columns 0, 1 and their product: 5 for column 0, 3 for column 1."""
    factor = Factor(np.array([0, 1, 2, 3]), np.diag(np.sqrt([3.0, 1.0, 4.0, 4.0])))
    assert heaviest(factor, TERMS, 1) == {0}
    assert heaviest(factor, TERMS, 2) == {0, 2}
    assert heaviest(factor, TERMS, 9) == {0, 1, 2}


def test_equally_heavy_columns_are_taken_by_number() -> None:
    factor = Factor(np.array([0, 1, 2]), np.eye(3))
    assert heaviest(factor, TERMS, 2) == {0, 1}


def test_squares_count_once() -> None:
    """A square has one column, which has all its weight."""
    factor = Factor(np.array([0, 1]), np.diag([1.0, 1.1]))
    assert heaviest(factor, [(5, 5), (2, 3)], 1) == {5}


def test_pruned_metric_is_a_principal_submatrix() -> None:
    """W on the terms made of the kept columns alone; nothing else changes."""
    rng = np.random.default_rng(0)
    factor = Factor(np.arange(5), rng.normal(size=(5, 5)))
    W = factor.matrix @ factor.matrix.T
    pruned = keep_only(factor, TERMS, {0, 1})
    assert pruned.index.tolist() == [0, 1, 3]
    assert np.allclose(pruned.matrix @ pruned.matrix.T, W[np.ix_([0, 1, 3], [0, 1, 3])])
    assert np.array_equal(keep_only(factor, TERMS, {7}).matrix, factor.matrix)


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0, 1.5, 2.0, 4.0])
def test_harm_is_a_clear_rise_of_the_leave_one_out_error(noise: float) -> None:
    """Three standard errors, as counted row by row; never where nothing changed."""
    for n_classes in (2, 3):
        labels = np.arange(60) % n_classes
        before = noisy(3.0 * labels[:, None], 1.0)
        after = noisy(before, noise, seed=1)
        distances = literal.squared_distances(before), literal.squared_distances(after)
        assert harms(ENGINE, before, after, labels) == (literal.harm(*distances, labels) > 3)


def test_losing_the_signal_is_harm_and_losing_noise_is_not() -> None:
    labels = np.arange(60) % 2
    good, bad = noisy(3.0 * labels[:, None], 1.0), noisy(np.zeros((60, 1)), 1.0, seed=2)
    assert harms(ENGINE, good, bad, labels)
    assert not harms(ENGINE, bad, good, labels)
    assert not harms(ENGINE, np.hstack([good, 0.1 * bad]), good, labels)


# --- evidence for the classes


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_margin_evidence_is_distance_to_the_others_less_to_the_class(n_classes: int) -> None:
    """For queries, and for training rows without themselves; k beyond a class takes all of it."""
    X, labels = several_classes(n_classes, whole=False)
    queries, ks = np.random.default_rng(0).normal(size=(7, 4)), (1, 3, 20)
    for sought in (queries, None):
        rows = X if sought is None else sought
        d = ((rows[:, None, :] - X) ** 2).sum(axis=2)
        if sought is None:
            np.fill_diagonal(d, np.nan)
        found = margin_score(ENGINE, X, labels, ks, sought)
        assert found.shape == (len(rows), n_classes, 3)
        for i, (column, k) in itertools.product(range(len(rows)), enumerate(ks)):
            own = [d[i, labels == c] for c in range(n_classes)]
            near = [np.sort(v[~np.isnan(v)])[:k].mean() for v in own]
            f = [np.mean(near[:c] + near[c + 1 :]) - near[c] for c in range(n_classes)]
            assert np.allclose(found[i, :, column], f, rtol=1e-10, atol=1e-12)


def test_margin_evidence_of_two_classes_is_a_difference() -> None:
    """``d_0 - d_1`` and its negative, to the last bit: ties are ties."""
    X = np.random.default_rng(0).integers(0, 2, (60, 5)).astype(float)
    evidence = margin_score(ENGINE, X, np.arange(60) % 2, (3, 5), None)
    assert np.array_equal(evidence[:, 0], -evidence[:, 1])
    assert (evidence == 0).any()


@pytest.mark.parametrize(
    ("evidence", "errors"),
    [
        ([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [0, 1]),  # right, wrong
        ([[2.0, 2.0, 0.0], [0.0, 2.0, 2.0]], [1 / 2, 1 / 2]),
        ([[2.0, 2.0, 2.0], [2.0, 0.0, 2.0]], [2 / 3, 1]),
    ],
)
def test_ties_count_in_parts(evidence: list[list[float]], errors: list[float]) -> None:
    """A tie of t classes is 1 - 1/t of an error where the true one is among them, else one."""

    def rule(*_: Any) -> Array:
        return np.array(evidence)[:, :, None]

    found = leave_one_out_errors(ENGINE, np.zeros((2, 1)), np.array([0, 1]), (3,), rule)
    assert np.allclose(found[:, 0], errors)
