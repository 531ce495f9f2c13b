"""Tests of the native engine against the NumPy engine: single kernels, and the steps of fits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits

from metricboost._threads import allowed_threads
from metricboost.boosting.loop import BoostingOptions
from metricboost.datasets import make_double_ring, make_madelon, make_xor
from metricboost.engines import HostEngine, NeighborLists, Terms, get_engine, native_available
from metricboost.engines.base import Sweeps
from metricboost.engines.host import HostGraph
from metricboost.training.learn import Learned, learn
from metricboost.training.options import LearningOptions

pytestmark = pytest.mark.skipif(
    not native_available(), reason="the C++ kernels were not built, so there is nothing to compare"
)

Array = npt.NDArray[Any]
NUMPY = get_engine("numpy")


@pytest.fixture(scope="module")
def native() -> HostEngine:
    return get_engine("native")


def close(found: Array, expected: Array, tolerance: float = 1e-12) -> bool:
    """Whether two arrays are equal up to a share of the largest entry."""
    assert found.shape == expected.shape
    scale = max(float(np.abs(expected).max(initial=0.0)), np.finfo(float).tiny)
    return bool(np.abs(found - expected).max(initial=0.0) <= tolerance * scale)


# --- the neighbour graph

#: (rows, columns, neighbours in the own class, neighbours in the other class)
SHAPES = [(1, 1, 1, 1), (2, 1, 1, 1), (3, 5, 1, 2), (40, 1, 5, 3), (40, 7, 1, 1), (60, 130, 4, 6)]


@dataclass(frozen=True)
class Graphs:
    native: HostGraph
    numpy: HostGraph
    z: Array
    weight: Array


@pytest.fixture(params=SHAPES, ids=str)
def graphs(request: pytest.FixtureRequest, native: HostEngine) -> Graphs:
    """A random graph on both engines, with repeated rows and zero weights."""
    n, q, k_same, k_other = request.param
    rng = np.random.default_rng(n + q)
    same, other = rng.integers(0, n, (n, k_same)), rng.integers(0, n, (n, k_other))
    z = rng.normal(size=(n, q))[rng.integers(0, n, n)]
    weight = rng.exponential(size=n) * (rng.random(n) < 0.7)
    return Graphs(native.graph(same, other), _numpy_graph(same, other), z, weight)


def _numpy_graph(same: Array, other: Array) -> HostGraph:
    return NUMPY.graph(same, other)


def test_margins(graphs: Graphs) -> None:
    assert close(graphs.native.margins(graphs.z), graphs.numpy.margins(graphs.z))


def test_column_margins(graphs: Graphs) -> None:
    found, expected = (g.column_margins(graphs.z) for g in (graphs.native, graphs.numpy))
    assert np.abs(found - expected).max() <= 1e-12 * max(1.0, (graphs.z**2).max())


def test_laplacian(graphs: Graphs) -> None:
    found, expected = (g.laplacian(graphs.z, graphs.weight) for g in (graphs.native, graphs.numpy))
    bound = 1e-12 * max(1.0, graphs.weight.sum() * np.abs(graphs.z).max())
    assert np.abs(found - expected).max() <= bound


def test_half_the_laplacian_gives_the_whole_form(graphs: Graphs) -> None:
    z = graphs.z - graphs.z.mean(axis=0)
    form = z.T @ graphs.numpy.laplacian(z, graphs.weight)
    for graph in (graphs.native, graphs.numpy):
        half = z.T @ graph.half_laplacian(z, graphs.weight)
        bound = 1e-11 * max(1.0, graphs.weight.sum() * (z**2).max())
        assert np.abs(half + half.T - form).max() <= bound


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 2), (7, 1, 5), (2100, 130, 5), (50, 9, 0)])
def test_pulled_back(shape: tuple[int, int, int]) -> None:
    """``y' Phi`` agrees, for a table with several runs of rows in any layout."""
    n, q, s = shape
    rng = np.random.default_rng(0)
    Xt, y = rng.normal(size=(5, n)), rng.normal(size=(n, s))
    factors = random_factors(rng, 5, q, 3)
    moments = NUMPY.term_moments(Xt, factors)
    moments[: q // 2] = 0.0, 1.0
    terms = Terms(np.arange(q), factors, moments)
    expected = y.T @ NUMPY.term_columns(Xt, factors, moments)
    assert np.allclose(NUMPY.table(Xt).pulled_back(terms, y), expected, rtol=0, atol=1e-12 * n)
    native = get_engine("native")
    for layout in (Xt, np.asfortranarray(Xt), np.repeat(Xt, 2, axis=1)[:, ::2]):
        table = native.table(layout)
        found = table.pulled_back(terms, y)
        assert np.allclose(found, expected, rtol=0, atol=1e-12 * n)
        found = native.sweeps(table).pulled_back(terms, y)
        assert np.allclose(found, expected, rtol=0, atol=1e-5 * n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_column_margins_of_some_rows(graphs: Graphs, dtype: Any) -> None:
    rows = np.arange(len(graphs.z))[::-3]
    for graph in (graphs.native, graphs.numpy):
        some = graph.column_margins(graphs.z, dtype, rows)
        assert some.dtype == dtype
        assert close(
            some, graph.column_margins(graphs.z)[rows], 1e-12 if dtype == np.float64 else 1e-5
        )


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are equal for any number of threads, because the pieces of work are fixed."""
    monkeypatch.setattr("metricboost.engines.native.WORTH_SHARING", 0)
    rng = np.random.default_rng(8)
    n = 50_000
    same, other = rng.integers(0, n, (n, 10)), rng.integers(0, n, (n, 8))
    Xt, weight = rng.normal(size=(6, n)), rng.random(n)
    factors = random_factors(rng, 6, 200, 2)

    def results(threads: int) -> list[Array]:
        engine = get_engine("native", threads)
        graph, z = engine.graph(same, other), np.ascontiguousarray(Xt.T)
        moments = engine.term_moments(Xt, factors)
        of_graph = [graph.margins(z), graph.column_margins(z), graph.column_margins(z, np.float32)]
        wide = np.tile(z[:, :5], 8)
        over_edges = [
            graph.laplacian(z, weight),
            graph.half_laplacian(z, weight),
            graph.share_sums(z, weight),
            graph.laplacian(wide, weight),
        ]
        return [*of_graph, *over_edges, moments, engine.term_columns(Xt, factors, moments)]

    for one, several in zip(results(1), results(3), strict=True):
        assert np.array_equal(one, several)


def test_where_rows_lie_in_memory_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the rows in memory changes results only by the rounding errors of float32."""
    rng = np.random.default_rng(9)
    n, k = 3000, 4
    same, other = rng.integers(0, n, (n, k)), rng.integers(0, n, (n, k + 1))
    weight = rng.random(n) * (rng.random(n) < 0.5)
    native = get_engine("native", 2)
    plain = native.graph(same, other)
    monkeypatch.setattr("metricboost.engines.native.FAR_APART", n)
    together = native.graph(same, other, rng.normal(size=(3, n)).T)
    for r in (1, 2, 3, 5, 8, 13, 20):
        z = rng.normal(size=(n, r))
        assert np.array_equal(together.margins(z), plain.margins(z))
        assert np.array_equal(together.column_margins(z), plain.column_margins(z))
        for kernel in ("laplacian", "half_laplacian"):
            found, expected = (getattr(g, kernel)(z, weight) for g in (together, plain))
            assert np.allclose(found, expected, rtol=0, atol=1e-5)
            assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 1 - 1e-12
        found, expected = (g.share_sums(z, weight) for g in (together, plain))
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_sums_of_shares(graphs: Graphs) -> None:
    found, expected = (g.share_sums(graphs.z, graphs.weight) for g in (graphs.native, graphs.numpy))
    assert close(found, expected)


def test_shares_add_up_to_twice_the_form(graphs: Graphs) -> None:
    """The shares sum to ``2 z' L z``, because every edge is counted at both of its ends."""
    z = graphs.z[:, :1]
    form = float(z[:, 0] @ graphs.native.laplacian(z, graphs.weight)[:, 0])
    total = graphs.native.share_sums(z, graphs.weight)[0, 0]
    assert total == pytest.approx(2 * form, rel=1e-9, abs=1e-12)


def _strided(z: Array) -> list[Array]:
    """The same values in several memory layouts other than C order."""
    wide = np.zeros((2 * len(z), 3 * z.shape[1] + 1))
    wide[::2, 1::3] = z
    tall = np.zeros((len(z), z.shape[1] + 4))
    tall[:, 2:-2] = z
    return [wide[::2, 1::3], tall[:, 2:-2], np.asfortranarray(z)]


@pytest.mark.parametrize("layout", range(3))
@pytest.mark.parametrize("q", [1, 6])
def test_graph_kernels_take_any_layout(native: HostEngine, layout: int, q: int) -> None:
    """Slices and Fortran order give the same bits as a contiguous copy."""
    rng = np.random.default_rng(0)
    z, weight = rng.normal(size=(20, q)), rng.exponential(size=40)[::2]
    graph = native.graph(rng.integers(0, 20, (40, 3))[::2], rng.integers(0, 20, (20, 8))[:, ::2])
    view = _strided(z)[layout]
    assert np.array_equal(graph.margins(view), graph.margins(z))
    assert np.array_equal(graph.column_margins(view), graph.column_margins(z))
    assert np.array_equal(graph.laplacian(view, weight), graph.laplacian(z, weight.copy()))
    assert np.array_equal(graph.share_sums(view, weight), graph.share_sums(z, weight))


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_shifting_the_columns_changes_nothing(engine: str) -> None:
    """A shift of the columns by a million changes the results only by rounding errors."""
    rng = np.random.default_rng(2)
    graph = get_engine(engine).graph(rng.integers(0, 30, (30, 3)), rng.integers(0, 30, (30, 4)))
    z, weight = rng.normal(size=(30, 5)), rng.exponential(size=30)
    far = z + 1e6
    assert close(graph.margins(far), graph.margins(z), 1e-8)
    assert close(graph.column_margins(far), graph.column_margins(z), 1e-8)
    assert close(graph.laplacian(far, weight), graph.laplacian(z, weight), 1e-8)
    shares = graph.share_sums(z, weight)
    assert close(graph.share_sums(far, weight), shares, 1e-8)


# --- terms


def random_factors(rng: np.random.Generator, p: int, q: int, degree: int) -> Array:
    """Random terms of degree 1 to ``degree``, sorted and padded with p."""
    factors = np.sort(rng.integers(0, p, (q, degree)), axis=1).astype(np.int32)
    length = rng.integers(1, degree + 1, q)
    factors[np.arange(degree) >= length[:, None]] = p
    return factors


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize(("n", "p", "q"), [(1, 1, 1), (2, 3, 5), (17, 1, 3), (33, 6, 40)])
def test_term_moments_and_columns(native: HostEngine, n: int, p: int, q: int, degree: int) -> None:
    """Products up to degree four agree. With one row nothing varies, and all values are zero."""
    rng = np.random.default_rng(degree)
    Xt = rng.normal(size=(p, n))
    factors = random_factors(rng, p, q, degree)
    moments = NUMPY.term_moments(Xt, factors)
    found = native.term_moments(Xt, factors)
    varies = np.isfinite(moments[:, 1])
    assert np.array_equal(np.isfinite(found[:, 1]), varies)
    assert close(found[varies], moments[varies])
    assert close(found[:, 0], moments[:, 0])
    expected = NUMPY.term_columns(Xt, factors, moments)
    assert close(native.term_columns(Xt, factors, moments), expected)
    assert varies.any() == (n > 1)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_constant_terms_have_infinite_deviation_and_zero_columns(engine: str) -> None:
    """Squares of signs, a constant column and its products are exactly zero on both engines."""
    signs = np.where(np.arange(30) % 2, 1.0, -1.0)
    Xt = np.stack([signs, np.full(30, 0.3), np.linspace(-1, 1, 30)])
    factors = np.array([[0, 0], [1, 3], [1, 1], [0, 2]], dtype=np.int32)
    moments = get_engine(engine).term_moments(Xt, factors)
    assert np.isinf(moments[:, 1]).tolist() == [True, True, True, False]
    columns = get_engine(engine).term_columns(Xt, factors, moments)
    assert not columns[:, :3].any()
    assert columns[:, 3].mean() == pytest.approx(0, abs=1e-12)
    assert columns[:, 3].std() == pytest.approx(1, rel=1e-12)


def test_term_kernels_take_any_layout(native: HostEngine) -> None:
    """Slices of tables and term lists give the same results as contiguous copies."""
    rng = np.random.default_rng(1)
    Xt, factors = rng.normal(size=(10, 40))[::2, ::2], random_factors(rng, 5, 16, 3)[::2]
    plain = native.term_moments(Xt.copy(), factors.copy())
    assert np.array_equal(native.term_moments(Xt, factors), plain)
    wide = np.repeat(plain, 2, axis=1)[:, ::2]
    expected = native.term_columns(Xt.copy(), factors.copy(), plain)
    assert np.array_equal(native.term_columns(Xt, factors, wide), expected)


# --- neighbours

#: Rows with distances that are distinct, equal, too close for matrix products, or very large.
PLACES: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "normal": lambda rng, n, r: rng.normal(size=(n, r)),
    "whole numbers": lambda rng, n, r: rng.integers(0, 3, (n, r)).astype(float),
    "repeated": lambda rng, n, r: rng.normal(size=(n, r))[rng.integers(0, n // 3 + 1, n)],
    "equal": lambda rng, n, r: np.ones((n, r)),
    "far away": lambda rng, n, r: 1e8 + rng.normal(size=(n, r)),
    "tight": lambda rng, n, r: np.sign(rng.normal(size=(n, 1))) + 1e-9 * rng.normal(size=(n, r)),
    "one far out": lambda rng, n, r: np.vstack(
        [np.full((1, r), 1e30), rng.normal(size=(n - 1, r))]
    ),
    "tiny": lambda rng, n, r: 1e-170 * rng.normal(size=(n, r)),
    "huge": lambda rng, n, r: 1e139 * rng.normal(size=(n, r)),
}


def lists_of(n_classes: int, kind: str, k: int) -> NeighborLists:
    c = np.arange(n_classes)
    slots = {
        "common": (c[:, None] != c).astype(int),
        "every class": np.tile(c, (n_classes, 1)),
        "own": np.where(np.eye(n_classes, dtype=bool), 0, -1),
        "one way": np.triu(np.ones((n_classes, n_classes), dtype=int), 1) - 1,
    }[kind]
    return NeighborLists(slots.astype(np.int32), tuple(k + i for i in range(int(slots.max()) + 1)))


@pytest.mark.parametrize("kind", ["common", "every class", "own", "one way"])
@pytest.mark.parametrize("place", PLACES)
def test_neighbours_by_class(place: str, kind: str) -> None:
    """Both engines agree for several blocks, small classes, and any earlier neighbours."""
    rng = np.random.default_rng(len(place))
    n = 700
    classes = rng.choice(3, n, p=[0.55, 0.445, 0.005])
    lists = lists_of(3, kind, 6)
    z = PLACES[place](rng, n, 4)
    expected, distances = NUMPY.nearest_by_class(z, classes, lists)
    near, _ = NUMPY.nearest_by_class(z + 0.1 * rng.normal(size=z.shape), classes, lists)
    for previous in (None, near, expected):
        for threads in (1, 3):
            native = get_engine("native", threads)
            found, squared = native.nearest_by_class(z, classes, lists, previous)
            assert np.array_equal(found, expected)
            assert np.array_equal(squared, distances)


@pytest.mark.parametrize("r", [0, 1, 7, 8, 9, 40, 1023, 1025])
@pytest.mark.parametrize(("n_queries", "n_references"), [(1, 1), (15, 40), (16, 3), (300, 520)])
def test_nearest_references(native: HostEngine, n_queries: int, n_references: int, r: int) -> None:
    """Both engines agree for few and many columns, both precisions, and any strides."""
    rng = np.random.default_rng(r)
    queries, references = rng.normal(size=(n_queries, r)), rng.normal(size=(n_references, r))
    expected, distances = NUMPY.nearest(queries, references, 5)
    for a, b in (
        (queries, references),
        (np.asfortranarray(queries), np.asfortranarray(references)),
    ):
        found, squared = native.nearest(a, b, 5)
        assert np.array_equal(found, expected)
        assert np.array_equal(squared, distances)


def test_any_layout_is_searched(native: HostEngine) -> None:
    """Transposed tables and slices of larger tables are searched correctly."""
    rng = np.random.default_rng(3)
    wide, classes = rng.normal(size=(12, 600)), rng.integers(0, 2, 300)
    z, lists = wide[::2, ::-2].T, lists_of(2, "common", 3)
    expected, _ = NUMPY.nearest_by_class(z.copy(), classes, lists)
    assert np.array_equal(native.nearest_by_class(z, classes, lists)[0], expected)


def test_distances_do_not_cancel(native: HostEngine) -> None:
    """Distances of nearly equal rows far from the origin have full precision."""
    z = 1e8 + np.array([[0.0, 0.0], [0.5, 0.25]])
    for engine in (NUMPY, native):
        assert engine.nearest_by_class(z, np.zeros(2, int), lists_of(1, "own", 1))[1][0] == 0.3125


def test_distances_that_overflow_have_rows(native: HostEngine) -> None:
    """Every list is full, even if distances overflow and cannot be compared."""
    z = 1e200 * np.random.default_rng(0).normal(size=(600, 2))
    rows, _ = native.nearest_by_class(z, np.arange(600) % 2, lists_of(2, "common", 4))
    assert (rows >= 0).all()


def test_ties_to_twelve_digits_in_many_columns(native: HostEngine) -> None:
    """Ties to twelve digits are resolved by number with more than 1024 columns, too."""
    n = 300
    z = np.zeros((n, 1100))
    z[np.arange(n), np.arange(n)] = 1 + 1e-11 * np.random.default_rng(0).standard_normal(n)
    arguments = z, np.zeros(n, int), lists_of(1, "own", 50)
    assert np.array_equal(
        native.nearest_by_class(*arguments)[0], NUMPY.nearest_by_class(*arguments)[0]
    )


@pytest.mark.parametrize("size", [1e-160, 1e-158, 1e-155, 1e150])
def test_squares_at_the_ends_of_the_range(native: HostEngine, size: float) -> None:
    """Rows with subnormal squares, and with very large squares, are searched correctly."""
    z = size * np.random.default_rng(0).normal(size=(600, 3))
    if size > 1:
        z[:2] = [[1e153], [-1e153]]
    arguments = z, np.arange(600) % 2, lists_of(2, "common", 5)
    assert np.array_equal(
        native.nearest_by_class(*arguments)[0], NUMPY.nearest_by_class(*arguments)[0]
    )


def test_lists_without_rows(native: HostEngine) -> None:
    """Lists are empty for a class of one row, and if there are no rows to search."""
    z, classes = np.random.default_rng(0).random((20, 2)), np.arange(20) // 19
    for engine in (NUMPY, native):
        rows, distances = engine.nearest_by_class(z, classes, lists_of(2, "common", 2))
        assert (rows[19, :2] == -1).all()
        assert np.isinf(distances[19, :2]).all()
        assert engine.nearest(z, z[:0], 3)[0].shape == (20, 0)
        assert engine.nearest(z, z, 0)[0].shape == (20, 0)


def test_earlier_neighbours_are_not_trusted(native: HostEngine) -> None:
    """Earlier neighbours may be repeated, the row itself, of another class, or invalid."""
    rng = np.random.default_rng(0)
    z, classes, lists = rng.normal(size=(400, 3)), rng.integers(0, 2, 400), lists_of(2, "common", 4)
    expected = native.nearest_by_class(z, classes, lists)[0]
    own = np.tile(np.arange(400, dtype=np.int32)[:, None], (1, lists.width))
    for previous in (own, own * 0, own + 400, -own, expected[:, ::-1].copy()):
        found = native.nearest_by_class(z, classes, lists, previous)[0]
        assert np.array_equal(found, expected)


def test_more_threads_than_there_is_work_for() -> None:
    z, classes, lists = np.zeros((3000, 2)), np.arange(3000) % 2, lists_of(2, "common", 2)
    found = get_engine("native", 5000).nearest_by_class(z, classes, lists)[0]
    assert np.array_equal(found, get_engine("native").nearest_by_class(z, classes, lists)[0])


def test_blas_keeps_its_threads_after_searches_at_once() -> None:
    """The limit on BLAS threads is restored after the last of several concurrent searches."""
    z = np.random.default_rng(0).random((400, 2))
    classes, lists = np.arange(400) % 2, lists_of(2, "common", 2)
    native = get_engine("native")
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: native.nearest_by_class(z, classes, lists), range(40)))
        assert allowed_threads() == 2


# --- wrong shapes


def _graph(engine: HostEngine, n: int = 5) -> HostGraph:
    rows = np.arange(n)[:, None]
    return engine.graph(rows, rows[::-1])


def _sweeps(engine: HostEngine, graph: HostGraph | None = None) -> Sweeps:
    """Passes over a table of three columns and five rows."""
    found = engine.sweeps(engine.table(np.ones((3, 5))))
    found.use(_graph(engine) if graph is None else graph)
    return found


def _terms(n_columns: int) -> Terms:
    """The first columns as terms."""
    factors = np.arange(n_columns, dtype=np.int32)[:, None]
    return Terms(np.arange(n_columns), factors, np.tile([0.0, 1.0], (n_columns, 1)))


WRONG: dict[str, Callable[[HostEngine], Any]] = {
    "margins rows": lambda e: _graph(e).margins(np.zeros((4, 2))),
    "column_margins rows": lambda e: _graph(e).column_margins(np.zeros((6, 2))),
    "laplacian rows": lambda e: _graph(e).laplacian(np.zeros((4, 2)), np.zeros(4)),
    "laplacian weight": lambda e: _graph(e).laplacian(np.zeros((5, 2)), np.zeros(4)),
    "share_sums weight": lambda e: _graph(e).share_sums(np.zeros((5, 1)), np.zeros(6)),
    "share_sums rows": lambda e: _graph(e).share_sums(np.zeros((4, 1)), np.zeros(4)),
    "no neighbours": lambda e: e.graph(np.zeros((5, 0)), np.zeros((5, 1))).margins(
        np.zeros((5, 2))
    ),
    "moments": lambda e: e.term_columns(
        np.zeros((3, 5)), np.zeros((2, 1), dtype=np.int32), np.ones((3, 2))
    ),
    "moments width": lambda e: e.term_columns(
        np.zeros((3, 5)), np.zeros((2, 1), dtype=np.int32), np.ones((2, 3))
    ),
    "no factors": lambda e: e.term_moments(np.zeros((3, 5)), np.zeros((2, 0), dtype=np.int32)),
    "powers shape": lambda e: e.truncated_powers(np.ones((3, 4)), np.arange(2), 2),
    "powers start": lambda e: e.truncated_powers(np.ones((3, 3)), np.array([3]), 2),
    "negative start": lambda e: e.truncated_powers(np.ones((3, 3)), np.array([-1]), 2),
    "too many entries": lambda e: e.truncated_powers(np.ones((3, 3)), np.arange(2), 4),
    "no entries": lambda e: e.truncated_powers(np.ones((3, 3)), np.arange(2), 0),
    "powers of NaN": lambda e: e.truncated_powers(np.full((3, 3), np.nan), np.arange(2), 2),
    "powers of infinity": lambda e: e.truncated_powers(np.full((3, 3), np.inf), np.arange(2), 2),
    "vectors of NaN": lambda e: e.leading_eigenvectors(np.full((3, 3), np.nan), [np.arange(2)]),
    "vectors shape": lambda e: e.leading_eigenvectors(np.ones((3, 4)), [np.arange(2)]),
    "vectors place": lambda e: e.leading_eigenvectors(np.ones((3, 3)), [np.array([0, 3])]),
    "vectors negative": lambda e: e.leading_eigenvectors(np.ones((3, 3)), [np.array([-1, 0])]),
    "empty support": lambda e: e.leading_eigenvectors(
        np.ones((3, 3)), [np.arange(2), np.arange(0)]
    ),
    "weights and gains": lambda e: e.step_weight(np.ones(4), np.ones(5)),
    "sweeps weight": lambda e: _sweeps(e).diagonal(_terms(2), np.ones(4)),
    "sweeps graph": lambda e: _sweeps(e, _graph(e, 6)).diagonal(_terms(2), np.ones(5)),
    "sweeps rows": lambda e: _sweeps(e).pulled_back(_terms(2), np.ones((4, 2))),
    "sweeps column": lambda e: _sweeps(e).diagonal(_terms(4), np.ones(5)),
    "sweeps columns": lambda e: e.sweeps(e.table(np.zeros((0, 5)))).pulled_back(
        _terms(0), np.ones((5, 1))
    ),
    "columns differ": lambda e: e.nearest(np.zeros((20, 3)), np.zeros((20, 4)), 2),
    "no such row": lambda e: _graph(e).column_margins(np.zeros((5, 2)), rows=np.array([5])),
    "no such neighbour": lambda e: e.graph(np.full((20, 3), 20), np.zeros((20, 3), int)),
    "places": lambda e: e.graph(
        np.zeros((2**15, 1), int), np.zeros((2**15, 1), int), np.zeros((20, 3))
    ),
    "no neighbour": lambda e: e.nearest_by_class(
        np.zeros((20, 3)), np.zeros(20, int), NeighborLists(np.zeros((1, 1), np.int32), (0,))
    ),
    "no such class": lambda e: e.nearest_by_class(
        np.zeros((20, 3)), np.ones(20, int), NeighborLists(np.zeros((1, 1), np.int32), (1,))
    ),
    "no such list": lambda e: e.nearest_by_class(
        np.zeros((20, 3)), np.zeros(20, int), NeighborLists(np.ones((1, 1), np.int32), (1,))
    ),
    "classes": lambda e: e.nearest_by_class(
        np.zeros((20, 3)), np.zeros(19, int), NeighborLists(np.zeros((1, 1), np.int32), (1,))
    ),
    "previous": lambda e: e.nearest_by_class(
        np.zeros((20, 3)),
        np.zeros(20, int),
        NeighborLists(np.zeros((1, 1), np.int32), (1,)),
        np.zeros((20, 2), np.int32),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_are_refused(native: HostEngine, name: str) -> None:
    """Arguments of a wrong shape raise ValueError."""
    with pytest.raises(ValueError, match=r"\w"):
        WRONG[name](native)


@pytest.mark.parametrize(
    ("kernel", "shapes"),
    [
        ("margins", ((5, 2), 1, (4,))),
        ("margins", ((4, 2), 1, (5,))),
        ("column_margins", ((5, 2), "rows", 1, (2, 3))),
        ("column_margins", ((4, 2), "rows", 1, (2, 2))),
        ("laplacian", ((5, 2), (5,), 1, (5, 1))),
        ("laplacian", ((5, 2), (4,), 1, (5, 2))),
        ("share_sums", ((5, 1), (5,), 1, (1, 1))),
        ("term_moments", ((3, 5), "factors", 1, (2, 3))),
        ("term_columns", ((3, 5), "factors", (2, 2), 1, (4, 2))),
        ("sweep diagonal", ((5,), 1, (3,))),
        ("sweep pull_back", ((5, 1), 1, (1, 3))),
        ("sweep append", ("factors", (2, 3), 1)),
        ("sweep append", ("wide factors", (2, 2), 1)),
    ],
)
def test_wrong_outputs_are_refused(kernel: str, shapes: tuple[Any, ...]) -> None:
    """An output of a wrong shape raises ValueError before anything is written."""
    from metricboost.engines import _native

    def argument(shape: Any) -> Any:
        if isinstance(shape, str):
            sizes = {"rows": 2, "factors": (2, 1), "wide factors": (2, 2)}
            return np.zeros(sizes[shape], dtype=np.int32)
        return shape if isinstance(shape, int) else np.zeros(shape)

    args = [argument(shape) for shape in shapes]
    graph = _native.Graph(*[np.zeros((5, 1), dtype=np.int32)] * 2, None)
    owner = graph if hasattr(graph, kernel) else _native
    if kernel.startswith("sweep"):
        owner = _native.Sweeps(np.ones((3, 5)), np.arange(5, dtype=np.int32), 1, 8)
        owner.append(np.zeros((2, 1), dtype=np.int32), np.ones((2, 2)), 1)
        args = [graph, *args] if kernel == "sweep diagonal" else args
    with pytest.raises(ValueError, match=r"out|rows|weight|moments|degree"):
        getattr(owner, kernel.split()[-1])(*args)


# --- whole fits


@dataclass(frozen=True)
class Fit:
    """Data and options for a fit on both engines."""

    name: str
    data: Callable[[], tuple[Array, Array]]
    boosting: dict[str, Any] = field(default_factory=dict)
    learning: dict[str, Any] = field(default_factory=dict)
    accepted: int = 10

    def options(self) -> LearningOptions:
        boosting = {
            "max_iter": 40, "n_neighbors": 5, "n_nonzero": 4, "learning_rate": 0.1,
            "subsample": 0.5, "max_features": None, "refresh_every": 4, "oob_gate": 1.0, "seed": 3,
        }  # fmt: skip
        learning = {
            "max_degree": 2, "screen_pairs": "auto", "prune": "auto", "complexity_penalty": 0.1,
            "standardize": True, "init": "zero",
        }  # fmt: skip
        options = BoostingOptions(**{**boosting, **self.boosting})
        return LearningOptions(**{**learning, **self.learning, "boosting": options})


def gaussian() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) * np.logspace(-3, 3, 12)
    Z = X / np.logspace(-3, 3, 12)
    return X, Z[:, 0] * Z[:, 1] + 0.5 * Z[:, 2] + 0.3 * rng.normal(size=150) > 0


def repeated_rows() -> tuple[Array, Array]:
    """Sixty distinct rows, some repeated ten times, so that many distances are zero."""
    X, y = gaussian()
    rows = np.random.default_rng(1).integers(0, 60, 150)
    return X[rows], y[rows]


def wide() -> tuple[Array, Array]:
    """A table with so many candidates that steps choose from shortlists."""
    X, y = make_xor(n_samples=120, n_features=150, informative=2, random_state=1)
    return X, y == y.max()


def ring() -> tuple[Array, Array]:
    X, y = make_double_ring(n_samples=150, n_features=10, informative=2, random_state=0)
    return X, y == y.max()


def madelon() -> tuple[Array, Array]:
    X, y = make_madelon(n_samples=200, random_state=0)[:2]
    return X[:, :40], y == y.max()


def rare() -> tuple[Array, Array]:
    X, y = gaussian()
    drop = np.flatnonzero(y)[8:]
    return np.delete(X, drop, axis=0), np.delete(y, drop)


def four_classes() -> tuple[Array, Array]:
    """Four classes, one of them rare."""
    X, _ = gaussian()
    signal = X[:, 0] * 1e3 + 0.3 * np.random.default_rng(2).normal(size=150)
    return X, np.digitize(signal, [-0.7, 0.2, 1.4])


FITS = [
    Fit("gaussian", gaussian, accepted=5),
    Fit("linear, no gate", gaussian, {"oob_gate": None, "subsample": 1.0}, {"max_degree": 1}),
    Fit("degree 4", gaussian, {"oob_gate": None}, {"max_degree": 4}),
    Fit("panels", gaussian, {"max_features": "sqrt", "oob_gate": 0.0}, {"max_degree": 3}),
    Fit("rho", gaussian, {"n_nonzero": 0.1, "oob_gate": 0.5}),
    Fit("identity", gaussian, {"oob_gate": None}, {"init": "identity", "max_degree": 1}),
    Fit("as given", ring, {"oob_gate": 0.0}, {"standardize": False}),
    Fit("repeated rows", repeated_rows),
    Fit("wide, shortlists", wide, {"oob_gate": 0.0}),
    Fit("ring", ring, {"oob_gate": 0.0}),
    Fit("madelon", madelon, {"oob_gate": 0.0}),
    Fit("rare class", rare, {"n_neighbors": 20, "oob_gate": 0.0}),
    Fit("four classes", four_classes, {"oob_gate": 0.0, "n_neighbors": 20}),
    Fit("four classes, coded", four_classes, {"oob_gate": 0.0, "multiclass": "coded"}),
]


def fitted(fit: Fit, engine: str) -> Learned:
    X, labels = fit.data()
    return learn(X, labels.astype(np.intp), np.ones(len(X)), get_engine(engine), fit.options())


def assert_same_fit(a: Learned, b: Learned, tolerance: float = 1e-8) -> None:
    """Assert equal accepted attempts, and equal terms, xi, w and loss of every step."""
    assert a.path.n_attempts == b.path.n_attempts
    assert [s.attempt for s in a.path.steps] == [s.attempt for s in b.path.steps]
    assert a.terms == b.terms
    for s, t in zip(a.path.steps, b.path.steps):
        assert s.support.tolist() == t.support.tolist()
        assert close(s.xi * np.sign(s.xi @ t.xi), t.xi, tolerance)
        assert s.weight == pytest.approx(t.weight, rel=tolerance)
        assert s.loss == pytest.approx(t.loss, rel=tolerance)
        assert (s.refreshed, s.n_terms, s.n_candidates) == (t.refreshed, t.n_terms, t.n_candidates)
    assert a.best_iter == b.best_iter
    assert a.factor.index.tolist() == b.factor.index.tolist()
    W, V = (f.factor.matrix @ f.factor.matrix.T for f in (a, b))
    assert close(W, V, tolerance)


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.name.replace(" ", "-"))
def test_same_fit(fit: Fit) -> None:
    """Native and NumPy agree to 1e-8 at every step."""
    expected = fitted(fit, "numpy")
    assert len(expected.path) >= fit.accepted
    assert_same_fit(fitted(fit, "native"), expected)


def whole_numbers() -> tuple[Array, Array]:
    """Integers from 0 to 3, for which many distances are equal."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 12)).astype(float)
    Z = X - 1.5
    return X, Z[:, 0] * Z[:, 1] + 0.5 * Z[:, 2] + 0.3 * rng.normal(size=200) > -0.25


@pytest.mark.parametrize("standardize", [False, True])
def test_same_fit_on_whole_numbers(standardize: bool) -> None:
    """Equal distances are ordered by row number on every engine."""
    fit = Fit("whole numbers", whole_numbers, {"refresh_every": 3, "oob_gate": 0.5},
              {"standardize": standardize})  # fmt: skip
    assert_same_fit(fitted(fit, "native"), fitted(fit, "numpy"))


def repeated_columns() -> tuple[Array, Array]:
    """The relevant columns occur twice in the table, so their products occur four times."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=200) > 0
    return np.hstack([X, X[:, :3]]), y


def yes_or_no() -> tuple[Array, Array]:
    """Binary columns, whose squares are linear functions of the columns."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 12)).astype(float)
    return X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=200) > 0.9


@pytest.mark.parametrize("data", [repeated_columns, yes_or_no])
def test_same_fit_with_equal_candidates(data: Callable[[], tuple[Array, Array]]) -> None:
    """Of candidates with equal values, every engine selects the first."""
    fit = Fit("equal candidates", data, {"refresh_every": 3, "oob_gate": 0.5, "n_nonzero": 3})
    assert_same_fit(fitted(fit, "native"), fitted(fit, "numpy"))


def test_same_fit_far_from_zero() -> None:
    """Without standardisation, a column of timestamps far from zero gives the same fit."""

    def shifted() -> tuple[Array, Array]:
        X, y = ring()
        return X + np.array([0.0] * 5 + [1e8] * 5), y

    fit = Fit("far", shifted, {"oob_gate": None}, {"standardize": False, "max_degree": 1})
    assert_same_fit(fitted(fit, "native"), fitted(fit, "numpy"), tolerance=1e-6)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_fit_is_repeatable_to_the_last_bit(engine: str) -> None:
    a, b = (fitted(FITS[0], engine) for _ in range(2))
    assert all(
        np.array_equal(s.xi, t.xi) and (s.weight, s.loss) == (t.weight, t.loss)
        for s, t in zip(a.path.steps, b.path.steps, strict=True)
    )


def test_draws_do_not_depend_on_the_engine() -> None:
    """The same attempts are rejected, which depends on all previous draws."""
    fit = replace(FITS[0], boosting={"oob_gate": 2.0, "max_features": 0.5})
    a, b = (fitted(fit, engine) for engine in ("numpy", "native"))
    assert len(a.path) < a.path.n_attempts
    assert [s.attempt for s in a.path.steps] == [s.attempt for s in b.path.steps]
