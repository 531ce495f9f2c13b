"""Tests of the PyTorch engine on the CPU against the NumPy engine: search, operations, fits."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone

from metricboost import SDistClassifier
from metricboost.boosting.loop import BoostingOptions
from metricboost.boosting.neighborhoods import training_lists
from metricboost.boosting.state import State, Weights
from metricboost.boosting.terms import Candidates
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.engines import Engine, NeighborLists, Terms, get_engine
from metricboost.engines.line_search import Line
from metricboost.errors import DeviceMemoryError
from metricboost.training.learn import Learned, learn
from metricboost.training.options import LearningOptions

torch = pytest.importorskip("torch")
from metricboost.engines import (  # noqa: E402
    torch_engine,
    torch_graph,
    torch_search,
    torch_table,
)
from metricboost.engines.torch_engine import TorchEngine  # noqa: E402
from metricboost.engines.torch_graph import TorchGraph  # noqa: E402
from metricboost.engines.torch_threads import one_torch_thread  # noqa: E402

Array = npt.NDArray[Any]
NUMPY = get_engine("numpy")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, because tables are small and tests may run in parallel."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- searches


@pytest.fixture(params=["float32 products", "half precision"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Approximate distances in the precision of the CPU, and of a GPU."""
    if request.param == "half precision":
        monkeypatch.setattr(torch_search, "HALF_ON", ("cpu",))
        monkeypatch.setattr(torch_search, "HALF_SHARE", 10.0)


def places(kind: str, n: int, r: int) -> Array:
    rng = np.random.default_rng(n + r)
    z = rng.normal(size=(n, r))
    if kind == "ties":
        z = np.round(z)
    elif kind == "repeated":
        z = z[rng.integers(0, max(n // 40, 1), n)]
    elif kind == "far":
        z = 1e-3 * z + 1e4
    elif kind == "long":
        z = z * 0.3 ** np.arange(r)
    return z


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("kind", ["plain", "ties", "repeated", "far", "long"])
@pytest.mark.parametrize("shape", [(30, 2, 3), (1300, 12, 7), (120, 1030, 4)])
def test_neighbours_are_those_of_the_oracle(kind: str, shape: tuple[int, int, int]) -> None:
    """Neighbours agree for three classes, with ties, and with or without earlier neighbours."""
    n, r, k = shape
    z, classes = places(kind, n, r), np.arange(n) % 3
    lists = NeighborLists((1 - np.eye(3)).astype(np.int32), (k, k + 1))
    expected, distances = NUMPY.nearest_by_class(z, classes, lists)
    older = NUMPY.nearest_by_class(places("plain", n, r) + 0.1 * z, classes, lists)[0]
    for previous in (None, older):
        found, squared = TorchEngine(device="cpu").nearest_by_class(z, classes, lists, previous)
        assert np.array_equal(found, expected)
        assert np.allclose(squared, distances, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("products")
def test_small_blocks_and_tiles_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BLOCK": 64, "QUERIES": 16, "TOGETHER": 3, "MEASURED": 2**10}.items():
        monkeypatch.setattr(torch_search, name, value)
    monkeypatch.setattr(torch_search, "TILE", {"cpu": 2**13})
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1500, 4)) * [3.0, 1.0, 1.0, 0.1]
    classes = rng.integers(0, 2, 1500)
    lists = NeighborLists((1 - np.eye(2)).astype(np.int32), (5, 5))
    found = TorchEngine(device="cpu").nearest_by_class(z, classes, lists)[0]
    assert np.array_equal(found, NUMPY.nearest_by_class(z, classes, lists)[0])


@pytest.mark.usefixtures("products")
def test_queries_far_outside_find_their_neighbours() -> None:
    rng = np.random.default_rng(1)
    references = rng.normal(size=(500, 3))
    queries = np.concatenate([rng.normal(size=(40, 3)), 1e3 * rng.normal(size=(40, 3))])
    for k in (1, 8, 500, 600):
        found, squared = TorchEngine(device="cpu").nearest(queries, references, k)
        expected, distances = NUMPY.nearest(queries, references, k)
        assert np.array_equal(found, expected)
        assert np.allclose(squared, distances, rtol=1e-12)


def test_no_queries_and_no_references() -> None:
    engine = TorchEngine(device="cpu")
    assert engine.nearest(np.zeros((0, 2)), np.zeros((5, 2)), 3)[0].shape == (0, 3)
    assert engine.nearest(np.zeros((4, 2)), np.zeros((0, 2)), 3)[0].shape == (4, 0)


def test_a_class_of_one_has_no_neighbours_in_it() -> None:
    z, classes = np.arange(6.0)[:, None], np.array([0, 1, 1, 1, 1, 1])
    lists = NeighborLists((1 - np.eye(2)).astype(np.int32), (2, 2))
    found = TorchEngine(device="cpu").nearest_by_class(z, classes, lists)
    expected = NUMPY.nearest_by_class(z, classes, lists)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected))


# --- a step


def weighed(engine: Engine, Xt: Array, labels: Array, bag: Array) -> tuple[State, Weights, Terms]:
    """A state with a metric and neighbours, the weights of a step, and all candidates."""
    candidates = Candidates(engine.table(Xt), 2)
    candidates.add([(0, 1), (2, 2), (3, 4), (1, 1)])
    state = State(candidates.table, labels, np.ones(len(labels)))
    state.embed(candidates.terms(np.arange(3)), np.eye(3)[:, :2] + 0.3)
    state.refresh(training_lists(labels, 4, "common"), 3)
    return state, state.weights(bag), candidates.terms(np.arange(len(candidates)))


@pytest.mark.parametrize("room", ["all", "none"])
def test_every_operation_agrees_with_the_oracle(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations agree, for columns and products, stored or computed."""
    for module in (torch_table, torch_graph):
        monkeypatch.setattr(module, "WORK", 2**9)
    rng = np.random.default_rng(2)
    Xt, labels, bag = rng.normal(size=(6, 200)), np.arange(200) % 2, rng.random(200) < 0.5
    engine = TorchEngine(device="cpu")
    if room == "none":
        monkeypatch.setattr(engine, "room", lambda n_rows, n_columns: 0)
    both = [weighed(one, Xt, labels, bag) for one in (engine, NUMPY)]
    assert np.allclose(both[0][2].moments, both[1][2].moments, rtol=1e-12)
    some, V = np.array([1, 5, 6, 8]), rng.normal(size=(4, 3))

    def same(of: Callable[[State, Weights, Terms], Any], rtol: float = 1e-9) -> None:
        found, expected = (np.asarray(of(*one)) for one in both)
        assert np.allclose(found, expected, rtol=rtol, atol=1e-10 * np.abs(expected).max())

    def image(state: State, u: Weights, terms: Terms, over: Terms) -> Array:
        return state.table.pulled_back(over, u.bag @ state.table.along(terms[some], V))

    def line(state: State, u: Weights, terms: Terms) -> list[float]:
        move, bag = state.move(terms[some], V[:, 0]), u.in_bag
        found = Line(state.table.engine.arrays.xp, u.all[bag], move.gain[bag])
        sides = found.imbalance(0.1) if found.slope > 0 else ()
        return [found.slope, found.total, found.one_sided, *sides]

    def step_weight(state: State, u: Weights, terms: Terms) -> float:
        return state.step_weight(u, state.move(terms[some], V[:, 0]))

    def loss_after(state: State, u: Weights, terms: Terms) -> float:
        state.take(state.move(terms[some], V[:, 0]), 0.3)
        return state.loss()

    same(lambda state, u, terms: u.bag.form(state.table.columns(terms)))
    same(lambda state, u, terms: state.diagonal(u, terms))
    same(lambda state, u, terms: image(state, u, terms, terms))
    same(lambda state, u, terms: image(state, u, terms, terms[np.array([0, 7, 9])]))
    same(lambda state, u, terms: state.rows(u, terms, some))
    same(lambda state, u, terms: state.share_sums(u, terms[some], V))
    same(line)
    same(step_weight)
    same(loss_after)


def test_a_class_with_fewer_rows_than_neighbours() -> None:
    """Neighbours are repeated as in the NumPy engine, also in a second search."""
    rng = np.random.default_rng(3)
    Xt, labels = rng.normal(size=(4, 60)), np.r_[[0] * 3, np.arange(57) % 2 + 1]
    lists = training_lists(labels, 25, "coded")
    losses = []
    for engine in (TorchEngine(device="cpu"), NUMPY):
        table = engine.table(Xt)
        terms = Candidates(table, 1).terms(np.arange(4))
        state = State(table, labels, np.ones(60))
        state.refresh(lists, 0)
        for step in (np.eye(4)[:, :2], np.eye(4)[:, 1:] + 0.3):
            state.embed(terms, step)
            state.refresh(lists, 4)
            losses.append(state.loss())
            u = state.weights(np.ones(60, dtype=bool))
            losses += state.diagonal(u, terms).tolist()
    assert np.allclose(losses[: len(losses) // 2], losses[len(losses) // 2 :], rtol=1e-9)


# --- fits


def options(max_features: Any, n_nonzero: int, gate: float | None) -> LearningOptions:
    boosting = BoostingOptions(20, 20, n_nonzero, 0.1, 0.5, max_features, 5, gate, 0)
    return LearningOptions(boosting, 2, "auto", None, 0.0, True, "zero")


def table(name: str) -> tuple[Array, Array]:
    if name == "madelon":
        if not os.environ.get("METRICBOOST_DATA"):
            pytest.skip("needs METRICBOOST_DATA")
        data = fetch_madelon()
        return data.data[:400], (data.target[:400] == data.target.max()).astype(np.intp)
    make = {"rings": make_double_ring, "xor": make_xor}[name]
    X, y = make(300, 80, random_state=0)[:2]
    return X, (y == y.max()).astype(np.intp)


def learned(name: str, engine: Any, settings: LearningOptions) -> Learned:
    X, labels = table(name)
    return learn(X, labels, np.ones(len(labels)), engine, settings)


@pytest.mark.parametrize("mode", ["panels", "shortlists"])
@pytest.mark.parametrize("name", ["rings", "xor", "madelon"])
def test_the_steps_are_those_of_the_oracle(name: str, mode: str) -> None:
    """Steps have the same terms, and weights equal to 1e-6. In float32 the terms are equal, too."""
    settings = options("sqrt", 3, None) if mode == "panels" else options(None, 10, 0.0)
    expected = learned(name, get_engine("native"), settings).path
    assert len(expected) >= 15
    for dtype, rtol in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        found = learned(name, TorchEngine(device="cpu", dtype=dtype), settings).path
        assert [s.support.tolist() for s in found.steps] == [
            s.support.tolist() for s in expected.steps
        ]
        weights = [[s.weight for s in path.steps] for path in (found, expected)]
        assert np.allclose(*weights, rtol=rtol, atol=0)


def test_a_fit_repeats_bit_for_bit() -> None:
    settings = options(None, 10, 0.0)
    first, second = (learned("rings", TorchEngine(device="cpu"), settings) for _ in range(2))
    assert np.array_equal(first.factor.matrix, second.factor.matrix)
    assert [s.loss for s in first.path.steps] == [s.loss for s in second.path.steps]


def test_many_rows_give_a_rough_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricboost.engines.sweeps.MARGIN_ROWS", 100)
    settings = replace(options(None, 6, 0.0), screen_pairs=0)
    expected = learned("rings", NUMPY, settings).path
    found = learned("rings", TorchEngine(device="cpu"), settings).path
    assert [s.support.tolist() for s in found.steps] == [s.support.tolist() for s in expected.steps]


# --- what users touch


@pytest.mark.parametrize("classes", [2, 3])
def test_estimators_agree_with_the_native_engine(classes: int) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(240, 12))
    y = np.digitize(
        X[:, 0] * X[:, 1], np.quantile(X[:, 0] * X[:, 1], np.arange(1, classes) / classes)
    )
    X[rng.random(X.shape) < 0.02] = np.nan
    settings: dict[str, Any] = {"n_averaged": 3, "random_state": 0, "missing": "impute"}
    models = [SDistClassifier(engine=engine, **settings) for engine in ("torch:cpu", "native")]
    found, expected = (model.fit(X, y) for model in models)
    assert found.metric_.columns == expected.metric_.columns
    assert np.allclose(found.transform(X), expected.transform(X), rtol=1e-8, atol=1e-10)
    assert np.array_equal(found.predict(X), expected.predict(X))
    assert np.array_equal(found.kneighbors(X, 4)[1], expected.kneighbors(X, 4)[1])


def test_too_little_memory_says_how_much_is_needed() -> None:
    with pytest.raises(DeviceMemoryError, match=r"1000 x 50 needs 0\.4 MB on cpu.*n_neighbors"):
        TorchEngine(device="cpu", memory=10_000).table(np.zeros((50, 1000)))


def test_too_little_memory_for_the_graph_is_named() -> None:
    X, y = make_double_ring(300, 5, random_state=0)[:2]
    table = TorchEngine(device="cpu", memory=100_000).table(np.ascontiguousarray(X.T))
    state = State(table, np.asarray(y == y.max(), dtype=np.intp), np.ones(300))
    with pytest.raises(DeviceMemoryError, match=r"graph of 300 rows with 40 neighbours each needs"):
        state.refresh(training_lists(np.arange(300) % 2, 20, "common"), 0)


def test_a_table_that_fits_is_taken_and_counted() -> None:
    """Memory for products is taken from the memory that the table leaves, and is counted."""
    Xt = np.zeros((100, 1000))
    engine = TorchEngine(device="cpu", memory=int(1.05 * Xt.nbytes))
    table = engine.table(Xt)
    assert 0 <= engine.free() < 0.05 * Xt.nbytes
    del table
    assert engine.free() == int(1.05 * Xt.nbytes)


def test_what_is_needed_is_never_what_is_left() -> None:
    engine = TorchEngine(device="cpu", memory=399_999)
    with pytest.raises(DeviceMemoryError, match=r"needs 0\.4 MB on cpu, which has 0\.3 MB left"):
        engine.table(np.zeros((50, 1000)))


def out_of_memory(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_too_little_memory_for_a_fitted_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_xor(120, 8, informative=2, random_state=0)[:2]
    model = SDistClassifier(engine="torch:cpu", max_iter=4, n_averaged=1, random_state=0)
    model.fit(X, y).predict(X)
    fewer = "needs .* and temporary arrays: cpu ran out of memory. Pass fewer rows at a time"
    monkeypatch.setattr(torch_engine, "nearest", out_of_memory)
    with pytest.raises(DeviceMemoryError, match=fewer):
        model.kneighbors(X)
    with pytest.raises(DeviceMemoryError, match=fewer):
        model.predict(X)


def test_too_little_memory_in_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised in the neighbour search and in a step."""
    engine = TorchEngine(device="cpu")
    X, y = make_xor(60, 4, informative=2, random_state=0)[:2]
    labels = np.asarray(y == y.max(), dtype=np.intp)
    settings = options(None, 4, None)
    for broken in ((torch_engine, "nearest"), (TorchGraph, "margins")):
        with monkeypatch.context() as patch:
            patch.setattr(*broken, out_of_memory)
            with pytest.raises(DeviceMemoryError, match="ran out of memory"):
                learn(X, labels, np.ones(60), engine, settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(ValueError, match=rf"torch:{device}.* needs a GPU.*cuda\.is_available"):
        get_engine(f"torch:{device}")


def test_without_torch_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from metricboost.engines import get_engine\n"
        "try:\n    get_engine('torch')\nexcept ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "metricboost[gpu]" in run.stdout


def test_what_a_process_has_chosen_changes_nothing() -> None:
    """Results do not change if PyTorch is set to use products of lower precision."""
    X, y = make_xor(120, 8, informative=2, random_state=0)[:2]
    model = SDistClassifier(engine="torch:cpu", max_iter=4, n_averaged=1, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = clone(model).fit(X, y)
        assert np.array_equal(model.predict_proba(X), expected)
    assert np.array_equal(again.predict_proba(X), expected)


def test_threads_change_no_bits() -> None:
    """Fits and predictions have the same bits, and the number of threads is restored."""
    X, y = make_xor(200, 20, informative=2, random_state=0)[:2]
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model = SDistClassifier(
            engine="torch:cpu", max_iter=12, n_averaged=1, oob_gate=None, random_state=0
        ).fit(X, y)
        found.append((model.metric_.components, model.predict_proba(X)))
        assert torch.get_num_threads() == threads
    assert all(np.array_equal(a, b) for a, b in zip(*found))


def test_one_thread_whoever_comes_first_and_last() -> None:
    torch.set_num_threads(2)
    seen, first, second = [], threading.Event(), threading.Event()

    def inner() -> None:
        first.wait()
        with one_torch_thread, one_torch_thread:
            second.set()
            left.wait()
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    left, other = threading.Event(), threading.Thread(target=inner)
    other.start()
    with one_torch_thread:
        first.set()
        second.wait()
    left.set()
    other.join()
    assert seen == [1, 2]
    assert torch.get_num_threads() == 2


def test_a_pickle_predicts_without_torch(tmp_path: Path) -> None:
    """The model predicts with another engine and one warning. A fit raises ImportError."""
    X, y = make_xor(120, 8, informative=2, random_state=0)[:2]
    model = SDistClassifier(engine="torch:cpu", max_iter=4, n_averaged=1, random_state=0).fit(X, y)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    np.save(tmp_path / "rows.npy", X)
    script = (
        "import sys, pickle, warnings, numpy as np\n"
        "sys.path.insert(0, '.')\n"
        "model, X = pickle.load(open('model.pickle', 'rb')), np.load('rows.npy')\n"
        "with warnings.catch_warnings(record=True) as heard:\n"
        "    warnings.simplefilter('always')\n"
        "    np.save('found.npy', model.predict_proba(X))\n"
        "    model.kneighbors(X)\n"
        "print(*[warning.message for warning in heard], sep='\\n')\n"
        "try:\n    model.fit(X, X[:, 0] > 0)\nexcept ImportError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    said = run.stdout.splitlines()
    assert len(said) == 2
    assert all('engine="torch" needs PyTorch' in line for line in said)
    assert np.allclose(np.load(tmp_path / "found.npy"), model.predict_proba(X))
