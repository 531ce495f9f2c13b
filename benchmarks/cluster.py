"""Fits on a Dask cluster of processes: time, the client's memory, and a worker that dies.

    python -m benchmarks.cluster 1000000 100             # beside the fit in memory
    python -m benchmarks.cluster 1000000 100 --kill      # and again with a worker killed
    python -m benchmarks.cluster 50000000 20 --partitions 200 --no-memory

A double ring spread over a tenth of the columns. Partitions are made on the workers, in every pass
again, and never stored. The defaults; the fit in memory and the one with a killed worker must have
the same terms.
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


def part(n: int, p: int, number: int) -> np.ndarray:
    """Some rows, the class in the last column."""
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


def fitted(client: Client, X: da.Array, y: da.Array, kill: float | None = None) -> Any:
    """A model; ``kill`` is the number of seconds after which a worker is killed."""
    if kill is not None:
        processes = sorted(client.run(os.getpid).values())
        victim = random.Random(0).choice(processes)
        threading.Timer(kill, os.kill, (victim, signal.SIGKILL)).start()
    with peak_memory() as above:
        start = time.perf_counter()
        model = SDistClassifier(client=client, random_state=0).fit(X, y)
        seconds = time.perf_counter() - start
        print(
            f"{X.shape[0]} x {X.shape[1]} on {len(client.ncores())} workers"
            f"{'' if kill is None else f', one killed after {kill:.1f} s'}: {seconds:.1f} s, the "
            f"client {above():.0f} MB above its start", flush=True,
        )  # fmt: skip
    return model, seconds


def compare(name: str, found: Any, expected: Any) -> None:
    same = found.metric_.columns == expected.metric_.columns
    scale = np.abs(expected.metric_.matrix()).max()
    gap = np.abs(found.metric_.matrix() - expected.metric_.matrix()).max() / scale if same else 1.0
    print(f"{name}: {'the same terms' if same else 'OTHER TERMS'}, weights within {gap:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int)
    parser.add_argument("columns", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--no-memory", action="store_true", help="no fit in memory beside it")
    arguments = parser.parse_args()
    X, y = table(arguments.rows, arguments.columns, arguments.partitions)
    with (
        LocalCluster(
            n_workers=arguments.workers, threads_per_worker=1, processes=True, memory_limit=0,
            dashboard_address=None, silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        model, seconds = fitted(client, X, y)
        if arguments.kill:
            again, _ = fitted(client, X, y, kill=min(3.0, seconds / 10))
            compare("with a killed worker", again, model)
        few, some = X[: X.chunks[0][0]], y[: y.chunks[0][0]]
        start = time.perf_counter()
        score = model.score(few, some)
        print(
            f"score of a partition of {few.shape[0]} rows: {score:.4f}, "
            f"{time.perf_counter() - start:.1f} s"
        )
        if arguments.no_memory:
            start = time.perf_counter()
            print(f"mean prediction of all rows: {model.predict(X).mean().compute():.4f}, "
                  f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    if not arguments.no_memory:
        sizes = X.chunks[0]
        whole = np.concatenate([part(n, arguments.columns, i) for i, n in enumerate(sizes)])
        start = time.perf_counter()
        local = metricboost.SDistClassifier(random_state=0).fit(whole[:, :-1], whole[:, -1])
        print(f"in memory: {time.perf_counter() - start:.1f} s")
        compare("against the fit in memory", model, local)


if __name__ == "__main__":
    main()
