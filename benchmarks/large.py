"""Large tables: time, memory and errors where fits learn from samples of the rows.

    python -m benchmarks.large growth            # time at 50,000 and 1,000,000 rows, in one run
    python -m benchmarks.large time 200000 200   # one fit
    python -m benchmarks.large memory            # 1,000,000 x 50, above the table
    python -m benchmarks.large mapped            # 10,000,000 x 50, a file of 2 GB
    python -m benchmarks.large errors            # against max_rows=None
    python -m benchmarks.large errors --tables rings --sizes 5000 10000 --seeds 100 103
    python -m benchmarks.large rare              # a class of 0.2%
    python -m benchmarks.large references        # neighbours of predictions: how many are enough

Errors are measured on 20,000 other rows, or on the 30% of a real table that a split leaves out.
Every error is a line of the results file, so that a run that was interrupted goes on where it
stopped. Times are wall seconds on all cores. Memory is anonymous memory, sampled every 10
milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
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
from sklearn.model_selection import train_test_split

from metricboost import SDistClassifier
from metricboost.datasets import make_double_ring, make_xor
from metricboost.sources import InMemory

N_TEST = 20_000
RESULTS = Path("build/large.jsonl")
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def weak(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Ten weak columns and three weak products of 100 columns, and the Bayes error."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    logit = X[:, :10].sum(axis=1) + sum(X[:, 10 + 2 * j] * X[:, 11 + 2 * j] for j in range(3))
    p = expit(0.204 * logit)
    return X, (rng.random(n) < p).astype(int), float(np.minimum(p, 1 - p).mean())


def simulated(name: str, n: int, seed: int) -> Table:
    n_all = n + N_TEST
    if name == "weak":
        X, y, _ = weak(n_all, seed)
    elif name == "rings":
        X, y = make_double_ring(n_all, 50, random_state=seed)
    else:
        X, y = make_xor(n_all, 50, informative=2, random_state=seed)
    return X[:n], X[n:], y[:n], y[n:]


def real(name: str, seed: int) -> Table:
    file = np.load(Path(os.environ["METRICBOOST_DATA"]) / f"{name}.npz")
    X, y = file["X"], file["y"]
    found: Any = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    return found


REAL = {"letter": "letter", "usps": "usps11k"}
SIMULATED = ("rings", "xor", "weak")


def known(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["cell"]: row for row in rows}


def errors(arguments: argparse.Namespace) -> None:
    """The mean error with every size, and its difference to the first size, paired by seed."""
    path: Path = arguments.results
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables:
        for seed in range(*arguments.seeds):
            for size in arguments.sizes:
                cell = f"{name} {arguments.rows} {size} {seed}"
                if cell in known(path):
                    continue
                table = (
                    real(REAL[name], seed)
                    if name in REAL
                    else simulated(name, arguments.rows, seed)
                )
                row = {"cell": cell, **measured(table, size, seed)}
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)
    found = known(path)
    for name in arguments.tables:
        by_size = {
            size: np.array([
                found[f"{name} {arguments.rows} {size} {seed}"]["error"]
                for seed in range(*arguments.seeds)
            ])
            for size in arguments.sizes
        }  # fmt: skip
        first = by_size[arguments.sizes[0]]
        for size, error in by_size.items():
            gap = error - first
            spread = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            if name in REAL:  # splits of one table: Nadeau and Bengio's correction
                spread *= np.sqrt(1 + len(gap) * 0.3 / 0.7)
            seconds = np.mean([
                found[f"{name} {arguments.rows} {size} {seed}"]["seconds"]
                for seed in range(*arguments.seeds)
            ])  # fmt: skip
            print(
                f"{name}, max_rows={size}: error {error.mean():.4f}, against "
                f"{arguments.sizes[0]} {gap.mean():+.4f} ({spread:.4f}), {seconds:.0f} s"
            )


def measured(table: Table, size: str, seed: int) -> dict[str, float]:
    X, X_test, y, y_test = table
    max_rows = size if size == "auto" else None if size == "None" else int(size)
    model = SDistClassifier(max_rows=max_rows, random_state=seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "error": float(np.mean(model.predict(X_test) != y_test)),
        "seconds": seconds,
        "out_of_fold": 1 - model.oob_score_,
    }


def rare(arguments: argparse.Namespace) -> None:
    """AUC of a class of 0.2% in 500,000 rows, with max_rows="auto" and with 100,000 rows a fit."""
    gaps = []
    for seed in range(*arguments.seeds):
        rng = np.random.default_rng(seed)
        n = 700_000
        X = rng.standard_normal((n, 30), dtype=np.float32)
        z = 1.5 * X[:, 0] * X[:, 1] + X[:, 2]
        y = (z + rng.standard_normal(n) > np.quantile(z + rng.standard_normal(n), 0.998)).astype(
            int
        )
        found = []
        for size in ("auto", 100_000):
            model = SDistClassifier(max_rows=size, random_state=seed)
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[:500_000], y[:500_000])
            seconds = time.perf_counter() - start
            p = model.predict_proba(X[500_000:])[:, 1]
            found.append(roc_auc_score(y[500_000:], p))
            print(
                f"seed {seed}, {y[:500_000].sum()} rows of the class, max_rows={size}: AUC "
                f"{found[-1]:.4f}, mean probability {p.mean():.5f}, {seconds:.0f} s", flush=True,
            )  # fmt: skip
        gaps.append(found[0] - found[1])
    spread = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    print(f"AUC of auto minus that of 100,000 rows: {np.mean(gaps):+.4f} ({spread:.4f})")


def references(arguments: argparse.Namespace) -> None:
    """Errors of one kind of metric that reads from more or fewer rows."""
    for name in arguments.tables:
        for seed in range(*arguments.seeds):
            X, X_test, y, y_test = simulated(name, arguments.rows, seed)
            for size in (10_000, 20_000, 50_000, 100_000, None):
                model = SDistClassifier(max_references=size, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X, y)
                start = time.perf_counter()
                error = np.mean(model.predict(X_test) != y_test)
                print(
                    f"{name}, seed {seed}, max_references={size}: error {error:.4f}, "
                    f"{time.perf_counter() - start:.1f} s for {len(y_test)} rows", flush=True,
                )  # fmt: skip


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


def growth(_: argparse.Namespace) -> None:
    """Rings of 50 columns: alternating fits of 50,000 and of 1,000,000 rows."""
    X, y = make_double_ring(1_000_000, 50, random_state=0)
    seconds: dict[int, list[float]] = {50_000: [], 1_000_000: []}
    for repeat in range(3):
        for n in seconds:
            start = time.perf_counter()
            with timed_passes() as passes:
                SDistClassifier(random_state=repeat).fit(X[:n], y[:n])
            seconds[n].append(time.perf_counter() - start)
            print(
                f"{n} rows: {seconds[n][-1]:.1f} s, of which {sum(passes):.2f} s in {len(passes)} "
                "passes over all rows", flush=True,
            )  # fmt: skip
    few, many = (float(np.median(found)) for found in seconds.values())
    print(f"medians {few:.1f} and {many:.1f} s, ratio {many / few:.2f}")


def one(arguments: argparse.Namespace) -> None:
    n, p = arguments.size
    X, y = make_double_ring(n + N_TEST, p, random_state=0)
    fitted(X[:n], y[:n], X[n:], y[n:])


def memory(_: argparse.Namespace) -> None:
    X, y = make_double_ring(1_000_000 + N_TEST, 50, random_state=0)
    fitted(X[:1_000_000], y[:1_000_000], X[1_000_000:], y[1_000_000:])


def mapped(_: argparse.Namespace) -> None:
    n, p, step = 10_000_000, 50, 500_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        table = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
        y = np.empty(n, dtype=np.int8)
        for start in range(0, n, step):
            table[start : start + step], y[start : start + step] = ring_block(step, p, start)
        table.flush()
        del table
        X = np.load(path, mmap_mode="r")
        fitted(X, y, X[:1_000_000], y[:1_000_000])


def ring_block(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a double ring in the first two of p columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.0 + y + 0.48 * rng.standard_normal(n)
    X = rng.standard_normal((n, p), dtype=np.float32)
    X[:, 0], X[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return X, y


def fitted(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    with peak_memory() as above, timed_passes() as passes:
        start = time.perf_counter()
        model = SDistClassifier(random_state=0).fit(X, y)
        seconds = time.perf_counter() - start
        used = above()
        start = time.perf_counter()
        error = np.mean(model.predict(X_test) != y_test)
        print(
            f"{X.shape[0]} x {X.shape[1]}: {seconds:.1f} s, of which {sum(passes):.1f} s in "
            f"{len(passes)} passes over all rows; {used:.0f} MB above the table; error {error:.4f} "
            f"on {len(y_test)} rows in {time.perf_counter() - start:.1f} s; with predictions "
            f"{above():.0f} MB above the table; the process had {anonymous():.0f} MB at the end"
        )


def anonymous() -> float:
    """Megabytes of anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1e3
    raise OSError("/proc/self/status has no RssAnon.")


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """Megabytes of anonymous memory above those at the start, at most so far."""
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    run = {
        "growth": growth, "time": one, "memory": memory, "mapped": mapped, "errors": errors,
        "rare": rare, "references": references,
    }  # fmt: skip
    parser.add_argument("what", choices=tuple(run))
    parser.add_argument("size", type=int, nargs="*", help="rows and columns, for time")
    parser.add_argument("--tables", nargs="+", default=[*SIMULATED, *REAL])
    parser.add_argument("--sizes", nargs="+", default=["None", "auto"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FROM", "TO"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run[arguments.what](arguments)


if __name__ == "__main__":
    main()
