"""What a fit on a cluster would take: from measurements on few workers to a hundred.

    python -m benchmarks.extrapolate halo      # rows that a worker needs of the others, measured
    python -m benchmarks.extrapolate           # the table of docs/hundred_workers.md

``MEASURED`` is from ``python -m benchmarks.cluster 1000000 100 --parts`` (the workers' seconds and
bytes) and from ``python -m benchmarks.extrapolate search``; all else is arithmetic, here.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Measured:
    """Of a million rows and 100 columns on 4 workers: processes that shared 2 cores.

    So these are seconds of a core that had about twice as much to do.
    """

    #: Seconds of a core that a step takes for a row; bytes that travel for a row of a halo.
    step_seconds: float = 2.2e-5
    step_bytes: float = 210.0
    #: Tasks of a step for a worker.
    tasks: float = 45.0
    #: Of a refresh: seconds of a core to put 400,000 rows into lists, and to look up one of them.
    build_seconds: float = 4.8
    query_seconds: float = 5.6e-5
    #: Of the first search: seconds of a core for a row.
    first_seconds: float = 1.4e-4
    #: The share of all rows that a worker needs, by the number of workers.
    halo: tuple[tuple[int, float], ...] = ((4, 1.0), (16, 0.96), (50, 0.67), (100, 0.43))


@dataclass(frozen=True)
class Assumed:
    """Of a machine, its network, and the scheduler."""

    cores: int = 16
    #: Of 16 cores so many are at work: the graph's products wait for memory.
    speedup: float = 6.0
    bytes_a_second: float = 25e9 / 8
    task_seconds: float = 5e-4
    directions: int = 20


def predicted(
    n: float, workers: int, attempts: int, refreshes: int, a: Assumed
) -> dict[str, float]:
    """Seconds, and gigabytes of a worker."""
    m = Measured()
    own, share = n / workers, np.interp(workers, *zip(*m.halo))
    halo = (n - own) * (1.0 if share > _shards.MUCH else share)  # then all rows are sent
    compute = own * m.step_seconds / a.speedup
    network = halo * m.step_bytes / a.bytes_a_second
    scheduler = workers * m.tasks * a.task_seconds
    build = m.build_seconds * (n / 4e5) ** 1.5 / a.speedup
    query = own * m.query_seconds * (n / 4e5) ** 0.5 / a.speedup
    embedding = n * a.directions * 8
    refresh = build + query + embedding / a.bytes_a_second
    first = own * m.first_seconds / a.speedup
    return {
        "compute": compute, "network": network, "scheduler": scheduler,
        "step": compute + network + scheduler, "refresh": refresh, "first search": first,
        "fit, minutes": (
            attempts * (compute + network + scheduler) + refreshes * refresh + first
        ) / 60,
        "GB for the search": 2 * embedding / 1e9, "GB of a step": (own + halo) * 8 * 20 / 1e9,
    }  # fmt: skip


def table() -> None:
    here = Assumed(cores=1, speedup=1.0, bytes_a_second=1e9)
    for n, workers, machine in (
        (1e6, 4, here), (1e7, 10, Assumed()), (1e7, 100, Assumed()), (1e8, 100, Assumed()),
        (1e8, 100, Assumed(bytes_a_second=10e9 / 8)),
    ):  # fmt: skip
        found = predicted(n, workers, 30, 2, machine)
        print(f"{n:.0e} rows, {workers} workers, {machine.bytes_a_second * 8e-9:.0f} Gbit/s:",
              ", ".join(f"{name} {value:.3g}" for name, value in found.items()))  # fmt: skip


if __name__ == "__main__":
    {"halo": halo, "search": search, "table": table}[sys.argv[1] if sys.argv[1:] else "table"]()
