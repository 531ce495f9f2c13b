"""What parts of the choice of a readout are worth: the defaults, and the defaults without a part.

    python -m experiments.readouts                       # tables of the public benchmark
    python -m experiments.readouts small large           # small tables; tables with many rows
    python -m experiments.readouts --seeds 100 102 --print-only

The errors and times of ``SDistClassifier`` with one thread, on splits with seeds from 100 on, on
which the parts were chosen. Differences are those of the defaults to the defaults without a part,
and their standard errors are those over the tables.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricboost import SDistClassifier
from metricboost.model.readouts import Additive, Linear, Ridge, margin
from metricboost.training import choosing, options

from .large import weak
from .results import Results, measured, record
from .tables import Split, collection, load, simulated

EXPERIMENT = "readouts"
DEFAULTS = "defaults"
#: Module constants and class attributes without a part. The parts are the names of the models.
WITHOUT: dict[str, tuple[Any, str, Any]] = {
    "without a single neighbour": (margin, "NEIGHBORS", (3, 5, 10, 20)),
    "without linear": (Linear, "automatic", False),
    "without additive": (Additive, "automatic", False),
    "without ridge": (Ridge, "automatic", False),
    "without averages": (choosing, "AVERAGES", False),
    "without small panels": (options, "FEW_ROWS", 0),
}
#: Parameters in place of the defaults.
INSTEAD: dict[str, dict[str, Any]] = {"with five fits": {"n_averaged": 5}}
PARTS = (*WITHOUT, *INSTEAD)
TEST_ROWS = 10_000
SMALL = (
    "double ring, N 100, p 50", "double ring, N 100, p 500", "XOR, N 100, p 50",
    "XOR, N 100, p 500", "pure XOR, N 120, p 30", "wine", "Sonar", "Colon", "Leukemia",
    "wide/lung_small", "wide/GLIOMA", "pmlb/tae", "pmlb/flags", "pmlb/backache", "pmlb/monk2",
    "pmlb/promoters", "pmlb/prnn_crabs", "pmlb/movement_libras",
)  # fmt: skip
LARGE = (
    "weak, N 2000", "weak, N 20000", "Spambase", "Madelon", "vehicle", "vowel", "XOR, N 5000, p 50",
    "double ring, N 5000, p 50",
)  # fmt: skip


def split_of(name: str, seed: int) -> Split:
    if name.startswith("weak"):
        n = int(name.split()[-1])
        X, y = weak(n + TEST_ROWS, seed)
        return Split(X[:n], y[:n], X[n:], y[n:])
    return simulated(name, seed) if ", N " in name else load(name, seed)


@contextmanager
def without(part: str) -> Iterator[None]:
    if part not in WITHOUT:
        yield
        return
    owner, name, value = WITHOUT[part]
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def measure(tables: Sequence[str], parts: Sequence[str], seeds: Sequence[int]) -> None:
    known = Results()
    done = {key for key, row in known.of(EXPERIMENT).items() if row["status"] == "ok"}
    for seed in seeds:
        for table in tables:
            for part in parts:
                if (table, part, seed) not in done:
                    split = split_of(table, seed)
                    start = time.process_time()
                    with without(part), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        given = INSTEAD.get(part, {})
                        model = SDistClassifier(random_state=seed, n_jobs=1, **given)
                        model.fit(split.X_train, split.y_train)
                    seconds = time.process_time() - start
                    error = float(np.mean(model.predict(split.X_test) != split.y_test))
                    record(
                        EXPERIMENT, table, part, seed, error=error, cpu_seconds=seconds,
                        readout=str(model.readout_), rows=len(split.y_train),
                    )  # fmt: skip


@dataclass(frozen=True)
class Worth:
    """The defaults against the defaults without a part.

    Attributes
    ----------
    differences : dict
        The mean difference of the errors for each table.
    time : float
        The geometric mean of the ratios of the times.
    """

    differences: dict[str, float]
    time: float

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.differences.values())))

    @property
    def standard_error(self) -> float:
        return float(np.std(list(self.differences.values())) / np.sqrt(len(self.differences)))


def worth(results: Results, tables: Sequence[str], part: str) -> Worth | None:
    """None if no split has both results."""
    differences, ratios = {}, []
    for table in tables:
        rows = [results.seeds(EXPERIMENT, table, one) for one in (DEFAULTS, part)]
        errors, seconds = ([measured(one, key) for one in rows] for key in ("error", "cpu_seconds"))
        both = errors[0].keys() & errors[1].keys()
        if both:
            differences[table] = float(np.mean([errors[0][s] - errors[1][s] for s in both]))
            ratios += [seconds[0][s] / seconds[1][s] for s in both]
    return Worth(differences, float(np.exp(np.mean(np.log(ratios))))) if ratios else None


def show(tables: Sequence[str], parts: Sequence[str]) -> None:
    results = Results()
    for part in parts:
        found = worth(results, tables, part)
        if found is not None:
            print(
                f"defaults to {part}: {found.mean:+.4f} ({found.standard_error:.4f}) over "
                f"{len(found.differences)} tables, time {found.time:.2f}"
            )
            told = sorted(found.differences.items(), key=lambda pair: pair[1])
            print("   ", ", ".join(f"{table} {value:+.3f}" for table, value in told if value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets = {"public": collection("pmlb"), "small": SMALL, "large": LARGE}
    parser.add_argument("sets", nargs="*", default=["public"], help=", ".join(sets))
    parser.add_argument("--parts", nargs="+", default=PARTS, metavar="PART")
    parser.add_argument("--seeds", nargs=2, type=int, default=(100, 103), metavar=("FROM", "TO"))
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    for name in given.sets:
        if not given.print_only:
            measure(sets[name], [DEFAULTS, *given.parts], range(*given.seeds))
        print(name)
        show(sets[name], given.parts)


if __name__ == "__main__":
    main()
