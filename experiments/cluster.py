"""Fits on a Dask cluster of processes: time, memory of the client, and a worker that is killed.

    python -m experiments.cluster 1000000 100             # with the same fit in memory
    python -m experiments.cluster 1000000 100 --kill      # also with a killed worker
    python -m experiments.cluster 50000000 20 --partitions 200 --no-memory

The table is a double ring that is spread over a tenth of the columns. The workers make the
partitions again in every pass and never store them. Fits have the defaults. The fit in memory and
the fit with a killed worker must have the same terms.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import metricboost
from metricboost.dask import SDistClassifier

from .large import peak_memory
from .results import record

#: A model, with the time and memory of its fit.
Fit = tuple[Any, dict[str, Any]]


def part(n: int, p: int, number: int) -> np.ndarray:
    """Some rows, with the class in the last column."""
    rng = np.random.default_rng((0, number))
    labels = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + labels + 0.48 * rng.normal(size=n)
    plane = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    X = rng.standard_normal((n, p + 1), dtype=np.float32)
    for j in range(p // 10):
        X[:, j] = 0.5 * X[:, j] + plane[:, j % 2]
    X[:, p] = labels
    return X


def table(n: int, p: int, partitions: int) -> tuple[da.Array, da.Array]:
    sizes = [len(rows) for rows in np.array_split(np.arange(n), partitions)]
    made = [
        da.from_delayed(dask.delayed(part)(size, p, i), (size, p + 1), np.float32)
        for i, size in enumerate(sizes)
    ]
    whole = da.concatenate(made)
    return whole[:, :p], whole[:, p]


def fitted(client: Client, X: da.Array, y: da.Array, kill: float | None = None) -> Fit:
    """A fit on the cluster. A worker is killed after ``kill`` seconds."""
    if kill is not None:
        processes = sorted(client.run(os.getpid).values())
        victim = random.Random(0).choice(processes)
        threading.Timer(kill, os.kill, (victim, signal.SIGKILL)).start()
    with peak_memory() as above:
        start = time.perf_counter()
        model = SDistClassifier(client=client, random_state=0).fit(X, y)
        return model, {"seconds": time.perf_counter() - start, "megabytes": above()}


def keep(X: da.Array, how: str, fit: Fit, against: Any = None) -> None:
    """Print and record a fit, and the difference of its weights to those of another fit."""
    model, values = fit
    told = f"{values['seconds']:.1f} s"
    if "megabytes" in values:
        told += f", the client {values['megabytes']:.0f} MB above its start"
    if against is not None:
        same = model.metric_.columns == against.metric_.columns
        one, other = model.metric_.matrix(), against.metric_.matrix()
        apart = float(np.abs(one - other).max() / np.abs(other).max()) if same else 1.0
        values |= {"same_terms": same, "apart": apart}
        told += f", {'the same terms' if same else 'OTHER TERMS'}, weights within {apart:.1e}"
    table = f"{X.shape[0]:,} x {X.shape[1]}"
    print(f"{table}, {how}: {told}", flush=True)
    record("cluster", table, how, **values)


def predictions(model: Any, X: da.Array, y: da.Array, everything: bool) -> None:
    few, some = X[: X.chunks[0][0]], y[: y.chunks[0][0]]
    start = time.perf_counter()
    score = model.score(few, some)
    seconds = time.perf_counter() - start
    print(f"score of a partition of {few.shape[0]} rows: {score:.4f}, {seconds:.1f} s")
    if everything:
        start = time.perf_counter()
        mean = model.predict(X).mean().compute()
        print(f"mean prediction of all rows: {mean:.4f}, {time.perf_counter() - start:.0f} s")


def in_memory(X: da.Array, columns: int) -> Fit:
    whole = np.concatenate([part(n, columns, i) for i, n in enumerate(X.chunks[0])])
    start = time.perf_counter()
    model = metricboost.SDistClassifier(random_state=0).fit(whole[:, :-1], whole[:, -1])
    return model, {"seconds": time.perf_counter() - start}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", type=int)
    parser.add_argument("columns", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--no-memory", action="store_true", help="leave out the fit in memory")
    given = parser.parse_args()
    X, y = table(given.rows, given.columns, given.partitions)
    local = None if given.no_memory else in_memory(X, given.columns)
    if local is not None:
        keep(X, "in memory", local)
    with (
        LocalCluster(
            n_workers=given.workers, threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address=None, silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        fit = fitted(client, X, y)
        keep(X, f"{given.workers} workers", fit, None if local is None else local[0])
        if given.kill:
            again = fitted(client, X, y, kill=min(3.0, fit[1]["seconds"] / 10))
            keep(X, f"{given.workers} workers, one killed", again, fit[0])
        predictions(fit[0], X, y, given.no_memory)


if __name__ == "__main__":
    main()
