"""Fits on a Dask cluster of processes: the same model as in memory, whatever the partitions."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import psutil
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import metricboost
from metricboost.datasets import make_xor

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
from metricboost.dask import SDist, SDistClassifier, SDistClassifierCV  # noqa: E402

Array = npt.NDArray[Any]
#: Samples of a table of some thousand rows, and fits that take a fraction of a second.
SAMPLED: dict[str, Any] = {
    "max_rows": 300, "max_references": 500, "n_averaged": 2, "max_iter": 8, "random_state": 0,
}  # fmt: skip
SMALL: dict[str, Any] = {"max_iter": 2, "n_averaged": 1, "random_state": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a cluster of three processes."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address=None, silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


def assert_same_metric(found: Any, expected: Any) -> None:
    assert found.columns == expected.columns
    assert np.allclose(found.matrix(), expected.matrix(), rtol=1e-9, atol=1e-12)
    assert np.allclose(found.center, expected.center, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.term_scale, expected.term_scale, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("frames", [False, True])
def test_a_classifier_is_the_one_of_memory(client: Any, frames: bool) -> None:
    """Three classes, weights, several fits; dataframes carry their names."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(180, 8))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])]
    settings: dict[str, Any] = {
        "n_averaged": 2, "max_iter": 3, "random_state": 0, "class_weight": "balanced",
        "oob_gate": 0.5,
    }  # fmt: skip
    expected = metricboost.SDistClassifier(**settings).fit(X, y)
    dX, dy = da.from_array(X, chunks=(50, 8)), da.from_array(y, chunks=50)
    if frames:
        names = [f"c{j}" for j in range(8)]
        dX = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3)
        dy = dd.from_pandas(pd.Series(y), npartitions=3)
    found = SDistClassifier(client=client, **settings).fit(dX, dy)
    assert_same_metric(found.metric_, expected.metric_)
    assert found.oob_score_ == expected.oob_score_
    assert np.array_equal(found.class_count_, expected.class_count_)
    assert np.array_equal(found.predict(dX).compute(), expected.predict(X))
    if frames:
        assert found.feature_names_in_.tolist() == names
        return
    assert np.allclose(found.predict_proba(dX).compute(), expected.predict_proba(X))
    assert np.allclose(found.transform(dX).compute(), found.transform(X))
    local = found.to_local()
    assert type(local) is metricboost.SDistClassifier
    assert np.array_equal(local.predict(X), expected.predict(X))
    again = pickle.loads(pickle.dumps(found))
    assert again.client is None
    assert np.array_equal(again.predict(X), expected.predict(X))
    assert clone(found).client is client


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_samples_do_not_depend_on_partitions(client: Any, partitions: int) -> None:
    """Missing values, weights of 0, a rare class, a value far out."""
    X, y = make_xor(3000, 12, informative=2, random_state=0)
    rng = np.random.default_rng(0)
    X[::50, 3] = np.nan
    X[7, 5] = 1e9
    y = np.where(rng.random(3000) < 0.02, 2, y)
    weight = rng.integers(0, 3, 3000).astype(float)
    given = {**SAMPLED, "missing": "impute"}
    expected = metricboost.SDistClassifier(**given).fit(X, y, weight)
    rows = -(-3000 // partitions)
    dX, dy = da.from_array(X, chunks=(rows, 12)), da.from_array(y, chunks=rows)
    found = SDistClassifier(client=client, **given).fit(dX, dy, da.from_array(weight, chunks=rows))
    assert_same_metric(found.metric_, expected.metric_)
    assert found.metric_.imputation is not None
    assert np.allclose(found.metric_.imputation.fill, expected.metric_.imputation.fill)
    query = np.nan_to_num(X[:50])
    near, expected_near = (model.kneighbors(query, 5)[1] for model in (found, expected))
    assert np.array_equal(near, expected_near)
    assert (weight[near] > 0).all()
    assert np.allclose(found.predict_proba(query), expected.predict_proba(query))


def test_a_search_is_the_one_of_memory(client: Any) -> None:
    X, y = make_xor(900, 6, informative=2, random_state=0)
    dX, dy = da.from_array(X, chunks=(300, 6)), da.from_array(y, chunks=300)
    estimator = metricboost.SDistClassifier(**{**SAMPLED, "classifier": "margin", "max_iter": 4})
    given = {"param_grid": {"max_degree": [2]}, "cv": 2, "random_state": 0}
    expected = metricboost.SDistClassifierCV(estimator, **given).fit(X, y)
    found = SDistClassifierCV(estimator, client=client, **given).fit(dX, dy)
    assert found.best_params_ == expected.best_params_
    assert np.allclose(found.predict_proba(dX).compute(), expected.predict_proba(X))
    assert found.score(dX, dy) == pytest.approx(expected.score(X, y))
    assert type(found.to_local().best_estimator_) is metricboost.SDistClassifier
    given["cv"] = StratifiedKFold(3)
    assert SDistClassifierCV(estimator, client=client, **given).fit(dX, dy).n_splits_ == 3
    given["cv"] = [(np.arange(600), np.arange(600, 900))] * 2
    with pytest.raises(ValueError, match="a number of folds or a splitter"):
        SDistClassifierCV(estimator, client=client, **given).fit(dX, dy)
    with pytest.raises(TypeError, match=r"metricboost\.dask\.SDistClassifierCV"):
        metricboost.SDistClassifierCV(SDistClassifier(client=client)).fit(X, y)


def test_labels_and_weights_of_every_kind(client: Any) -> None:
    """In memory, as a future, or a collection with other partitions; empty partitions."""
    X, y = make_xor(300, 6, informative=2, random_state=0)
    weight = np.random.default_rng(0).random(300)
    expected = metricboost.SDist(**SMALL).fit(X, y, weight).metric_
    dX = da.from_array(X, chunks=(100, 6))
    for labels in (y, client.scatter(y), da.from_array(y, chunks=60), pd.Series(y), y[:, None]):
        found = SDist(client=client, **SMALL).fit(dX, labels, weight).metric_
        assert_same_metric(found, expected)
    frame = pd.DataFrame({**{f"c{j}": X[:, j] for j in range(6)}, "y": y})
    with_empty = dd.from_pandas(frame, npartitions=3)
    with_empty = dd.concat([with_empty[with_empty.c0 > 1e9], with_empty])
    table = with_empty[[f"c{j}" for j in range(6)]]
    found = SDist(client=client, **SMALL).fit(table, with_empty.y)
    assert_same_metric(found.metric_, metricboost.SDist(**SMALL).fit(X, y).metric_)


def killed_once(block: Array, at: str) -> Array:
    """The first task that comes here kills its worker."""
    if not block.size:  # Dask asks on the client what comes out
        return block
    try:
        os.close(os.open(at, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_worker_that_dies_costs_nothing_but_time(client: Any, tmp_path: Any) -> None:
    """Killed while partitions are computed for a fit, and again for its score: the same."""
    X, y = make_xor(2000, 8, informative=2, random_state=0)
    expected = metricboost.SDistClassifier(**SAMPLED).fit(X, y)
    dX, dy = da.from_array(X, chunks=(400, 8)), da.from_array(y, chunks=400)
    model = SDistClassifier(client=client, **SAMPLED)
    model.fit(dX.map_blocks(killed_once, str(tmp_path / "one"), dtype=float), dy)
    assert (tmp_path / "one").exists()
    assert_same_metric(model.metric_, expected.metric_)
    again = dX.map_blocks(killed_once, str(tmp_path / "two"), dtype=float)
    assert model.score(again, dy) == pytest.approx(expected.score(X, y))
    assert (tmp_path / "two").exists()


def broken(block: Array) -> Array:
    if block.size:
        raise OSError("the disk is gone")
    return block


def test_what_cannot_be_done_is_said(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_xor(60, 4, random_state=0)
    dX, dy = da.from_array(X, chunks=(30, 4)), da.from_array(y, chunks=30)
    with pytest.raises(TypeError, match=r"metricboost\.SDist is for tables in memory"):
        SDist(client=client).fit(X, y)
    with pytest.raises(ValueError, match="one value a row"):
        SDist(client=client).fit(dX, dy[:30])
    with pytest.raises(ValueError, match=r"NaN in column 'x1'"):
        SDist(client=client).fit(da.where(dX > 2, np.nan, dX), dy)
    with pytest.raises(ValueError, match=r"infinity in column 'x1'"):
        SDist(client=client).fit(da.where(dX > 2, np.inf, dX), dy)
    for wrong, what in (
        (None, "target y is None"),
        (np.where(np.arange(60) == 3, np.nan, y), "y contains NaN"),
        (np.linspace(0, 1, 60), "Unknown label type"),
        (np.zeros(60), "only one class"),
        (np.arange(60) == 3, "has 1 sample"),
    ):
        with pytest.raises(ValueError, match=what):
            SDist(client=client).fit(dX, wrong)
    for weight, what in ((np.zeros(60), "zero"), (-np.ones(60), "negative")):
        with pytest.raises(ValueError, match=what):
            SDist(client=client).fit(dX, dy, weight)
    with pytest.raises(ValueError, match="products overflow"):
        SDist(client=client, standardize=False).fit(dX * 1e200, dy)
    with pytest.raises(ValueError, match="distances need numbers"):
        SDist(client=client).fit(dX.astype(complex), dy)
    with pytest.raises(ValueError, match="dimension"):
        SDist(client=client).fit(dX[:, 0], dy)
    with pytest.raises(TypeError, match=r"'client' parameter of SDist must be .*Got 'tcp://"):
        SDist(client="tcp://somewhere").fit(dX, dy)
    with pytest.raises(RuntimeError, match="Partition 0 of 2 could not be computed: OSError"):
        SDist(client=client).fit(dX.map_blocks(broken, dtype=float), dy)
    many = da.zeros((210_000, 1), chunks=(210_000, 1))
    with pytest.raises(ValueError, match="100000 or more different labels"):
        SDist(client=client).fit(many, da.arange(210_000, chunks=210_000) // 2)
    with pytest.raises(ValueError, match="max_rows=20 is too small for 2 classes"):
        SDist(client=client, max_rows=20).fit(dX, dy)
    for lazy in (dask.delayed(X), client.scatter(X)):
        with pytest.raises(TypeError, match=rf"not {type(lazy).__name__}: .*array\.from_delayed"):
            SDist(client=client).fit(lazy, y)
    memory = psutil.virtual_memory()._replace(available=0)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    with pytest.raises(ValueError, match=r"60 rows of 4 columns take 0\.0 GB.*set max_rows"):
        SDist(client=client, max_rows=None).fit(dX, dy)


def test_a_client_that_does_not_wait_is_refused(client: Any) -> None:
    X, y = make_xor(60, 4, random_state=0)

    async def fit() -> None:
        address = client.scheduler.address
        async with distributed.Client(address, asynchronous=True) as waits_for_nothing:
            SDist(client=waits_for_nothing).fit(da.from_array(X, chunks=(30, 4)), y)

    with pytest.raises(TypeError, match="client is asynchronous"):
        asyncio.run(fit())


def fitted_in_a_task(X: Array, y: Array, as_client: bool) -> Array:
    with distributed.worker_client() if as_client else nullcontext():
        model = SDist(oob_gate=None, **SMALL)
        model.fit(da.from_array(X, chunks=(20, 4)), da.from_array(y, chunks=20))
    return model.metric_.matrix()


def test_a_fit_inside_a_task(client: Any) -> None:
    """It needs the thread of the task that waits for it, which may have given it back before."""
    X, y = make_xor(60, 4, informative=2, random_state=0)
    tasks = [client.submit(fitted_in_a_task, X, y, as_client) for as_client in (False, True)]
    one, other = client.gather([task for task in tasks if task.result(timeout=60) is not None])
    assert np.array_equal(one, other)


def test_tables_on_the_cluster_are_not_pulled_to_the_client(client: Any) -> None:
    """What a method that is not lazy would pull is refused."""
    X, y = make_xor(80, 4, informative=2, random_state=0)
    dX = da.from_array(X, chunks=(40, 4))
    model = SDistClassifier(client=client, **SMALL).fit(dX, y)
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


def test_predictions_of_any_collection(client: Any) -> None:
    """Empty partitions, dataframes, a pandas output that was asked for."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    dX = da.from_array(X, chunks=(40, 6))
    model = SDistClassifier(client=client, **SMALL).fit(dX, y)
    expected = model.predict(X)
    some = da.from_array(np.arange(120) < 40, chunks=40)
    assert np.array_equal(model.predict(dX[some]).compute(), expected[:40])
    assert model.score(dX, da.from_array(y, chunks=40)) == pytest.approx((expected == y).mean())
    weight = np.arange(120.0)
    assert model.score(dX, y, weight) == pytest.approx(np.average(expected == y, weights=weight))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ddf = dd.from_pandas(frame, npartitions=3)
    named = SDistClassifier(client=client, **SMALL).fit(ddf, y)
    assert np.array_equal(named.predict(ddf).compute(), expected)
    assert named.predict_proba(ddf[ddf.a > 100]).compute().shape == (0, 2)
    assert named.score(ddf, y) == pytest.approx((expected == y).mean())
    with pytest.raises(ValueError, match="feature names"):
        named.predict(ddf[list("bacdef")])
    transformer = SDist(client=client, **SMALL).fit(dX, y)
    transformer.set_output(transform="pandas")
    assert transformer.transform(dX).compute().shape == (120, transformer.metric_.rank)


def test_sparse_blocks(client: Any) -> None:
    X, y = make_xor(1200, 6, informative=2, random_state=0)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    blocks = da.from_array(X, chunks=(400, 6)).map_blocks(sparse.csr_matrix)
    model = SDistClassifier(client=client, **SAMPLED).fit(blocks, y)
    assert np.array_equal(model.predict(blocks).compute(), model.predict(X))
    assert_same_metric(model.metric_, metricboost.SDistClassifier(**SAMPLED).fit(X, y).metric_)


def threads_of(model: Any) -> int:
    """The threads with which a model predicts here."""
    return int(model._engine().threads)


@pytest.mark.parametrize("search", [False, True])
def test_predictions_have_the_threads_of_the_worker(client: Any, search: bool) -> None:
    """A worker of the cluster has one thread, and each worker has a part of the machine."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    model = SDistClassifier(client=client, n_jobs=7, **SMALL)
    if search:
        grid = {"max_degree": [2]}
        model = SDistClassifierCV(model, grid, cv=2, random_state=0, client=client)
    model.fit(da.from_array(X, chunks=(40, 6)), y)
    assert threads_of(model) == 7
    assert client.submit(threads_of, model).result() == 1


def test_a_search_moves_between_cluster_and_memory(client: Any, tmp_path: Any) -> None:
    """Its estimators take Dask collections; without the cluster nothing of it is left."""
    X, y = make_xor(300, 6, informative=2, random_state=0)
    dX = da.from_array(X, chunks=(100, 6))
    base = SDistClassifier(client=client, max_iter=3)
    found = SDistClassifierCV(base, {"max_degree": [1, 2]}, cv=2, random_state=0, client=client)
    expected = found.fit(dX, y).predict(X)
    assert type(found.best_estimator_) is SDistClassifier
    assert found.best_estimator_.client is client
    best = found.best_estimator_.predict(dX).compute()
    local = found.to_local()
    assert type(local) is metricboost.SDistClassifierCV
    assert type(local.estimator) is metricboost.SDistClassifier
    assert np.array_equal(best, local.best_estimator_.predict(X))
    found.save(tmp_path / "search.mbz")
    loaded = metricboost.load(tmp_path / "search.mbz")
    assert type(loaded) is metricboost.SDistClassifierCV
    pickled = pickle.loads(pickle.dumps(found))
    assert (pickled.client, pickled.estimator.client) == (None, None)
    for model in (local, loaded, pickled):
        assert np.array_equal(model.predict(X), expected)


def test_lazy_results_are_those_of_the_model_that_made_them(client: Any) -> None:
    """Another fit before they are computed does not change them."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    dX = da.from_array(X, chunks=(40, 6))
    model = SDist(client=client, **SMALL).fit(dX, y)
    model.set_output(transform="pandas")
    expected, lazy = model.transform(X), model.transform(dX)
    model.fit(dX[:, ::-1], y)
    assert np.allclose(lazy.compute(), expected)
    assert isinstance(model.transform(X), pd.DataFrame)


def test_lazy_results_of_two_fits_are_told_apart(client: Any) -> None:
    """Dask names tasks after the estimator: the name depends on what the estimator has learned."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    dX = da.from_array(X, chunks=(40, 6))
    model = SDistClassifier(client=client, **SMALL)
    first, second = (model.fit(dX, labels).predict(dX) for labels in (y, X[:, 3] > 0))
    assert first.name != second.name
    found = dask.compute(first, second)
    assert np.array_equal(found[1], model.predict(X))
    assert not np.array_equal(*found)


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
