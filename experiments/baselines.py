"""Compare LMNN with that of metric-learn, and measure the time of PGDM on wide tables.

    METRICBOOST_RIVALS_PYTHON=... python -m experiments.baselines lmnn
    python -m experiments.baselines pgdm

``lmnn`` fits both on Madelon, where one function computes both objectives over all triplets, and on
splits of Ionosphere, where it prints test errors of 3-NN. metric-learn 0.7.0 runs in a separate
environment. ``pgdm`` measures PGDM with the full matrix. Times are wall-clock seconds, with CPU
seconds in brackets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from metricboost.baselines import LMNN, PGDM
from metricboost.datasets import make_double_ring

from .limits import cpu_seconds
from .results import mean_and_error, number, paired, record
from .rivals import ForeignMetric
from .tables import Split, load, overlap

K = 3
FOREIGN = {"n_neighbors": K, "random_state": 0}


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall-clock seconds, and CPU seconds including finished child processes."""
    before, start = cpu_seconds(), time.perf_counter()
    result = run()
    return result, time.perf_counter() - start, cpu_seconds() - before


def standardised(split: Split) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    scaler = StandardScaler().fit(split.X_train)
    return scaler.transform(split.X_train), scaler.transform(split.X_test)


def lmnn_objective(L: npt.NDArray[Any], X: npt.NDArray[Any], y: npt.NDArray[Any]) -> float:
    """Half of the distances to the targets plus half of all hinges, without any shortcut."""
    E, total = X @ L.T, 0.0
    for c in np.unique(y):
        own, rest = np.flatnonzero(y == c), np.flatnonzero(y != c)
        near = KNeighborsClassifier(K).fit(X[own], own).kneighbors(return_distance=False)
        pulled = ((E[own][:, None] - E[own[near]]) ** 2).sum(axis=2)
        apart = ((E[own] ** 2).sum(axis=1)[:, None] + (E[rest] ** 2).sum(axis=1)
                 - 2 * E[own] @ E[rest].T)  # fmt: skip
        total += pulled.sum()
        total += sum(np.maximum(0, 1 + pulled[:, [j]] - apart).sum() for j in range(K))
    return 0.5 * total


def error(L: npt.NDArray[Any], split: Split) -> float:
    X_train, X_test = standardised(split)
    nearest = KNeighborsClassifier(3).fit(X_train @ L.T, split.y_train)
    return 1 - nearest.score(X_test @ L.T, split.y_test)


def learners() -> dict[str, Any]:
    return {
        "metric-learn 0.7.0": ForeignMetric("LMNN", FOREIGN),
        "metricboost": LMNN(n_neighbors=K),
    }


def compare_objectives() -> None:
    X, y = training("Madelon")
    print(f"Madelon, {len(X)} x {X.shape[1]}, {K} targets: seconds (CPU), objective")
    for name, learner in learners().items():
        model, wall, cpu = timed(lambda learner=learner: learner.fit(X, y))
        value = lmnn_objective(model.components_, X, y)
        print(f"  {name:38}{wall:9.1f}{f'({cpu:.1f})':>9}{value:12.0f}", flush=True)
        record("lmnn", "Madelon", name, seconds=wall, cpu_seconds=cpu, objective=value)


def compare_errors(n_splits: int) -> None:
    found: dict[str, dict[int, float]] = {name: {} for name in learners()}
    for seed in range(n_splits):
        split = load("Ionosphere", seed)
        X = standardised(split)[0]
        for name, learner in learners().items():
            wrong = error(learner.fit(X, split.y_train).components_, split)
            found[name][seed] = wrong
            record("lmnn", "Ionosphere", name, seed, error=wrong)
    share = overlap("Ionosphere")
    print(f"Ionosphere, test error of 3-NN, {n_splits} splits")
    for name, values in found.items():
        print(f"  {name:38}{number(*mean_and_error(values.values(), share))}")
    theirs, ours = found.values()
    gap = number(*paired(ours, theirs, share), sign="+")
    print(f"  {'difference':38}{gap}")


def time_pgdm() -> None:
    rows = [(name, *training(name)) for name in ("Ionosphere", "SECOM", "Madelon")]
    for n, p in ((2000, 500), (5000, 1000)):
        rows.append(("double ring", *make_double_ring(n, p, random_state=0)))
    titles = ("rows", "columns", "seconds", "(CPU)", "iterations")
    print(f"{'PGDM, the full matrix':24}" + "".join(f"{title:>11}" for title in titles))
    for name, X, y in rows:
        model, wall, cpu = timed(lambda X=X, y=y: PGDM().fit(X, y))
        cells = (len(X), X.shape[1], f"{wall:.1f}", f"({cpu:.1f})", model.n_iter_)
        told = "" if model.converged_ else "  not converged"
        print(f"  {name:22}" + "".join(f"{cell:>11}" for cell in cells) + told, flush=True)
        values = {"seconds": wall, "cpu_seconds": cpu, "iterations": model.n_iter_}
        record("pgdm", f"{name}, {len(X)} x {X.shape[1]}", "PGDM", **values)


def training(name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    split = load(name, 0)
    return standardised(split)[0], split.y_train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("lmnn", "pgdm"))
    parser.add_argument("--splits", type=int, default=20, help="of Ionosphere")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "pgdm":
        time_pgdm()
    else:
        compare_objectives()
        compare_errors(arguments.splits)


if __name__ == "__main__":
    main()
