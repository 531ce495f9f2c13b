"""The quality study: 20 stratified 70/30 splits of every table, models beside their rivals.

    python -m benchmarks.quality binary
    python -m benchmarks.quality multiclass --models 3-NN NCA --seeds 0 5
    python -m benchmarks.quality interactions --print-only

Nothing is chosen on the test rows. A fit has ten minutes; one that needs more is recorded as such.
Every cell (table, model, seed) is a file in the results folder, so that a run that was interrupted
goes on where it stopped. Other parameters of a model, or another version of its package, make a new
cell.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from . import tables
from .cells import Cell, Row, read, run, write
from .models import MODELS
from .report import (
    collect,
    print_blocks,
    print_details,
    print_markdown,
    print_matrix,
    print_verdicts,
)
from .rivals import GRIDS

CONTEXT = mp.get_context("forkserver")  # the imports are paid once
CONTEXT.set_forkserver_preload(["benchmarks.cells"])
#: Wall seconds, as a multiple of the limit, after which a fit is stuck.
STUCK = 10


@dataclass(frozen=True)
class TableSet:
    tables: tuple[str, ...]
    models: tuple[str, ...]
    reference: str = "3-NN"
    score: str = "error"
    rivals: tuple[str, ...] = ()
    #: Models are shown as differences to the reference in the docs.
    differences: bool = False


#: The tables on which the defaults were chosen, with seeds from 100 on.
CHOSEN_ON = ("Madelon", "Ionosphere", "SECOM", "Sonar")

STUDY = {
    "ablation": TableSet(
        (*CHOSEN_ON, *tables.INTERACTIONS, "XOR, p 500", "double ring, p 500"),
        (
            "defaults",
            "one fit",
            "without all columns",
            "margin alone",
            "without pruning",
            "without clipping",
            "ranks",
            "without gate",
            "without screening",
        ),
        reference="defaults",
        differences=True,
    ),
    "tuning": TableSet(CHOSEN_ON, ("tuned", "tuned, one model"), "tuned", differences=True),
    "binary": TableSet(
        (*tables.BINARY,),
        ("defaults", "tuned", "3-NN", "NCA", "RBF-SVM", "L1 logistic", "LightGBM"),
        rivals=("3-NN", "RBF-SVM", "L1 logistic", "LightGBM"),
    ),
    "multiclass": TableSet(
        (*tables.MULTICLASS,),
        ("defaults", "coded", "3-NN", "NCA", "LMNN", "LFDA"),
        rivals=("3-NN", "NCA", "LMNN", "LFDA"),
    ),
    "rivals": TableSet(
        ("Ionosphere", "SECOM", "Madelon"),
        ("3-NN", *(f"{name}, tuned" for name in GRIDS), "defaults", "tuned"),
    ),
    "simulated": TableSet(
        (*tables.SIMULATED, *tables.BLURRED),
        ("defaults", "tuned", "3-NN", "NCA", "RBF-SVM", "LightGBM"),
    ),
    "interactions": TableSet(
        (*tables.INTERACTIONS,),
        (
            "defaults",
            "tuned",
            "without screening",
            "without pruning",
            "without gate",
            "screening + logistic",
            "screening + 10-NN",
            "L1 logistic, all pairs",
            "3-NN",
            "RBF-SVM",
            "LightGBM",
        ),
        rivals=("screening + logistic", "screening + 10-NN", "L1 logistic, all pairs"),
    ),
    "secom": TableSet(
        ("SECOM",),
        (
            "defaults",
            "balanced",
            "tuned AUC",
            "3-NN",
            "RBF-SVM, AUC",
            "L1 logistic",
            "L1 logistic, balanced",
            "LightGBM",
            "LightGBM, balanced",
        ),
        score="auc",
        rivals=("3-NN", "RBF-SVM, AUC", "L1 logistic", "LightGBM"),
    ),
    "missing": TableSet(
        (*tables.MISSING,),
        (
            "imputing",
            "defaults, imputed",
            "3-NN, imputed",
            "3-NN, nan-Euclidean",
            "RBF-SVM, imputed",
            "LightGBM",
        ),
        reference="3-NN, imputed",
    ),
}
#: Test errors in Table 3 of the sDist paper, 20 splits, 3-NN.
PUBLISHED = {
    table: dict(
        zip(("3-NN", "PGDM, tuned", "LMNN, tuned", "SMLsm, tuned", "tuned"), errors, strict=True)
    )
    for table, errors in {
        "Ionosphere": (0.13, 0.07, 0.06, 0.09, 0.05),
        "SECOM": (0.14, 0.09, 0.08, 0.09, 0.07),
        "Madelon": (0.46, 0.31, 0.39, 0.41, 0.09),
    }.items()
}
#: The models that are held against the rivals.
OURS = ("defaults", "tuned", "tuned AUC", "balanced")
#: Two million products and more do not fit.
TOO_LARGE = {
    ("pure XOR, p 2000, N 300", "L1 logistic, all pairs"),
    ("pure XOR, p 5000", "L1 logistic, all pairs"),
}


@dataclass
class Runner:
    """Runs cells in processes of their own, at most `jobs` at a time."""

    results: Path
    jobs: int
    limit: float
    give_up: int
    total: int
    timeouts: Counter[tuple[str, str]]
    done: int = 0
    running: dict[Any, tuple[Any, Cell, float]] = field(default_factory=dict)

    def __call__(self, cells: list[Cell]) -> None:
        try:
            for cell in cells:
                self._finish(self.jobs - 1)
                if self.timeouts[cell.table, cell.model] < self.give_up:
                    self._start(cell)
                else:
                    self._report(cell, "left out: too many timeouts")
            self._finish(0)
        finally:
            for process, _, _ in self.running.values():
                process.terminate()

    def _start(self, cell: Cell) -> None:
        path = cell.path(self.results)
        path.unlink(missing_ok=True)
        process = CONTEXT.Process(target=run, args=(cell, path, self.limit))
        process.start()
        self.running[process.sentinel] = (process, cell, time.monotonic())

    def _finish(self, at_most: int) -> None:
        """Wait until at most so many are running."""
        while len(self.running) > at_most:
            for sentinel in wait(list(self.running), timeout=10):
                self._ended(*self.running.pop(sentinel))
            for process, _, start in self.running.values():
                if time.monotonic() - start > STUCK * self.limit:
                    process.kill()

    def _ended(self, process: Any, cell: Cell, start: float) -> None:
        process.join()
        path = cell.path(self.results)
        if process.exitcode == -signal.SIGXCPU:
            write(path, cell, {"status": "timeout", "limit": self.limit})
        elif process.exitcode:
            message = f"the process ended with {process.exitcode}"
            write(path, cell, {"status": "failed", "message": message})
        row = read(path) or {"status": "lost"}
        if row["status"] == "timeout":
            self.timeouts[cell.table, cell.model] += 1
        self._report(cell, _outcome(row))

    def _report(self, cell: Cell, outcome: str) -> None:
        self.done += 1
        print(f"[{self.done}/{self.total}] {cell}: {outcome}", flush=True)


def _outcome(row: Row) -> str:
    if row["status"] == "ok":
        return f"{row['error']:.3f}, {row['cpu_seconds']:.1f} s"
    return f"{row['status']} {row.get('message', '')}".rstrip()


def selected(arguments: argparse.Namespace) -> Iterator[Cell]:
    """In blocks of five seeds, so that an unfinished run has some splits of everything."""
    chosen = STUDY[arguments.tableset]
    seeds = range(*arguments.seeds)
    for first in range(0, len(seeds), 5):
        for table in arguments.tables or chosen.tables:
            for model in arguments.models or chosen.models:
                if (table, model) not in TOO_LARGE:
                    yield from (Cell(table, model, seed) for seed in seeds[first : first + 5])


def state(cell: Cell, arguments: argparse.Namespace) -> str:
    """Only "ok" and "timeout" are kept; the rest is tried again, as is a timeout of less time."""
    row = None if arguments.fresh else read(cell.path(arguments.results))
    if row is None or (row["status"] == "timeout" and row["limit"] < arguments.limit):
        return "unknown"
    return str(row["status"])


def measure(cells: list[Cell], arguments: argparse.Namespace) -> None:
    states = {cell: state(cell, arguments) for cell in cells}
    todo = [cell for cell in cells if states[cell] not in ("ok", "timeout")]
    print(f"{len(cells)} cells, {len(todo)} to measure", flush=True)
    timeouts = Counter((c.table, c.model) for c in cells if states[c] == "timeout")
    limits = arguments.limit, arguments.give_up
    Runner(arguments.results, arguments.jobs, *limits, len(todo), timeouts)(todo)


def show(cells: list[Cell], results: Path, chosen: TableSet, markdown: bool, details: bool) -> None:
    rows = [row for cell in cells if (row := read(cell.path(results))) is not None]
    if not rows:
        print("No cell is measured yet.")
        return
    found = collect(sorted(rows, key=lambda row: _order(row, cells)))
    if details:
        print_details(found, PUBLISHED)
        return
    if markdown:
        print_markdown(found, chosen.score, chosen.reference if chosen.differences else None)
        return
    print_blocks(found, chosen.score, chosen.reference, {name: note(name) for name in found})
    if len(found) > 1:
        print_matrix(found, chosen.score)
    if chosen.rivals:
        print_verdicts(found, chosen.score, OURS, list(chosen.rivals))


def _order(row: Row, cells: list[Cell]) -> tuple[int, int, int]:
    names = list(dict.fromkeys(cell.table for cell in cells))
    models = list(dict.fromkeys(cell.model for cell in cells))
    return names.index(row["table"]), models.index(row["model"]), row["seed"]


def note(table: str) -> str:
    split = tables.load(table, 0)
    bayes = "" if split.bayes_error is None else f", Bayes error {split.bayes_error:.3f}"
    relevant = "" if split.relevant is None else f", {len(split.relevant)} true columns"
    rows, columns = split.X_train.shape
    return f" (training {rows} x {columns}, test {len(split.X_test)}{bayes}{relevant})"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tableset", choices=STUDY)
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--tables", nargs="+", choices=tables.TABLES, metavar="TABLE")
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 20), metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--limit", type=float, default=600, help="CPU seconds of a fit")
    parser.add_argument("--give-up", type=int, default=2, help="timeouts before a pair is left")
    parser.add_argument("--fresh", action="store_true", help="measure known cells again")
    parser.add_argument("--print-only", action="store_true")
    parser.add_argument("--score", help="error, auc, brier, variables, ... in the printed tables")
    parser.add_argument("--markdown", action="store_true", help="print one table for the docs")
    parser.add_argument(
        "--details", action="store_true", help="print variables, rank, time and memory for the docs"
    )
    return parser.parse_args()


def main() -> None:
    arguments = parsed()
    cells = list(selected(arguments))
    if not arguments.print_only:
        measure(cells, arguments)
    chosen = STUDY[arguments.tableset]
    if arguments.score:
        chosen = replace(chosen, score=arguments.score)
    show(cells, arguments.results, chosen, arguments.markdown, arguments.details)


if __name__ == "__main__":
    main()
