"""The rooms of the boosting one by one: what each promises, on examples small enough to see."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import literal
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.linalg import sqrtm
from scipy.optimize import minimize_scalar

from metricboost import SparseMetric, _rounding
from metricboost._rounding import largest
from metricboost.boosting import BoostingOptions, LearningOptions, learn, screening
from metricboost.boosting.classification import leave_one_out_errors, margin_score
from metricboost.boosting.draws import Draws, nonzeros, panel_size
from metricboost.boosting.forms import step_form
from metricboost.boosting.gate import t_statistic, trimmed
from metricboost.boosting.levels import Levels
from metricboost.boosting.line_search import MAX_GAIN, step_weight
from metricboost.boosting.neighborhoods import (
    class_neighborhoods,
    neighbors_in_all_classes,
    training_lists,
)
from metricboost.boosting.path import Factor, Path, Step, best_step
from metricboost.boosting.pruning import harms, heaviest, keep_only, recurring
from metricboost.boosting.scaling import Scaling
from metricboost.boosting.screening import screen_pairs
from metricboost.boosting.selected import Selected
from metricboost.boosting.sparse_eigen import sparse_eigenvector
from metricboost.boosting.start import start_factor, start_scaling
from metricboost.boosting.terms import Candidates
from metricboost.engines import NeighborLists, get_engine, host, native_available
from metricboost.engines.host import HostLine, HostRows

Array = npt.NDArray[Any]
ENGINE = get_engine("numpy")
ENGINES = ["numpy", *(["native"] if native_available() else [])]
MULTICLASS: tuple[Literal["common", "coded"], ...] = ("common", "coded")


# --- neighbourhoods


def brute_force(X: Array, k: int) -> Array:
    """The k nearest other rows by full sorting, ties by row number."""
    d = literal.squared_distances(X)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :k]


def nearest_others(X: Array, k: int, engine: str) -> tuple[Array, Array]:
    """The k nearest other rows: all are of one class."""
    lists = NeighborLists(np.zeros((1, 1), dtype=np.int32), (k,))
    return get_engine(engine).nearest_by_class(X, np.zeros(len(X), dtype=np.intp), lists)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("copies", [1, 15, 100])
def test_nearest_is_exact_with_repeated_rows(engine: str, copies: int) -> None:
    """More equal rows than any search keeps in reserve; they come in order of their number."""
    rng = np.random.default_rng(copies)
    X = rng.normal(size=(300 // copies, 5))[rng.integers(0, 300 // copies, 300)]
    rows, distances = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))
    expected = np.take_along_axis(literal.squared_distances(X), rows.astype(int), 1)
    assert np.allclose(distances, expected, rtol=1e-12, atol=0)


def test_nearest_spans_blocks_and_takes_queries_apart_from_references() -> None:
    """More queries than a block, references of another number; nothing is left out."""
    rng = np.random.default_rng(0)
    queries, references = rng.normal(size=(600, 3)), rng.normal(size=(50, 3))
    rows, _ = ENGINE.nearest(queries, references, 7)
    d = ((queries[:, None, :] - references) ** 2).sum(axis=2)
    assert np.array_equal(rows, np.argsort(d, axis=1, kind="stable")[:, :7])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("same_place", [False, True])
def test_a_row_is_never_its_own_neighbour(engine: str, same_place: bool) -> None:
    """Not even where all rows coincide; and every neighbour is of the class it should be."""
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
    """A row of the larger class has its own class without itself; one of the smaller, all of it."""
    labels = (np.arange(10) < 3).astype(np.intp)
    for multiclass in MULTICLASS:
        for own in (labels, 1 - labels):
            assert training_lists(own, 20, multiclass).sizes == (6, 7)
            assert training_lists(own, 2, multiclass).sizes == (2, 2)
            assert training_lists(own, 1, multiclass).sizes == (1, 1)


def test_lists_of_several_classes() -> None:
    """Across, all rows of other classes together, or those of each class."""
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
    """The search says where it found no more; the lists of the other class are not shortened."""
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


def several_classes(n_classes: int, whole: bool) -> tuple[Array, Array]:
    """Sixty rows of unequal classes, the first of four rows; whole numbers have many ties."""
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 3, (60, 4)).astype(float) if whole else rng.normal(size=(60, 4))
    labels = np.r_[[0] * 4, np.arange(56) % (n_classes - 1) + 1]
    return X, rng.permutation(labels)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("k", [2, 6, 30])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_neighbourhoods_of_several_classes(
    engine: str, whole: bool, k: int, n_classes: int
) -> None:
    """By full sorting: all others together, or class by class; also where a class has too few."""
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
    """On a grid distances are exact whole numbers, and most of them are equal."""
    X = np.random.default_rng(0).integers(0, values, (200, 8)).astype(float)
    rows, _ = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))


def tight_clusters(n: int) -> Array:
    """Two clusters two units apart, each 1e-9 wide: products of rows cannot tell them apart."""
    noise = np.random.default_rng(0).normal(size=(n, 3))
    return np.where(np.arange(n)[:, None] % 2, 1.0, -1.0) + 1e-9 * noise


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [24, 60, 700])
def test_nearest_is_exact_within_tight_clusters(engine: str, n: int) -> None:
    """Rows that products confuse are ranked again by their differences."""
    X = tight_clusters(n)
    rows, _ = nearest_others(X, 4, engine)
    assert np.array_equal(rows, brute_force(X, 4))


# --- sparse eigenvectors


def random_form(seed: int, q: int = 9, rank: int | None = None) -> Array:
    """A symmetric matrix: indefinite, or positive semi-definite of a given rank."""
    B = np.random.default_rng(seed).normal(size=(q, rank or q))
    return (B + B.T) / 2 if rank is None else B @ B.T


def best_by_exhaustion(A: Array, kappa: int) -> float:
    supports = itertools.combinations(range(len(A)), kappa)
    return float(max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in supports))


def objective(A: Array, kappa: int) -> float:
    support, xi = sparse_eigenvector(literal.MatrixForm(A), kappa)
    assert np.linalg.norm(xi) == pytest.approx(1)
    assert sorted(set(support.tolist())) == support.tolist()
    assert len(support) == len(xi) <= kappa
    return float(xi @ A[np.ix_(support, support)] @ xi)


@pytest.mark.parametrize(("rank", "share"), [(None, 0.65), (2, 0.9)])
def test_power_method_often_finds_the_best_support(rank: int | None, share: float) -> None:
    """Of 84 supports the best, for most matrices; never worse than the best single entry."""
    found = []
    for seed in range(60):
        A = random_form(seed, rank=rank)
        value, best = objective(A, 3), best_by_exhaustion(A, 3)
        assert A.diagonal().max() - 1e-12 <= value <= best + 1e-9
        found.append(value > best - 1e-9)
    assert np.mean(found) >= share


@pytest.mark.parametrize("kappa", [2, 4, 9])
def test_power_method_is_the_literal_one(kappa: int) -> None:
    """The same support and values as one start after the other on the explicit matrix."""
    for seed in range(40):
        A = random_form(seed)
        support, xi = sparse_eigenvector(literal.MatrixForm(A), kappa)
        expected, values = literal.truncated_power_method(A, kappa)
        assert support.tolist() == expected
        assert np.allclose(xi * np.sign(xi @ values), values, atol=1e-10)


def test_one_nonzero_is_the_largest_diagonal_entry() -> None:
    A = random_form(3)
    support, xi = sparse_eigenvector(literal.MatrixForm(A), 1)
    assert support.tolist() == [int(np.argmax(A.diagonal()))]
    assert xi.tolist() == [1.0]


def test_all_nonzeros_are_the_leading_eigenvector() -> None:
    A = random_form(4)
    assert objective(A, 9) == pytest.approx(np.linalg.eigvalsh(A)[-1])
    assert objective(A, 50) == pytest.approx(np.linalg.eigvalsh(A)[-1])


@pytest.mark.parametrize("kappa", [1, 2, 5])
def test_negative_definite_matrix(kappa: int) -> None:
    """Nothing gains: the value is negative, but no lower than the best single entry."""
    for seed in range(20):
        A = -random_form(seed, rank=9) - np.eye(9)
        assert A.diagonal().max() - 1e-12 <= objective(A, kappa) < 0


def test_zero_matrix() -> None:
    """No direction gains, and none is a division by zero."""
    assert objective(np.zeros((6, 6)), 3) == 0.0


def test_planted_vector_among_many() -> None:
    """Three entries of 300 in noise."""
    v = np.zeros(300)
    v[[17, 120, 250]] = 0.8, -0.5, 0.33
    A = 40 * np.outer(v, v) + 0.1 * random_form(1, 300)
    support, xi = sparse_eigenvector(literal.MatrixForm(A), 3)
    assert support.tolist() == [17, 120, 250]
    assert abs(xi @ v[support]) > 0.99


# --- the step weight


@pytest.mark.parametrize("gain", [[-1.0, 0.5], [1.0, -1.0], [0.0, 0.0], [-2.0, -3.0]])
def test_no_step_where_the_loss_does_not_fall(gain: list[float]) -> None:
    assert step_weight(HostLine(np.ones(2), np.array(gain))) == 0.0


def test_separable_rows_take_the_bound() -> None:
    """All gains positive: the loss falls for ever, so the mean margin rises by the bound."""
    rng = np.random.default_rng(0)
    u, gain = rng.exponential(size=20), rng.exponential(size=20) + 0.01
    w = step_weight(HostLine(u, gain))
    assert (u @ gain) * w / u.sum() == pytest.approx(MAX_GAIN)
    assert MAX_GAIN == literal.MAX_GAIN


def test_nearly_separable_rows_take_the_bound() -> None:
    """One row loses, by so little that the minimum lies beyond the bound."""
    u, gain = np.ones(20), np.array([1.0] * 19 + [-1e-9])
    assert step_weight(HostLine(u, gain)) == pytest.approx(MAX_GAIN * 20 / gain.sum())


@pytest.mark.parametrize("seed", range(10))
def test_step_weight_minimises_the_loss(seed: int) -> None:
    """The same minimum as SciPy's, and the literal bisection's to eight digits."""
    rng = np.random.default_rng(seed)
    u, gain = rng.exponential(size=40), rng.normal(size=40)
    gain += 0.4 - u @ gain / u.sum()
    w = step_weight(HostLine(u, gain))
    best = minimize_scalar(
        lambda w: (u * np.exp(-w * gain)).sum(), bounds=(0, MAX_GAIN / 0.4), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    assert w == pytest.approx(best.x, rel=1e-5)
    assert w == pytest.approx(literal.step_weight(u, gain), rel=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
def test_step_weight_scales_with_the_gains(scale: float) -> None:
    """Gains a million times larger need a weight a million times smaller; nothing overflows."""
    rng = np.random.default_rng(3)
    u, gain = rng.exponential(size=40), rng.normal(0.4, 1.0, 40)
    w = step_weight(HostLine(u, gain))
    assert step_weight(HostLine(u, scale * gain)) * scale == pytest.approx(w, rel=1e-8)
    assert step_weight(HostLine(scale * u, gain)) == pytest.approx(w, rel=1e-8)


@pytest.mark.parametrize("slope", [1e-3, 1e-4])
def test_small_slopes_have_exact_weights(slope: float) -> None:
    """Where the rows nearly balance the weight is small, and the bound very large."""
    for seed in range(20):
        gain = np.random.default_rng(seed).normal(size=50)
        gain += slope - gain.mean()
        expected = literal.step_weight(np.ones(50), gain)
        assert step_weight(HostLine(np.ones(50), gain)) == pytest.approx(expected, rel=1e-8)


def test_rows_that_balance_to_rounding_still_end_the_search() -> None:
    """Symmetric designs have a slope of nothing but rounding, and a bound beyond all reason."""
    rng = np.random.default_rng(0)
    for slope in 10.0 ** -np.arange(12, 17):
        for _ in range(200):
            gain = rng.normal(size=60)
            gain += slope - gain.mean()
            assert 0 <= step_weight(HostLine(np.ones(60), gain)) < 1e-6


@pytest.mark.parametrize("loser", [300.0, 3000.0])
def test_one_row_that_loses_much_bounds_the_weight(loser: float) -> None:
    """Fifty rows gain and one, of hardly any weight yet, loses much: its loss grows fast."""
    for weight in (1e-2, 1e-4, 1e-8, 1e-12):
        u, gain = np.append(np.ones(50), weight), np.append(np.ones(50), -loser)
        if u @ gain > 0:
            expected = literal.step_weight(u, gain)
            assert step_weight(HostLine(u, gain)) == pytest.approx(expected, rel=1e-8)


def test_large_gains_that_nearly_balance_do_not_overflow() -> None:
    gain = np.array([1e6] * 10 + [-0.999e6] * 10)
    expected = literal.step_weight(np.ones(20), gain)
    assert step_weight(HostLine(np.ones(20), gain)) == pytest.approx(expected, rel=1e-8)


# --- draws


def test_draws_depend_on_seed_and_attempt_alone() -> None:
    """In any order, as often as asked, from any object: the same bag and the same panel."""
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
    """What earlier steps added to the candidates does not change which rows are drawn."""
    draws = Draws(0, 40, 0.5, "sqrt")
    assert np.array_equal(draws(3, 50)[0], draws(3, 5000)[0])


@pytest.mark.parametrize(("subsample", "size"), [(1.0, 41), (0.5, 20), (0.3, 12), (1e-9, 1)])
def test_bag_sizes(subsample: float, size: int) -> None:
    """Without replacement, so a bag has as many different rows as it should; at least one."""
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
    """Sorted, different, of the stated size."""
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


# --- terms


def candidates_of(X: Array, max_degree: int, most: int | None = None) -> Candidates:
    return Candidates(ENGINE.rows(X.T), max_degree, most)


def host_rows(candidates: Candidates) -> HostRows:
    assert isinstance(candidates.rows, HostRows)
    return candidates.rows


def columns_of(candidates: Candidates, index: Array) -> Array:
    return host_rows(candidates).columns(candidates.terms(index))


def pulled_back(candidates: Candidates, y: Array) -> Array:
    """``y^T Phi``: the image of a graph that gives y, whatever it is applied to."""

    class Given:
        def laplacian(self, z: Array, weight: Array) -> Array:
            return y

    rows, every = host_rows(candidates), candidates.terms(np.arange(len(candidates)))
    rows.graph, rows.inside = Given(), np.ones(len(y))  # type: ignore[assignment]
    return rows.image(every[:1], np.ones((1, y.shape[1])), every)


def terms_of(candidates: Candidates) -> list[tuple[int, ...]]:
    return [candidates.term(t) for t in range(len(candidates))]


def test_candidates_come_in_order_of_creation_without_repetition() -> None:
    """Columns, then what is added, then products; a tuple in another order is the same term."""
    candidates = candidates_of(np.random.default_rng(0).normal(size=(9, 3)), 2)
    candidates.add([(2, 1), (0, 0), (1, 2), (1,), (0, 1, 2)])
    assert terms_of(candidates) == [(0,), (1,), (2,), (1, 2), (0, 0)]
    candidates.expand([0], [1, 0])
    assert terms_of(candidates)[5:] == [(0, 1)]
    candidates.expand([3, 2], [3, 2, 0])  # of degree 4, 3, 3 and 3, 2, 2
    assert terms_of(candidates)[6:] == [(2, 2), (0, 2)]


def test_expansion_is_the_literal_one() -> None:
    """Random selections up to degree 4, in both the package and nested loops over tuples."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 4))
    candidates, features = candidates_of(X, 4), literal.FeatureMap(X)
    selected: list[int] = []
    for _ in range(6):
        new = rng.choice(len(candidates), 2, replace=False).tolist()
        selected += [t for t in new if t not in selected]
        candidates.expand(new, selected)
        features.expand(new, selected, 4)
    assert terms_of(candidates) == features.terms
    assert max(len(term) for term in features.terms) == 4
    assert np.allclose(
        columns_of(candidates, np.arange(len(candidates))), features.phi(), atol=1e-12
    )


def test_products_stop_at_the_most_candidates() -> None:
    """The first of them are the same; terms that are added by name are not counted out."""
    X = np.random.default_rng(0).normal(size=(9, 4))
    free, capped = candidates_of(X, 2), candidates_of(X, 2, most=7)
    for candidates in (free, capped):
        candidates.expand([0], [0])
        candidates.expand([2, 1], [0, 2, 1])
    assert len(free) > len(capped) == 7
    assert terms_of(capped) == terms_of(free)[:7]
    capped.add([(3, 3)])
    assert terms_of(capped)[7:] == [(3, 3)]
    capped.expand([3], [0, 1, 2, 3])
    assert len(capped) == 8


def test_products_of_two_levels_of_a_category_are_left_out() -> None:
    """Such a product is a linear function of both columns: it is no interaction."""
    level = np.arange(60) % 3
    mark = np.arange(60) % 5 == 0
    Xt = np.stack([*(level == c for c in range(3)), mark, np.linspace(-1, 1, 60)]).astype(float)
    Xt = (Xt - Xt.mean(axis=1)[:, None]) / Xt.std(axis=1)[:, None]
    levels = Levels(Xt)
    assert levels.two_valued.tolist() == [True] * 4 + [False]
    pairs = np.array([(a, b) for a in range(5) for b in range(a + 1, 5)], dtype=np.int32)
    left_out = levels.linear(pairs[:, 0], pairs[:, 1])
    assert pairs[left_out].tolist() == [[0, 1], [0, 2], [1, 2]]
    for (a, b), linear in zip(pairs, left_out):
        basis = np.stack([np.ones(60), Xt[a], Xt[b]], axis=1)
        product = Xt[a] * Xt[b]
        rest = product - basis @ np.linalg.lstsq(basis, product, rcond=None)[0]
        assert (np.abs(rest).max() < 1e-9) == linear
    candidates = Candidates(get_engine("numpy").rows(Xt), 3, levels=levels)
    candidates.add_useful([(0, 1), (0, 3), (0, 1, 4), (0, 3, 4)])
    assert [candidates.term(i) for i in range(5, len(candidates))] == [(0, 3), (0, 3, 4)]


def test_powers_of_columns_of_two_values_are_left_out() -> None:
    """They are the column itself, scaled; its products with others are not."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=20), np.where(rng.random(20) < 0.3, 1.7, -0.4)])
    candidates = Candidates(ENGINE.rows(X.T), 3, levels=Levels(X.T))
    candidates.add_useful([(1, 1), (0, 0)])
    candidates.expand([0, 1], [0, 1])
    assert terms_of(candidates) == [(0,), (1,), (0, 0), (0, 1)]
    candidates.expand([3], [0, 1, 3])
    assert terms_of(candidates)[4:] == [(0, 0, 1)]
    candidates.add([(1, 1)])  # by name: a metric to start from may have it
    assert terms_of(candidates)[5:] == [(1, 1)]


def test_degree_one_never_expands() -> None:
    candidates = candidates_of(np.eye(4), 1)
    candidates.expand([0, 1], [0, 1, 2])
    assert len(candidates) == 4


def test_terms_are_found_by_their_columns() -> None:
    candidates = candidates_of(np.random.default_rng(0).normal(size=(9, 3)), 3)
    candidates.add([(0, 2), (1, 1, 2)])
    assert [candidates.number(term) for term in terms_of(candidates)] == list(range(5))


def test_many_columns_of_high_degree_have_distinct_keys() -> None:
    """Column numbers that no longer fit into one 64-bit number."""
    candidates = candidates_of(np.ones((1, 70_000)), 4)
    high = 69_999
    candidates.add([(high,) * 4, (0, high, high, high), (high,) * 3, (high,) * 4])
    assert len(candidates) == 70_003
    assert candidates.number((high, 0, high, high)) == 70_001


def test_products_are_standardised_and_constant_ones_are_zero() -> None:
    rng = np.random.default_rng(2)
    X = np.stack([np.where(np.arange(40) % 2, 1.0, -1.0), rng.normal(size=40)], axis=1)
    candidates = candidates_of(X, 2)
    candidates.add([(0, 0), (0, 1), (1, 1)])
    columns = columns_of(candidates, np.arange(5))
    assert np.array_equal(columns[:, :2], X)
    assert not columns[:, 2].any()
    assert np.isinf(candidates.moments(np.array([2]))[0, 1])
    assert np.allclose(columns[:, 3:].mean(axis=0), 0, atol=1e-12)
    assert np.allclose(columns[:, 3:].std(axis=0), 1)


@pytest.fixture(params=["none", "some", "all", "float32"])
def kept_margins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """How many margins of columns are kept; the precision that they have."""
    monkeypatch.setattr(
        host, "KEPT_BYTES", {"none": 0, "some": 20 * 8 * 300}.get(request.param, 2**27)
    )
    if request.param != "float32":
        return 1e-10
    monkeypatch.setattr(host, "DOUBLE_MARGINS", 0)
    return 1e-4


def many_candidates() -> Candidates:
    """Fifty columns and all their pairs: more products than are always kept."""
    candidates = candidates_of(np.random.default_rng(3).normal(size=(20, 50)), 2)
    candidates.add(itertools.combinations_with_replacement(range(50), 2))
    assert len(candidates) > 1024 + 50
    return candidates


def test_pulling_back_through_candidates() -> None:
    """Also after the list has grown between two sweeps."""
    candidates = many_candidates()
    growing = candidates_of(host_rows(candidates).Xt.T, 2)
    columns = columns_of(candidates, np.arange(len(candidates)))
    pairs = list(itertools.combinations_with_replacement(range(50), 2))
    y = np.random.default_rng(0).normal(size=(20, 2))
    for part in (pairs[:10], pairs[:300], pairs):
        growing.add(part)
        found = pulled_back(growing, y)
        assert np.allclose(found, y.T @ columns[:, : len(growing)], rtol=0, atol=1e-12)


def test_large_tables_are_swept_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven digits of what float64 gives, and the terms themselves have all of theirs."""
    y = np.random.default_rng(0).normal(size=(20, 2))
    expected = pulled_back(many_candidates(), y)
    monkeypatch.setattr(host, "DOUBLE_SWEEPS", 0)
    candidates = many_candidates()
    found = pulled_back(candidates, y)
    assert np.allclose(found, expected, rtol=0, atol=1e-5)
    assert not np.array_equal(found, expected)
    assert columns_of(candidates, np.arange(3)).dtype == np.float64


def test_diagonal_grows_with_the_candidates(kept_margins: float) -> None:
    """Margins of columns are kept between two sweeps, but never go stale."""
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(20, 50)), np.arange(20) % 2
    near = class_neighborhoods(ENGINE, X, labels, 3)
    candidates = candidates_of(X, 2)
    rows = host_rows(candidates)
    rows.use(near)
    pairs = list(itertools.combinations_with_replacement(range(50), 2))
    for part in ([], pairs[:10], pairs[:300], pairs):
        candidates.add(part)
        rows.inside = rng.exponential(size=20)
        every = candidates.terms(np.arange(len(candidates)))
        margins = rows.graph.column_margins(rows.columns(every))
        assert np.allclose(rows.diagonal(every), rows.inside @ margins, rtol=0, atol=kept_margins)


@pytest.mark.parametrize("n_nonzero", [1, 4])
def test_of_many_rows_a_sample_gives_the_diagonal(
    monkeypatch: pytest.MonkeyPatch, n_nonzero: int
) -> None:
    """It says where the power method starts; the vector is that of all rows."""
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(1200, 70)), np.arange(1200) % 2
    X[:, 7] += 1.5 * labels
    X[:, 30] -= labels
    near, weight = class_neighborhoods(ENGINE, X, labels, 5), rng.exponential(size=1200)
    forms = []
    for n_margins in (1200, 400):
        monkeypatch.setattr(host, "MARGIN_ROWS", n_margins)
        candidates = candidates_of(X, 1)
        host_rows(candidates).use(near)
        host_rows(candidates).inside = weight
        forms.append(step_form(candidates, np.arange(70), n_nonzero))
    all_rows, some_rows = forms
    assert (all_rows.rough, some_rows.rough) == (False, True)
    assert np.corrcoef(all_rows.diagonal(), some_rows.diagonal())[0, 1] > 0.9
    assert not np.allclose(all_rows.diagonal(), some_rows.diagonal())
    (support, xi), (expected, values) = (
        sparse_eigenvector(form, n_nonzero) for form in (some_rows, all_rows)
    )
    assert support.tolist() == expected.tolist()
    assert np.allclose(xi, values, atol=1e-12)


def test_given_constants_hold_in_sweeps_too() -> None:
    """A start metric may centre and scale a product itself; every view of it must agree."""
    candidates = candidates_of(np.random.default_rng(5).normal(size=(20, 3)), 2)
    candidates.add([(0, 1)])
    candidates.fix_moments(np.array([3]), np.array([[0.1, 3.0]]))
    with pytest.raises(ValueError, match="standardised already"):
        candidates.fix_moments(np.array([1]), np.array([[0.5, 2.0]]))
    y = np.random.default_rng(0).normal(size=(20, 2))
    assert np.allclose(pulled_back(candidates, y), y.T @ columns_of(candidates, np.arange(4)))


# --- screening


def noise(seed: int, n: int = 300, p: int = 202) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.permutation(np.arange(n) % 2)


def planted(seed: int) -> tuple[Array, Array]:
    """Columns 40 and 90 agree in sign for one class only; column 150 spreads more in it."""
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
    """An interaction without marginal effect and a difference in spread, of 200 noise columns."""
    X, labels = planted(seed)
    found = screen_pairs(X, labels, 202)
    assert set(found.pairs[:2]) == {(40, 90), (150, 150)}
    assert len(found.pairs) <= 4
    assert found.n_screened == 202
    assert found.scores == sorted(found.scores, reverse=True)


def test_pure_noise_is_mostly_left_alone() -> None:
    """Of twenty tables of noise at most three have a pair above the threshold."""
    tables = [noise(seed, p=60) for seed in range(20)]
    found = [len(screen_pairs(X, labels, 60).pairs) for X, labels in tables]
    assert sum(count > 0 for count in found) <= 3


def test_scores_are_those_of_a_double_loop() -> None:
    """Pair by pair, with the pairs above the noise in the same order."""
    X, labels = planted(1)
    columns = [*range(20), 40, 90, 150]
    X = X[:, columns]
    found = screen_pairs(X, labels, 23)
    expected = literal.screened_pairs(X, labels, 23)
    assert found.pairs == [pair for _, pair in expected]
    assert np.allclose(found.scores, [score for score, _ in expected], rtol=1e-10)
    assert {(20, 21), (22, 22)} <= set(found.pairs)


def test_blocks_of_columns_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a pair's columns lie in different blocks."""
    X, labels = planted(2)
    whole = screen_pairs(X, labels, 202)
    monkeypatch.setattr(screening, "TILE", 7)
    parts = screen_pairs(X, labels, 202)
    assert parts.pairs == whole.pairs
    assert np.allclose(parts.scores, whole.scores, rtol=1e-12)


def test_number_of_pairs_caps_the_list() -> None:
    X, labels = planted(0)
    best = screen_pairs(X, labels, 202)
    assert screen_pairs(X, labels, 1).pairs == best.pairs[:1]


def test_small_budget_screens_among_the_columns_that_differ() -> None:
    """Work for 30 columns: the spread is among them, and pairs are numbered as in the table."""
    X, labels = planted(0)
    found = screen_pairs(X, labels, 202, budget=300 * 30**2)
    assert found.n_screened == 30
    assert found.pairs[0] == (150, 150)
    assert screen_pairs(X, labels, 202, budget=300 * 202**2).n_screened == 202


def test_columns_without_variance_within_a_class_score_nothing() -> None:
    """A constant within both classes has no deviation to divide by."""
    X, labels = noise(0, n=50, p=3)
    X[:, 1] = np.where(labels == 1, 1.0, -1.0)
    assert all(1 not in pair for pair in screen_pairs(X, labels, 9).pairs)
    three = (labels + 2 * (np.arange(50) % 2)) % 3
    X[:, 1] = three
    assert all(1 not in pair for pair in screen_pairs(X, three, 9, threshold=1e-9).pairs)


def three_classes(seed: int, n: int = 240, p: int = 60) -> tuple[Array, Array]:
    """Columns 4 and 9 are alike, opposite or unrelated; column 15 spreads unequally."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, p)), rng.permutation(np.arange(n) % 3)
    sign = np.array([1.0, -1.0, 0.0])[labels]
    X[:, 9] = np.where(sign == 0, X[:, 9], sign * np.sign(X[:, 4]) * np.abs(X[:, 9]))
    X[:, 15] *= np.array([0.6, 1.0, 1.6])[labels]
    return standardised(X), labels


@pytest.mark.parametrize("seed", range(3))
def test_interaction_and_spread_of_three_classes_are_found(seed: int) -> None:
    """Neither column of the interaction has any effect of its own."""
    X, labels = three_classes(seed)
    found = screen_pairs(X, labels, 60)
    assert set(found.pairs[:2]) == {(4, 9), (15, 15)}
    assert len(found.pairs) <= 4


@pytest.mark.parametrize("counts", [[80, 80, 80], [100, 90, 12, 5], [30] * 8, [5] * 6])
def test_scores_of_several_classes_are_those_of_a_double_loop(counts: list[int]) -> None:
    """The root of chi2 and its threshold; a class of few rows has no say among large ones."""
    rng = np.random.default_rng(len(counts))
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.normal(size=(len(labels), 12))
    X[:, 3] = np.where(labels % 2, 1.0, -1.0) * X[:, 2] + 0.2 * X[:, 3]
    X[:, 7] *= np.where(labels == 1, 3.0, 0.5)
    found = screen_pairs(standardised(X), labels, 12)
    expected = literal.screened_pairs(standardised(X), labels, 12)
    assert found.pairs == [pair for _, pair in expected]
    assert (2, 3) in found.pairs
    assert np.allclose(found.scores, [score for score, _ in expected], rtol=1e-10)


def test_two_classes_are_a_special_case_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a prior the root of chi2 of two classes is the studentised difference."""
    rng = np.random.default_rng(0)
    means, errors = rng.normal(size=(3, 40)), rng.exponential(size=(3, 40))
    errors[2] = 1e12  # a third class that says nothing
    monkeypatch.setattr(screening, "PRIOR_ROWS", 0)
    three = screening._separation(means, errors, [9, 9, 9])
    assert np.allclose(three, screening._separation(means[:2], errors[:2], [9, 9]), rtol=1e-9)


def test_threshold_is_exceeded_as_often_with_several_classes() -> None:
    """The tail of chi2 is that of the normal; beyond what floats hold it stays finite."""
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
    """Also where classes are small: their variances are now and then far too small."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = standardised(rng.normal(size=(sum(counts), 60)))
        found += len(screen_pairs(X, np.repeat(np.arange(len(counts)), counts), 60).pairs)
    assert found <= 2


def test_small_budget_with_three_classes() -> None:
    """Columns that differ in spread, or in mean, in some class are screened."""
    X, labels = three_classes(0)
    X[:, 30] += 2.0 * (labels == 2)
    found = screen_pairs(X, labels, 60, budget=240 * 5**2, threshold=-np.inf)
    assert found.n_screened == 5
    assert {15, 30} <= {column for pair in found.pairs for column in pair}


def test_blocks_change_nothing_for_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = three_classes(1)
    labels = np.arange(240) % 12
    whole = screen_pairs(X, labels, 60, threshold=2.0)
    monkeypatch.setattr(screening, "TILE", 20)
    parts = screen_pairs(X, labels, 60, threshold=2.0)
    assert parts.pairs == whole.pairs
    assert np.allclose(parts.scores, whole.scores, rtol=1e-12)


# --- the gate


def hubs() -> tuple[Array, Array, Array, Array]:
    """Two hundred rows, three of a rare class: everybody's neighbours are the same three."""
    rng = np.random.default_rng(0)
    n, k = 203, 3
    same = np.array([[(i + 1 + j) % 200 for j in range(k)] for i in range(200)])
    rare = np.array([[200 + (i + 1 + j) % 3 for j in range(2)] for i in range(3)])
    other = np.tile([200, 201, 202], (n, 1))
    other[200:] = rng.integers(0, 200, (3, k))
    same = np.vstack([same, np.hstack([rare, rare[:, :1]])])
    z = rng.normal(size=n)
    z[200:] = 2.5 + 0.1 * rng.normal(size=3)  # noise that happens to set the three apart
    return z, same, other, rng.permutation(n) < 100


def test_hubs_pass_a_naive_test_but_not_the_gate() -> None:
    """Row by row the gain looks certain; over shares of rows it is three rows' word."""
    z, same, other, left_out = hubs()
    graph = ENGINE.graph(same, other)
    weight = left_out.astype(float)
    gain = graph.margins(z[:, None])[left_out]
    naive = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain)))
    assert naive > 5
    assert t_statistic(*graph.share_sums(z[:, None], weight)[0]) < 2.5


def test_a_column_that_sets_whole_classes_apart_passes_the_gate() -> None:
    """The same number of rows, balanced classes: the evidence comes from everywhere."""
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
    """Equal shares: certain gain, certain loss, and nothing at all."""
    assert t_statistic(4.0, 0.0) == np.inf
    assert t_statistic(-4.0, 0.0) == -np.inf
    assert t_statistic(0.0, 0.0) == -np.inf


def gated_step(seed: int) -> tuple[Array, Candidates, Array, Array]:
    """A over a bag, the candidates with their graph, and the weights of the rows out of the bag."""
    rng = np.random.default_rng(seed)
    labels = np.arange(80) % 2
    X = rng.normal(size=(80, 6))
    X[:, 2] += 2.0 * labels
    candidates = candidates_of(X, 1)
    rows = host_rows(candidates)
    rows.begin(labels, np.ones(80))
    rows.use(class_neighborhoods(ENGINE, X, labels, 4))
    rows.margins, bag = np.zeros(80), rng.permutation(80) < 40
    rows.weigh(bag)
    return rows.matrix(candidates.terms(np.arange(6))), candidates, X, (~bag).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_trimming_takes_the_best_truncation(seed: int) -> None:
    """The literal loop's choice: entries in order, values and statistic; it can only gain."""
    A, candidates, X, left_out = gated_step(seed)
    form, rows = literal.MatrixForm(A), host_rows(candidates)
    support, xi = sparse_eigenvector(form, 5)
    t, kept, values = trimmed(form, support, xi, rows, candidates.terms(support))
    edges = literal.edge_list(rows.graph.same.tolist(), rows.graph.other.tolist())
    expected = literal.trimmed(A, support.tolist(), xi, X, edges, left_out)
    assert t == pytest.approx(expected[0], rel=1e-10)
    assert support[kept].tolist() == expected[1]
    assert np.allclose(values * np.sign(values @ expected[2]), expected[2], atol=1e-10)
    assert t >= literal.gate_statistic(X[:, support] @ xi, edges, left_out) - 1e-10


def test_trimming_drops_noise_beside_one_strong_column() -> None:
    """Of five entries the step keeps fewer, the strong column among them, in most bags."""
    sizes = []
    for seed in range(10):
        A, candidates, _, _ = gated_step(seed)
        form = literal.MatrixForm(A)
        support, xi = sparse_eigenvector(form, 5)
        _, kept, _ = trimmed(form, support, xi, candidates.rows, candidates.terms(support))
        assert 2 in support[kept]
        sizes.append(len(kept))
    assert np.mean(np.array(sizes) < 5) >= 0.7


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


def noisy(place: Array, noise: float, seed: int = 0) -> Array:
    return place + noise * np.random.default_rng(seed).normal(size=place.shape)


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


# --- scaling


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1.0, 1e30, 1e150])
def test_columns_of_any_size_are_standardised(size: float) -> None:
    """Neither squares of 1e150 nor of 1e-150 are ever formed."""
    Z = np.random.default_rng(0).normal(size=(50, 3)) + 2
    scaling = Scaling.of(size * Z, standardize=True)
    X = scaling.transposed(size * Z).T
    assert scaling.kept.tolist() == [0, 1, 2]
    assert np.allclose(X, (Z - Z.mean(axis=0)) / Z.std(axis=0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 0.1, 1e8 / 3, 1e150 / 7, 1e-150 / 7])
@pytest.mark.parametrize("standardize", [True, False])
def test_constant_columns_are_left_out(value: float, standardize: bool) -> None:
    """Whatever rounding makes of their mean; the others keep their numbers."""
    X = np.random.default_rng(1).normal(size=(49, 3))
    X[:, 1] = value
    scaling = Scaling.of(X, standardize)
    assert scaling.kept.tolist() == [0, 2]
    assert scaling.transposed(X).T.shape == (49, 2)
    assert np.isfinite(scaling.transposed(X).T).all()


def test_rounding_is_not_variation() -> None:
    """One last bit of 1e8 is no signal, one in 1e6 is."""
    X = np.full((40, 2), 1e8)
    X[0, 0] = np.nextafter(1e8, 2e8)
    X[0, 1] += 100.0
    assert Scaling.of(X, standardize=True).kept.tolist() == [1]


def test_columns_as_given_are_not_touched() -> None:
    X = np.random.default_rng(2).normal(size=(20, 3)) * 7 + 3
    assert np.array_equal(Scaling.of(X, standardize=False).transposed(X).T, X)


# --- the start


def test_start_from_nothing_and_from_the_identity() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    candidates, scaling = candidates_of(X, 2), Scaling.of(X, standardize=True)
    assert not len(start_factor(candidates, scaling, "zero").index)
    factor = start_factor(candidates, scaling, "identity")
    assert np.array_equal(factor.matrix @ factor.matrix.T, np.eye(3))


def test_start_from_a_matrix_skips_constant_columns() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4))
    X[:, 1] = 2.0
    scaling = Scaling.of(X, standardize=True)
    B = np.random.default_rng(1).normal(size=(4, 4))
    factor = start_factor(candidates_of(scaling.transposed(X).T, 1), scaling, B @ B.T)
    assert factor.index.tolist() == [0, 1, 2]
    expected = (B @ B.T)[np.ix_([0, 2, 3], [0, 2, 3])]
    assert np.allclose(factor.matrix @ factor.matrix.T, expected)


def test_start_from_a_sparse_matrix_uses_its_columns_alone() -> None:
    """A rank-one start on three columns of eight: the others have no weight at all."""
    v = np.zeros(8)
    v[[1, 4, 5]] = 1.0, 2.0, -0.5
    X = np.random.default_rng(0).normal(size=(20, 8))
    scaling = Scaling.of(X, standardize=True)
    factor = start_factor(candidates_of(scaling.transposed(X).T, 1), scaling, np.outer(v, v))
    assert factor.index.tolist() == [1, 4, 5]


def test_start_from_a_metric_keeps_its_constants_and_terms() -> None:
    """Its terms become candidates after the columns; its distances are reproduced."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 4)) * 3 + 1
    X[:, 0] = 5.0  # constant, so not a candidate
    metric = SparseMetric(
        [(3, 1), (2,)], rng.normal(size=(2, 2)), rng.normal(size=4), rng.uniform(1, 2, 4),
        [0.2, 0.0], [1.5, 1.0],
    )  # fmt: skip
    scaling = start_scaling(Scaling.of(X, standardize=True), metric)
    candidates = candidates_of(scaling.transposed(X).T, 2)
    factor = start_factor(candidates, scaling, metric)
    assert terms_of(candidates) == [(0,), (1,), (2,), (0, 2)]
    assert factor.index.tolist() == [1, 3]
    rows = host_rows(candidates)
    rows.begin(np.arange(20) % 2, np.ones(20))
    rows.embed(candidates.terms(factor.index), factor.matrix)
    place = rows.embedding()
    expected = metric.pairwise_distance(X)
    assert np.allclose(literal.squared_distances(place), expected**2, atol=1e-10)


def test_nothing_learned_is_the_identity_on_the_columns_that_vary() -> None:
    """A gate nothing passes: thirty attempts, then all columns alike."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40, 4)), np.arange(40) % 2
    X[:, 2] = 1.0
    boosting = BoostingOptions(100, 5, 2, 0.1, 0.5, None, 5, 1e9, 0)
    options = LearningOptions(boosting, 2, 0, "auto", 1.0, True, "zero")
    learned = learn(X, labels, np.ones(40), ENGINE, options)
    assert (learned.best_iter, learned.path.n_attempts) == (0, literal.PATIENCE)
    metric = learned.metric(learned.factor, None)
    assert metric.columns == [(0,), (1,), (3,)]
    assert np.array_equal(metric.matrix(), np.eye(3))


# --- several classes


@pytest.mark.parametrize("multiclass", MULTICLASS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_numbered_otherwise_give_the_same_metric(
    multiclass: Literal["common", "coded"], n_classes: int
) -> None:
    """Which class has which number does not matter to a distance."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(100, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    boosting = BoostingOptions(30, 8, 3, 0.1, 0.7, None, 5, 0.0, 0, multiclass)
    options = LearningOptions(boosting, 2, "auto", "auto", 0.0, True, "zero")
    found = []
    for order in (np.arange(n_classes), np.roll(np.arange(n_classes), 1)):
        learned = learn(X, order[labels], np.ones(100), ENGINE, options)
        found.append(learned.metric(learned.factor, None))
        assert learned.best_iter > 5
    assert found[0].columns == found[1].columns
    assert np.allclose(found[0].matrix(), found[1].matrix(), rtol=1e-8, atol=1e-12)


def test_the_two_readings_of_several_classes_differ() -> None:
    """A class far away is no neighbour together with a near one, and half of them "coded"."""
    labels = np.arange(90) % 3
    place = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 30.0]])[labels]
    X = noisy(place, 1.0)
    for multiclass, far in zip(MULTICLASS, (0.0, 0.5)):
        near = class_neighborhoods(ENGINE, X, labels, 5, multiclass)
        assert (labels[near.other[labels == 0]] == 2).mean() == far


# --- what grows with the steps


def test_many_columns_are_rotated_without_changing_distances() -> None:
    """A hundred steps of rank three end in three columns, one of them a thousandth as long."""
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(30, 3)), np.arange(30) % 2
    candidates = candidates_of(X, 1)
    rows, every = host_rows(candidates), candidates.terms(np.arange(3))
    rows.begin(labels, np.ones(30))
    steps = rng.normal(size=(3, 100)) * np.array([[1.0], [1.0], [1e-3]])
    for step in steps.T:
        rows.embed(every, step[:, None])
    rows.refresh(training_lists(labels, 2, "common"), 3)
    place = rows.embedding()
    assert place.shape == (30, 3)
    expected = literal.squared_distances(X, steps @ steps.T)
    assert np.allclose(literal.squared_distances(place), expected, rtol=1e-10, atol=1e-10)


def test_without_steps_neighbours_are_plain_and_margins_zero() -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(30, 3)), np.arange(30) % 2
    rows = host_rows(candidates_of(X, 1))
    rows.begin(labels, np.ones(30))
    rows.refresh(training_lists(labels, 2, "common"), 0)
    assert rows.embedding().shape == (30, 0)
    assert not rows.margins.any()
    assert np.array_equal(rows.graph.same, class_neighborhoods(ENGINE, X, labels, 2).same)


def test_selected_terms_keep_the_order_of_their_first_selection() -> None:
    selected = Selected(np.array([4]))
    assert selected.add(np.array([7, 2])) == [4, 7, 2]
    assert selected.add(np.array([2, 9, 4])) == [4, 7, 2, 9]
    assert len(selected) == 4


# --- wide tables


@pytest.mark.parametrize("kind", ["normal", "planted", "two values", "all alike"])
@pytest.mark.parametrize("threads", [1, 2])
def test_rough_scores_leave_out_no_pair(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scored in float32 first, in several blocks and threads: the same pairs and scores."""
    X, labels = planted(0) if kind == "planted" else noise(1)
    if kind == "two values":
        X = np.where(X > 0, 1.0, -1.0)
    elif kind == "all alike":
        X = X[:, [0] * 200] + 1e-3 * X[:, :200]
        X[labels == 1] *= 2.0
    monkeypatch.setattr(screening, "TILE", 64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = screen_pairs(X, labels, 200, margin=-1.0)
    monkeypatch.setattr(screening, "ROUGH_COLUMNS", 0)
    found = screen_pairs(X, labels, 200, margin=-1.0, threads=threads)
    assert found.pairs == expected.pairs
    assert np.allclose(found.scores, expected.scores, rtol=1e-12)
    assert found.pairs


@pytest.mark.parametrize("kind", ["normal", "whole numbers", "negative", "equal", "twelve digits"])
@pytest.mark.parametrize("k", [1, 5, 16])
def test_the_largest_of_a_long_row_are_those_of_a_short_one(
    kind: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sought among few entries, but the same ones, ties by number."""
    rng = np.random.default_rng(k)
    values = {
        "normal": rng.normal(size=(3, 6410)),
        "whole numbers": rng.integers(0, 4, (3, 6410)).astype(float),
        "negative": -np.exp(rng.normal(size=(3, 6410))),
        "equal": np.zeros((3, 6410)),
        "twelve digits": 1 + 1e-13 * rng.normal(size=(3, 6410)),
    }[kind]
    found = largest(values, k)
    assert largest(values[:0], k).shape == (0, k)
    monkeypatch.setattr(_rounding, "RUN", 10**9)
    assert np.array_equal(found, largest(values, k))
