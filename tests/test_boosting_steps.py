"""Tests of the boosting steps: neighbourhoods, sparse vectors, step weights, draws, the gate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import literal
import numpy as np
import pytest
from rooms import (
    ENGINE,
    ENGINES,
    MULTICLASS,
    Array,
    candidates_of,
    noisy,
    several_classes,
    state_of,
    weights_of,
)
from scipy.optimize import minimize_scalar

from metricboost.boosting.draws import Draws, nonzeros, panel_size
from metricboost.boosting.gate import t_statistic, trimmed
from metricboost.boosting.loop import BoostingOptions
from metricboost.boosting.neighborhoods import (
    class_neighborhoods,
    neighbors_in_all_classes,
    training_lists,
)
from metricboost.boosting.selected import Selected
from metricboost.boosting.sparse_eigen import sparse_eigenvector
from metricboost.boosting.state import State, Weights
from metricboost.boosting.terms import Candidates
from metricboost.engines import Engine, NeighborLists, get_engine
from metricboost.engines.line_search import MAX_GAIN
from metricboost.training.learn import learn
from metricboost.training.options import LearningOptions

# --- neighbourhoods


def brute_force(X: Array, k: int) -> Array:
    """The k nearest other rows by full sorting, ties by row number."""
    d = literal.squared_distances(X)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :k]


def nearest_others(X: Array, k: int, engine: str) -> tuple[Array, Array]:
    """The k nearest other rows, where all rows are of one class."""
    lists = NeighborLists(np.zeros((1, 1), dtype=np.int32), (k,))
    return get_engine(engine).nearest_by_class(X, np.zeros(len(X), dtype=np.intp), lists)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("copies", [1, 15, 100])
def test_nearest_is_exact_with_repeated_rows(engine: str, copies: int) -> None:
    """Equal rows are ordered by number, even if there are more of them than spare candidates."""
    rng = np.random.default_rng(copies)
    X = rng.normal(size=(300 // copies, 5))[rng.integers(0, 300 // copies, 300)]
    rows, distances = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))
    expected = np.take_along_axis(literal.squared_distances(X), rows.astype(int), 1)
    assert np.allclose(distances, expected, rtol=1e-12, atol=0)


def test_nearest_spans_blocks_and_takes_queries_apart_from_references() -> None:
    """The queries span several blocks, and differ in number from the references."""
    rng = np.random.default_rng(0)
    queries, references = rng.normal(size=(600, 3)), rng.normal(size=(50, 3))
    rows, _ = ENGINE.nearest(queries, references, 7)
    d = ((queries[:, None, :] - references) ** 2).sum(axis=2)
    assert np.array_equal(rows, np.argsort(d, axis=1, kind="stable")[:, :7])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("same_place", [False, True])
def test_a_row_is_never_its_own_neighbour(engine: str, same_place: bool) -> None:
    """This holds if all rows are equal, too. Every neighbour has the class of its list."""
    rng = np.random.default_rng(1)
    X = np.ones((30, 2)) if same_place else rng.normal(size=(30, 2))
    labels = (np.arange(30) % 3 == 0).astype(np.intp)
    found = class_neighborhoods(get_engine(engine), X, labels, 5)
    assert (found.same != np.arange(30)[:, None]).all()
    assert (labels[found.same] == labels[:, None]).all()
    assert (labels[found.other] != labels[:, None]).all()
    same, other = literal.neighbours(literal.squared_distances(X), labels, 5)
    assert found.same.tolist() == same
    assert found.other.tolist() == other


def test_lists_are_as_long_as_the_largest_class_allows() -> None:
    """The list of the own class excludes the row itself, so it has one row less than the class."""
    labels = (np.arange(10) < 3).astype(np.intp)
    for multiclass in MULTICLASS:
        for own in (labels, 1 - labels):
            assert training_lists(own, 20, multiclass).sizes == (6, 7)
            assert training_lists(own, 2, multiclass).sizes == (2, 2)
            assert training_lists(own, 1, multiclass).sizes == (1, 1)


def test_lists_of_several_classes() -> None:
    """The lists of other classes for "common" and "coded"."""
    labels = np.repeat(np.arange(3), [4, 10, 7])
    assert training_lists(labels, 20, "common").sizes == (9, 17)
    assert training_lists(labels, 8, "common").sizes == (8, 8)
    assert training_lists(labels, 20, "coded").sizes == (9, 10, 10)
    assert training_lists(labels, 2, "coded").sizes == (2, 2, 2)


def test_the_same_number_of_neighbours_in_all_classes() -> None:
    labels = np.repeat(np.arange(3), [4, 10, 7])
    assert [neighbors_in_all_classes(labels, k) for k in (2, 3, 20)] == [2, 3, 3]


def test_a_class_of_one_row_has_no_neighbours() -> None:
    for count in (training_lists, neighbors_in_all_classes):
        with pytest.raises(ValueError, match="single row"):
            count(np.array([0, 0, 1]), 5, *["common"] * (count is training_lists))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_small_class_repeats_its_own_rows_only(engine: str) -> None:
    """Missing neighbours are marked by -1, and lists of other classes are not shortened."""
    X = np.arange(10.0)[:, None]
    labels = (np.arange(10) < 3).astype(np.intp)
    near = class_neighborhoods(get_engine(engine), X, labels, 5)
    assert near.found[0].tolist() == [1, 2, -1, -1, -1, 3, 4, 5, 6, 7]
    assert near.same[0].tolist() == [1, 2, 1, 2, 1]
    assert near.other[0].tolist() == [3, 4, 5, 6, 7]
    assert near.found[9].tolist() == [8, 7, 6, 5, 4, 2, 1, 0, -1, -1]
    assert near.same[9].tolist() == [8, 7, 6, 5, 4]
    assert near.other[9].tolist() == [2, 1, 0, 2, 1]
    again = class_neighborhoods(get_engine(engine), X, labels, 5, previous=near)
    assert np.array_equal(again.found, near.found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("k", [2, 6, 30])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_neighbourhoods_of_several_classes(
    engine: str, whole: bool, k: int, n_classes: int
) -> None:
    """Equal to full sorting, for both kinds of lists and for a class with too few rows."""
    X, labels = several_classes(n_classes, whole)
    d = literal.squared_distances(X)
    same, other = literal.neighbours(d, labels, k)
    found = class_neighborhoods(get_engine(engine), X, labels, k)
    assert found.same.tolist() == same
    assert found.other.tolist() == other
    coded = class_neighborhoods(get_engine(engine), X, labels, k, "coded")
    lists = literal.class_lists(d, labels, k)
    for i, near in enumerate(lists):
        assert coded.same[i].tolist() == near[labels[i]]
        others = near[: labels[i]] + near[labels[i] + 1 :]
        assert coded.other[i].tolist() == list(itertools.chain(*others))


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_equal_distances_on_whole_numbers_are_ordered_by_number(engine: str, values: int) -> None:
    """Squared distances of integer rows are exact integers, and most of them are equal."""
    X = np.random.default_rng(0).integers(0, values, (200, 8)).astype(float)
    rows, _ = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))


def tight_clusters(n: int) -> Array:
    """Two clusters of width 1e-9, two units apart. Products of rows cannot resolve a cluster."""
    noise = np.random.default_rng(0).normal(size=(n, 3))
    return np.where(np.arange(n)[:, None] % 2, 1.0, -1.0) + 1e-9 * noise


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [24, 60, 700])
def test_nearest_is_exact_within_tight_clusters(engine: str, n: int) -> None:
    """Rows that products cannot distinguish are ranked by exact distances."""
    X = tight_clusters(n)
    rows, _ = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))


# --- sparse eigenvectors


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return get_engine(request.param)


def random_form(seed: int, q: int = 9, rank: int | None = None) -> Array:
    """A random symmetric matrix: indefinite, or positive semi-definite of a given rank."""
    B = np.random.default_rng(seed).normal(size=(q, rank or q))
    return (B + B.T) / 2 if rank is None else B @ B.T


def best_by_exhaustion(A: Array, kappa: int) -> float:
    supports = itertools.combinations(range(len(A)), kappa)
    return float(max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in supports))


def objective(engine: Engine, A: Array, kappa: int) -> float:
    support, xi = sparse_eigenvector(engine, A, kappa)
    assert np.linalg.norm(xi) == pytest.approx(1)
    assert sorted(set(support.tolist())) == support.tolist()
    assert len(support) == len(xi) <= kappa
    return float(xi @ A[np.ix_(support, support)] @ xi)


@pytest.mark.parametrize(("rank", "share"), [(None, 0.65), (2, 0.9)])
def test_power_method_often_finds_the_best_support(
    engine: Engine, rank: int | None, share: float
) -> None:
    """For most matrices the best of 84 supports, and never worse than the best single entry."""
    found = []
    for seed in range(60):
        A = random_form(seed, rank=rank)
        value, best = objective(engine, A, 3), best_by_exhaustion(A, 3)
        assert A.diagonal().max() - 1e-12 <= value <= best + 1e-9
        found.append(value > best - 1e-9)
    assert np.mean(found) >= share


@pytest.mark.parametrize("kappa", [2, 4, 9])
def test_power_method_is_the_literal_one(engine: Engine, kappa: int) -> None:
    """The same support and values as the literal method on the explicit matrix."""
    for seed in range(40):
        A = random_form(seed)
        support, xi = sparse_eigenvector(engine, A, kappa)
        expected, values = literal.truncated_power_method(A, kappa)
        assert support.tolist() == expected
        assert np.allclose(xi * np.sign(xi @ values), values, atol=1e-10)


def test_one_nonzero_is_the_largest_diagonal_entry(engine: Engine) -> None:
    A = random_form(3)
    support, xi = sparse_eigenvector(engine, A, 1)
    assert support.tolist() == [int(np.argmax(A.diagonal()))]
    assert xi.tolist() == [1.0]


def test_all_nonzeros_are_the_leading_eigenvector(engine: Engine) -> None:
    A = random_form(4)
    assert objective(engine, A, 9) == pytest.approx(np.linalg.eigvalsh(A)[-1])
    assert objective(engine, A, 50) == pytest.approx(np.linalg.eigvalsh(A)[-1])


@pytest.mark.parametrize("kappa", [1, 2, 5])
def test_negative_definite_matrix(engine: Engine, kappa: int) -> None:
    """The value is negative, but not lower than the best diagonal entry."""
    for seed in range(20):
        A = -random_form(seed, rank=9) - np.eye(9)
        assert A.diagonal().max() - 1e-12 <= objective(engine, A, kappa) < 0


def test_zero_matrix(engine: Engine) -> None:
    """A zero matrix gives a finite vector without a division by zero."""
    assert objective(engine, np.zeros((6, 6)), 3) == 0.0


def test_planted_vector_among_many(engine: Engine) -> None:
    """A planted vector with three of 300 entries is found in noise."""
    v = np.zeros(300)
    v[[17, 120, 250]] = 0.8, -0.5, 0.33
    A = 40 * np.outer(v, v) + 0.1 * random_form(1, 300)
    support, xi = sparse_eigenvector(engine, A, 3)
    assert support.tolist() == [17, 120, 250]
    assert abs(xi @ v[support]) > 0.99


# --- the step weight


@pytest.mark.parametrize("gain", [[-1.0, 0.5], [1.0, -1.0], [0.0, 0.0], [-2.0, -3.0]])
def test_no_step_where_the_loss_does_not_fall(engine: Engine, gain: list[float]) -> None:
    assert engine.step_weight(np.ones(2), np.array(gain)) == 0.0


def test_separable_rows_take_the_bound(engine: Engine) -> None:
    """If all gains are positive, the loss has no minimum, and the weight is the bound."""
    rng = np.random.default_rng(0)
    u, gain = rng.exponential(size=20), rng.exponential(size=20) + 0.01
    w = engine.step_weight(u, gain)
    assert (u @ gain) * w / u.sum() == pytest.approx(MAX_GAIN)
    assert MAX_GAIN == literal.MAX_GAIN


def test_nearly_separable_rows_take_the_bound(engine: Engine) -> None:
    """One gain is negative, but so small that the minimum is beyond the bound."""
    u, gain = np.ones(20), np.array([1.0] * 19 + [-1e-9])
    assert engine.step_weight(u, gain) == pytest.approx(MAX_GAIN * 20 / gain.sum())


@pytest.mark.parametrize("seed", range(10))
def test_step_weight_minimises_the_loss(engine: Engine, seed: int) -> None:
    """The weight agrees with SciPy, and to eight digits with the literal bisection."""
    rng = np.random.default_rng(seed)
    u, gain = rng.exponential(size=40), rng.normal(size=40)
    gain += 0.4 - u @ gain / u.sum()
    w = engine.step_weight(u, gain)
    best = minimize_scalar(
        lambda w: (u * np.exp(-w * gain)).sum(), bounds=(0, MAX_GAIN / 0.4), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert w == pytest.approx(best.x, rel=1e-5)
    assert w == pytest.approx(literal.step_weight(u, gain), rel=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_step_weight_scales_with_the_gains(engine: Engine, scale: float) -> None:
    """The weight is inversely proportional to the gains, without overflow."""
    rng = np.random.default_rng(3)
    u, gain = rng.exponential(size=40), rng.normal(0.4, 1.0, 40)
    w = engine.step_weight(u, gain)
    assert engine.step_weight(u, scale * gain) * scale == pytest.approx(w, rel=1e-8)
    assert engine.step_weight(scale * u, gain) == pytest.approx(w, rel=1e-8)


@pytest.mark.parametrize("slope", [1e-3, 1e-4])
def test_small_slopes_have_exact_weights(engine: Engine, slope: float) -> None:
    """If the gains nearly cancel, the weight is small and the bound is very large."""
    for seed in range(20):
        gain = np.random.default_rng(seed).normal(size=50)
        gain += slope - gain.mean()
        expected = literal.step_weight(np.ones(50), gain)
        assert engine.step_weight(np.ones(50), gain) == pytest.approx(expected, rel=1e-8)


def test_rows_that_balance_to_rounding_still_end_the_search(engine: Engine) -> None:
    """If the slope is a rounding error, the bound is huge, and the search still ends."""
    rng = np.random.default_rng(0)
    for slope in 10.0 ** -np.arange(12, 17):
        for _ in range(200):
            gain = rng.normal(size=60)
            gain += slope - gain.mean()
            assert 0 <= engine.step_weight(np.ones(60), gain) < 1e-6


@pytest.mark.parametrize("loser", [300.0, 3000.0])
def test_one_row_that_loses_much_bounds_the_weight(engine: Engine, loser: float) -> None:
    """One row with a small weight and a large negative gain limits the weight."""
    for weight in (1e-2, 1e-4, 1e-8, 1e-12):
        u, gain = np.append(np.ones(50), weight), np.append(np.ones(50), -loser)
        if u @ gain > 0:
            expected = literal.step_weight(u, gain)
            assert engine.step_weight(u, gain) == pytest.approx(expected, rel=1e-8)


def test_large_gains_that_nearly_balance_do_not_overflow(engine: Engine) -> None:
    gain = np.array([1e6] * 10 + [-0.999e6] * 10)
    expected = literal.step_weight(np.ones(20), gain)
    assert engine.step_weight(np.ones(20), gain) == pytest.approx(expected, rel=1e-8)


# --- draws


def test_draws_depend_on_seed_and_attempt_alone() -> None:
    """Draws for one seed and attempt are equal in any order and from any object."""
    a, b = Draws(5, 40, 0.5, 10), Draws(5, 40, 0.5, 10)
    forward = [a(attempt, 100) for attempt in range(1, 6)]
    backward = [b(attempt, 100) for attempt in range(5, 0, -1)][::-1]
    for (bag, panel), (other_bag, other_panel) in zip(forward, backward):
        assert np.array_equal(bag, other_bag)
        assert np.array_equal(panel, other_panel)


def test_draws_differ_between_attempts_and_seeds() -> None:
    bags = [Draws(seed, 40, 0.5, None)(attempt, 9)[0] for seed in (1, 2) for attempt in (1, 2, 3)]
    assert len({bag.tobytes() for bag in bags}) == len(bags)


def test_bag_does_not_depend_on_the_candidates() -> None:
    """The bag is the same for any number of candidates."""
    draws = Draws(0, 40, 0.5, "sqrt")
    assert np.array_equal(draws(3, 50)[0], draws(3, 5000)[0])


@pytest.mark.parametrize(("subsample", "size"), [(1.0, 41), (0.5, 20), (0.3, 12), (1e-9, 1)])
def test_bag_sizes(subsample: float, size: int) -> None:
    """A bag has the expected number of distinct rows, and at least one."""
    for attempt in range(1, 20):
        assert Draws(1, 41, subsample, None)(attempt, 7)[0].sum() == size


def test_every_row_and_candidate_is_drawn_equally_often() -> None:
    """Within five standard deviations over 400 attempts."""
    drawn = [Draws(3, 30, 0.4, 6)(attempt, 20) for attempt in range(1, 401)]
    rows = np.sum([bag for bag, _ in drawn], axis=0)
    candidates = np.bincount(np.concatenate([panel for _, panel in drawn]), minlength=20)
    for counts, share in ((rows, 0.4), (candidates, 0.3)):
        assert np.abs(counts - 400 * share).max() < 5 * np.sqrt(400 * share * (1 - share))


@pytest.mark.parametrize(
    ("max_features", "size"),
    [(None, 90), ("sqrt", 9), (7, 7), (1000, 90), (0.5, 45), (1e-9, 1), (1.0, 90)],
)
def test_panels(max_features: Any, size: int) -> None:
    """A panel is sorted, without repetition, and has the expected size."""
    _, panel = Draws(0, 5, 1.0, max_features)(4, 90)
    assert panel_size(max_features, 90) == size == len(panel)
    assert (np.diff(panel) > 0).all()
    assert set(panel.tolist()) <= set(range(90))


@pytest.mark.parametrize(
    ("n_nonzero", "panel", "kappa"),
    [(3, 10, 3), (30, 10, 10), (0.2, 10, 2), (0.01, 10, 1), (1.0, 10, 10), (1, 1, 1)],
)
def test_nonzeros(n_nonzero: float, panel: int, kappa: int) -> None:
    assert nonzeros(n_nonzero, panel) == kappa == literal.nonzeros(n_nonzero, panel)


# --- the gate


def hubs() -> tuple[Array, Array, Array, Array]:
    """Two hundred rows and three rows of a rare class, which are neighbours of all other rows."""
    rng = np.random.default_rng(0)
    n, k = 203, 3
    same = np.array([[(i + 1 + j) % 200 for j in range(k)] for i in range(200)])
    rare = np.array([[200 + (i + 1 + j) % 3 for j in range(2)] for i in range(3)])
    other = np.tile([200, 201, 202], (n, 1))
    other[200:] = rng.integers(0, 200, (3, k))
    same = np.vstack([same, np.hstack([rare, rare[:, :1]])])
    z = rng.normal(size=n)
    z[200:] = 2.5 + 0.1 * rng.normal(size=3)  # noise that separates the three rows by chance
    return z, same, other, rng.permutation(n) < 100


def test_hubs_pass_a_naive_test_but_not_the_gate() -> None:
    """The t statistic over rows is large, but the statistic over shares is small."""
    z, same, other, left_out = hubs()
    graph = ENGINE.graph(same, other)
    weight = left_out.astype(float)
    gain = graph.margins(z[:, None])[left_out]
    naive = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain)))
    assert naive > 5
    assert t_statistic(*graph.share_sums(z[:, None], weight)[0]) < 2.5


def test_a_column_that_sets_whole_classes_apart_passes_the_gate() -> None:
    """With balanced classes of the same size, the statistic over shares is large."""
    rng = np.random.default_rng(1)
    labels = np.arange(200) % 2
    z = rng.normal(size=200) + 1.5 * labels
    near = class_neighborhoods(ENGINE, rng.normal(size=(200, 3)), labels, 3)
    sums = ENGINE.graph(near.same, near.other).share_sums(z[:, None], np.ones(200))
    assert t_statistic(*sums[0]) > 2.5


@pytest.mark.parametrize("engine", ENGINES)
def test_statistic_is_that_of_a_loop_over_edges(engine: str) -> None:
    rng = np.random.default_rng(2)
    same, other = rng.integers(0, 30, (30, 3)), rng.integers(0, 30, (30, 4))
    z, weight = rng.normal(size=30), rng.exponential(size=30) * (rng.random(30) < 0.5)
    edges = literal.edge_list(same.tolist(), other.tolist())
    sums = get_engine(engine).graph(same, other).share_sums(z[:, None], weight)[0]
    shares = literal.edge_shares(z, edges, weight)
    assert sums[0] == pytest.approx(np.sum(shares), rel=1e-10)
    assert sums[1] == pytest.approx(np.var(shares) * 30, rel=1e-10)
    expected = literal.gate_statistic(z, edges, weight)
    assert t_statistic(*sums) == pytest.approx(expected, rel=1e-10)


def test_statistic_without_deviation() -> None:
    """If all shares are equal, the statistic is infinite, with the sign of the gain."""
    assert t_statistic(4.0, 0.0) == np.inf
    assert t_statistic(-4.0, 0.0) == -np.inf
    assert t_statistic(0.0, 0.0) == -np.inf


@dataclass(frozen=True)
class Gated:
    """The matrix A over a bag, the candidates with their state, and the out-of-bag rows."""

    A: Array
    candidates: Candidates
    state: State
    u: Weights
    X: Array

    @classmethod
    def of(cls, seed: int) -> Gated:
        rng = np.random.default_rng(seed)
        labels = np.arange(80) % 2
        X = rng.normal(size=(80, 6))
        X[:, 2] += 2.0 * labels
        candidates = candidates_of(X, 1)
        state = state_of(candidates, labels, class_neighborhoods(ENGINE, X, labels, 4))
        u = weights_of(state, np.ones(80), rng.permutation(80) < 40)
        A = u.bag.form(candidates.table.columns(candidates.terms(np.arange(6))))
        return cls(A, candidates, state, u, X)

    def trimmed(self, support: Array, xi: Array) -> tuple[float, Array, Array]:
        A, terms = self.A[np.ix_(support, support)], self.candidates.terms(support)
        return trimmed(A, xi, terms, self.state, self.u)


@pytest.mark.parametrize("seed", range(5))
def test_trimming_takes_the_best_truncation(seed: int) -> None:
    """Entries, values and statistic agree with the literal loop. The statistic never decreases."""
    step = Gated.of(seed)
    support, xi = sparse_eigenvector(ENGINE, step.A, 5)
    t, kept, values = step.trimmed(support, xi)
    near = step.state.near
    assert near is not None
    edges = literal.edge_list(near.same.tolist(), near.other.tolist())
    left_out = (~step.u.in_bag).astype(float)
    expected = literal.trimmed(step.A, support.tolist(), xi, step.X, edges, left_out)
    assert t == pytest.approx(expected[0], rel=1e-10)
    assert support[kept].tolist() == expected[1]
    assert np.allclose(values * np.sign(values @ expected[2]), expected[2], atol=1e-10)
    assert t >= literal.gate_statistic(step.X[:, support] @ xi, edges, left_out) - 1e-10


def test_trimming_drops_noise_beside_one_strong_column() -> None:
    """In most bags a step keeps fewer than five entries, including the strong column."""
    sizes = []
    for seed in range(10):
        step = Gated.of(seed)
        support, xi = sparse_eigenvector(ENGINE, step.A, 5)
        _, kept, _ = step.trimmed(support, xi)
        assert 2 in support[kept]
        sizes.append(len(kept))
    assert np.mean(np.array(sizes) < 5) >= 0.7


# --- several classes


@pytest.mark.parametrize("multiclass", MULTICLASS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_numbered_otherwise_give_the_same_metric(
    multiclass: Literal["common", "coded"], n_classes: int
) -> None:
    """The metric does not depend on the numbering of the classes."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(100, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    boosting = BoostingOptions(30, 8, 3, 0.1, 0.7, None, 5, 0.0, 0, multiclass)
    options = LearningOptions(boosting, 2, "auto", "auto", 0.0, True, "zero")
    found = []
    for order in (np.arange(n_classes), np.roll(np.arange(n_classes), 1)):
        learned = learn(X, order[labels], np.ones(100), ENGINE, options)
        found.append(learned.metric(learned.factor))
        assert learned.best_iter > 5
    assert found[0].columns == found[1].columns
    assert np.allclose(found[0].matrix(), found[1].matrix(), rtol=1e-8, atol=1e-12)


def test_the_two_readings_of_several_classes_differ() -> None:
    """A distant class gives no neighbours with "common", and half of them with "coded"."""
    labels = np.arange(90) % 3
    place = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 30.0]])[labels]
    X = noisy(place, 1.0)
    for multiclass, far in zip(MULTICLASS, (0.0, 0.5)):
        near = class_neighborhoods(ENGINE, X, labels, 5, multiclass)
        assert (labels[near.other[labels == 0]] == 2).mean() == far


# --- what grows with the steps


def test_many_columns_are_rotated_without_changing_distances() -> None:
    """A hundred steps of rank three are rotated to three columns, one of them very short."""
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(30, 3)), np.arange(30) % 2
    candidates = candidates_of(X, 1)
    state, every = State(candidates.table, labels, np.ones(30)), candidates.terms(np.arange(3))
    steps = rng.normal(size=(3, 100)) * np.array([[1.0], [1.0], [1e-3]])
    for step in steps.T:
        state.embed(every, step[:, None])
    state.refresh(training_lists(labels, 2, "common"), 3)
    place = state.embedding()
    assert place.shape == (30, 3)
    expected = literal.squared_distances(X, steps @ steps.T)
    assert np.allclose(literal.squared_distances(place), expected, rtol=1e-10, atol=1e-10)


def test_without_steps_neighbours_are_plain_and_margins_zero() -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(30, 3)), np.arange(30) % 2
    state = State(candidates_of(X, 1).table, labels, np.ones(30))
    state.refresh(training_lists(labels, 2, "common"), 0)
    assert state.embedding().shape == (30, 0)
    assert not state.margins.any()
    assert state.near is not None
    assert np.array_equal(state.near.same, class_neighborhoods(ENGINE, X, labels, 2).same)


def test_selected_terms_keep_the_order_of_their_first_selection() -> None:
    selected = Selected(np.array([4]))
    assert selected.add(np.array([7, 2])) == [4, 7, 2]
    assert selected.add(np.array([2, 9, 4])) == [4, 7, 2, 9]
    assert len(selected) == 4
