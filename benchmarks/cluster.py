"""A fit on a Dask cluster of processes: time, bytes, the client's memory, and a worker that dies.

    python -m benchmarks.cluster 1000000 100            # 4 workers, 30 attempts, 2 refreshes
    python -m benchmarks.cluster 1000000 100 --kill     # again with a worker killed at some step
    python -m benchmarks.cluster 400000 100 --parts     # and the workers' seconds, task by task

The double ring spread over a tenth of the columns, made on the workers, 16 partitions. One fit,
at most four terms a step (so that there are enough directions for approximate neighbours), nothing
pruned, else the defaults. The second run must give the same metric: the command says how far it is
from the first.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream

from metricboost.dask import SDist
from metricboost.dask._estimators import COUNTS, bytes_of_a_step

PARTITIONS = 16


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


def table(n: int, p: int) -> tuple[da.Array, da.Array]:
    sizes = [len(rows) for rows in np.array_split(np.arange(n), PARTITIONS)]
    made = [
        da.from_delayed(dask.delayed(part)(size, p, i), (size, p + 1), np.float32)
        for i, size in enumerate(sizes)
    ]
    whole = da.concatenate(made)
    return whole[:, :p], whole[:, p]


def run_cluster(workers: int, pipe: Any) -> None:
    """Until the other end of the pipe closes."""
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0,
        dashboard_address=None,
    ) as cluster:  # fmt: skip
        pipe.send(cluster.scheduler_address)
        pipe.recv()


@contextmanager
def processes(workers: int) -> Iterator[Client]:
    """A cluster of so many processes of one thread, on this machine; the scheduler has its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_cluster, args=(workers, there))
    process.start()
    try:
        with Client(here.recv()) as client:
            yield client
    finally:
        here.send("stop")
        process.join()


def megabytes() -> float:
    """What this process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def most_megabytes() -> float:
    """The most that it held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


class Killing(SDist):
    """Kills a worker at a random attempt."""

    def _cross_fit(self, table, options):
        import metricboost.dask._estimators as estimators

        learn, at = estimators.learn_distributed, random.randint(2, options.boosting.max_iter - 1)

        def watched(*args):
            def watch(attempt, path):
                if attempt == at:
                    processes = self.client.run(os.getpid)
                    os.kill(random.choice(list(processes.values())), signal.SIGKILL)
                    print(f"  killed a worker after attempt {attempt}", flush=True)

            return learn(*args[:-2], watch, args[-1])

        estimators.learn_distributed = watched
        try:
            return super()._cross_fit(table, options)
        finally:
            estimators.learn_distributed = learn


def show_parts(stream: list[dict[str, Any]]) -> None:
    """Seconds of all workers together, by task, computing and receiving."""
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    for task in stream:
        name = str(task["key"]).split("-")[0]
        for part in task["startstops"]:
            seconds[part["action"]][name] += part["stop"] - part["start"]
    for action in ("compute", "transfer"):
        most = seconds[action].most_common(12)
        print(f"  {action}: " + ", ".join(f"{name} {total:.1f}" for name, total in most))


def fit(
    n: int, p: int, workers: int, attempts: int, parts: bool = False, kill: bool = False
) -> np.ndarray:
    """The learned W, over all columns' terms, in a fresh cluster."""
    with processes(workers) as client:
        X, y = table(n, p)
        before, start = megabytes(), time.perf_counter()
        kind = Killing if kill else SDist
        watched = get_task_stream(client) if parts else nullcontext()
        model = kind(
            client=client, max_iter=attempts, refresh_every=12, n_nonzero=4, n_averaged=1,
            prune=None, neighbors="approximate" if n > 10_000 else "exact", random_state=0,
        )  # fmt: skip
        with watched as stream:
            model.fit(X, y)
        seconds, exchanged = time.perf_counter() - start, model.exchanged_[0]
        step = bytes_of_a_step(exchanged)
        path = model.path_
        recalls = np.round(path["recall"][path["refreshed"]], 3).tolist()
        own = {name: round(size / 1e6, 1) for name, size in exchanged.items() if name not in COUNTS}
        halo = exchanged["halo rows"]
        print(f"{n} x {p}, {workers} workers{', one killed' if kill else ''}: {seconds:.0f} s")
        used = len({column for term in model.metric_.columns for column in term})
        print(
            f"  table {n * p * 4 / 1e6:.0f} MB, {used} columns used; the client "
            f"{megabytes() - before:.0f} MB more, at most {most_megabytes() - before:.0f}"
        )
        print(f"  {step / 1e6:.1f} MB between workers a step, {halo} rows in halos; in all, MB:")
        print("   ", own)
        print(f"  {model.best_iter_} steps accepted, {len(recalls)} refreshes of "
              f"recall {recalls}; {len(model.metric_.columns)} terms; "
              f"loss {path['loss'][-1]:.8g}", flush=True)  # fmt: skip
        if stream is not None:
            show_parts(stream.data)
        return model.metric_.matrix()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("n", type=int)
    parser.add_argument("p", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--attempts", type=int, default=30)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--kill", action="store_true")
    given = vars(parser.parse_args())
    kill = given.pop("kill")
    first = fit(**given, kill=False)
    if kill:
        second = fit(**given, kill=True)
        apart = np.abs(first - second).max() / np.abs(first).max()
        print(f"  the same metric but for {apart:.1e} of its largest entry")
