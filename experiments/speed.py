"""Time and memory of fits on Madelon (1820 x 500), as ratios within one run.

    python -m experiments.speed
    python -m experiments.speed fits steps      # only some parts

Times are wall-clock seconds, the best of three. metricboost and NCA use their default number of
threads, which is all cores, if a line does not name ``n_jobs``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.engines import get_engine
from metricboost.engines.host import HostLaplacian, HostTable
from metricboost.engines.native import NativeEngine, NativeGraph, NativeSweeps
from metricboost.training.learn import learn
from metricboost.training.options import LearningOptions

from .against import clocked
from .engines import options, step_times
from .results import record
from .tables import Split, load

SEED = 100
#: The paper's configuration. rho = 0.05 of the first panel of 22 columns is one nonzero.
PAPER: dict[str, Any] = {
    "max_iter": 500, "n_neighbors": 3, "n_nonzero": 1, "max_features": "sqrt", "subsample": 0.5,
    "refresh_every": 50, "max_degree": 4, "oob_gate": None, "screen_pairs": 0, "prune": None,
    "n_averaged": 1, "clip": None, "learning_rate": 0.05, "random_state": 0,
}  # fmt: skip


def seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fits(split: Split) -> None:
    X, y = split.X_train, split.y_train
    standard = StandardScaler().fit_transform(X)
    nca = NeighborhoodComponentsAnalysis(n_components=10, random_state=0)
    models = {
        "paper's configuration, 1 nonzero": SDist(**PAPER),
        "the same, rho = 0.05 of growing panels": SDist(**{**PAPER, "n_nonzero": 0.05}),
        "the first with n_jobs=2": SDist(**PAPER, n_jobs=2),
        "defaults": SDistClassifier(random_state=0),
        "defaults, n_jobs=2": SDistClassifier(random_state=0, n_jobs=2),
        "defaults, one fit (n_averaged=1)": SDistClassifier(random_state=0, n_averaged=1),
        "the same, NumPy engine": SDistClassifier(random_state=0, n_averaged=1, engine="numpy"),
    }
    runs: dict[str, Callable[[], object]] = {
        name: lambda model=model: model.fit(X, y) for name, model in models.items()
    }
    runs["scikit-learn NCA, 10 components"] = lambda: nca.fit(standard, y)
    seconds = {name: min(seconds_of(run) for _ in range(3)) for name, run in runs.items()}
    reference = seconds["scikit-learn NCA, 10 components"]
    print(f"Madelon, {X.shape[0]} x {X.shape[1]}{'seconds':>31}{'NCA = 1':>10}")
    for name, value in seconds.items():
        print(f"  {name:42}{value:8.2f}{value / reference:10.2f}")
        record("speed", "Madelon", name, seconds=value, to_nca=value / reference)


def steps(split: Split) -> None:
    """The median time of a step between two refreshes, one thread or more as the machine has."""
    kinds = {
        "a step, defaults": options(40, n_neighbors=20, oob_gate=2.0),
        "a step, paper": options(40, n_neighbors=3, n_nonzero=1, max_features="sqrt"),
    }
    labels = (split.y_train == 1).astype(np.intp)
    for name, given in kinds.items():
        step, refresh, _ = step_times(split.X_train, labels, "native", given)
        print(f"{name}: {step * 1e3:.2f} ms, a refresh {refresh * 1e3:.2f} ms")
        record("speed", "Madelon", name, step_seconds=step, refresh_seconds=refresh)


#: The kernels of a step between two refreshes.
KERNELS: dict[str, list[tuple[Any, str]]] = {
    "values of terms": [(NativeEngine, "term_columns")],
    "moments": [(NativeEngine, "term_moments")],
    "passes": [(NativeSweeps, "diagonal"), (NativeSweeps, "pulled_back")],
    "graph": [
        (NativeGraph, name) for name in ("margins", "laplacian", "half_laplacian", "share_sums")
    ],
    "products": [(HostLaplacian, "form"), (HostTable, "along")],
    "power method": [(NativeEngine, name) for name in ("truncated_powers", "leading_eigenvectors")],
    "line search": [(NativeEngine, "step_weight")],
}  # fmt: skip


def floors(split: Split) -> None:
    """The time of steps in one thread, and the part of it inside of the kernels: the floor."""
    kinds = {
        "a panel of 22 columns": {"n_neighbors": 3, "n_nonzero": 1, "max_features": "sqrt"},
        "all columns": {"n_neighbors": 20, "oob_gate": 2.0},
    }
    for name, given in kinds.items():
        own = replace(options(200, refresh_every=None, **given), max_degree=1)
        with threadpool_limits(1, user_api="blas"), clocked(KERNELS) as clock:
            step, n_steps = _seconds_of_a_step(split, own)
        inside = {part: seconds / n_steps for part, seconds in clock.seconds.items()}
        ratio = step / sum(inside.values())
        parts = ", ".join(f"{part} {1e3 * seconds:.3f}" for part, seconds in inside.items())
        print(f"A step on {name}: {1e3 * step:.3f} ms, {ratio:.2f} of its kernels ({parts} ms)")
        record("speed", "Madelon", f"floor, {name}", seconds=step, ratio=ratio)


def _seconds_of_a_step(split: Split, given: LearningOptions) -> tuple[float, int]:
    """The mean seconds of a step, and the number of steps."""
    marks: list[float] = []

    def watch(*_: object) -> None:
        marks.append(time.perf_counter())

    labels = (split.y_train == 1).astype(np.intp)
    learn(split.X_train, labels, np.ones(len(labels)), get_engine("native"), given, watch)
    return (marks[-1] - marks[0]) / (len(marks) - 1), len(marks)


def memory(split: Split) -> None:
    """Peak memory of a fit minus that of the interpreter with its imports, in a new process."""
    code = "from experiments.speed import print_peak; print_peak()"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    print(output.stdout, end="")


def print_peak() -> None:
    """Linux only: the high-water mark of resident memory, reset after the imports."""

    def peak() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    split = load("Madelon", SEED)
    SDistClassifier(random_state=0).fit(split.X_train, split.y_train)
    above = peak() - before
    print(f"Peak memory of loading and fit: {above:.0f} MB above the imports' {before:.0f} MB")
    record("speed", "Madelon", "peak memory", megabytes=above)


def search(split: Split) -> None:
    """The time of the default search and of one fit, both with two threads."""
    X, y = split.X_train, split.y_train
    models = SDistClassifier(random_state=0, n_jobs=2), SDistClassifierCV(random_state=0, n_jobs=2)
    one, whole = (seconds_of(lambda model=model: model.fit(X, y)) for model in models)
    print(f"Default cross-validation, 2 threads: {whole:.1f} s, one fit {one:.1f} s")
    record("speed", "Madelon", "search", seconds=whole, one_fit_seconds=one, ratio=whole / one)


PARTS = {"search": search, "fits": fits, "steps": steps, "memory": memory, "floors": floors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    split = load("Madelon", SEED)
    for name in parser.parse_args().parts or PARTS:
        PARTS[name](split)


if __name__ == "__main__":
    main()
