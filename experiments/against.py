"""The time of a fit against what people would use instead, on 24 tables, and where the time goes.

    python -m experiments.against                    # all tables
    python -m experiments.against Madelon vehicle    # some of them
    python -m experiments.against --repeats 5
    python -m experiments.against --print-only       # the runs so far, side by side

On every table the models are fitted alternately, with their defaults and all cores, and the median
of their wall times is kept. Ratios are to LightGBM; times below 50 ms count as 50 ms. The parts of
the time of metricboost are measured in a fit of their own. A run adds its results to those of the
earlier runs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metricboost import SDistClassifier
from metricboost.boosting import loop
from metricboost.engines.host import HostTable
from metricboost.engines.native import NativeEngine, NativeGraph
from metricboost.model.readouts import READOUTS
from metricboost.training import fitting, learn

from .results import Results, record
from .tables import Split, real_split, simulated, stored
from .tables import load as known_table

#: The split of the real tables. The defaults were chosen on seeds from 100 on.
SEED = 100
#: Two classes; wide tables; eight tables of the public benchmark from 150 to 7,000 rows, evenly
#: spaced by their number of rows; simulations; several classes.
TABLES = (
    "Madelon", "Ionosphere", "SECOM", "Spambase",
    "wide/GLIOMA", "wide/TOX-171", "wide/BASEHOCK",
    "pmlb/tae", "pmlb/new-thyroid", "pmlb/spectf", "pmlb/saheart", "pmlb/australian",
    "pmlb/yeast", "pmlb/hypothyroid", "pmlb/clean2",
    "double ring, N 150, p 30", "pure XOR, N 500, p 500", "pure XOR, N 500, p 5000",
    "pure XOR, N 100, p 22000",
    "double ring, N 5000, p 50", "double ring, N 50000, p 50",
    "vehicle", "vowel", "letter",
)  # fmt: skip
OURS, REFERENCE = "metricboost", "LightGBM"
#: Shorter times count as this many seconds.
SHORTEST = 0.05
#: NCA compares all pairs of rows. Larger tables are not given to it.
MOST_NCA_ROWS = 3000


def load(name: str) -> Split:
    if "/" in name:
        return real_split(partial(stored, name), SEED)
    return simulated(name, SEED) if ", N " in name else known_table(name, SEED)


def models(n_rows: int, n_columns: int) -> dict[str, Callable[[], BaseEstimator]]:
    found: dict[str, Callable[[], BaseEstimator]] = {
        OURS: lambda: SDistClassifier(random_state=0),
        REFERENCE: lambda: LGBMClassifier(random_state=0, verbose=-1),
        "random forest": lambda: RandomForestClassifier(random_state=0, n_jobs=-1),
    }
    if n_rows <= MOST_NCA_ROWS:
        size = min(10, n_columns)
        found["NCA"] = lambda: make_pipeline(
            StandardScaler(), NeighborhoodComponentsAnalysis(n_components=size, random_state=0)
        )
    return found


def seconds_of(model: BaseEstimator, split: Split) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(split.X_train, split.y_train)
        return time.perf_counter() - start


# --- where the time goes

#: The functions of every part. The time of a function that another one calls is not counted twice.
PARTS: dict[str, list[tuple[Any, str]]] = {
    "neighbours": [(NativeEngine, "nearest_by_class"), (NativeEngine, "nearest")],
    "sweeps": [(HostTable, n) for n in ("term_moments", "columns", "along", "pulled_back")],
    "graph": [
        (NativeEngine, "graph"),
        *((NativeGraph, n) for n in ("margins", "column_margins", "laplacian", "half_laplacian")),
        (NativeGraph, "share_sums"),
    ],
    "screening": [(learn, "screen_pairs")],
    "power method": [(loop, "sparse_eigenvector")],
    "readouts": [(one, "evidence") for one in READOUTS.values() if "evidence" in vars(one)],
    "choice": [(fitting, "candidates"), (fitting, "chosen"), (fitting, "plain_score")],
}  # fmt: skip


class Clock:
    """The seconds of every part, without those of the parts that it calls."""

    def __init__(self, parts: Iterable[str]) -> None:
        self.seconds = dict.fromkeys(parts, 0.0)
        self._inner = [0.0]

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **named)
            finally:
                taken = time.perf_counter() - start
                self.seconds[part] += taken - self._inner.pop()
                self._inner[-1] += taken

        return run


@contextmanager
def clocked(parts: dict[str, list[tuple[Any, str]]] = PARTS) -> Iterator[Clock]:
    clock, before = Clock(parts), []
    for part, functions in parts.items():
        for owner, name in functions:
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, clock.timed(part, getattr(owner, name)))
    try:
        yield clock
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def parts_of(split: Split) -> dict[str, float]:
    """The share of every part in the time of a fit with one thread. What is left is Python."""
    with clocked() as clock:
        total = seconds_of(SDistClassifier(random_state=0, n_jobs=1), split)
    shares = {part: seconds / total for part, seconds in clock.seconds.items()}
    return {**shares, "Python": 1 - sum(shares.values())}


# --- runs


def measure(names: Sequence[str], repeats: int, run: int) -> None:
    small = simulated("pure XOR, N 100, p 5", SEED)
    for make in models(*small.X_train.shape).values():  # a first fit imports modules
        seconds_of(make(), small)
    for name in names:
        split = load(name)
        made = models(*split.X_train.shape)
        times: dict[str, list[float]] = {model: [] for model in made}
        for _ in range(repeats):
            for model, make in made.items():
                times[model].append(seconds_of(make(), split))
        shape = "{} x {}".format(*split.X_train.shape)
        for model, found in times.items():
            more = {"parts": parts_of(split)} if model == OURS else {}
            record(
                "against", name, model, run, shape=shape, seconds=float(np.median(found)),
                repeats=repeats, **more,
            )  # fmt: skip
        told = ", ".join(f"{model} {np.median(found):.2f} s" for model, found in times.items())
        print(f"{name}, {shape}: {told}", flush=True)


def runs(results: Results | None = None) -> dict[int, dict[str, dict[str, Any]]]:
    """The rows of every run by table and model."""
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for (table, model, run), row in (results or Results()).of("against").items():
        if run is not None and row["status"] == "ok":
            found.setdefault(run, {}).setdefault(table, {})[model] = row
    return dict(sorted(found.items()))


def ratio(rows: dict[str, Any], model: str = OURS, to: str = REFERENCE) -> float:
    ours, theirs = (max(rows[one]["seconds"], SHORTEST) for one in (model, to))
    return float(ours / theirs)


def show() -> None:
    found = runs()
    for run, tables in found.items():
        print(f"\nRun {run}, code {next(iter(tables.values()))[OURS]['code']}")
        rivals = "random forest", "NCA"
        head = ["table", "shape", OURS, REFERENCE, "ratio", *rivals, *PARTS, "Python"]
        print("  ".join(f"{text:>12}" for text in head))
        for name in [name for name in TABLES if name in tables]:
            rows = tables[name]
            seconds = [
                f"{rows[m]['seconds']:.2f}" if m in rows else "" for m in (OURS, REFERENCE, *rivals)
            ]
            shares = [f"{share:.0%}" for share in rows[OURS]["parts"].values()]
            line = [name[-24:], rows[OURS]["shape"], *seconds[:2], f"{ratio(rows):.1f}",
                    *seconds[2:], *shares]  # fmt: skip
            print("  ".join(f"{text:>12}" for text in line))
        ratios = np.array([ratio(rows) for rows in tables.values()])
        print(
            f"geometric mean of the ratios {np.exp(np.log(ratios).mean()):.2f}, "
            f"largest {ratios.max():.1f}, {len(ratios)} tables"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="; ".join(TABLES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.print_only:
        measure(arguments.tables or TABLES, arguments.repeats, max(runs(), default=-1) + 1)
    show()


if __name__ == "__main__":
    main()
