"""The parts of a step on every engine, against the NumPy engine and ``engines.algebra``.

The parts are the truncated powers, the leading eigenvectors, the step weight, and the passes over
all candidates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rooms import ENGINE, ENGINES, Array

from metricboost.engines import Engine, Terms, algebra, get_engine
from metricboost.engines.line_search import Line, step_weight

Matrix = Callable[[np.random.Generator, int], Array]


@pytest.fixture(params=["native", "torch:cpu"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param not in ENGINES:
        pytest.importorskip(
            "torch" if request.param == "torch:cpu" else "metricboost.engines._native"
        )
    return get_engine(request.param)


# --- truncated powers


def symmetric(B: Array) -> Array:
    return (B + B.T) / 2


def squared(B: Array) -> Array:
    return B @ B.T


def repeated(A: Array, rows: Array) -> Array:
    return A[np.ix_(rows, rows)]


MATRICES: dict[str, Matrix] = {
    "indefinite": lambda rng, q: symmetric(rng.normal(size=(q, q))),
    "of rank two": lambda rng, q: squared(rng.normal(size=(q, 2))),
    "of rank one": lambda rng, q: squared(rng.normal(size=(q, 1))),
    "negative": lambda rng, q: -squared(rng.normal(size=(q, q))) - np.eye(q),
    "diagonal": lambda rng, q: np.diag(rng.normal(size=q)),
    "zero": lambda rng, q: np.zeros((q, q)),
    "ones": lambda rng, q: np.ones((q, q)),
    "whole numbers": lambda rng, q: squared(rng.integers(-1, 2, (q, 3)).astype(float)),
    "signs": lambda rng, q: np.outer(*[rng.choice([-1.0, 1.0], q)] * 2),
    "equal columns": lambda rng, q: repeated(
        symmetric(rng.normal(size=(q, q))), rng.integers(0, q, q)
    ),
    "equal to twelve digits": lambda rng, q: 1 + 1e-14 * symmetric(rng.normal(size=(q, q))),
    "tiny": lambda rng, q: 1e-150 * symmetric(rng.normal(size=(q, q))),
    "huge": lambda rng, q: 1e150 * symmetric(rng.normal(size=(q, q))),
}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("q", [1, 2, 9, 90])
def test_truncated_powers(engine: Engine, kind: str, q: int) -> None:
    """The supports are equal for any number of entries, and have no repeated places."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A, starts = MATRICES[kind](rng, q), rng.permutation(q)[:5]
        for kappa in {1, min(2, q), min(5, q), q}:
            expected = algebra.truncated_powers(A, starts, kappa)
            found = engine.truncated_powers(A, starts, kappa)
            assert found.shape == (len(starts), kappa)
            assert np.array_equal(found, expected)
            assert (np.diff(found, axis=1) > 0).all()


def test_powers_take_any_layout(engine: Engine) -> None:
    """Slices and Fortran order give the same supports and vectors as a contiguous copy."""
    wide = symmetric(np.random.default_rng(0).normal(size=(40, 40)))
    A, starts = np.ascontiguousarray(wide[::2, ::2]), np.arange(10)[::2]
    expected = engine.truncated_powers(A, starts.copy(), 4)
    for view in (wide[::2, ::2], np.asfortranarray(A), wide[::2].T[::2]):
        assert np.array_equal(engine.truncated_powers(view, starts, 4), expected)
        for one, other in zip(*(engine.leading_eigenvectors(B, list(expected)) for B in (A, view))):
            assert np.array_equal(one, other)


# --- leading eigenvectors


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("q", [1, 2, 9, 60])
def test_leading_eigenvectors(engine: Engine, kind: str, q: int) -> None:
    """The eigenvalues agree. The vectors agree if the largest eigenvalue is a simple one."""
    rng = np.random.default_rng(q)
    A = MATRICES[kind](rng, q)
    scale = max(float(np.abs(A).max()), np.finfo(float).tiny)
    supports = [np.sort(rng.permutation(q)[:size]) for size in {1, min(2, q), min(7, q), q}]
    expected, directions = algebra.leading_eigenvectors(A, supports)
    values, vectors = engine.leading_eigenvectors(A, supports)
    assert np.allclose(values / scale, expected / scale, rtol=1e-12, atol=1e-12 * q)
    for support, value, vector, direction in zip(supports, values, vectors, directions):
        block = A[np.ix_(support, support)] / scale
        outside = np.setdiff1d(np.arange(q), support)
        assert not vector[outside].any()
        assert np.linalg.norm(vector) == pytest.approx(1, rel=1e-12)
        assert vector[np.argmax(np.abs(vector))] > 0
        own = vector[support]
        assert np.allclose(block @ own, value / scale * own, rtol=0, atol=1e-11 * q)
        spectrum = np.linalg.eigvalsh(block)
        twice = len(spectrum) > 1 and spectrum[-1] - spectrum[-2] < 1e-3
        largest = np.sort(np.abs(own))
        signs_differ = len(own) > 1 and largest[-1] - largest[-2] < 1e-6
        if not twice and not signs_differ:
            assert np.allclose(vector, direction, rtol=0, atol=1e-9)


# --- the step weight


def weights_and_gains(kind: str, rng: np.random.Generator) -> tuple[Array, Array]:
    u, gain = rng.exponential(size=50), rng.normal(0.3, 1.0, 50)
    if kind == "weights with zeros":
        u *= rng.random(50) < 0.5
    elif kind == "all weights zero":
        u[:] = 0
    elif kind == "gains with zeros":
        gain *= rng.random(50) < 0.5
    elif kind == "all gains zero":
        gain[:] = 0
    elif kind == "gaining only":
        gain = np.abs(gain)
    elif kind == "losing only":
        gain = -np.abs(gain)
    elif kind == "nearly balanced":
        gain += 1e-6 - u @ gain / u.sum()
    elif kind == "balanced":
        u, gain = np.ones(50), np.repeat([1.0, -1.0], 25)
    elif kind == "one large loss":
        u[0], gain = 1e-8, np.append(-3000.0, np.abs(gain[1:]))
    elif kind == "tiny":
        u, gain = 1e-150 * u, 1e-150 * gain
    elif kind == "huge gains":
        gain = 1e150 * gain
    elif kind == "no rows":
        u, gain = u[:0], gain[:0]
    return u, gain


@pytest.mark.parametrize(
    "kind",
    ["plain", "weights with zeros", "all weights zero", "gains with zeros", "all gains zero",
     "gaining only", "losing only", "nearly balanced", "balanced", "one large loss", "tiny",
     "huge gains", "no rows"],
)  # fmt: skip
def test_step_weight(engine: Engine, kind: str) -> None:
    for seed in range(20):
        u, gain = weights_and_gains(kind, np.random.default_rng(seed))
        expected = step_weight(Line(np, u, gain))
        found = engine.step_weight(engine.arrays.made(u), engine.arrays.made(gain))
        assert isinstance(found, float)
        assert found == pytest.approx(expected, rel=1e-6 if kind == "nearly balanced" else 1e-9)
    assert (expected > 0) == (
        kind not in ("all weights zero", "all gains zero", "losing only", "balanced", "no rows")
    )


def test_step_weight_takes_any_layout(engine: Engine) -> None:
    u, gain = np.random.default_rng(0).normal(0.5, 1.0, (2, 80)) ** 2 * [[1], [-1]] + [[0], [2]]
    expected = engine.step_weight(
        engine.arrays.made(u[::2].copy()), engine.arrays.made(gain[::2].copy())
    )
    assert expected > 0
    assert engine.step_weight(engine.arrays.made(u[::2]), engine.arrays.made(gain[::2])) == expected


# --- passes over the candidates

P, N = 6, 50


def table_and_terms(rng: np.random.Generator, size: float, q: int = 400) -> tuple[Array, Terms]:
    """A table with values of a given size, and its columns and products up to degree three."""
    X = size * rng.normal(size=(N, P)) if size else np.zeros((N, P))
    factors = np.sort(rng.integers(0, P, (q, 3)), axis=1).astype(np.int32)
    factors[np.arange(3) >= rng.integers(1, 4, q)[:, None]] = P
    factors[:P], factors[:P, 0] = P, np.arange(P)
    Xt = np.ascontiguousarray(X.T)
    moments = ENGINE.table(Xt).term_moments(factors)
    moments[:P] = 0.0, 1.0
    return Xt, Terms(np.arange(q), factors, moments)


def room_for(monkeypatch: pytest.MonkeyPatch, room: str) -> None:
    """The memory for the values of the candidates."""
    if room != "all":
        n_bytes = {"none": 0, "some": 4 * 2 * N * 150}[room]
        for module in ("sweeps", "native"):
            monkeypatch.setattr(f"metricboost.engines.{module}.KEPT_BYTES", n_bytes)


class Passes:
    """The passes of an engine and of the NumPy engine over one table, with equal neighbours."""

    def __init__(self, engine: Engine, Xt: Array) -> None:
        self.engines = engine, ENGINE
        self.passes = [one.sweeps(one.table(Xt)) for one in self.engines]

    def use(self, same: Array, other: Array) -> None:
        for one, passes in zip(self.engines, self.passes):
            passes.use(one.graph(same, other))

    def agree(self, kernel: str, terms: Terms, values: Array, rtol: float = 1e-4) -> None:
        """Assert that a result agrees, up to a share of its largest entry."""
        found, expected = (
            getattr(passes, kernel)(terms, one.arrays.made(values))
            for passes, one in zip(self.passes, self.engines)
        )
        assert found.shape == expected.shape
        assert np.isfinite(found).all()
        scale = max(float(np.abs(expected).max(initial=0.0)), np.finfo(float).tiny)
        assert np.abs(found - expected).max(initial=0.0) <= rtol * scale


@pytest.mark.parametrize("room", ["none", "some", "all"])
@pytest.mark.parametrize("size", [1.0, 0.0, 1e-25, 1e-15, 1e36])
def test_passes(engine: Engine, room: str, size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes agree while terms are appended, and weights and neighbours change."""
    room_for(monkeypatch, room)
    rng = np.random.default_rng(1)
    Xt, terms = table_and_terms(rng, size)
    passes = Passes(engine, Xt)
    passes.use(rng.integers(0, N, (N, 4)), rng.integers(0, N, (N, 3)))
    for known in (P, 63, 64, 65, 65, 190, 400):
        part = terms[:known]
        for zeros in (0.0, 0.6, 1.0):
            weight = rng.exponential(size=N) * (rng.random(N) >= zeros)
            passes.agree("diagonal", part, weight)
        for s in (1, 5, 7):
            y = rng.normal(size=(N, s)) * 10.0 ** rng.integers(-3, 3, s)
            passes.agree("pulled_back", part, y)
        if known in (64, 190):
            passes.use(rng.integers(0, N, (N, 2)), rng.integers(0, N, (N, 5)))


@pytest.mark.parametrize("size", [1e-100, 1e-10, 1e10, 1e100])
def test_passes_with_weights_of_any_size(engine: Engine, size: float) -> None:
    """Weights far from one neither overflow nor underflow in float32."""
    rng = np.random.default_rng(2)
    Xt, terms = table_and_terms(rng, 1.0)
    passes = Passes(engine, Xt)
    passes.use(rng.integers(0, N, (N, 4)), rng.integers(0, N, (N, 3)))
    weight, y = size * rng.exponential(size=N), size * rng.normal(size=(N, 5))
    passes.agree("diagonal", terms, weight)
    passes.agree("pulled_back", terms, y)
    passes.agree("pulled_back", terms, 0 * y, 0.0)


def test_a_sample_of_the_rows(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine estimates the diagonal from the same rows. The other pass uses all rows."""
    for module in ("sweeps", "native"):
        monkeypatch.setattr(f"metricboost.engines.{module}.MARGIN_ROWS", 17)
    rng = np.random.default_rng(3)
    Xt, terms = table_and_terms(rng, 1.0)
    passes = Passes(engine, Xt)
    passes.use(rng.integers(0, N, (N, 4)), rng.integers(0, N, (N, 3)))
    weight, y = rng.exponential(size=N), rng.normal(size=(N, 5))
    passes.agree("diagonal", terms, weight)
    passes.agree("pulled_back", terms, y)
    exact = ENGINE.graph(*[rng.integers(0, N, (N, 4)) for _ in range(2)])
    passes.use(exact.same, exact.other)
    columns = ENGINE.table(Xt).columns(terms)
    whole = weight @ exact.column_margins(columns)
    assert not np.allclose(passes.passes[0].diagonal(terms, engine.arrays.made(weight)), whole)


def test_columns_that_do_not_vary_have_no_entries(engine: Engine) -> None:
    """Their standardised values are zero, with a deviation that is infinite."""
    Xt = np.stack([np.where(np.arange(N) % 2, 1.0, -1.0), np.linspace(-1, 1, N)])
    factors = np.array([[0, 2], [1, 2], [0, 0]], dtype=np.int32)
    moments = ENGINE.table(Xt).term_moments(factors)
    assert np.isinf(moments[2, 1])
    terms = Terms(np.arange(3), factors, moments)
    passes = Passes(engine, Xt)
    rng = np.random.default_rng(4)
    passes.use(rng.integers(0, N, (N, 4)), rng.integers(0, N, (N, 3)))
    made = engine.arrays.made
    assert passes.passes[0].diagonal(terms, made(np.ones(N)))[2] == 0
    assert passes.passes[0].pulled_back(terms, made(np.ones((N, 1))))[0, 2] == 0


@pytest.mark.skipif("native" not in ENGINES, reason="the C++ kernels were not built")
@pytest.mark.parametrize("room", ["none", "some", "all"])
def test_threads_change_no_bit(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room_for(monkeypatch, room)
    monkeypatch.setattr("metricboost.engines.native.WORTH_SHARING", 0)
    found = []
    for threads in (1, 3):
        rng = np.random.default_rng(5)
        Xt, terms = table_and_terms(rng, 1.0)
        engine = get_engine("native", threads)
        passes = engine.sweeps(engine.table(Xt))
        passes.use(engine.graph(rng.integers(0, N, (N, 4)), rng.integers(0, N, (N, 3))))
        results = []
        for known in (10, 200, 400):
            results.append(passes.diagonal(terms[:known], rng.exponential(size=N)))
            results.append(passes.pulled_back(terms[:known], rng.normal(size=(N, 6))))
        found.append(results)
    for one, several in zip(*found, strict=True):
        assert np.array_equal(one, several)
