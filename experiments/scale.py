"""Wide tables: time and error for many columns, and the time of the neighbour search.

    python -m experiments.scale refresh            # neighbours of 20,000 rows against scikit-learn
    python -m experiments.scale wide               # XOR over 20 of 100,000 columns, with rivals
    python -m experiments.scale pure               # XOR of 2 of 20,000 columns
    python -m experiments.scale step               # time of a step of sqrt(p) columns, several p

Times are wall-clock seconds on all cores. Ratios are within one run. ``experiments.large`` measures
tables with many rows.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from metricboost import SDist, SDistClassifier
from metricboost.datasets import make_xor
from metricboost.engines import NeighborLists, get_engine

from .results import record
from .rivals import l1_logistic, nearest

#: Rows that errors are measured on.
N_TEST = 10_000
CORES = os.cpu_count() or 1


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# --- neighbours


def refresh(n: int = 20_000, r: int = 30, k: int = 10, repeats: int = 5) -> None:
    """Time searches for neighbours of both classes, with and without older neighbours. Float32."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, r)).astype(np.float32).astype(np.float64)
    classes = rng.integers(0, 2, n)
    engine = get_engine("native", CORES)
    lists = NeighborLists(np.array([[0, 1], [1, 0]], dtype=np.int32), (k, k))
    older = engine.nearest_by_class(z + 0.05 * rng.normal(size=z.shape), classes, lists)[0]
    runs = {
        "scikit-learn, brute force": lambda: brute_force(z.astype(np.float32), classes, k),
        "metricboost, first search": lambda: engine.nearest_by_class(z, classes, lists),
        "metricboost, refresh": lambda: engine.nearest_by_class(z, classes, lists, older),
    }
    times = {name: [] for name in runs}
    for _ in range(repeats):  # in turn, so that a busy moment affects all of them
        for name, run in runs.items():
            times[name].append(seconds(run))
    print(f"{n} rows, {r} dimensions, 2 classes, k = {k}, {CORES} cores; median of {repeats}")
    reference = np.median(times["scikit-learn, brute force"])
    for name, values in times.items():
        median = float(np.median(values))
        print(f"  {name:30}{median:8.3f} s{reference / median:8.1f} x as fast")
        record("scale", f"search, {n:,} x {r}, k {k}", name, seconds=median)
    print(f"  the same neighbours as brute force in float64: {same_as_float64(z, classes, lists)}")


def brute_force(z: np.ndarray, classes: np.ndarray, k: int) -> None:
    for c in (0, 1):
        own, rest = z[classes == c], z[classes != c]
        search = NearestNeighbors(n_neighbors=k + 1, algorithm="brute", n_jobs=-1).fit(own)
        search.kneighbors(own)  # the nearest row of a row is the row itself
        search.kneighbors(rest, n_neighbors=k)


def same_as_float64(z: np.ndarray, classes: np.ndarray, lists: NeighborLists) -> str:
    """Compare with the NumPy engine, which sorts exact distances. Ties are broken by number."""
    found = get_engine("native", CORES).nearest_by_class(z, classes, lists)[0]
    expected = get_engine("numpy").nearest_by_class(z, classes, lists)[0]
    return f"{(found == expected).mean():.6f} of all"


# --- columns


def wide(n: int = 200, p: int = 100_000, informative: int = 20) -> None:
    X, y = make_xor(n + 2000, p, informative=informative / p, random_state=0)[:2]
    compared(f"XOR, {informative} of {p:,} columns, {n} rows", X, y, n)


def pure(n: int = 500, p: int = 20_000) -> None:
    X, y = make_xor(n + 2000, p, informative=2, random_state=0)[:2]
    compared(f"XOR, 2 of {p:,} columns, {n} rows", X, y, n, rivals=False)


def compared(table: str, X: np.ndarray, y: np.ndarray, n: int, rivals: bool = True) -> None:
    print(table)
    models: dict[str, Any] = {"defaults": SDistClassifier(random_state=0)}
    if rivals:
        models["3-NN"] = nearest()
        models["L1 logistic regression"] = l1_logistic()
        from lightgbm import LGBMClassifier

        models["LightGBM"] = LGBMClassifier(random_state=0, verbose=-1)
    for name, model in models.items():
        taken = seconds(partial(model.fit, X[:n], y[:n]))
        error = float((model.predict(X[n:]) != y[n:]).mean())
        print(f"  {name:25}{taken:8.1f} s   error {error:.3f}", flush=True)
        if isinstance(model, SDistClassifier):
            print(f"  {'':25}terms: {', '.join(t.name for t in model.metric_.terms[:5])}")
        record("scale", table, name, seconds=taken, error=error)


def step(n: int = 200, attempts: int = 100) -> None:
    """A step that sees sqrt(p) columns, without the first search."""
    times = {}
    for p in (1_000, 100_000):
        X, y = make_xor(n, p, random_state=0)[:2]
        options: dict[str, Any] = {
            "max_features": "sqrt", "n_averaged": 1, "screen_pairs": 0, "oob_gate": None,
            "refresh_every": None, "prune": None, "start_share": 0.0, "random_state": 0,
        }  # fmt: skip
        fits = [
            min(seconds(partial(SDist(max_iter=m, **options).fit, X, y)) for _ in range(3))
            for m in (1, 1 + attempts)
        ]
        times[p] = (fits[1] - fits[0]) / attempts
        print(f"  p = {p:6}: {1e3 * times[p]:.2f} ms a step", flush=True)
        record("scale", f"XOR, {p:,} columns, {n} rows", "a step", seconds=times[p])
    print(f"ratio {times[100_000] / times[1_000]:.1f}")


COMMANDS: dict[str, Callable[..., None]] = {
    "refresh": refresh, "wide": wide, "pure": pure, "step": step,
}  # fmt: skip


if __name__ == "__main__":
    name, *numbers = sys.argv[1:] or ["refresh"]
    COMMANDS[name](*(int(number) for number in numbers))
