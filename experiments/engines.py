"""Compare engines: the time of a step and of a refresh.

    python -m experiments.engines torch 1000000 1000            # on a GPU
    python -m experiments.engines native 20000 1000             # the same problem, smaller
    python -m experiments.engines native 20000 200 --steps 40

The table is the double ring that is spread over a tenth of the columns. There are 10 neighbours, no
gate, so that every step is accepted, and no screening. Other parameters have their defaults. Times
are wall-clock seconds on all cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from metricboost.boosting.loop import BoostingOptions
from metricboost.engines import get_engine
from metricboost.training.learn import learn
from metricboost.training.options import LearningOptions

from .results import record

K, KAPPA, STEPS, REFRESH_EVERY = 10, 16, 200, 20
#: The largest number of candidates of a fit with the defaults.
MOST_CANDIDATES = 2000


def problem(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The double ring in float32. It is made column by column to save memory."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + labels + 0.48 * rng.normal(size=n)
    plane = np.stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    Xt = rng.standard_normal((p, n), dtype=np.float32)
    for j in range(p // 10):
        Xt[j] = 0.5 * Xt[j] + plane[j % 2]
    return Xt.T, labels


def options(steps: int, **boosting: Any) -> LearningOptions:
    given: dict[str, Any] = {
        "n_neighbors": K, "n_nonzero": KAPPA, "learning_rate": 0.1, "subsample": 0.5,
        "max_features": None, "refresh_every": REFRESH_EVERY, "oob_gate": None, "seed": 0,
    }  # fmt: skip
    return LearningOptions(
        BoostingOptions(max_iter=steps, **given | boosting), max_degree=2, screen_pairs=0,
        prune=None, complexity_penalty=0.0, standardize=True, init="zero", clip=3.0,
        max_candidates=MOST_CANDIDATES,
    )  # fmt: skip


def step_times(
    X: np.ndarray, labels: np.ndarray, engine: str, given: LearningOptions
) -> tuple[float, float, Any]:
    """The median seconds of a step and of a refresh, and the fit."""
    marks: list[tuple[float, int]] = []

    def watch(_: int, path: Any) -> None:
        _wait()
        marks.append((time.perf_counter(), sum(step.refreshed for step in path.steps)))

    cores = os.cpu_count() or 1
    with threadpool_limits(1, user_api="blas"):  # the engine starts its own threads
        learned = learn(X, labels, np.ones(len(labels)), get_engine(engine, cores), given, watch)
    taken = [(after[0] - before[0], after[1] > before[1]) for before, after in pairwise(marks)]
    step = float(np.median([seconds for seconds, refreshed in taken if not refreshed]))
    refreshes = [seconds - step for seconds, refreshed in taken if refreshed]
    return step, float(np.median(refreshes)) if refreshes else np.nan, learned


def _wait() -> None:
    """Wait until the GPU has finished, if a GPU is used."""

    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("engine", choices=("torch", "native", "numpy"))
    parser.add_argument("rows", type=int)
    parser.add_argument("columns", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    X, labels = problem(given.rows, given.columns)
    start = time.perf_counter()
    step, refresh, learned = step_times(X, labels, given.engine, options(given.steps))
    seconds, accepted = time.perf_counter() - start, learned.path.steps
    used = {j for s in accepted for t in s.support for j in learned.terms[t]}
    noise, loss = sum(j >= given.columns // 10 for j in used), accepted[-1].loss
    print(
        f"{given.engine}, {given.rows} x {given.columns}: {len(accepted)} accepted steps in "
        f"{seconds:.2f} s; a step {step * 1e3:.1f} ms, a refresh {refresh:.2f} s (medians); "
        f"{len(used)} columns used, of which {noise} are noise; loss {loss:.8g}"
    )
    record(
        "engines", f"{given.rows:,} x {given.columns:,}", f"{given.engine}, {_machine()}",
        seconds=seconds, step_seconds=step, refresh_seconds=refresh, loss=loss,
    )  # fmt: skip


def _machine() -> str:
    """The name of the GPU if one is used, otherwise the number of cores."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{os.cpu_count() or 1} cores"


if __name__ == "__main__":
    main()
