"""Evidence for classes from embedded rows: every readout against its definition, row by row."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as RidgeRegression
from sklearn.svm import SVC

from metricboost.engines import FEW_QUERIES, get_engine, native_available
from metricboost.engines.flats import BLOCK
from metricboost.model.readouts import (
    READOUTS,
    Additive,
    Hull,
    Kernel,
    Linear,
    Margin,
    Mixture,
    Queries,
    Readout,
    Ridge,
    Training,
    Votes,
    evidence,
    in_span,
    readouts,
)
from metricboost.model.readouts.additive import ABSOLUTE_PENALTY, MOST_TERMS, PARTS, Steps
from metricboost.model.readouts.hull import CLASSES_WITH_FLATS
from metricboost.model.readouts.kernel import median_squared

Array = npt.NDArray[Any]
ENGINE = get_engine("auto")
ENGINES = ["numpy", *(["native"] if native_available() else [])]
ALL_KINDS: list[Readout] = [
    Margin(3), Margin(500), Hull(5, 0.3), Hull(500, 3.0), Votes(4), Kernel(1.0, 1.0),
    Mixture(0.9, 2), Linear(0.5),
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Whatever the rows are, nothing is divided by zero and nothing overflows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def table(n_classes: int, seed: int = 0, n: int = 90, dimensions: int = 3) -> Training:
    """Overlapping clouds of unequal sizes, with weights."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, n)]
    centres = 2.0 * rng.normal(size=(n_classes, dimensions))
    rows = centres[labels] + rng.normal(size=(len(labels), dimensions))
    return Training(rows, labels, rng.uniform(0.2, 3.0, len(labels)), n_classes)


def queries_for(training: Training, n: int = 40) -> Array:
    rng = np.random.default_rng(99)
    spread = training.rows.std(axis=0)
    result: Array = training.rows.mean(axis=0) + 1.5 * spread * rng.normal(
        size=(n, training.rows.shape[1])
    )
    return result


def unweighted(training: Training) -> Training:
    return replace(training, weight=np.ones(len(training.labels)))


def found(training: Training, queries: Array, readout: Readout, engine: str = "auto") -> Array:
    return evidence(get_engine(engine), training, queries, [readout])[readout]


def nearest_of_class(training: Training, x: Array, c: int, k: int) -> tuple[Array, Array]:
    """The k nearest rows of a class and their weights, by sorting."""
    own = np.flatnonzero(training.labels == c)
    squared = ((training.rows[own] - x) ** 2).sum(axis=1)
    own = own[np.argsort(squared, kind="stable")[:k]]
    return training.rows[own], training.weight[own]


def margin(training: Training, x: Array, c: int, k: int) -> float:
    rows, weight = nearest_of_class(training, x, c, k)
    return float(np.average(((rows - x) ** 2).sum(axis=1), weights=weight))


def flat(training: Training, x: Array, c: int, k: int, ridge: float) -> float:
    """``min_a |x - mean - Z'a|^2 + r |a|^2`` as a least squares problem."""
    rows, weight = nearest_of_class(training, x, c, k)
    share = weight / weight.sum()
    mean = share @ rows
    Z = np.sqrt(share)[:, None] * (rows - mean)
    r = ridge * (Z**2).sum() / len(Z)
    design = np.vstack([Z.T, np.sqrt(r) * np.eye(len(Z))])
    target = np.r_[x - mean, np.zeros(len(Z))]
    a = np.linalg.lstsq(design, target, rcond=None)[0]
    return float(((target - design @ a) ** 2).sum())


def by_hand(training: Training, queries: Array, of_class: Any, *parameters: float) -> Array:
    """Minus the log of a squared distance, for all queries and classes."""
    classes = range(training.n_classes)
    squared = [[of_class(training, x, c, *parameters) for c in classes] for x in queries]
    return -np.log(np.array(squared))


# --- margins and flats


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_margin(engine: str, n_classes: int, k: int) -> None:
    """The weighted mean squared distance to the k nearest rows of each class."""
    training = table(n_classes)
    queries = queries_for(training)
    expected = by_hand(training, queries, margin, k)
    assert_allclose(found(training, queries, Margin(k), engine), expected, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("k", "ridge"), [(2, 0.3), (6, 0.01), (6, 3.0), (20, 1.0)])
def test_hull(engine: str, n_classes: int, k: int, ridge: float) -> None:
    """The minimum over the flat, found as a least squares problem."""
    training = table(n_classes)
    queries = queries_for(training)
    expected = by_hand(training, queries, flat, k, ridge)
    assert_allclose(found(training, queries, Hull(k, ridge), engine), expected, rtol=1e-7)


@pytest.mark.parametrize("dimensions", [1, 2, 40])
def test_hull_in_few_and_in_many_dimensions(dimensions: int) -> None:
    """There may be more neighbours than directions, or fewer."""
    training = table(3, dimensions=dimensions)
    queries = queries_for(training, 15)
    expected = by_hand(training, queries, flat, 8, 0.5)
    assert_allclose(found(training, queries, Hull(8, 0.5)), expected, rtol=1e-7)


def test_hull_with_a_large_ridge_is_the_distance_to_the_mean() -> None:
    """With a large ridge only the mean of the rows counts."""
    training = table(3)
    queries = queries_for(training)

    def to_the_mean(training: Training, x: Array, c: int) -> float:
        rows, weight = nearest_of_class(training, x, c, 7)
        return float(((x - np.average(rows, axis=0, weights=weight)) ** 2).sum())

    expected = by_hand(training, queries, to_the_mean)
    assert_allclose(found(training, queries, Hull(7, 1e12)), expected, rtol=1e-6)


def test_hull_of_one_neighbour_is_its_distance() -> None:
    training = table(3)
    queries = queries_for(training)
    expected = found(training, queries, Margin(1))
    assert_allclose(found(training, queries, Hull(1, 0.3)), expected, rtol=1e-9)


def test_a_flat_is_nearer_than_its_rows_and_nearer_with_less_ridge() -> None:
    training = table(3)
    queries = queries_for(training, 200)
    tried: list[Readout] = [Margin(8), Hull(8, 10.0), Hull(8, 1.0), Hull(8, 0.1), Hull(8, 1e-3)]
    values = list(evidence(ENGINE, training, queries, tried).values())
    for farther, nearer in itertools.pairwise(values):
        assert (nearer >= farther - 1e-9).all()


def test_rows_on_a_line_are_a_surface() -> None:
    """A query between far rows of a line is near the flat, but far from every row."""
    far = np.stack([np.linspace(-10, 10, 6), np.zeros(6)], axis=1)
    near = np.stack([np.linspace(-1, 1, 6), np.full(6, 3.0)], axis=1)
    rows, labels = np.vstack([far, near]), np.repeat([0, 1], 6)
    training = Training(rows, labels, np.ones(12), 2)
    query = np.array([[0.0, 0.5]])
    assert found(training, query, Margin(6)).argmax() == 1
    assert found(training, query, Hull(6, 0.01)).argmax() == 0


# --- weights


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_twice_is_a_weight_of_two_in_the_margin(n_classes: int) -> None:
    """This holds if k is at least the size of the class: no row then takes another row's place."""
    training = table(n_classes)
    queries = queries_for(training)
    again = np.r_[np.arange(len(training.labels)), 5, 11]
    twice = Training(
        training.rows[again], training.labels[again], training.weight[again], n_classes
    )
    heavier = training.weight.copy()
    heavier[[5, 11]] *= 2
    heavy = replace(training, weight=heavier)
    expected = found(heavy, queries, Margin(1000))
    assert_allclose(found(twice, queries, Margin(1000)), expected, rtol=1e-10)
    assert not np.allclose(found(training, queries, Margin(1000)), expected, rtol=1e-3)


def test_a_row_twice_is_a_weight_of_two_in_the_hull() -> None:
    """The ridge is a share of the mean square over k rows, so it grows with their number."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 4))
    queries = rng.normal(size=(20, 4))
    once = Training(rows, np.repeat([0, 1], 6), np.r_[2.0, np.ones(10), 2.0], 2)
    again = np.r_[0, np.arange(12), 11]
    twice = Training(rows[again], once.labels[again], np.ones(14), 2)
    expected = found(once, queries, Hull(6, 0.6))
    assert_allclose(found(twice, queries, Hull(7, 0.7)), expected, rtol=1e-8)


@pytest.mark.parametrize("readout", ALL_KINDS[:5], ids=str)
def test_the_scale_of_the_weights_does_not_matter(readout: Readout) -> None:
    """Scaled weights change the evidence of all classes by one constant. Kernels are not tested."""
    training = table(3)
    queries = queries_for(training)
    scaled = replace(training, weight=7 * training.weight)
    difference = found(scaled, queries, readout) - found(training, queries, readout)
    assert_allclose(difference, difference[:, :1] + np.zeros(3), atol=1e-9)


@pytest.mark.parametrize("readout", [Votes(9), Kernel(1.0, 1.0)], ids=str)
def test_heavier_rows_have_more_to_say(readout: Readout) -> None:
    """Where the rows of two classes overlap, the class with larger weights wins more often."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(120, 2)), np.arange(120) % 2
    queries = rng.normal(size=(200, 2))
    plain, heavy = (
        found(Training(rows, labels, weight, 2), queries, readout) @ [-1, 1]
        for weight in (np.ones(120), np.where(labels == 1, 4.0, 1.0))
    )
    assert (heavy > 0).mean() > (plain > 0).mean() + 0.2


@pytest.mark.parametrize("readout", [Margin(40), Hull(40, 30.0)], ids=str)
def test_heavy_rows_are_where_their_class_is(readout: Readout) -> None:
    """Heavy rows near a query bring their class nearer to it."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(80, 2)), np.arange(80) % 2
    heavy = np.where((rows[:, 0] > 0) & (labels == 1), 10.0, 1.0)
    training = Training(rows, labels, heavy, 2)
    right, left = (found(training, np.array([[x, 0.0]]), readout)[0] for x in (1.5, -1.5))
    plain = replace(training, weight=np.ones(80))
    assert right[1] > found(plain, np.array([[1.5, 0.0]]), readout)[0, 1]
    assert left[1] < found(plain, np.array([[-1.5, 0.0]]), readout)[0, 1]
    assert_allclose(right[0], found(plain, np.array([[1.5, 0.0]]), readout)[0, 0])


# --- votes


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 5, 30])
def test_votes(engine: str, n_classes: int, k: int) -> None:
    """Weights of the classes among the k nearest rows, and half a row for each class."""
    training = table(n_classes)
    queries = queries_for(training)
    order = np.argsort(cdist(queries, training.rows), axis=1, kind="stable")[:, :k]
    counts = np.zeros((len(queries), n_classes))
    for i, near in enumerate(order):
        for row in near:
            counts[i, training.labels[row]] += training.weight[row]
    expected = np.log(counts + 0.5 * training.weight.mean())
    assert_allclose(found(training, queries, Votes(k), engine), expected, rtol=1e-10)


# --- many classes


@pytest.fixture
def letters() -> Training:
    """Twelve classes that overlap a little, in two dimensions."""
    return table(12, seed=1, n=400, dimensions=2)


def with_all_flats(training: Training, queries: Array, readout: Hull) -> Array:
    """The evidence of a hull if the flats of all classes are computed.

    Evidence for a class depends on its own rows alone, so a few classes are taken at a time.
    """
    columns = []
    for first in range(0, training.n_classes, CLASSES_WITH_FLATS):
        classes = np.arange(first, min(first + CLASSES_WITH_FLATS, training.n_classes))
        own = np.isin(training.labels, classes)
        part = Training(
            training.rows[own], training.labels[own] - first, training.weight[own], len(classes)
        )
        columns.append(found(part, queries, readout))
    return np.hstack(columns)


def test_flats_of_the_nearest_classes_only(letters: Training) -> None:
    """Other classes keep their margin, which is never less than the flat, so they cannot win."""
    queries = queries_for(letters, 300)
    readout = Hull(10, 0.3)
    some, margins = found(letters, queries, readout), found(letters, queries, Margin(10))
    all_flats = with_all_flats(letters, queries, readout)
    assert_allclose(all_flats, by_hand(letters, queries, flat, 10, 0.3), rtol=1e-6)
    nearest = np.argsort(-margins, axis=1)
    for i, order in enumerate(nearest):
        assert_allclose(some[i, order[:4]], all_flats[i, order[:4]], rtol=1e-10)
        assert_allclose(some[i, order[4:]], margins[i, order[4:]], rtol=1e-10)
    assert (some.argmax(axis=1)[:, None] == nearest[:, :4]).any(axis=1).all()


@pytest.fixture(scope="module")
def digits() -> tuple[Training, Array, Array]:
    """Ten classes in twenty directions, and queries with their classes."""
    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    X = X @ np.linalg.svd(X, full_matrices=False)[2][:20].T
    return Training(X[:900], y[:900], np.ones(900), 10), X[900:], y[900:]


@pytest.mark.parametrize("readout", Hull.grid(None), ids=str)
def test_the_shortlist_does_not_change_the_answer(
    readout: Hull, digits: tuple[Training, Array, Array]
) -> None:
    """In 99% of the rows: a class whose rows are far but whose flat is near could have won."""
    training, queries, truth = digits
    some = found(training, queries, readout).argmax(axis=1)
    everything = with_all_flats(training, queries, readout).argmax(axis=1)
    assert (some == everything).mean() > 0.99
    assert abs((some == truth).mean() - (everything == truth).mean()) < 0.002
    assert (some == truth).mean() > 0.95


@pytest.mark.parametrize("n_classes", [2, 4, 5])
def test_blocks_of_queries_change_nothing(n_classes: int) -> None:
    """More queries than one block has, and the same queries a few at a time."""
    training = table(n_classes)
    queries = queries_for(training, 3 * BLOCK)
    whole = found(training, queries, Hull(6, 0.3))
    parts = [found(training, part, Hull(6, 0.3)) for part in np.array_split(queries, 100)]
    assert_allclose(np.concatenate(parts), whole, rtol=1e-12)


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_classes_numbered_otherwise(readout: Readout, n_classes: int) -> None:
    """Other numbers of the classes give the same evidence."""
    training = unweighted(table(n_classes))
    queries = queries_for(training)
    order = np.random.default_rng(0).permutation(n_classes)
    other = replace(training, labels=order[training.labels])
    expected = found(training, queries, readout)
    assert expected.shape == (40, n_classes)
    assert_allclose(found(other, queries, readout)[:, order], expected, rtol=1e-3, atol=2e-3)


# --- rows that coincide, classes that are small


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_coinciding_rows(readout: Readout, n_classes: int) -> None:
    """All rows of a class coincide: the evidence at these points is finite, and right."""
    points = np.random.default_rng(0).normal(size=(n_classes, 2))
    labels = np.repeat(np.arange(n_classes), 6)
    training = Training(points[labels], labels, np.ones(len(labels)), n_classes)
    values = found(training, points, readout)
    assert np.isfinite(values).all()
    assert_array_equal(values.argmax(axis=1), np.arange(n_classes))
    assert np.isfinite(found(training, np.full((1, 2), 1e6), readout)).all()


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
def test_all_rows_in_one_point(readout: Readout) -> None:
    """If both classes lie in one point, neither is nearer than the other."""
    training = Training(np.full((10, 3), 0.1), np.arange(10) % 2, np.ones(10), 2)
    for query in (np.full((1, 3), 0.1), np.array([[5.0, -1.0, 0.0]])):
        values = found(training, query, readout)
        assert np.isfinite(values).all()
        assert_allclose(values[:, 0], values[:, 1], atol=1e-6)


def test_the_floor_is_a_share_of_the_variance() -> None:
    """The smallest distance scales with the units of the embedding."""
    training = unweighted(table(2))
    for unit in (1.0, 1e-8, 1e8):
        scaled = replace(training, rows=unit * training.rows)
        near = found(scaled, scaled.rows[:5], Margin(1)).max(axis=1)
        assert_allclose(near, -np.log(1e-9 * scaled.rows.var(axis=0).sum()))


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
@pytest.mark.parametrize("smallest", [1, 2, 3])
def test_classes_with_fewer_rows_than_neighbours(readout: Readout, smallest: int) -> None:
    """Small classes have finite evidence, from all of their rows."""
    rng = np.random.default_rng(0)
    labels = np.r_[np.zeros(30, dtype=int), np.ones(smallest, dtype=int), np.full(20, 2)]
    rows = rng.normal(size=(len(labels), 4)) + 3 * labels[:, None]
    training = Training(rows, labels, np.ones(len(labels)), 3)
    queries = queries_for(training, 12)
    values = found(training, queries, readout)
    assert np.isfinite(values).all()
    if isinstance(readout, Margin):
        expected = -np.log(cdist(queries, rows[labels == 1], "sqeuclidean").mean(axis=1))
        k = min(readout.k, smallest)
        if k == smallest:
            assert_allclose(values[:, 1], expected)


def test_readouts_of_no_rows() -> None:
    """Evidence for no queries is an empty array."""
    training = table(3)
    for readout in (Margin(3), Hull(3, 0.3), Votes(3)):
        assert fitted_first(training, np.empty((0, 3)), readout).shape == (0, 3)


# --- what holds for every readout


def fitted_first(training: Training, rows: Array, readout: Readout) -> Array:
    """Evidence from a readout that is fitted once, as a model does."""
    fitted = readout.fit(training)
    return fitted.evidence(Queries(ENGINE, training, rows, [readout]))


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
def test_readouts_together_are_readouts_alone(readout: Readout) -> None:
    """Neighbours are searched for once for all of them; a readout may also be fitted first."""
    training = table(3)
    queries = queries_for(training)
    together = evidence(ENGINE, training, queries, ALL_KINDS)
    assert list(together) == ALL_KINDS
    assert_allclose(together[readout], found(training, queries, readout), rtol=1e-10)
    assert_allclose(together[readout], fitted_first(training, queries, readout), rtol=1e-10)


@pytest.mark.parametrize("readout", ALL_KINDS, ids=str)
def test_a_moved_and_turned_embedding_says_the_same(readout: Readout) -> None:
    """Evidence depends on distances only."""
    training = table(3)
    queries = queries_for(training)
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    moved = replace(training, rows=training.rows @ turn + 5.0)
    expected = found(training, queries, readout)
    iterative = {Kernel: 1e-3, Mixture: 1e-3, Linear: 1e-2}
    rtol = iterative.get(type(readout), 1e-7)
    assert_allclose(found(moved, queries @ turn + 5.0, readout), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("classifier", ["auto", *READOUTS])
def test_readouts_of_a_classifier(classifier: str) -> None:
    """The grid has the right kinds, and a given number of neighbours is the only one."""
    kinds = {
        "auto": (Margin, Hull, Linear, Additive, Ridge), "margin": Margin, "hull": Hull,
        "knn": Votes, "kernel": Kernel, "mixture": Mixture, "linear": Linear,
        "additive": Additive, "ridge": Ridge,
    }  # fmt: skip
    grid = readouts(classifier, None)
    assert len(set(grid)) == len(grid) > 1
    assert all(isinstance(readout, kinds[classifier]) for readout in grid)
    if classifier == "auto":
        assert {type(readout) for readout in grid} == {Margin, Hull, Linear, Additive, Ridge}
    of_seven = readouts(classifier, 7)
    assert {getattr(readout, "k", 7) for readout in of_seven} == {7}
    assert {type(readout) for readout in of_seven} == {type(readout) for readout in grid}


# --- the linear readout


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dimensions", [3, 120])
def test_linear_is_a_logistic_regression(n_classes: int, dimensions: int) -> None:
    training = table(n_classes, n=150, dimensions=dimensions)
    queries = queries_for(training)
    oracle = LogisticRegression(C=0.3, max_iter=1000)
    oracle.fit(training.rows, training.labels, sample_weight=training.weight)
    values = found(training, queries, Linear(0.3))
    expected = oracle.decision_function(queries)
    if n_classes == 2:
        assert_allclose(values[:, 0], -values[:, 1])
        values = values[:, 1] - values[:, 0]
    assert_allclose(values, expected, rtol=1e-9)


def test_linear_without_terms_has_no_evidence() -> None:
    training = replace(table(3), rows=np.empty((96, 0)))
    assert not found(training, np.empty((5, 0)), Linear(1.0)).any()


# --- the additive readout


def test_steps_lie_between_values() -> None:
    values = np.repeat([0.0, 1.0, 1.0, 2.0, 7.0], 20)
    steps = Steps.of(np.stack([values, np.full(100, 3.0)], axis=1))
    assert steps.terms == [0]
    assert_array_equal(steps.places[0], [0.5, 1.5, 4.5])
    # The first two steps are marked from below, and the last one from above.
    expected = [[0.0, 3.0, 1.0, 1.0, 0.0], [1.2, 3.0, 0.0, 1.0, 0.0], [9.0, 0.0, 0.0, 0.0, 1.0]]
    rows = np.array([[0.0, 3.0], [1.2, 3.0], [9.0, 0.0]])
    assert_array_equal(steps.features(rows).toarray(), expected)


def test_steps_divide_many_values_equally() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 40)) * 1.5 ** np.arange(40)
    steps = Steps.of(values)
    assert steps.terms == list(range(39, 39 - MOST_TERMS, -1))  # the largest deviations first
    for term, places in zip(steps.terms, steps.places):
        shares = np.mean(values[:, term, None] > places, axis=0)
        assert_allclose(shares, 1 - np.arange(1, PARTS) / PARTS, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_additive_is_a_sparse_logistic_regression(n_classes: int) -> None:
    """Its objective is nearly that of an exact solver, for each class against the others."""
    training = table(n_classes, n=150, dimensions=3)
    fitted = Additive(0.3).fit(training)
    steps = Steps.of(training.rows)
    features = steps.features(training.rows).toarray()
    features -= features.mean(axis=0)  # changes the offset only
    log_odds = fitted.evidence(Queries(ENGINE, training, training.rows, []))
    for c in range(n_classes):
        own = training.labels == c
        oracle = LogisticRegression(
            C=0.3, solver="saga", tol=1e-6, max_iter=20_000, random_state=0, **ABSOLUTE_PENALTY
        )
        oracle.fit(features, own, sample_weight=training.weight)

        def loss(log_odds: Array, own: Array = own) -> float:
            losses = np.logaddexp(0, np.where(own, -log_odds, log_odds))
            return float(0.3 * (training.weight * losses).sum())

        best = loss(oracle.decision_function(features)) + np.abs(oracle.coef_).sum()
        both = n_classes == 2
        found_odds = log_odds[:, c] - log_odds[:, 1 - c] if both else log_odds[:, c]
        # The sum of the coefficients of all steps of a term is the sum of all changes.
        changes = [np.abs(np.diff(height[:, c])).sum() for height in fitted.heights]
        penalty = (np.abs(fitted.slopes[:, c]).sum() + sum(changes)) * (2 if both else 1)
        assert best - 1e-3 < loss(found_odds) + penalty < 1.1 * best
    if n_classes == 2:
        assert_allclose(log_odds[:, 0], -log_odds[:, 1])


def test_additive_finds_borders() -> None:
    """Rows are in the first class if three columns are above a border; 5% have the wrong label."""
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(400, 3)), rng.normal(size=(2000, 3))
    inside = [(part > -0.8).all(axis=1) for part in (rows, queries)]
    labels = (inside[0] ^ (rng.random(400) < 0.05)).astype(np.intp)
    training = Training(rows, labels, np.ones(400), 2)
    wrong = {
        readout: np.mean(found(training, queries, readout).argmax(axis=1) != inside[1])
        for readout in (Margin(10), Additive(0.3))
    }
    assert wrong[Additive(0.3)] < 0.6 * wrong[Margin(10)]


def test_additive_without_terms_has_no_evidence() -> None:
    training = replace(table(3), rows=np.empty((96, 0)))
    assert not found(training, np.empty((5, 0)), Additive(1.0)).any()


def test_additive_does_not_depend_on_fits_at_the_same_time() -> None:
    """Liblinear has one state of random numbers for all threads."""
    training = table(3, n=150, dimensions=3)
    queries = queries_for(training)
    expected = found(training, queries, Additive(0.3))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: found(training, queries, Additive(0.3)), range(12)))
    assert all(np.array_equal(one, expected) for one in made)


# --- the ridge readout


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dimensions", [3, 300])
def test_ridge_is_a_ridge_regression(n_classes: int, dimensions: int) -> None:
    training = table(n_classes, n=150, dimensions=dimensions)
    queries = queries_for(training)
    weight = training.weight / training.weight.sum()
    center = weight @ training.rows
    size = weight @ ((training.rows - center) ** 2).sum(axis=1)
    oracle = RidgeRegression(alpha=0.3 * size * training.weight.sum() / len(weight))
    happened = np.eye(n_classes)[training.labels]
    oracle.fit(training.rows, happened, sample_weight=training.weight)
    assert_allclose(found(training, queries, Ridge(0.3)), oracle.predict(queries), rtol=1e-6)


# --- support vector machines


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("readout", [Kernel(0.25, 1.0), Kernel(1.0, 10.0)], ids=str)
def test_kernel_is_a_support_vector_machine(n_classes: int, readout: Kernel) -> None:
    """It equals scikit-learn's SVC with this gamma."""
    training = table(n_classes)
    queries = queries_for(training, 400)  # more than a block
    gamma = 1 / (readout.width * np.median(pdist(training.rows, "sqeuclidean")))
    oracle = SVC(C=readout.cost, gamma=gamma)
    oracle.fit(training.rows, training.labels, sample_weight=training.weight)
    expected = oracle.decision_function(queries)
    values = found(training, queries, readout)
    if n_classes == 2:
        assert_allclose(values[:, 0], -values[:, 1])
        values = values[:, 1]
    assert_allclose(values, expected, atol=1e-2)
    predicted = values.argmax(axis=1) if n_classes > 2 else (values > 0).astype(int)
    assert (predicted == oracle.predict(queries)).mean() > 0.99


def test_median_squared_distance() -> None:
    """Over all pairs of rows, or of evenly spaced rows of many; 1 if all rows coincide."""
    rows = np.random.default_rng(0).normal(size=(60, 3)) + 100.0
    assert_allclose(median_squared(rows), np.median(pdist(rows, "sqeuclidean")), rtol=1e-9)
    many = np.random.default_rng(1).normal(size=(5000, 2))
    assert_allclose(median_squared(many), np.median(pdist(many[::5], "sqeuclidean")), rtol=0.1)
    assert median_squared(np.zeros((5, 2))) == 1.0


# --- mixtures


def clusters(seed: int) -> Training:
    """Classes that take turns along a line, and a direction of noise."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 4, 240)
    rows = np.stack([4.0 * place + rng.normal(size=240), 0.3 * rng.normal(size=240)], axis=1)
    return Training(rows, place % 2, np.ones(240), 2)


def test_mixture_finds_clusters() -> None:
    """Each class has two clusters, which one Gaussian per class cannot tell apart."""
    training, fresh = clusters(0), clusters(1)
    right = {}
    for size in (1, 4):
        predicted = found(training, fresh.rows, Mixture(0.8, size)).argmax(axis=1)
        right[size] = (predicted == fresh.labels).mean()
    assert right[4] > 0.93
    assert right[1] < 0.8


def test_mixture_of_three_classes_is_a_density() -> None:
    """With one component the evidence is the Gaussian log density in the leading directions."""
    training = unweighted(table(3, dimensions=2))
    queries = queries_for(training)
    values = found(training, queries, Mixture(1.0, 1))
    for c in range(3):
        rows = training.rows[training.labels == c]
        away = queries - rows.mean(axis=0)
        covariance = np.cov(rows.T, bias=True) + 1e-3 * rows.var(axis=0).mean() * np.eye(2)
        squared = np.einsum("ij,jk,ik->i", away, np.linalg.inv(covariance), away)
        expected = -0.5 * (squared + np.log(np.linalg.det(2 * np.pi * covariance)))
        assert_allclose(values[:, c], expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("variance", "n_directions"), [(0.5, 1), (0.8, 1), (0.9, 2), (0.999, 3)])
def test_mixture_looks_at_the_leading_directions(variance: float, n_directions: int) -> None:
    """The leading directions that hold the share count, and no others."""
    rows = np.random.default_rng(0).normal(size=(200, 3)) * np.sqrt([85.0, 12.0, 3.0])
    training = Training(rows, np.arange(200) % 2, np.ones(200), 2)
    directions = np.linalg.svd(rows - rows.mean(axis=0))[2]
    still = found(training, rows[:30], Mixture(variance, 1))
    for number, direction in enumerate(directions):
        moved = found(training, rows[:30] + 20 * direction, Mixture(variance, 1))
        assert np.allclose(moved, still, atol=1e-6) == (number >= n_directions)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 9])
def test_mixture_of_few_rows_has_few_components(n_rows: int) -> None:
    """Few rows get few components; a class of one row is a narrow cloud around it."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(n_rows, 2)), rng.normal(size=(30, 2)) + 6])
    labels = np.repeat([0, 1], [n_rows, 30])
    training = Training(rows, labels, np.ones(len(rows)), 2)
    values = found(training, rows[:n_rows], Mixture(0.95, 16))
    assert_array_equal(values.argmax(axis=1), 0)


def test_rows_in_their_span_keep_all_distances() -> None:
    """Distances to queries outside the span stay too; a table of few columns is not changed."""
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(12, 40)) + 5, rng.normal(size=(7, 40))
    rows[3] = rows[4]
    a, b = in_span(rows, queries)
    assert a.shape[1] == b.shape[1] <= 12
    assert np.allclose(cdist(b, a), cdist(queries, rows), rtol=1e-10, atol=0)
    assert np.allclose(cdist(a, a), cdist(rows, rows), rtol=1e-10, atol=1e-6)
    assert np.array_equal(in_span(rows[:, :5], queries[:, :5])[1], queries[:, :5])


# --- few queries


@pytest.mark.parametrize("engine", ENGINES)
def test_few_queries_have_the_evidence_of_many(engine: str) -> None:
    """Few queries are searched for in another way, with the same result."""
    training = table(3, n=400, dimensions=9)
    queries = queries_for(training, 3 * FEW_QUERIES)
    for readout in (Margin(5), Hull(10, 0.3), Votes(5)):
        together = found(training, queries, readout, engine)
        alone = np.vstack([found(training, row[None], readout, engine) for row in queries])
        assert_allclose(alone, together, rtol=1e-10)


def test_the_rows_of_a_class_are_prepared_once() -> None:
    training = table(2)
    first = [own.search for own in training.of_class]
    found(training, queries_for(training, 1), Hull(5, 0.3))
    assert all(own.search is one for own, one in zip(training.of_class, first))
