"""Libraries for approximate neighbours, on rows under a learned metric and on noise.

    python -m benchmarks.neighbors               # 200,000 rows
    python -m benchmarks.neighbors 50000

For each: the time of its import in a process of its own, of building its index over both
classes and of searching the 20 nearest of each for every row, the memory that it takes, and
the share of 500 rows' true neighbours that it finds. Settings are the fastest of a few that find
0.95 under the learned metric. Libraries that are not installed are left out
(``pip install faiss-cpu hnswlib usearch``).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from metricboost import SDist
from metricboost.datasets import make_double_ring
from metricboost.engines import NeighborLists, get_engine
from metricboost.engines.approximate import approximate_by_class

from .scale import CORES, peak_memory

K = 20
Search = Callable[[np.ndarray, int], np.ndarray]


def faiss_hnsw(rows: np.ndarray) -> Search:
    import faiss

    index = faiss.IndexHNSWFlat(rows.shape[1], 8)
    index.hnsw.efConstruction, index.hnsw.efSearch = 40, 40
    index.add(rows)
    return lambda queries, k: index.search(queries, k)[1]


def hnswlib(rows: np.ndarray) -> Search:
    import hnswlib

    index = hnswlib.Index("l2", rows.shape[1])
    index.init_index(len(rows), M=8, ef_construction=40)
    index.set_num_threads(CORES)
    index.add_items(rows)
    index.set_ef(40)
    return lambda queries, k: index.knn_query(queries, k)[0]


def usearch(rows: np.ndarray) -> Search:
    from usearch.index import Index

    index = Index(
        ndim=rows.shape[1], metric="l2sq", dtype="f32", connectivity=8, expansion_add=40,
        expansion_search=40,
    )  # fmt: skip
    index.add(np.arange(len(rows)), rows, threads=CORES)
    return lambda queries, k: index.search(queries, k, threads=CORES).keys


LIBRARIES: dict[str, tuple[str, Callable[[np.ndarray], Search]]] = {
    "faiss, HNSW": ("faiss", faiss_hnsw),
    "hnswlib": ("hnswlib", hnswlib),
    "usearch": ("usearch", usearch),
}


def compare(name: str, z: np.ndarray, classes: np.ndarray) -> None:
    engine = get_engine("auto", CORES)
    lists = NeighborLists(np.array([[0, 1], [1, 0]], dtype=np.int32), (K, K))
    start = time.perf_counter()
    exact = engine.nearest_by_class(z, classes, lists)[0]
    taken = time.perf_counter() - start
    print(f"{name}: {z.shape[0]} x {z.shape[1]}, {CORES} cores; exact {taken:.1f} s", flush=True)
    with peak_memory() as peak:
        start = time.perf_counter()
        found = approximate_by_class(engine, z, classes, lists)
        taken = time.perf_counter() - start
    said = "gives up" if found is None else f"recall {recall(found[0], exact):.3f}"
    print(f"  {'faiss, lists (ours)':22}{taken:7.1f} s in all {'':15}{peak():6.0f} MB   {said}")
    for title, (module, build) in LIBRARIES.items():
        if find_spec(module) is not None:
            measure(title, build, z.astype(np.float32), classes, exact)


def measure(title: str, build: Any, z: np.ndarray, classes: np.ndarray, exact: np.ndarray) -> None:
    members = [np.flatnonzero(classes == c) for c in (0, 1)]
    with peak_memory() as peak:
        start = time.perf_counter()
        searches = [build(np.ascontiguousarray(z[rows])) for rows in members]
        built = time.perf_counter()
        near = [rows[search(z, K + 1)] for rows, search in zip(members, searches)]
        ended = time.perf_counter()
        megabytes = peak()
    # The row itself is among its own class: one more was asked for, and it does not count.
    own = np.where(classes[:, None] == 0, near[0], near[1])
    other = np.where(classes[:, None] == 0, near[1], near[0])
    found = np.hstack([own, other[:, :K]])
    print(
        f"  {title:22}{built - start:7.1f} s to build, {ended - built:5.1f} s to search"
        f"{megabytes:6.0f} MB   recall {recall(found, exact):.3f}",
        flush=True,
    )


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    rows = np.linspace(0, len(exact) - 1, 500).astype(int)
    return float(np.mean([len(np.intersect1d(found[i], exact[i])) / exact.shape[1] for i in rows]))


def import_times() -> None:
    for module in sorted({module for module, _ in LIBRARIES.values()}):
        if find_spec(module) is not None:
            code = f"import numpy, time; t = time.perf_counter(); import {module}; "
            code += "print(f'{time.perf_counter() - t:.2f}')"
            times = [
                float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
                for _ in range(3)
            ]
            print(f"  import {module:10}{np.median(times):6.2f} s")


def main(n: int = 200_000) -> None:
    import_times()
    X, y = make_double_ring(n, 50, random_state=0)[:2]
    classes = (y == y.max()).astype(np.intp)
    learned = SDist(max_iter=60, n_averaged=1, screen_pairs=0, prune=None, random_state=0).fit(X, y)
    compare("under a learned metric", learned.transform(X), classes)
    compare("noise", np.random.default_rng(0).normal(size=(n, 30)), classes)


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
