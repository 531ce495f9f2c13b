"""Tests of the terms: candidates, screened pairs, scaling, and the start."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import literal
import numpy as np
import pytest
from rooms import (
    ENGINE,
    ENGINES,
    candidates_of,
    columns_of,
    pulled_back,
    state_of,
    terms_of,
    weights_of,
)

from metricboost import SparseMetric, _rounding
from metricboost._rounding import largest
from metricboost.boosting.forms import step_matrix
from metricboost.boosting.levels import Levels
from metricboost.boosting.loop import BoostingOptions
from metricboost.boosting.neighborhoods import (
    class_neighborhoods,
)
from metricboost.boosting.scaling import Scaling
from metricboost.boosting.sparse_eigen import sparse_eigenvector
from metricboost.boosting.start import start_factor, start_scaling
from metricboost.boosting.state import State
from metricboost.boosting.terms import Candidates
from metricboost.engines import Engine, get_engine, native_available, sweeps
from metricboost.training.learn import learn
from metricboost.training.options import LearningOptions

#: The module with the number of rows on which an engine computes column margins.
MARGINS_OF = {"numpy": "sweeps", "native": "native"}

# --- terms


def test_candidates_come_in_order_of_creation_without_repetition() -> None:
    """Columns, added terms, products. A tuple in another order is the same term."""
    candidates = candidates_of(np.random.default_rng(0).normal(size=(9, 3)), 2)
    candidates.add([(2, 1), (0, 0), (1, 2), (1,), (0, 1, 2)])
    assert terms_of(candidates) == [(0,), (1,), (2,), (1, 2), (0, 0)]
    candidates.expand([0], [1, 0])
    assert terms_of(candidates)[5:] == [(0, 1)]
    candidates.expand([3, 2], [3, 2, 0])  # of degree 4, 3, 3 and 3, 2, 2
    assert terms_of(candidates)[6:] == [(2, 2), (0, 2)]


def test_expansion_is_the_literal_one() -> None:
    """Equal to nested loops over tuples, for random selections up to degree 4."""
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
    """The first products are the same. Terms that are added explicitly are not limited."""
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
    """Such a product is a linear function of the two columns."""
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
    candidates = Candidates(get_engine("numpy").table(Xt), 3, levels=levels)
    candidates.add_useful([(0, 1), (0, 3), (0, 1, 4), (0, 3, 4)])
    assert [candidates.term(i) for i in range(5, len(candidates))] == [(0, 3), (0, 3, 4)]


def test_powers_of_columns_of_two_values_are_left_out() -> None:
    """They are linear functions of the column. Products with other columns are kept."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=20), np.where(rng.random(20) < 0.3, 1.7, -0.4)])
    candidates = Candidates(ENGINE.table(X.T), 3, levels=Levels(X.T))
    candidates.add_useful([(1, 1), (0, 0)])
    candidates.expand([0, 1], [0, 1])
    assert terms_of(candidates) == [(0,), (1,), (0, 0), (0, 1)]
    candidates.expand([3], [0, 1, 3])
    assert terms_of(candidates)[4:] == [(0, 0, 1)]
    candidates.add([(1, 1)])  # added explicitly, because a start metric may have this term
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
    """The keys are distinct if the column numbers do not fit into a 64-bit integer."""
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


@dataclass(frozen=True)
class Kept:
    """An engine that keeps values of some candidates, and the precision of its passes."""

    engine: Engine
    precision: float


@pytest.fixture(params=["none", "some", "all", "float32", "native, none", "native, some", "native"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The number of candidates whose values are kept, and their precision."""
    native = request.param.startswith("native")
    if native and not native_available():
        pytest.skip("the C++ kernels were not built")
    module = "metricboost.engines.native" if native else "metricboost.engines.sweeps"
    if "none" in request.param or "some" in request.param:
        monkeypatch.setattr(f"{module}.KEPT_BYTES", 20 * 8 * 300 * ("some" in request.param))
    if request.param == "float32":
        monkeypatch.setattr(sweeps, "DOUBLE_MARGINS", 0)
    in_single = native or request.param == "float32"
    return Kept(get_engine("native" if native else "numpy"), 1e-4 if in_single else 1e-10)


def test_pulling_back_through_candidates(kept: Kept) -> None:
    """The result is right after candidates were added between two calls, too."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 50)), rng.normal(size=(20, 7))
    candidates = candidates_of(X, 2, engine=kept.engine)
    passes = kept.engine.sweeps(candidates.table)
    pairs = list(itertools.combinations_with_replacement(range(50), 2))
    for part in ([], pairs[:10], pairs[:300], pairs):
        candidates.add(part)
        expected = y.T @ columns_of(candidates, np.arange(len(candidates)))
        for found in (
            passes.pulled_back(candidates.every(), y),
            candidates.table.pulled_back(candidates.every(), y),
        ):
            assert np.allclose(found, expected, rtol=0, atol=kept.precision)
    assert len(candidates) > 1024 + 50


def test_diagonal_grows_with_the_candidates(kept: Kept) -> None:
    """Stored column margins stay right when candidates are added, and weights or rows change."""
    rng = np.random.default_rng(4)
    X, labels = rng.normal(size=(20, 50)), np.arange(20) % 2
    candidates = candidates_of(X, 2, engine=kept.engine)
    state = state_of(candidates, labels, class_neighborhoods(ENGINE, X, labels, 3))
    pairs = list(itertools.combinations_with_replacement(range(50), 2))
    for part in ([], pairs[:10], pairs[:10], pairs[:300], pairs):
        candidates.add(part)
        u = weights_of(state, rng.exponential(size=20) * (rng.random(20) < 0.6))
        every = candidates.every()
        for k in (3, 2):  # other neighbours
            margins = state.graph.column_margins(state.table.columns(every), np.float64)
            expected = u.inside @ margins
            assert np.allclose(state.diagonal(u, every), expected, rtol=0, atol=kept.precision)
            state.use(class_neighborhoods(ENGINE, X, labels, k))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_nonzero", [1, 4])
def test_of_many_rows_a_sample_gives_the_diagonal(
    monkeypatch: pytest.MonkeyPatch, n_nonzero: int, engine: str
) -> None:
    """The sample chooses the shortlist. The matrix on the shortlist is that of all rows."""
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(1200, 70)), np.arange(1200) % 2
    X[:, 7] += 1.5 * labels
    X[:, 30] -= labels
    near, weight = class_neighborhoods(ENGINE, X, labels, 5), rng.exponential(size=1200)
    diagonals, vectors = [], []
    for n_margins in (1200, 400):
        monkeypatch.setattr(f"metricboost.engines.{MARGINS_OF[engine]}.MARGIN_ROWS", n_margins)
        candidates = candidates_of(X, 1, engine=get_engine(engine))
        state = state_of(candidates, labels, near)
        u = weights_of(state, weight)
        diagonals.append(state.diagonal(u, candidates.every()))
        chosen, A = step_matrix(state, u, candidates, np.arange(70), n_nonzero)
        expected = u.bag.form(state.table.columns(candidates.terms(chosen)))
        assert np.array_equal(A, expected)
        place, xi = sparse_eigenvector(get_engine(engine), A, n_nonzero)
        vectors.append((chosen[place], xi))
    assert np.corrcoef(*diagonals)[0, 1] > 0.9
    assert not np.allclose(*diagonals)
    (expected, values), (support, xi) = vectors
    assert support.tolist() == expected.tolist()
    assert np.allclose(xi, values, atol=1e-12)


def test_given_constants_hold_in_sweeps_too() -> None:
    """All methods use the constants of a product that a start metric sets."""
    candidates = candidates_of(np.random.default_rng(5).normal(size=(20, 3)), 2)
    candidates.add([(0, 1)])
    candidates.fix_moments(np.array([3]), np.array([[0.1, 3.0]]))
    with pytest.raises(ValueError, match="already standardised"):
        candidates.fix_moments(np.array([1]), np.array([[0.5, 2.0]]))
    y = np.random.default_rng(0).normal(size=(20, 2))
    expected = y.T @ columns_of(candidates, np.arange(4))
    assert np.allclose(pulled_back(candidates, y), expected)
    for engine in ENGINES:
        table = get_engine(engine).table(candidates.table.columns(candidates.terms(np.arange(3))).T)
        found = get_engine(engine).sweeps(table).pulled_back(candidates.every(), y)
        assert np.allclose(found, expected, atol=1e-5)


# --- the largest entries


@pytest.mark.parametrize("kind", ["normal", "whole numbers", "negative", "equal", "twelve digits"])
@pytest.mark.parametrize("k", [1, 5, 16])
def test_the_largest_of_a_long_row_are_those_of_a_short_one(
    kind: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result for long rows agrees with the result for short rows, including ties."""
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


# --- scaling


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1.0, 1e30, 1e150])
def test_columns_of_any_size_are_standardised(size: float) -> None:
    """Columns with values of 1e150 or 1e-150 neither overflow nor underflow."""
    Z = np.random.default_rng(0).normal(size=(50, 3)) + 2
    scaling = Scaling.of(size * Z, standardize=True)
    X = scaling.transposed(size * Z).T
    assert scaling.kept.tolist() == [0, 1, 2]
    assert np.allclose(X, (Z - Z.mean(axis=0)) / Z.std(axis=0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 0.1, 1e8 / 3, 1e150 / 7, 1e-150 / 7])
@pytest.mark.parametrize("standardize", [True, False])
def test_constant_columns_are_left_out(value: float, standardize: bool) -> None:
    """Constant columns are left out despite rounding. Other columns keep their numbers."""
    X = np.random.default_rng(1).normal(size=(49, 3))
    X[:, 1] = value
    scaling = Scaling.of(X, standardize)
    assert scaling.kept.tolist() == [0, 2]
    assert scaling.transposed(X).T.shape == (49, 2)
    assert np.isfinite(scaling.transposed(X).T).all()


def test_rounding_is_not_variation() -> None:
    """A variation in the last bit is constant. A variation of one in 1e6 is not."""
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
    """A start of rank one on three of eight columns gives no weight to other columns."""
    v = np.zeros(8)
    v[[1, 4, 5]] = 1.0, 2.0, -0.5
    X = np.random.default_rng(0).normal(size=(20, 8))
    scaling = Scaling.of(X, standardize=True)
    factor = start_factor(candidates_of(scaling.transposed(X).T, 1), scaling, np.outer(v, v))
    assert factor.index.tolist() == [1, 4, 5]


def test_start_from_a_metric_keeps_its_constants_and_terms() -> None:
    """The terms of the metric become candidates, and its distances are reproduced."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 4)) * 3 + 1
    X[:, 0] = 5.0  # constant, so it is not a candidate
    metric = SparseMetric(
        [(3, 1), (2,)], rng.normal(size=(2, 2)), rng.normal(size=4), rng.uniform(1, 2, 4),
        [0.2, 0.0], [1.5, 1.0],
    )  # fmt: skip
    scaling = start_scaling(Scaling.of(X, standardize=True), metric)
    candidates = candidates_of(scaling.transposed(X).T, 2)
    factor = start_factor(candidates, scaling, metric)
    assert terms_of(candidates) == [(0,), (1,), (2,), (0, 2)]
    assert factor.index.tolist() == [1, 3]
    state = State(candidates.table, np.arange(20) % 2, np.ones(20))
    state.embed(candidates.terms(factor.index), factor.matrix)
    place = state.embedding()
    expected = metric.pairwise_distance(X)
    assert np.allclose(literal.squared_distances(place), expected**2, atol=1e-10)


def test_nothing_learned_is_the_identity_on_the_columns_that_vary() -> None:
    """If the gate rejects all steps, the loop ends early and the metric is the identity."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40, 4)), np.arange(40) % 2
    X[:, 2] = 1.0
    boosting = BoostingOptions(100, 5, 2, 0.1, 0.5, None, 5, 1e9, 0)
    options = LearningOptions(boosting, 2, 0, "auto", 1.0, True, "zero")
    learned = learn(X, labels, np.ones(40), ENGINE, options)
    assert (learned.best_iter, learned.path.n_attempts) == (0, literal.PATIENCE)
    metric = learned.metric(learned.factor)
    assert metric.columns == [(0,), (1,), (3,)]
    assert np.array_equal(metric.matrix(), np.eye(3))
