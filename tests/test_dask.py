"""Fits on a Dask cluster of processes: the same model as in memory, whatever the partitions."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import metricboost
from metricboost.boosting import BoostingOptions, LearningOptions, learn
from metricboost.boosting.scaling import Scaling
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.engines import get_engine

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
from metricboost.dask import SDist, SDistClassifier  # noqa: E402
from metricboost.dask import _estimators as dask_estimators  # noqa: E402
from metricboost.dask import _rows as dask_rows  # noqa: E402
from metricboost.dask import _samples as dask_samples  # noqa: E402
from metricboost.dask._estimators import COUNTS, bytes_of_a_step  # noqa: E402
from metricboost.dask._learn import learn_distributed  # noqa: E402
from metricboost.dask._shards import Shard  # noqa: E402
from metricboost.dask._table import Partitions  # noqa: E402
from metricboost.dask._tasks import Tasks  # noqa: E402

Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a cluster of three processes (``benchmarks.agreement`` has one, two and four)."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address=None, silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def options(mode: str, attempts: int) -> LearningOptions:
    panels = mode == "panels"
    boosting = BoostingOptions(
        attempts, 10, 3 if panels else 8, 0.1, 0.5, "sqrt" if panels else None, 4,
        None if panels else 0.0, 0,
    )  # fmt: skip
    return LearningOptions(boosting, 2, "auto", None, 0.0, True, "zero")


def table(name: str) -> tuple[Array, Array]:
    if name == "madelon":
        if not os.environ.get("METRICBOOST_DATA"):
            pytest.skip("needs METRICBOOST_DATA")
        data = fetch_madelon()
        X, y = data.data[:300, :120], data.target[:300]
    else:
        X, y = {"rings": make_double_ring, "xor": make_xor}[name](240, 80, random_state=0)[:2]
    return X, (y == y.max()).astype(np.intp)


@pytest.mark.parametrize(
    ("name", "mode", "partitions"),
    [
        ("rings", "matrix-free", 2),
        ("xor", "panels", 16),
        ("madelon", "panels", 5),
    ],
)
def test_the_steps_are_those_of_the_oracle(
    client: Any, name: str, mode: str, partitions: int
) -> None:
    X, labels = table(name)
    settings = options(mode, 6)
    expected = learn(X, labels, np.ones(len(X)), get_engine("numpy"), settings)
    chunks = (-(-len(X) // partitions), X.shape[1])
    parts = Partitions.of(client, da.from_array(X, chunks=chunks))
    assert len(parts.by_worker()) == min(3, partitions)
    found, _ = learn_distributed(parts, labels, np.ones(len(X)), settings, np.arange(len(X)))
    assert any(step.refreshed for step in expected.path.steps)
    supports = [[s.support.tolist() for s in fit.path.steps] for fit in (found, expected)]
    assert supports[0] == supports[1]
    weights = [[s.weight for s in fit.path.steps] for fit in (found, expected)]
    assert np.allclose(*weights, rtol=1e-9, atol=0)
    if found.screening is not None and expected.screening is not None:
        assert found.screening.pairs == expected.screening.pairs


@pytest.mark.parametrize("frames", [False, True])
def test_a_classifier_is_the_one_of_memory(client: Any, frames: bool) -> None:
    """Three classes, weights, several fits; dataframes carry their names."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(180, 8))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])]
    settings: dict[str, Any] = {
        "n_averaged": 2, "max_iter": 3, "random_state": 0, "class_weight": "balanced",
        "start_share": 0.0, "oob_gate": 0.5,
    }  # fmt: skip
    expected = metricboost.SDistClassifier(**settings).fit(X, y)
    dX, dy = da.from_array(X, chunks=(50, 8)), da.from_array(y, chunks=50)
    if frames:
        names = [f"c{j}" for j in range(8)]
        dX = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3)
        dy = dd.from_pandas(pd.Series(y), npartitions=3)
    found = SDistClassifier(client=client, **settings).fit(dX, dy)
    assert found.metric_.columns == expected.metric_.columns
    assert np.allclose(found.metric_.matrix(), expected.metric_.matrix(), rtol=1e-9, atol=1e-12)
    assert found.oob_score_ == expected.oob_score_
    if frames:
        assert found.feature_names_in_.tolist() == names
        assert np.array_equal(found.predict(dX).compute(), expected.predict(X))
        return
    assert np.array_equal(found.predict(dX).compute(), expected.predict(X))
    assert np.allclose(found.predict_proba(dX).compute(), expected.predict_proba(X))
    assert np.allclose(found.transform(dX).compute(), found.transform(X))
    local = found.to_local()
    assert type(local) is metricboost.SDistClassifier
    assert np.array_equal(local.predict(X), expected.predict(X))
    again = pickle.loads(pickle.dumps(found))
    assert again.client is None
    assert np.array_equal(again.predict(X), expected.predict(X))
    assert clone(found).client is client


def test_many_rows_travel_as_projections(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample for the first search and for the diagonal, float32 on the way: the same terms."""
    for name in ("PLAIN_ROWS", "PLAIN_SAMPLE", "MARGIN_ROWS", "NARROW_ROWS"):
        monkeypatch.setattr(dask_rows, name, 200)
    monkeypatch.setattr(dask_samples, "SAMPLED_ROWS", 150)
    X, y = make_double_ring(600, 20, informative=2, random_state=0)[:2]
    dX, dy = da.from_array(X, chunks=(120, 20)), da.from_array(y, chunks=120)
    model = SDist(client=client, max_iter=6, n_averaged=1, random_state=0).fit(dX, dy)
    informative = make_double_ring(600, 20, informative=2, random_state=0, return_info=True)[2]
    assert set(informative.informative) <= {j for term in model.metric_.columns for j in term}
    sent = model.exchanged_[0]
    assert 0 < sent["halo rows"] <= 2 * 600  # each of three workers those of the others
    assert sent["power iterations"] + sent["panel"] > 0


def test_a_worker_that_dies_costs_nothing_but_time(client: Any) -> None:
    """Killed in the middle of a fit: the same steps."""
    X, labels = table("rings")
    settings = options("panels", 7)

    def fitted(kill: bool) -> Any:
        parts = Partitions.of(client, da.from_array(X, chunks=(60, 80)))

        def watch(attempt: int, _: Any) -> None:
            if kill and attempt == 5:
                processes = client.run(os.getpid)
                os.kill(sorted(processes.values())[0], signal.SIGKILL)

        return learn_distributed(parts, labels, np.ones(240), settings, np.arange(240), watch)[0]

    expected, found = fitted(False), fitted(True)
    assert [s.support.tolist() for s in found.path.steps] == [
        s.support.tolist() for s in expected.path.steps
    ]
    weights = [[s.weight for s in fit.path.steps] for fit in (found, expected)]
    assert np.allclose(*weights, rtol=1e-9, atol=0)


def slept_at(seconds: float, _: Any) -> str:
    time.sleep(seconds)
    return str(distributed.get_worker().address)


def test_idle_workers_steal_no_task_from_its_home(client: Any) -> None:
    """Else the rows that it is about would travel; from a worker that is gone it does go."""
    home = sorted(client.scheduler_info(n_workers=-1)["workers"])[0]
    tasks = Tasks(client)
    rows = tasks.submit(np.zeros, 10, at=home)
    slow = [tasks.submit(slept_at, 0.15, rows, at=home) for _ in range(10)]
    assert set(tasks.results(slow)) == {home}
    assert tasks.homes([rows]) == [home]
    gone = "tcp://127.0.0.1:1"
    assert tasks.results([tasks.submit(slept_at, 0.0, rows, at=gone)]) != [gone]
    tasks.close()
    plugins = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
    assert tasks.name not in plugins


def received_keys(dask_worker: Any) -> dict[str, int]:
    """Bytes from other workers by task, and none from now on."""
    sizes: dict[str, int] = {}
    for entry in dask_worker.transfer_incoming_log:
        for key, size in entry["keys"].items():
            name = str(key).split("-")[0]
            sizes[name] = sizes.get(name, 0) + size
    dask_worker.transfer_incoming_log.clear()
    return sizes


@pytest.mark.parametrize("panels", [False, True])
def test_what_travels_is_counted(client: Any, panels: bool) -> None:
    """Neither partitions nor shards nor graphs do, and no more than is said."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 30))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    given = {"max_iter": 4, "n_averaged": 1, "random_state": 0, "oob_gate": None}
    mode = {"max_features": 8} if panels else {"max_degree": 1, "refresh_every": 2}
    client.run(received_keys)
    model = SDist(client=client, **given, **mode).fit(da.from_array(X, chunks=(250, 30)), y)
    received: dict[str, int] = {}
    for sizes in client.run(received_keys).values():
        received = {name: received.get(name, 0) + sizes.get(name, 0) for name in received | sizes}
    stay = {"numbers_of", "make_shard", "some_rows", "make_graph", "weigh_edges", "array"}
    assert not stay & set(received)
    counted = sum(size for name, size in model.exchanged_[0].items() if name not in COUNTS)
    assert counted == pytest.approx(sum(received.values()), rel=0.1)


def test_a_fit_that_is_complete_already(client: Any, tmp_path: Any, capfd: Any) -> None:
    """Nothing is searched for and nothing travels again; the figure a step is of this run."""
    X, y = make_xor(80, 5, informative=2, random_state=0)[:2]
    dX = da.from_array(X, chunks=(40, 5))
    given = {"max_iter": 3, "n_averaged": 1, "random_state": 0, "oob_gate": None}
    model = SDist(client=client, checkpoint=tmp_path, **given)
    first = model.fit(dX, y).metric_.matrix()
    assert model.exchanged_[0]["attempts"] == 3
    again = SDist(client=client, checkpoint=tmp_path, verbose=1, **given).fit(dX, y)
    assert np.allclose(again.metric_.matrix(), first, rtol=1e-9)
    assert again.exchanged_[0]["attempts"] == 0
    assert "fit 1: 0.00 MB between workers a step" in capfd.readouterr().err
    assert bytes_of_a_step({"line": 600, "steps again": 10**6, "attempts": 3}) == 200


@pytest.mark.parametrize("fails", [False, True])
def test_workers_are_free_after_a_fit(
    client: Any, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """And between its folds: nothing waits for the client to look for cycles."""
    X, y = make_xor(80, 5, informative=2, random_state=0)[:2]
    fits: list[Any] = []

    def watched(*args: Any) -> Any:
        assert not any(rows() for rows in fits)
        return learn_distributed(*args)

    def begin(rows: Any, *args: Any) -> None:
        fits.append(weakref.ref(rows))
        began(rows, *args)

    began = dask_rows.DaskRows.begin
    monkeypatch.setattr(dask_rows.DaskRows, "begin", begin)
    monkeypatch.setattr("metricboost.dask._estimators.learn_distributed", watched)
    if fails:
        monkeypatch.setattr(dask_rows.DaskRows, "take", lambda *_: 1 / 0)
    model = SDist(client=client, max_iter=2, n_averaged=2, random_state=0, oob_gate=None)
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            model.fit(da.from_array(X, chunks=(40, 5)), y)
        assert fits
        assert not any(rows() for rows in fits)
    finally:
        gc.enable()


def test_what_cannot_be_done_is_said(client: Any) -> None:
    X, y = make_xor(60, 4, random_state=0)[:2]
    dX, dy = da.from_array(X, chunks=(30, 4)), da.from_array(y, chunks=30)
    with pytest.raises(TypeError, match=r"metricboost\.SDist is for tables in memory"):
        SDist(client=client).fit(X, y)
    with pytest.raises(ValueError, match="start_share"):
        SDist(client=client, start_share=0.5).fit(dX, dy)
    with pytest.raises(ValueError, match="impute first"):
        SDist(client=client, missing="impute").fit(dX, dy)
    with pytest.raises(ValueError, match="one label a row"):
        SDist(client=client).fit(dX, dy[:30])
    with pytest.raises(ValueError, match=r"NaN in column 'x1'"):
        SDist(client=client).fit(da.where(dX > 2, np.nan, dX), dy)
    with pytest.raises(ValueError, match=r"infinity in column 'x1'"):
        SDist(client=client).fit(da.where(dX > 2, np.inf, dX), dy)
    for wrong, what in (
        (None, "target y is None"),
        (np.where(np.arange(60) == 3, np.nan, y), "y contains NaN"),
        (np.linspace(0, 1, 60), "Unknown label type"),
    ):
        with pytest.raises(ValueError, match=what):
            SDist(client=client).fit(dX, wrong)
    with pytest.raises(ValueError, match="products overflow"):
        SDist(client=client, standardize=False).fit(dX * 1e200, dy)
    with pytest.raises(ValueError, match="distances need numbers"):
        SDist(client=client).fit(dX.astype(complex), dy)
    with pytest.raises(ValueError, match="dimension"):
        SDist(client=client).fit(dX[:, 0], dy)
    with pytest.raises(TypeError, match=r"pass a distributed\.Client"):
        SDist(client="tcp://somewhere").fit(dX, dy)
    for lazy in (dask.delayed(X), client.scatter(X)):
        with pytest.raises(TypeError, match=rf"not {type(lazy).__name__}: .*array\.from_delayed"):
            SDist(client=client).fit(lazy, y)


def test_a_client_that_does_not_wait_is_refused(client: Any) -> None:
    X, y = make_xor(60, 4, random_state=0)[:2]

    async def fit() -> None:
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True) as waits_for_nothing:
            SDist(client=waits_for_nothing).fit(da.from_array(X, chunks=(30, 4)), y)

    with pytest.raises(TypeError, match="client is asynchronous"):
        asyncio.run(fit())


def fitted_in_a_task(X: Array, y: Array, as_client: bool) -> Array:
    with distributed.worker_client() if as_client else nullcontext():
        model = SDist(n_averaged=1, max_iter=2, random_state=0, oob_gate=None)
        model.fit(da.from_array(X, chunks=(20, 4)), da.from_array(y, chunks=20))
    return model.metric_.matrix()


def test_a_fit_inside_a_task(client: Any) -> None:
    """It needs the thread of the task that waits for it, which may have given it back before."""
    X, y = make_xor(60, 4, informative=2, random_state=0)[:2]
    tasks = [client.submit(fitted_in_a_task, X, y, as_client) for as_client in (False, True)]
    one, other = client.gather([task for task in tasks if task.result(timeout=60) is not None])
    assert np.array_equal(one, other)


def test_a_value_far_out_on_a_cluster(client: Any) -> None:
    """The scale is that of the other rows, as in memory; of such a column alone rows come here."""
    X = make_xor(200, 6, informative=2, random_state=0)[0]
    X[7, 2], X[11, 2], X[:, 3] = 1e7, -1e12, np.arange(200) == 5
    parts = Partitions.of(client, da.from_array(X, chunks=(50, 6)))
    kept = np.arange(3, 190)
    found, expected = parts.scaling(kept, True, 3.0), Scaling.of(X, True, 3.0, rows=kept)
    parts.tasks.close()
    assert np.allclose(found.scale, expected.scale, rtol=1e-12)
    assert np.allclose(found.center, expected.center, rtol=1e-9)
    assert expected.scale[2] < 10


def test_tables_on_the_cluster_are_not_pulled_to_the_client(client: Any) -> None:
    """Labels as a future are; what a method that is not lazy would pull is refused."""
    X, y = make_xor(80, 4, informative=2, random_state=0)[:2]
    dX = da.from_array(X, chunks=(40, 4))
    model = SDistClassifier(client=client, max_iter=2, n_averaged=1, random_state=0)
    model.fit(dX, client.scatter(y))
    for call in (
        model.decision_function, model.kneighbors, model.explain, model.report,
        lambda rows: model.report(X, rows[:, 0]), lambda rows: next(model.staged_predict(rows)),
        lambda rows: next(model.staged_transform(rows)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"call X\.compute\(\) first"):
            call(dX)
    expected = model.predict_log_proba(X)
    assert np.allclose(model.predict_log_proba(dX).compute(), expected)
    assert model.decision_function(X).shape == (80,)
    assert model.explain(X[:1])


def test_columns_that_are_no_numbers_are_named(client: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "b": list("xy") * 20})
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="Column 'b' holds text"):
        SDist(client=client).fit(dd.from_pandas(frame, npartitions=2), y)
    frame["b"] = pd.date_range("2024-01-01", periods=40)
    with pytest.raises(ValueError, match="Column 'b' holds dates"):
        SDist(client=client).fit(dd.from_pandas(frame, npartitions=2), y)
    frame["b"] = pd.array([1, None] * 20, dtype="Int64")
    with pytest.raises(ValueError, match="NaN in column 'b'"):
        SDist(client=client).fit(dd.from_pandas(frame, npartitions=2), y)
    double = pd.concat([frame[["a"]], frame[["a"]]], axis=1)
    with pytest.raises(ValueError, match="stands twice"):
        SDist(client=client).fit(dd.from_pandas(double, npartitions=2), y)


@pytest.mark.filterwarnings("ignore:No step was accepted")
@pytest.mark.parametrize("noise", [False, True])
def test_folds_that_learn_nothing_are_the_plain_distance(client: Any, noise: bool) -> None:
    """Some of them, or all: as in memory."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(90, 20)), rng.integers(0, 2, 90)
    X[:, 0] += 0.4 * y * (not noise)
    given = {"max_iter": 3, "n_averaged": 3, "random_state": 0, "start_share": 0.0, "prune": None}
    if noise:
        given["oob_gate"] = 1e9
    expected = metricboost.SDistClassifier(engine="numpy", **given).fit(X, y)
    found = SDistClassifier(client=client, **given).fit(da.from_array(X, chunks=(30, 20)), y)
    steps = [fit.best_iter for fit in expected._crossfit.fits]
    assert min(steps) == 0
    assert noise or max(steps) > 0
    assert np.allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-9)
    assert np.isnan(found.to_local()._plain_score)


def test_columns_far_from_zero_as_they_are(client: Any) -> None:
    X, y = make_xor(200, 12, informative=2, random_state=0)[:2]
    given = {"max_iter": 5, "n_averaged": 1, "random_state": 0, "standardize": False}
    expected = metricboost.SDist(engine="numpy", start_share=0.0, **given).fit(X + 1e6, y)
    found = SDist(client=client, **given).fit(da.from_array(X + 1e6, chunks=(50, 12)), y)
    assert found.metric_.columns == expected.metric_.columns
    scale = np.abs(expected.metric_.matrix()).max()
    assert np.abs(found.metric_.matrix() - expected.metric_.matrix()).max() < 1e-6 * scale


def test_only_the_last_row_of_a_fold_varies(client: Any) -> None:
    """Then one fit sees all rows."""
    X, y = np.zeros((60, 3)), np.arange(60) % 2
    X[5] = 1
    model = SDist(client=client, max_iter=2, n_averaged=3, random_state=0, oob_gate=None)
    model.fit(da.from_array(X, chunks=(30, 3)), y)
    assert len(model._crossfit.fits) == 1


def test_many_classes_and_many_rows(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample of the first search has neighbours enough of every class."""
    monkeypatch.setattr(dask_rows, "PLAIN_ROWS", 100)
    monkeypatch.setattr(dask_rows, "PLAIN_SAMPLE", 60)
    rng = np.random.default_rng(0)
    y = np.arange(180) % 6
    X = rng.normal(size=(180, 4)) + y[:, None]
    model = SDist(client=client, max_iter=2, n_averaged=1, n_neighbors=20, random_state=0)
    assert model.fit(da.from_array(X, chunks=(60, 4)), y).best_iter_ > 0


def test_predictions_of_any_collection(client: Any) -> None:
    """Empty partitions, dataframes, a pandas output that was asked for."""
    X, y = make_xor(120, 6, informative=2, random_state=0)[:2]
    dX = da.from_array(X, chunks=(40, 6))
    model = SDistClassifier(client=client, max_iter=1, n_averaged=1, random_state=0).fit(dX, y)
    assert model._partitions is None
    expected = model.predict(X)
    some = da.from_array(np.arange(120) < 40, chunks=40)
    assert np.array_equal(model.predict(dX[some]).compute(), expected[:40])
    assert model.score(dX, da.from_array(y, chunks=40)) == pytest.approx((expected == y).mean())
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ddf = dd.from_pandas(frame, npartitions=3)
    named = SDistClassifier(client=client, max_iter=1, n_averaged=1, random_state=0).fit(ddf, y)
    assert np.array_equal(named.predict(ddf).compute(), expected)
    assert named.predict_proba(ddf[ddf.a > 100]).compute().shape == (0, 2)
    assert named.score(ddf, y) == pytest.approx((expected == y).mean())
    with pytest.raises(ValueError, match="feature names"):
        named.predict(ddf[list("bacdef")])
    transformer = SDist(client=client, max_iter=1, n_averaged=1, random_state=0).fit(dX, y)
    transformer.set_output(transform="pandas")
    assert transformer.transform(dX).compute().shape == (120, transformer.metric_.rank)


def test_predictions_of_sparse_blocks(client: Any) -> None:
    X, y = make_xor(120, 6, informative=2, random_state=0)[:2]
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    blocks = da.from_array(X, chunks=(40, 6)).map_blocks(sparse.csr_matrix)
    model = SDistClassifier(client=client, max_iter=2, n_averaged=1, random_state=0).fit(blocks, y)
    assert np.array_equal(model.predict(blocks).compute(), model.predict(X))


def test_predictions_have_the_threads_of_the_worker(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of the machine, of which each worker has a part."""
    X, y = make_xor(120, 6, informative=2, random_state=0)[:2]
    model = SDistClassifier(client=client, max_iter=2, n_averaged=1, n_jobs=7, random_state=0)
    model.fit(da.from_array(X, chunks=(40, 6)), y)
    monkeypatch.setattr(dask_estimators, "worker_threads", lambda: 3)
    here = dask_estimators._as_here(model.to_local())
    assert (here._engine().threads, here._readout._engine.threads) == (3, 3)
    assert model.to_local()._readout._engine.threads == 7
    assert np.array_equal(here.predict(X), model.predict(X))


def test_without_dask_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "class NoDask:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('dask', 'distributed'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoDask())\n"
        "import metricboost\n"
        "try:\n    import metricboost.dask\nexcept ImportError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "metricboost[dask]" in run.stdout


def test_workers_know_how_large_a_shard_is() -> None:
    """By size the scheduler decides where tasks run: the table must not go to them."""
    from dask.sizeof import sizeof

    shard = Shard(np.zeros((50, 100)), np.arange(100))
    assert sizeof(shard) >= shard.Xt.nbytes


def test_a_scheduler_without_plugins(client, monkeypatch):
    """Where it has no such package, say: the fit is the same."""
    X, y = make_double_ring(200, 10, random_state=0)[:2]
    given = {"max_iter": 3, "n_averaged": 1, "oob_gate": None, "random_state": 0, "client": client}
    expected = SDist(**given).fit(da.from_array(X, chunks=(50, 10)), y)

    def refuse(*_, **__):
        raise RuntimeError("no module named metricboost")

    monkeypatch.setattr(client, "register_plugin", refuse)
    with pytest.warns(UserWarning, match="does not take the plugin"):
        found = SDist(**given).fit(da.from_array(X, chunks=(50, 10)), y)
    np.testing.assert_allclose(found.metric_.matrix(), expected.metric_.matrix(), rtol=1e-9)


def test_rows_are_shared_out_in_their_order(client):
    """Partitions that are computed for the fit: the same shards, so the same bits in every fit."""
    X, y = make_double_ring(400, 12, random_state=0)[:2]
    given = {"max_iter": 3, "n_averaged": 1, "oob_gate": None, "random_state": 0, "client": client}
    one, other = (SDist(**given).fit(da.from_array(X, chunks=(37, 12)), y) for _ in range(2))
    np.testing.assert_array_equal(one.metric_.components, other.metric_.components)
    partitions = Partitions.of(client, da.from_array(X, chunks=(37, 12)))
    groups = list(partitions.by_worker().values())
    partitions.tasks.close()
    assert [number for group in groups for number in group] == list(range(11))
