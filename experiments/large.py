"""Large tables: time, memory and errors if fits learn from samples of the rows.

    python -m experiments.large growth            # time at 50,000 and 1,000,000 rows, in one run
    python -m experiments.large time 200000 200   # one fit
    python -m experiments.large memory            # 1,000,000 x 50, memory in addition to the table
    python -m experiments.large mapped            # 10,000,000 x 50, a file of 2 GB
    python -m experiments.large errors            # compared with max_rows=None
    python -m experiments.large errors --tables rings --sizes 5000 10000 --seeds 100 103
    python -m experiments.large rare              # a class of 0.2%
    python -m experiments.large references        # numbers of training rows for predictions

Errors are measured on 20,000 other rows, or on the 30% of a real table that a split leaves out. If
a run of ``errors`` was interrupted, the next run continues it. Times are wall-clock seconds on all
cores. Memory is anonymous memory, sampled every 10 milliseconds.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from metricboost import SDistClassifier
from metricboost.datasets import make_double_ring, make_xor
from metricboost.sources import InMemory

from . import tables
from .results import Cell, Results, Row, mean_and_error, measured, number, paired, record
from .runner import measure_missing

N_TEST = 20_000
#: Numbers of training rows among which predictions search for neighbours.
REFERENCES = (10_000, 20_000, 50_000, 100_000, None)
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def weak(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """100 columns, of which ten columns and three products have weak effects. Bayes error 0.365."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    logit = X[:, :10].sum(axis=1) + sum(X[:, 10 + 2 * j] * X[:, 11 + 2 * j] for j in range(3))
    return X, (rng.random(n) < expit(0.204 * logit)).astype(int)


def rare(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A class with 0.2% of the rows. A product and a column among 30 columns determine it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 30), dtype=np.float32)
    z = 1.5 * X[:, 0] * X[:, 1] + X[:, 2]
    noise = rng.standard_normal(n)
    return X, (z + noise > np.quantile(z + rng.standard_normal(n), 0.998)).astype(int)


SIMULATED: dict[str, Callable[[int, int], tuple[np.ndarray, np.ndarray]]] = {
    "rings": lambda n, seed: make_double_ring(n, 50, random_state=seed),
    "xor": lambda n, seed: make_xor(n, 50, informative=2, random_state=seed),
    "weak": weak,
    "rare": rare,
}
REAL = ("letter", "usps11k")


def loaded(cell: Cell) -> Table:
    rows = cell.settings["rows"]
    if rows is None:
        split = tables.load(cell.table, cell.seed)
        return split.X_train, split.X_test, split.y_train, split.y_test
    kind, test = cell.settings["kind"], cell.settings.get("test", N_TEST)
    X, y = SIMULATED[kind](rows + test, cell.seed)
    return X[:rows], X[rows:], y[:rows], y[rows:]


def measure(cell: Cell) -> Row:
    """Fit with limits on the rows, and measure the errors."""
    X, X_test, y, y_test = loaded(cell)
    model = SDistClassifier(random_state=cell.seed, **cell.settings["parameters"])
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    proba = model.predict_proba(X_test)
    row = {
        "seconds": fitted - start,
        "predict_seconds": time.perf_counter() - fitted,
        "error": float(np.mean(model.classes_[proba.argmax(axis=1)] != y_test)),
        "out_of_fold": 1 - model.oob_score_,
    }
    if proba.shape[1] == 2:
        row["auc"] = roc_auc_score(y_test, proba[:, 1])
        row["mean_probability"] = float(proba[:, 1].mean())
    return row


def sizes_of(text: str) -> int | str | None:
    return text if text == "auto" else None if text == "None" else int(text)


def cells_of(arguments: argparse.Namespace) -> dict[str, list[Cell]]:
    """The cells of each table."""
    name = "max_references" if arguments.what == "references" else "max_rows"
    sizes: list[Any] = [sizes_of(size) for size in arguments.sizes]
    tried, rows, test = arguments.tables, arguments.rows, N_TEST
    if arguments.what == "references":
        sizes, tried = list(REFERENCES), [one for one in tried if one in SIMULATED]
    if arguments.what == "rare":
        sizes, tried, rows, test = ["auto", 100_000], ["rare"], 500_000, 200_000
    found: dict[str, list[Cell]] = {}
    for kind in tried:
        own = None if kind in REAL else rows
        table = kind if own is None else f"{kind}, {own:,} rows"
        found[table] = [
            Cell(
                "large", table, f"{name}={size}", seed,
                {"kind": kind, "rows": own, "test": test, "parameters": {name: size}},
            )
            for seed in range(*arguments.seeds)
            for size in sizes
        ]  # fmt: skip
    return found


def errors(arguments: argparse.Namespace) -> None:
    """The mean error with every size, and its difference to the first size, paired by seed."""
    found, results = cells_of(arguments), Results()
    if not arguments.print_only:
        cells = [cell for own in found.values() for cell in own]
        measure_missing(cells, results, measure, threads=None)
    key = "auc" if arguments.what == "rare" else "error"
    for table, cells in found.items():
        names = list(dict.fromkeys(cell.model for cell in cells))
        rows = {name: results.rows(c for c in cells if c.model == name) for name in names}
        first, share = measured(rows[names[0]], key), tables.overlap(table)
        for name, own in rows.items():
            values = measured(own, key)
            gap = number(*paired(values, first, share), sign="+", digits=4)
            mean = number(*mean_and_error(values.values(), share), digits=4)
            seconds = mean_and_error(measured(own, "seconds").values())[0]
            print(f"{table}, {name}: {key} {mean}, to {names[0]} {gap}, {seconds:.0f} s")


@contextmanager
def timed_passes() -> Iterator[list[float]]:
    """The seconds of every pass over all rows."""
    seconds: list[float] = []
    reduce = InMemory.reduce

    def timed(self: InMemory, *args: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return reduce(self, *args, **named)
        finally:
            seconds.append(time.perf_counter() - start)

    InMemory.reduce = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        InMemory.reduce = reduce  # type: ignore[method-assign]


def growth(arguments: argparse.Namespace) -> None:
    """Time alternating fits of 50,000 and of 1,000,000 rows, on rings with 50 columns."""
    sizes = arguments.size or [50_000, 1_000_000]
    X, y = make_double_ring(max(sizes), 50, random_state=0)
    seconds: dict[int, list[float]] = {n: [] for n in sizes}
    passes: dict[int, list[float]] = {n: [] for n in sizes}
    for repeat in range(3):
        for n in sizes:
            with timed_passes() as found:
                start = time.perf_counter()
                SDistClassifier(random_state=repeat).fit(X[:n], y[:n])
                seconds[n].append(time.perf_counter() - start)
            passes[n].append(sum(found))
            print(
                f"{n} rows: {seconds[n][-1]:.1f} s, of which {sum(found):.2f} s in {len(found)} "
                "passes over all rows", flush=True,
            )  # fmt: skip
    medians = {n: float(np.median(found)) for n, found in seconds.items()}
    for n, median in medians.items():
        ratio, own = median / medians[sizes[0]], float(np.median(passes[n]))
        print(f"{n} rows: median {median:.1f} s, {ratio:.2f} times that of {sizes[0]} rows")
        record(
            "large", f"growth, {n:,} x 50", "defaults", seconds=median, pass_seconds=own,
            ratio=ratio,
        )  # fmt: skip


def one(arguments: argparse.Namespace) -> None:
    n, p = arguments.size or (1_000_000, 50)
    X, y = make_double_ring(n + N_TEST, p, random_state=0)
    fitted("in memory", X[:n], y[:n], X[n:], y[n:])


def mapped(arguments: argparse.Namespace) -> None:
    n, p = arguments.size or (10_000_000, 50)
    step = min(n, 500_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        table = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
        y = np.empty(n, dtype=np.int8)
        for start in range(0, n, step):
            end = min(start + step, n)
            table[start:end], y[start:end] = ring_block(end - start, p, start)
        table.flush()
        del table
        X = np.load(path, mmap_mode="r")
        fitted("mapped", X, y, X[: n // 10], y[: n // 10])


def ring_block(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a double ring in the first two of p columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + y + 0.48 * rng.standard_normal(n)
    X = rng.standard_normal((n, p), dtype=np.float32)
    X[:, 0], X[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return X, y


def fitted(kind: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    with peak_memory() as above, timed_passes() as passes:
        start = time.perf_counter()
        model = SDistClassifier(random_state=0).fit(X, y)
        seconds, used = time.perf_counter() - start, above()
        start = time.perf_counter()
        error = float(np.mean(model.predict(X_test) != y_test))
        predicting, most = time.perf_counter() - start, above()
    table = f"{X.shape[0]:,} x {X.shape[1]}, {kind}"
    print(
        f"{table}: {seconds:.1f} s, of which {sum(passes):.1f} s in {len(passes)} passes over all "
        f"rows; {used:.0f} MB above the table; error {error:.4f} on {len(y_test)} rows in "
        f"{predicting:.1f} s; with predictions {most:.0f} MB above the table"
    )
    record(
        "large", table, "defaults", seconds=seconds, pass_seconds=sum(passes), megabytes=most,
        error=error, predicted_rows=len(y_test), predict_seconds=predicting,
    )  # fmt: skip


def anonymous() -> float:
    """Megabytes of anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1e3
    raise OSError("/proc/self/status has no RssAnon.")


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """The peak of the anonymous memory in megabytes, minus the memory at the start."""
    start = anonymous()
    highest, ended = [start], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            highest[0] = max(highest[0], anonymous())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: highest[0] - start
    finally:
        ended.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    run = {
        "growth": growth, "time": one, "memory": one, "mapped": mapped, "errors": errors,
        "rare": errors, "references": errors,
    }  # fmt: skip
    parser.add_argument("what", choices=tuple(run))
    parser.add_argument("size", type=int, nargs="*", help="rows and columns; growth: two of rows")
    parser.add_argument("--tables", nargs="+", default=["rings", "xor", "weak", *REAL])
    parser.add_argument("--sizes", nargs="+", default=["None", "auto"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FROM", "TO"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    run[arguments.what](arguments)


if __name__ == "__main__":
    main()
