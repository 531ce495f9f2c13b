"""Engines side by side: a fit of 200 steps and 10 refreshes, and what a step is made of.

    python -m benchmarks.engines torch 1000000 1000            # on a GPU
    python -m benchmarks.engines torch 1000000 1000 --parts    # every operation, and the floors
    python -m benchmarks.engines native 20000 1000             # the same problem, smaller

The double ring spread over a tenth of the columns, k 10, every step accepted (no gate), no
screening, all else at the defaults. The first search, among all columns, is reported apart. With
``--parts`` the device is waited for after every operation, which takes some time itself.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from metricboost.boosting.loop import BoostingOptions, boost
from metricboost.boosting.path import Factor
from metricboost.boosting.terms import Candidates
from metricboost.engines import get_engine
from metricboost.engines.rows import TrainingRows

K, KAPPA, STEPS, REFRESH_EVERY = 10, 16, 200, 20
#: What an H200 takes for a million rows of 1000 columns in float32, k 10: milliseconds.
FLOORS = {"X^T z": 1.0, "the graph on a vector": 0.74, "gathering 32 columns": 0.44}
#: As many candidates as a fit with the defaults has at most.
MOST_CANDIDATES = 2000


def problem(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The double ring, transposed and standardised, in float32: made column by column."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + labels + 0.48 * rng.normal(size=n)
    plane = np.stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    Xt = rng.standard_normal((p, n), dtype=np.float32)
    for j in range(p // 10):
        Xt[j] = 0.5 * Xt[j] + plane[j % 2]
    Xt -= Xt.mean(axis=1, keepdims=True)
    Xt /= Xt.std(axis=1, keepdims=True)
    return np.clip(Xt, -3, 3, out=Xt), labels


def synchronise() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Parts:
    """Seconds spent in each operation of the rows, and what it had to read."""

    NAMES = ("_find_neighbors", "weigh", "matrix", "diagonal", "image", "share_sums", "line",
             "take", "loss", "term_moments")  # fmt: skip

    def __init__(self, rows: TrainingRows, wait: Callable[[], None] | None) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.columns, self.vectors, self.sweeps = 0, 0, 0.0
        for name in self.NAMES:
            setattr(rows, name, self._timed(name, getattr(rows, name), wait))
        self._p = rows.n_columns

    def _timed(self, name: str, run: Callable[..., Any], wait: Callable[[], None] | None) -> Any:
        def timed(*args: Any) -> Any:
            self.calls[name] += 1
            self._count(name, args)
            if wait is None:
                return run(*args)
            wait()
            start = time.perf_counter()
            result = run(*args)
            wait()
            self.seconds[name] += time.perf_counter() - start
            return result

        return timed

    def _count(self, name: str, args: tuple[Any, ...]) -> None:
        """Columns gathered, vectors that the graph is applied to, sweeps over the table."""
        if name in ("image", "matrix", "line", "share_sums"):
            self.columns += len(args[0])
            self.vectors += args[1].shape[1] if name in ("image", "share_sums") else 1
        if name == "image":
            self.sweeps += len(args[2]) / self._p

    def show(self) -> None:
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            calls = self.calls[name]
            print(f"    {name:18}{calls:6} x{seconds / calls * 1e3:10.2f} ms{seconds:10.2f} s")

    def show_floors(self, n: int, step: float) -> None:
        """The floors of a step, each operation alone, from what one reads on average.

        A matrix over some terms counts as one vector, and a sweep for several vectors as one.
        """
        steps, known = self.calls["weigh"], {name: ms / 1e6 * n for name, ms in FLOORS.items()}
        floor = (
            self.columns / steps / 32 * known["gathering 32 columns"]
            + self.vectors / steps * known["the graph on a vector"]
            + self.sweeps / steps * known["X^T z"] * self._p / 1000
        )
        print(
            f"  a step gathers {self.columns / steps:.0f} columns, applies the graph to "
            f"{self.vectors / steps:.1f} vectors, sweeps the table {self.sweeps / steps:.1f} times"
        )
        print(
            f"  floors {floor:.1f} ms, a step {step * 1e3:.1f} ms, {step * 1e3 / floor:.2f} times"
        )


def fit(engine: str, n: int, p: int, steps: int = STEPS, parts: bool = False) -> None:
    Xt, labels = problem(n, p)
    on_device = engine == "torch"
    rows = get_engine(engine, _cores()).rows(Xt if on_device else Xt.astype(float))
    candidates = Candidates(rows, 2, MOST_CANDIDATES)
    timed = Parts(rows, (synchronise if on_device else lambda: None) if parts else None)
    options = BoostingOptions(steps, K, KAPPA, 0.1, 0.5, None, REFRESH_EVERY, None, 0)
    start = time.perf_counter()
    marks, searches = [(start, 0)], _timed_searches(rows, on_device)

    def watch(_: int, path: Any) -> None:
        marks.append((time.perf_counter(), sum(step.refreshed for step in path.steps)))

    path = boost(candidates, labels, np.ones(n), Factor.empty(), options, watch)
    step = float(np.median([b[0] - a[0] for a, b in pairwise(marks[1:]) if a[1] == b[1]]))
    columns = {j for s in path.steps for t in s.support for j in candidates.term(t)}
    print(f"{engine}, {n} x {p}: {len(path)} accepted steps, {len(searches) - 1} refreshes")
    print(f"  first search, {p} columns {searches[0]:8.2f} s")
    print(f"  all the rest              {marks[-1][0] - start - searches[0]:8.2f} s")
    print(f"  a step, median            {step * 1e3:8.1f} ms")
    if searches[1:]:
        print(f"  a refresh, median         {np.median(searches[1:]):8.2f} s")
        print(f"  the longest               {max(searches[1:]):8.2f} s")
    noise, loss = sum(j >= p // 10 for j in columns), path.steps[-1].loss
    print(
        f"  {len(candidates)} candidates; {len(columns)} columns used, of which {noise} are noise"
    )
    print(f"  loss {loss:.8g}")
    timed.show()
    if on_device:
        timed.show_floors(n, step)
        _show_memory()


def _timed_searches(rows: TrainingRows, on_device: bool) -> list[float]:
    """The seconds of every search to come."""
    search, seconds = rows.refresh, []

    def timed(*args: Any) -> None:
        start = time.perf_counter()
        search(*args)
        if on_device:
            synchronise()
        seconds.append(time.perf_counter() - start)

    rows.refresh = timed  # type: ignore[method-assign]
    return seconds


def _cores() -> int:
    return os.cpu_count() or 1


def _show_memory() -> None:
    import torch

    if torch.cuda.is_available():
        print(f"  memory of the device at most {torch.cuda.max_memory_allocated() / 1e9:.1f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("engine", choices=("torch", "native", "numpy"))
    parser.add_argument("n", type=int)
    parser.add_argument("p", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--parts", action="store_true", help="time every operation by itself")
    fit(**vars(parser.parse_args()))
