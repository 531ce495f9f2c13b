"""Tests of the NumPy engine against the literal implementation of the paper (``literal``).

The cases use each option of a fit alone, and all options together. Both fits must have the same
matrix A at every attempt, the same xi, weights, margins, complexities and terms, and the same final
metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import literal
import numpy as np
import pytest
from literal_screening import screened_pairs

from metricboost import SparseMetric
from metricboost.boosting import forms, loop
from metricboost.boosting.loop import BoostingOptions
from metricboost.boosting.neighborhoods import Neighborhoods, class_neighborhoods
from metricboost.boosting.state import Move, State, Weights
from metricboost.boosting.terms import Candidates
from metricboost.engines import Terms, get_engine, host, sweeps
from metricboost.model import Path
from metricboost.training.learn import Learned, learn
from metricboost.training.options import LearningOptions

Array = literal.Array
RTOL = 1e-8


def relative_error(found: Any, expected: Any) -> float:
    """The largest deviation divided by the largest entry."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    return float(np.abs(found - expected).max(initial=0.0) / (scale if scale > 0 else 1.0))


# --- data and cases


def table(n: int, p: int) -> tuple[Array, Array]:
    """A linear signal, an interaction, a difference in spread, and a constant column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 3.0, p) + rng.normal(size=p)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = Z[:, 0] + 1.5 * Z[:, 1] * Z[:, 2] + 0.7 * (Z[:, 2] ** 2 - 1)
    labels = signal + 0.3 * rng.normal(size=n) > 0
    X[:, p - 1] = 3.25
    return X, labels.astype(np.intp)


def reciprocal_table(n: int, p: int) -> tuple[Array, Array]:
    """The table with two reciprocal columns, whose product does not vary.

    The table is used for degree 2 only. With a higher degree, products with the constant product
    have the same values as other candidates, and the choice between them is not defined.
    """
    X, labels = table(n, p)
    rank = X[:, 0].argsort().argsort()
    size = 1.0 + (rank % (n // 2)) % 2  # symmetric about zero, so that the means are zero
    X[:, 0] = np.where(rank < n // 2, -size, size)
    X[:, 1] = 2 / X[:, 0]
    return X, labels


def spread_table(n: int, p: int) -> tuple[Array, Array]:
    """Classes that differ in second moments only: two variances and three correlations."""
    rng = np.random.default_rng(1)
    positive = rng.permutation(np.arange(n) % 2 == 0)
    sign = np.where(positive, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 0] *= np.where(positive, 3.0, 0.7)
    X[:, 2] = sign * X[:, 1] + 0.3 * X[:, 2]
    X[:, 4] = sign * X[:, 3] + 0.5 * X[:, 4]
    X[:, 6] = sign * X[:, 5] + 0.4 * X[:, 6]
    X[:, 7] *= np.where(positive, 0.3, 3.0)
    return X, positive.astype(np.intp)


def whole_numbers(n: int, p: int) -> tuple[Array, Array]:
    """Integers from 0 to 3. Most distances are equal, and rows are then ordered by number."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, (n, p)).astype(float)
    labels = X[:, 0] + X[:, 1] * X[:, 2] / 2 + 0.3 * rng.normal(size=n) > 2.5
    return X, labels.astype(np.intp)


def three_classes(n: int, p: int) -> tuple[Array, Array]:
    """Three classes of unequal size, from an interaction with two thresholds."""
    return _cut_signal(n, p, [-0.7, 0.3])


def four_classes(n: int, p: int) -> tuple[Array, Array]:
    return _cut_signal(n, p, [-0.9, 0.0, 0.8])


def _cut_signal(n: int, p: int, places: list[float]) -> tuple[Array, Array]:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 3.0, p) + rng.normal(size=p)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = 0.7 * Z[:, 0] + Z[:, 1] * Z[:, 2] + 0.3 * rng.normal(size=n)
    return X, np.digitize(signal, places).astype(np.intp)


def three_spreads(n: int, p: int) -> tuple[Array, Array]:
    """Three classes that differ in second moments only, and a fourth class with five rows."""
    rng = np.random.default_rng(7)
    labels = rng.permutation(np.r_[np.arange(n - 5) % 3, [3] * 5])
    X = rng.normal(size=(n, p))
    X[:, 0] *= np.array([0.3, 1.0, 2.0, 1.0])[labels]
    X[:, 2] = np.array([1.0, -1.0, 0.0, 0.0])[labels] * X[:, 1] + 0.3 * X[:, 2]
    return X, labels.astype(np.intp)


@dataclass(frozen=True)
class Case:
    """A fit to compare, and the numbers of steps that must be accepted and attempted at least."""

    name: str
    boosting: dict[str, Any] = field(default_factory=dict)
    learning: dict[str, Any] = field(default_factory=dict)
    n: int = 50
    p: int = 9
    table: Callable[[int, int], tuple[Array, Array]] = table
    rare: int = 0  # number of rows of the last class; 0 keeps the drawn number
    weighted: bool = False
    shortlist: bool = False  # whether a step chooses from a shortlist of the panel
    accepted: int = 30
    attempts: int = 30

    def data(self) -> tuple[Array, Array, Array]:
        X, labels = self.table(self.n, self.p)
        if self.rare:
            drop = np.flatnonzero(labels == labels.max())[self.rare :]
            X, labels = np.delete(X, drop, axis=0), np.delete(labels, drop)
        weight = np.ones(len(X))
        if self.weighted:
            weight = np.random.default_rng(9).uniform(0.2, 3.0, len(X))
            weight *= len(X) / weight.sum()
        return X, labels, weight

    def options(self) -> LearningOptions:
        boosting = BoostingOptions(**{**BOOSTING, **self.boosting})
        return LearningOptions(**{**LEARNING, **self.learning, "boosting": boosting})


BOOSTING: dict[str, Any] = {
    "max_iter": 36, "n_neighbors": 4, "n_nonzero": 3, "learning_rate": 0.1, "subsample": 1.0,
    "max_features": None, "refresh_every": None, "oob_gate": None, "seed": 7,
}  # fmt: skip
LEARNING: dict[str, Any] = {
    "max_degree": 1, "screen_pairs": 0, "prune": None, "complexity_penalty": 0.0,
    "standardize": True, "init": "zero",
}  # fmt: skip


def start_matrix(p: int) -> Array:
    """A start matrix of full rank over the columns."""
    B = np.random.default_rng(3).normal(size=(p, p))
    return 0.01 * (B @ B.T)


def start_metric(p: int) -> SparseMetric:
    """A start metric with its own constants, on a product and two columns."""
    rng = np.random.default_rng(4)
    return SparseMetric(
        [(1, 4), (0,), (2,)],
        0.2 * rng.normal(size=(2, 3)),
        rng.normal(size=p),
        rng.uniform(0.5, 2.0, p),
        [0.1, 0.5, 0.0],
        [1.3, 1.7, 1.0],
    )


def column_metric(p: int) -> SparseMetric:
    """A metric on two columns that no two steps select."""
    constants = np.zeros(p), np.ones(p), np.zeros(2), np.ones(2)
    return SparseMetric([(5,), (30,)], 0.1 * np.eye(2), *constants)


ALL_ON: dict[str, Any] = {
    "boosting": {"subsample": 0.6, "max_features": 0.8, "refresh_every": 8, "oob_gate": 0.0,
                 "n_nonzero": 0.2, "max_iter": 70, "learning_rate": 0.05},
    "learning": {"max_degree": 3, "screen_pairs": "auto", "prune": "auto",
                 "complexity_penalty": 0.5},
}  # fmt: skip

CASES = [
    Case("linear"),
    Case("degree 2", learning={"max_degree": 2}),
    Case("degree 2, shortlist", learning={"max_degree": 2}, shortlist=True),
    Case("degree 4", learning={"max_degree": 4}, p=6),
    Case("subsample", {"subsample": 0.5}, {"max_degree": 2}),
    Case("panel of sqrt", {"max_features": "sqrt"}, {"max_degree": 2}),
    Case("constant product", {"refresh_every": 6}, {"max_degree": 2}, table=reciprocal_table),
    Case("panel of 5", {"max_features": 5}, {"max_degree": 2}),
    Case("panel of 70%, shortlist", {"max_features": 0.7}, {"max_degree": 2}, shortlist=True),
    Case("small panels, shortlist", {"max_features": 0.2}, {"max_degree": 2}, p=60,
         shortlist=True),
    Case("refresh", {"refresh_every": 3}, {"max_degree": 2}),
    Case("refresh, rotated", {"refresh_every": 10, "max_iter": 80}, accepted=70),
    Case("gate", {"oob_gate": 0.7, "subsample": 0.6, "max_iter": 90, "learning_rate": 0.02},
         {"max_degree": 2}),
    Case("gate without bag", {"oob_gate": 2.5}),
    Case("gate that admits nothing", {"oob_gate": 2.5, "subsample": 0.5}, accepted=0,
         attempts=literal.PATIENCE),
    Case("screening", learning={"max_degree": 2, "screen_pairs": "auto"}, table=spread_table),
    Case("screening, 2 pairs", learning={"max_degree": 2, "screen_pairs": 2}, table=spread_table),
    Case("prune", {"max_features": 8, "n_nonzero": 1}, {"prune": "auto"}, p=40),
    Case("prune, metric", {"max_features": 8, "n_nonzero": 1},
         {"prune": "auto", "init": column_metric(40)}, p=40, accepted=25),
    Case("prune to 2", learning={"max_degree": 2, "prune": 2}),
    Case("penalty", learning={"max_degree": 2, "complexity_penalty": 20.0}),
    Case("penalty, refresh", {"refresh_every": 5}, {"complexity_penalty": 3.0}),
    Case("identity", {"max_iter": 50}, {"max_degree": 2, "init": "identity"}),
    Case("matrix", {"max_iter": 50}, {"max_degree": 2, "init": start_matrix(9)}),
    Case("metric", {"refresh_every": 5}, {"max_degree": 2, "init": start_metric(9)}),
    Case("weights", learning={"max_degree": 2}, weighted=True),
    Case("rho", {"n_nonzero": 0.3}, {"max_degree": 2}),
    Case("kappa 1", {"n_nonzero": 1}, {"max_degree": 2}),
    Case("kappa beyond panel", {"n_nonzero": 20}),
    Case("as given", learning={"max_degree": 2, "standardize": False}),
    Case("whole numbers", learning={"standardize": False}, table=whole_numbers),
    Case("rare class", {"n_neighbors": 10}, {"max_degree": 2}, rare=6),
    Case("all on", **ALL_ON, p=6, weighted=True),
    Case("all on, matrix", ALL_ON["boosting"],
         {**ALL_ON["learning"], "init": start_matrix(6), "prune": 3}, p=6, weighted=True, rare=15),
    Case("all on, metric, shortlist", {**ALL_ON["boosting"], "max_features": None},
         {**ALL_ON["learning"], "init": start_metric(6)}, p=6, weighted=True, shortlist=True),
    Case("two classes, coded", {"multiclass": "coded", "refresh_every": 5}, {"max_degree": 2}),
    Case("three classes", {"refresh_every": 5}, {"max_degree": 2}, table=three_classes),
    Case("three classes, coded", {"refresh_every": 5, "multiclass": "coded"}, {"max_degree": 2},
         table=three_classes),
    Case("four classes, identity", {"refresh_every": 4},
         {"max_degree": 2, "init": "identity"}, table=four_classes),
    Case("four classes, coded, shortlist", {"refresh_every": 4, "multiclass": "coded"},
         {"max_degree": 2, "init": start_matrix(9)}, table=four_classes, shortlist=True),
    Case("three classes, rare", {"n_neighbors": 10}, {"max_degree": 2}, table=three_classes,
         rare=5),
    Case("three classes, rare, coded", {"n_neighbors": 10, "multiclass": "coded"},
         {"max_degree": 2}, table=three_classes, rare=5),
    Case("three classes, screening", learning={"max_degree": 2, "screen_pairs": "auto"},
         table=three_spreads, n=80, accepted=25),
    Case("four classes, gate", {"oob_gate": 0.5, "subsample": 0.6, "max_iter": 90},
         {"max_degree": 2}, table=four_classes, n=70, accepted=15),
    Case("four classes, all on", **ALL_ON, table=four_classes, n=70, p=6, weighted=True),
    Case("four classes, all on, coded", {**ALL_ON["boosting"], "multiclass": "coded"},
         ALL_ON["learning"], table=four_classes, n=70, p=6, weighted=True),
]  # fmt: skip


# --- following a fit


@dataclass
class Seen:
    """The recorded values of one attempt."""

    margins: Array
    chosen: Array | None = None
    A: Array | None = None
    diagonal: Array | None = None  # over the terms of the passes; None without a shortlist
    starts: Array | None = None  # the candidates whose rows of A were computed
    rows: Array | None = None  # these rows, over all candidates
    bag_weights: Array | None = None
    gain: Array | None = None
    step_weight: float = 0.0


@dataclass(repr=False)
class Followed:
    """A fit of the package and the literal fit."""

    case: Case
    learned: Learned
    path: Path  # terms as candidate numbers
    candidates: Candidates
    seen: list[Seen]
    literal: literal.LiteralFit

    def error(self, of: Callable[[Seen, literal.Attempt], float]) -> float:
        """The largest relative error over the attempts."""
        return max(of(seen, step) for seen, step in zip(self.seen, self.literal.attempts))


@contextmanager
def limits_of(case: Case) -> Iterator[pytest.MonkeyPatch]:
    """All panels, or no panels, have a shortlist. Passes over the candidates use several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (forms, literal):
            patch.setattr(module, "SMALL", 0 if case.shortlist else 10**6)
        patch.setattr(host, "BLOCK", 2)
        patch.setattr(sweeps, "BLOCK", 8)
        patch.setattr(sweeps, "FEW_NUMBERS", 0)
        yield patch


def follow(case: Case) -> Followed:
    """Run the package with recorded intermediate results, and then the literal algorithm."""
    X, labels, weight = case.data()
    options = case.options()
    seen: list[Seen] = []
    kept: dict[str, Any] = {}
    with limits_of(case) as patch:
        _watch(patch, seen, kept)
        learned = learn(X, labels, weight, get_engine("numpy"), options)
        expected = literal.learn(X, labels, weight, options)
    return Followed(case, learned, kept["path"], kept["candidates"], seen, expected)


def _watch(patch: pytest.MonkeyPatch, seen: list[Seen], kept: dict[str, Any]) -> None:
    step_matrix, boost = loop.step_matrix, loop.boost
    weights, search = State.weights, State.step_weight
    diagonal, rows = State.diagonal, State.rows

    def watched_weights(state: State, in_bag: Array) -> Weights:
        seen.append(Seen(state.margins.copy()))
        return weights(state, in_bag)

    def watched_matrix(*args: Any) -> tuple[Array, Array]:
        seen[-1].chosen, seen[-1].A = step_matrix(*args)
        return seen[-1].chosen, seen[-1].A

    def watched_diagonal(state: State, u: Weights, terms: Terms, passes: Any) -> Array:
        seen[-1].diagonal = diagonal(state, u, terms, passes)
        return seen[-1].diagonal

    def watched_rows(state: State, u: Weights, terms: Terms, chosen: Array, passes: Any) -> Array:
        seen[-1].starts, seen[-1].rows = chosen, rows(state, u, terms, chosen, passes)
        return seen[-1].rows

    def watched_search(state: State, u: Weights, move: Move) -> float:
        seen[-1].bag_weights = u.all[u.in_bag].copy()
        seen[-1].gain = move.gain[u.in_bag].copy()
        seen[-1].step_weight = search(state, u, move)
        return seen[-1].step_weight

    def watched_boost(candidates: Candidates, *args: Any) -> Path:
        kept["candidates"], kept["path"] = candidates, boost(candidates, *args)
        return kept["path"]

    patch.setattr(State, "weights", watched_weights)
    patch.setattr(State, "step_weight", watched_search)
    patch.setattr(State, "diagonal", watched_diagonal)
    patch.setattr(State, "rows", watched_rows)
    patch.setattr(loop, "step_matrix", watched_matrix)
    patch.setattr("metricboost.training.learn.boost", watched_boost)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name.replace(" ", "-"))
def run(request: pytest.FixtureRequest) -> Followed:
    return followed(request.param.name)


@cache
def followed(name: str) -> Followed:
    return follow(next(case for case in CASES if case.name == name))


# --- step by step


def test_same_attempts_are_accepted(run: Followed) -> None:
    """Both fits accept the same attempts, and as many as the case requires."""
    assert len(run.seen) == len(run.literal.attempts) >= run.case.attempts
    assert run.path.n_attempts == len(run.literal.attempts)
    assert [s.attempt for s in run.path.steps] == [s.attempt for s in run.literal.steps]
    assert len(run.path) >= run.case.accepted


def test_same_matrix(run: Followed) -> None:
    """``A = sum u_i D_i`` over the bag is equal at every attempt, on the panel or the shortlist.

    So are the diagonal and the rows of A that choose the shortlist.
    """

    def error(seen: Seen, step: literal.Attempt) -> float:
        A = step.A * _factor(run, step)
        place = np.searchsorted(step.panel, step.chosen)
        parts = [relative_error(seen.A, A[np.ix_(place, place)])]
        # The passes go over the terms of a small panel, or over all candidates.
        small = seen.diagonal is not None and len(seen.diagonal) == len(step.panel)
        passed = np.arange(len(step.panel)) if small else np.asarray(step.panel)
        if seen.diagonal is not None:
            parts.append(relative_error(seen.diagonal[passed], A.diagonal()))
        if seen.rows is not None:
            start = np.searchsorted(passed, seen.starts)
            parts.append(relative_error(seen.rows[:, passed], A[start]))
        return max(parts)

    assert run.error(error) < RTOL


def test_same_shortlist(run: Followed) -> None:
    """A step chooses from the panel or from a shortlist, as the case requires."""
    for seen, step in zip(run.seen, run.literal.attempts):
        assert seen.chosen is not None
        assert seen.chosen.tolist() == step.chosen
        assert (seen.diagonal is not None) == run.case.shortlist
    shorter = [len(step.chosen) < len(step.panel) for step in run.literal.attempts]
    assert any(shorter) == run.case.shortlist


def _factor(run: Followed, step: literal.Attempt) -> float:
    """The factor between the weights. In the package the largest exponential is 1."""
    return float(1 / (step.u / run.case.data()[2]).max())


def test_same_margins(run: Followed) -> None:
    """The margins ``<D_i, W>`` are equal before every attempt, including refreshes."""
    errors = [relative_error(s.margins, m) for s, m in zip(run.seen, run.literal.margins)]
    assert max(errors) < RTOL


def test_same_gains_and_weights_on_the_bag(run: Followed) -> None:
    """The gains, the weights of the rows in the bag, and the step weights are equal."""
    draws = literal.Draws(
        run.case.options().boosting.seed, len(run.seen[0].margins),
        run.case.options().boosting.subsample, None,
    )  # fmt: skip
    for number, (seen, step) in enumerate(zip(run.seen, run.literal.attempts), 1):
        bag = draws(number, 1)[0]
        assert relative_error(seen.gain, step.gain[bag]) < RTOL
        assert relative_error(seen.bag_weights, step.u[bag] * _factor(run, step)) < RTOL
        w = run.case.options().boosting.learning_rate * seen.step_weight
        assert w == pytest.approx(step.w, rel=RTOL, abs=0)


def test_same_steps(run: Followed) -> None:
    """Support, xi up to its sign, w and the loss of every accepted step are equal."""
    for step, expected in zip(run.path.steps, run.literal.steps):
        assert step.support.tolist() == expected.support
        sign = np.sign(step.xi @ expected.xi)
        assert relative_error(sign * step.xi, expected.xi) < RTOL
        assert step.weight == pytest.approx(expected.w, rel=RTOL)
        assert step.loss == pytest.approx(expected.loss, rel=RTOL)
        assert step.refreshed == expected.refreshed


def test_same_candidates_in_the_same_order(run: Followed) -> None:
    """The candidates, their standardised columns, and their number after each step are equal."""
    terms = [run.candidates.term(t) for t in range(len(run.candidates))]
    assert terms == run.literal.features.terms
    columns = run.candidates.table.columns(run.candidates.terms(np.arange(len(terms))))
    assert relative_error(columns, run.literal.features.phi()) < RTOL
    sizes = [(s.n_terms, s.n_candidates) for s in run.path.steps]
    assert sizes == [(s.n_selected, s.n_candidates) for s in run.literal.steps]


def test_same_complexity(run: Followed) -> None:
    """C_m is equal before the first step, after half of the steps, and at the end."""
    # The literal root of a zero eigenvalue has the root of its rounding error.
    tolerance = max(RTOL, 50 * float(np.sqrt(np.finfo(np.longdouble).eps)))
    for m in {0, 1, len(run.path) // 2, len(run.path)} & set(range(len(run.path) + 1)):
        expected = literal.trace_of_root(run.literal.metric(m))
        assert run.path.factor(m).complexity() == pytest.approx(expected, rel=tolerance)


def test_same_metric_after_every_step(run: Followed) -> None:
    """W_m over the candidates is equal and positive semi-definite."""
    for m in range(len(run.path) + 1):
        expected = run.literal.metric(m).astype(float)
        factor = run.path.factor(m)
        W = np.zeros_like(expected)
        W[np.ix_(factor.index, factor.index)] = factor.matrix @ factor.matrix.T
        assert relative_error(W, expected) < RTOL
        assert np.linalg.eigvalsh(W).min() >= -1e-12 * np.abs(W).max()


def test_same_stop_and_same_final_metric(run: Followed) -> None:
    """The chosen step and the pruned W, in columns of the whole table, are equal."""
    assert run.learned.best_iter == run.literal.best
    metric = run.learned.metric(run.learned.factor)
    W = metric.matrix()
    found = {
        (a, b): W[s, t] for s, a in enumerate(metric.columns) for t, b in enumerate(metric.columns)
    }
    expected = run.literal.final
    assert {a for a, _ in found} == {a for a, _ in expected}
    largest = max(expected.values())
    for pair, value in found.items():
        assert value == pytest.approx(expected.get(pair, 0.0), abs=RTOL * largest)


def test_final_embedding_has_the_literal_distances(run: Followed) -> None:
    """Distances of training rows under the final metric are those of the literal W."""
    metric = run.learned.metric(run.learned.factor)
    X = run.case.data()[0]
    terms = sorted({run.literal.original(t) for t in range(len(run.literal.features.terms))})
    phi = {run.literal.original(t): column for t, column in enumerate(run.literal.features.columns)}
    W = np.array([[run.literal.final.get((a, b), 0.0) for b in terms] for a in terms])
    expected = literal.squared_distances(np.stack([phi[t] for t in terms], axis=1), W)
    assert relative_error(metric.pairwise_distance(X) ** 2, expected) < RTOL


# --- that the cases exercise what they name


def test_screening_case_screens_pairs_in_literal_order() -> None:
    """Order and scores of the pairs agree with the literal double loop."""
    run = followed("screening")
    _, labels, _ = run.case.data()
    expected = screened_pairs(run.literal.features.X, labels, run.case.p)
    screening = run.learned.screening
    assert screening is not None
    assert screening.pairs == [pair for _, pair in expected]
    assert {(0, 0), (1, 2), (3, 4), (5, 6), (7, 7)} <= set(screening.pairs)
    assert relative_error(screening.scores, [score for score, _ in expected]) < 1e-12


def test_screening_of_three_classes_in_literal_order() -> None:
    """Order and scores agree for three classes. A fourth class with five rows is ignored."""
    run = followed("three classes, screening")
    _, labels, _ = run.case.data()
    expected = screened_pairs(run.literal.features.X, labels, run.case.p)
    screening = run.learned.screening
    assert screening is not None
    assert screening.pairs == [pair for _, pair in expected]
    assert (1, 2) in screening.pairs
    assert relative_error(screening.scores, [score for score, _ in expected]) < 1e-12


def test_number_of_pairs_is_a_cap() -> None:
    """The number of pairs is limited to the best two."""
    capped, every = followed("screening, 2 pairs"), followed("screening")
    assert capped.learned.screening is not None
    assert every.learned.screening is not None
    assert capped.learned.screening.pairs == every.learned.screening.pairs[:2]


@pytest.mark.parametrize("name", ["prune", "prune to 2", "all on, matrix"])
def test_pruning_cases_prune(name: str) -> None:
    """The final metric has fewer terms than W at the best step."""
    run = followed(name)
    assert len(run.learned.factor.index) < len(run.learned.path.factor(run.learned.best_iter).index)


def test_pruning_keeps_the_columns_of_the_start() -> None:
    """Pruning keeps the columns of the start, and drops columns of a single step."""
    run = followed("prune, metric")
    chosen = [int(t) for step in run.path.steps for t in step.support]
    kept = {column for t in run.learned.factor.index for column in run.learned.terms[t]}
    assert {5, 30} <= kept
    assert min(chosen.count(5), chosen.count(30)) < 2
    assert any(chosen.count(t) == 1 and t not in kept for t in chosen)


@pytest.mark.parametrize("name", ["penalty", "penalty, refresh", "all on"])
def test_penalty_cases_stop_early(name: str) -> None:
    run = followed(name)
    assert 0 < run.learned.best_iter < len(run.path)


def test_gate_case_rejects_and_trims() -> None:
    """The gate rejects some attempts, and some steps have fewer entries than kappa."""
    run = followed("gate")
    assert len(run.path) < run.path.n_attempts
    assert {len(step.support) for step in run.path.steps} == {1, 2, 3}


def test_a_rare_class_has_fewer_neighbours() -> None:
    """A class of six rows gives five neighbours within the class, and six for other rows."""
    run = followed("rare class")
    _, labels, _ = run.case.data()
    found = class_neighborhoods(get_engine("numpy"), run.literal.features.X, labels, 10)
    assert (found.same.shape[1], found.other.shape[1]) == (10, 10)
    for i, own in enumerate(labels == labels.max()):
        assert len(set(found.same[i].tolist())) == (5 if own else 10)
        assert len(set(found.other[i].tolist())) == (10 if own else 6)


def test_two_classes_are_the_same_coded_or_not() -> None:
    """For two classes, "common" and "coded" give the same bits on every engine."""
    X, labels, weight = followed("two classes, coded").case.data()
    options = followed("two classes, coded").case.options()
    common = replace(options, boosting=replace(options.boosting, multiclass="common"))
    a, b = (learn(X, labels, weight, get_engine("numpy"), o) for o in (options, common))
    assert np.array_equal(a.factor.matrix, b.factor.matrix)
    assert [step.loss for step in a.path.steps] == [step.loss for step in b.path.steps]


@pytest.mark.parametrize("name", ["three classes, coded", "four classes, coded, shortlist"])
def test_coded_metric_is_the_papers_divided_by_k_minus_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss ``exp(-y'f / K)`` of (K-1) W is equal to the loss of the package at every step."""
    run = followed(name)
    X, labels, weight = run.case.data()
    K = int(labels.max()) + 1
    monkeypatch.setattr(literal, "coded_scale", lambda n_classes: 1.0)
    options, init = run.case.options(), run.case.options().init
    paper = replace(options, init=init if isinstance(init, str) else (K - 1) * init)
    with limits_of(run.case):
        expected = literal.learn(X, labels, weight, paper)
    assert len(expected.steps) == len(run.path) >= 30
    for step, other in zip(expected.steps, run.literal.steps):
        assert relative_error(step.W, (K - 1) * other.W) < RTOL
        assert relative_error(step.margins, other.margins) < RTOL
        assert step.loss == pytest.approx(other.loss, rel=RTOL)


def test_constant_product_is_a_zero_column() -> None:
    """The product of reciprocal columns is a zero column, and no step selects it."""
    run = followed("constant product")
    assert (0, 1) in run.literal.features.terms
    number = run.candidates.number((0, 1))
    assert not run.candidates.table.columns(run.candidates.terms(np.array([number]))).any()
    assert all(number not in step.support for step in run.path.steps)


def test_rotation_case_outgrows_the_columns_kept() -> None:
    """Eighty steps on eight columns rotate the embedding, and the margins still agree."""
    assert len(followed("refresh, rotated").path) > 64


# --- identities of the paper and of the design


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    """Random columns, neighbours with unequal k, weights, and all D_i."""
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(40, 7)), (rng.random(40) < 0.4).astype(np.intp)
    engine = get_engine("numpy")
    near = class_neighborhoods(engine, X, labels, 5)
    candidates = Candidates(engine.table(X.T), 2)
    candidates.add([(0, 1), (2, 2), (3, 6)])
    state = State(candidates.table, labels, np.ones(40))
    state.use(Neighborhoods(near.same, near.other[:, :3], near.found))
    every = candidates.terms(np.arange(10))
    phi = candidates.table.columns(every)
    D = literal.information_matrices(phi, near.same.tolist(), near.other[:, :3].tolist())
    u = rng.exponential(size=40) * (rng.random(40) < 0.7)
    weights = Weights(u > 0, u, u, state.graph.weighted(u))
    return {"state": state, "weights": weights, "every": every, "phi": phi, "D": D, "u": u,
            "rng": rng}  # fmt: skip


def test_laplacian_identity(parts: dict[str, Any]) -> None:
    """``A = sum_i r_i D_i`` agrees for A in full, A times a vector, and rows and diagonal of A."""
    state, weights, phi, D, u = (parts[name] for name in ("state", "weights", "phi", "D", "u"))
    A = np.einsum("i,iab->ab", u, D)
    v = parts["rng"].normal(size=10)
    assert relative_error(weights.bag.form(phi), A) < 1e-12
    assert relative_error(phi.T @ (weights.bag @ (phi @ v)[:, None])[:, 0], A @ v) < 1e-12
    index = np.array([1, 4, 8])
    assert relative_error(state.diagonal(weights, parts["every"]), A.diagonal()) < 1e-12
    assert relative_error(state.rows(weights, parts["every"], index), A[index]) < 1e-12


def test_margins_are_inner_products(parts: dict[str, Any]) -> None:
    """``<D_i, W>`` is the margin, and the diagonal of D_i has the column margins."""
    graph, phi, D = parts["state"].graph, parts["phi"], parts["D"]
    L = parts["rng"].normal(size=(10, 4))
    assert relative_error(graph.margins(phi @ L), np.einsum("iab,ab->i", D, L @ L.T)) < 1e-12
    diagonals = np.einsum("iaa->ia", D)
    assert relative_error(graph.column_margins(phi, np.float64), diagonals) < 1e-12


def test_slope_of_the_loss_is_the_quadratic_form(parts: dict[str, Any]) -> None:
    """The derivative of the loss along ``xi xi'`` at 0 is ``-xi' A xi``, by finite differences."""
    D, u = parts["D"], parts["u"]
    xi = parts["rng"].normal(size=10)
    xi /= np.linalg.norm(xi)
    gain = np.einsum("a,iab,b->i", xi, D, xi)
    h = 1e-5
    slope = ((u * np.exp(-h * gain)).sum() - (u * np.exp(h * gain)).sum()) / (2 * h)
    assert -slope == pytest.approx(xi @ np.einsum("i,iab->ab", u, D) @ xi, rel=1e-7)


def test_the_step_weight_is_a_stationary_point(parts: dict[str, Any]) -> None:
    """The finite difference of the loss at w is zero, and the loss at w is a minimum."""
    D, u = parts["D"], parts["u"]
    xi = np.linalg.eigh(np.einsum("i,iab->ab", u, D))[1][:, -1]
    gain = np.einsum("a,iab,b->i", xi, D, xi)
    w = get_engine("numpy").step_weight(u, gain)

    def loss(at: float) -> float:
        return float((u * np.exp(-at * gain)).sum())

    assert w > 0
    h = 1e-5 * w
    assert abs(loss(w + h) - loss(w - h)) / (2 * h) < 1e-6 * float(u @ gain)
    assert loss(w) < min(loss(0.99 * w), loss(1.01 * w))


def test_coded_margin_is_the_own_discriminant() -> None:
    """``y'f / K = f_own / (K - 1)``, because the f_c sum to zero."""
    for K in (2, 3, 7):
        for own in range(K):
            f_own = [-1.0 if c == own else 1 / (K - 1) for c in range(K)]
            found = np.array(literal.coded_factors(own, K)) * (K - 1)
            assert relative_error(found, f_own) < 1e-14


@pytest.mark.parametrize(
    "name", ["all on", "gate", "refresh", "degree 2, shortlist", "four classes, all on, coded"]
)
def test_a_fit_cut_short_is_a_shorter_fit(name: str) -> None:
    """The first steps of a longer fit are bit for bit equal to a shorter fit."""
    case = next(case for case in CASES if case.name == name)
    X, labels, weight = case.data()
    with limits_of(case):
        full = learn(X, labels, weight, get_engine("numpy"), case.options())
    for attempts in (1, 7, 20):
        boosting = replace(case.options().boosting, max_iter=attempts)
        options = replace(case.options(), boosting=boosting)
        with limits_of(case):
            short = learn(X, labels, weight, get_engine("numpy"), options)
        steps = [step for step in full.path.steps if step.attempt <= attempts]
        assert len(short.path) == len(steps)
        for a, b in zip(short.path.steps, steps):
            assert [short.terms[t] for t in a.support] == [full.terms[t] for t in b.support]
            assert np.array_equal(a.xi, b.xi)
            assert (a.attempt, a.weight, a.loss) == (b.attempt, b.weight, b.loss)
            assert (a.n_terms, a.n_candidates) == (b.n_terms, b.n_candidates)
