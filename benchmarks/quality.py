"""The quality study: 20 stratified 70/30 splits of every table, models beside their rivals.

    python -m benchmarks.quality binary
    python -m benchmarks.quality multiclass --models 3-NN NCA --seeds 0 5
    python -m benchmarks.quality interactions --print-only

No model chooses anything on its test rows. The defaults were chosen on the tables of ``CHOSEN_ON``,
on splits with other seeds. Standard errors over splits of one table carry Nadeau and Bengio's
correction. A fit has ten minutes; one that needs more is recorded as such.
Every cell (table, model, seed) is a file in the results folder, so that a run that was interrupted
goes on where it stopped. Other parameters of a model, or another version of its package, make a new
cell.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from metricboost.studies._cells import Row, is_open, read
from metricboost.studies._methods import GRIDS
from metricboost.studies._published import ERRORS
from metricboost.studies._running import run_cells

from . import tables
from .cells import Cell, run
from .models import MODELS
from .report import (
    collect,
    print_blocks,
    print_details,
    print_markdown,
    print_matrix,
    print_verdicts,
)


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
    table: {
        model: ERRORS[table, method]
        for model, method in (
            ("3-NN", "kNN"),
            ("PGDM, tuned", "PGDM"),
            ("LMNN, tuned", "LMNN"),
            ("SMLsm, tuned", "SMLsm"),
            ("tuned", "sDist"),
        )
    }
    for table in ("Ionosphere", "SECOM", "Madelon")
}
#: The models that are held against the rivals.
OURS = ("defaults", "tuned", "tuned AUC", "balanced")
#: Two million products and more do not fit.
TOO_LARGE = {
    ("pure XOR, p 2000, N 300", "L1 logistic, all pairs"),
    ("pure XOR, p 5000", "L1 logistic, all pairs"),
}


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


def measure(cells: list[Cell], arguments: argparse.Namespace) -> None:
    rows = {cell: None if arguments.fresh else read(cell, arguments.results) for cell in cells}
    todo = [cell for cell in cells if is_open(rows[cell], arguments.limit)]
    print(f"{len(cells)} cells, {len(todo)} to measure", flush=True)
    timeouts = Counter(
        cell.group()
        for cell, row in rows.items()
        if row is not None and row["status"] == "timeout" and cell not in todo
    )
    run_cells(
        todo,
        arguments.results,
        run,
        jobs=arguments.jobs,
        limit=arguments.limit,
        give_up=arguments.give_up,
        timeouts=timeouts,
        tell=_tell,
    )


def _tell(cell: Cell, row: Row, done: int, total: int) -> None:
    print(f"[{done}/{total}] {cell}: {_outcome(row)}", flush=True)


def show(cells: list[Cell], results: Path, chosen: TableSet, markdown: bool, details: bool) -> None:
    rows = [row for cell in cells if (row := read(cell, results)) is not None]
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
