"""What a fit on a cluster would take: from measurements on few workers to a hundred.

    python -m benchmarks.extrapolate halo      # rows that a worker needs of the others, measured
    python -m benchmarks.extrapolate           # the table of docs/hundred_workers.md

``MEASURED`` is from ``python -m benchmarks.cluster 1000000 100 --parts`` (the workers' seconds and
bytes) and from ``python -m benchmarks.extrapolate search``; all else is arithmetic, here.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from metricboost import SDist
from metricboost.dask import _shards
from metricboost.engines import get_engine
from metricboost.engines.approximate import approximate_by_class
from metricboost.engines.base import NeighborLists

from .cluster import part

#: Edges that start at a row: 20 to its own class and 20 to the others.
EDGES = 40


def embedded(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of ``benchmarks.cluster`` under a metric learned from some of them."""
    known = part(20_000, 100, 0)
    fit = SDist(
        max_iter=30, refresh_every=12, n_nonzero=4, n_averaged=1, prune=None, random_state=0
    )
    metric = fit.fit(known[:, :-1], known[:, -1]).metric_
    rows = part(n, 100, 1)
    return metric.transform(rows[:, :-1]), rows[:, -1].astype(int)


def lists() -> NeighborLists:
    return NeighborLists(np.array([[0, 1], [1, 0]], dtype=np.int32), (20, 20))


def halo(n: int = 100_000) -> None:
    """The share of all other rows that a worker needs, rows spread over workers at random."""
    z, labels = embedded(n)
    found, recall = approximate_by_class(get_engine("auto", 2), z, labels, lists())
    print(f"{n} rows, {z.shape[1]} directions, recall {recall:.3f}")
    for workers in (4, 16, 50, 100, 200):
        owner = np.random.default_rng(0).integers(0, workers, n)
        shares = []
        for shard in range(4):
            needed = np.zeros(n, dtype=bool)
            needed[found[owner == shard]] = True
            needed[(owner[found] == shard).any(axis=1)] = True
            shares.append(needed[owner != shard].mean())
        rule = 1 - np.exp(-2 * EDGES / workers)
        print(f"  {workers:4} workers: {np.mean(shares):.3f}, at most {rule:.3f}")


def search() -> None:
    """Seconds of one worker on one core: for its rows, among all."""
    for n in (100_000, 200_000, 400_000):
        z, labels = embedded(n)
        for own in (n // 100, n // 10):
            start = time.perf_counter()
            rows = np.arange(0, n, n // own)
            recall = _shards.search(z, rows, labels, lists(), True)[1]
            took = time.perf_counter() - start
            print(f"  {n} rows, {len(rows)} of them its own: {took:.2f} s, recall {recall:.3f}")


if __name__ == "__main__":
    {"halo": halo, "search": search}[sys.argv[1]]()
