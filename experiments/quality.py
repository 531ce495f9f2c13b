"""The quality study: metricboost and its rivals on 20 stratified 70/30 splits of every table.

    python -m experiments.quality binary
    python -m experiments.quality multiclass --models 3-NN "scikit-learn NCA" --seeds 0 5
    python -m experiments.quality interactions --print-only

No model chooses anything on its test rows. The defaults were chosen on the tables of ``CHOSEN_ON``,
on splits with other seeds. A fit may take ten minutes of CPU time; a longer fit is recorded as a
timeout. If a run was interrupted, the next run continues it. If the defaults of metricboost change,
its cells are measured again. The cells of other models are measured again with ``--fresh``.
``experiments.pages`` writes the tables of the documentation from the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import tables
from .measures import error_of_split
from .models import MODELS, default_settings
from .results import Cell, Results, Row, mean_and_error, measured, number, paired
from .runner import measure_missing

#: The tables on which the defaults were chosen, with seeds from 100 on.
CHOSEN_ON = ("Madelon", "Ionosphere", "SECOM", "Sonar")


@dataclass(frozen=True)
class TableSet:
    """Tables and models. Differences are printed to the model ``reference``."""

    tables: Sequence[str]
    models: Sequence[str]
    reference: str = "3-NN"
    experiment: str = "quality"
    seeds: tuple[int, int] = (0, 20)


#: The rivals on tables that nobody chose one by one.
STRONGEST = ("LightGBM", "random forest", "ExtraTrees", "RBF-SVM")

STUDY = {
    "pmlb": TableSet(
        tables.collection("pmlb"),
        (
            "defaults", *STRONGEST, "3-NN", "LightGBM, tuned", "random forest, tuned",
            "ExtraTrees, tuned",
        ),
        seeds=(0, 5),
    ),
    "wide": TableSet(
        tables.collection("wide"),
        (
            "defaults", *STRONGEST, "L1 logistic", "L2 logistic", "linear SVM", "ridge", "1-NN",
            "3-NN",
        ),
    ),
    "binary": TableSet(
        tuple(tables.BINARY),
        (
            "defaults", "tuned", "3-NN", "scikit-learn NCA", *STRONGEST, "L1 logistic",
            "L2 logistic", "linear SVM", "ridge", "1-NN", "ExtraTrees ranking + kNN",
        ),
    ),
    "multiclass": TableSet(
        tuple(tables.MULTICLASS),
        (
            "defaults", "tuned", "coded", "3-NN", "scikit-learn NCA", "metric-learn LMNN",
            "metric-learn LFDA", *STRONGEST, "L2 logistic", "linear SVM", "ridge", "1-NN",
        ),
    ),
    "interactions": TableSet(
        tuple(tables.INTERACTIONS),
        (
            "defaults", "tuned", "without screening", "without pruning", "without gate",
            "screening + logistic", "screening + 10-NN", "L1 logistic, all pairs", "3-NN",
            "RBF-SVM", "LightGBM",
        ),
    ),
    "borders": TableSet(
        tuple(tables.WITH_BORDERS),
        ("defaults", "LightGBM", "random forest", "RBF-SVM", "3-NN"),
        reference="LightGBM",
    ),
    "blurred": TableSet(
        tuple(tables.BLURRED),
        ("defaults", "tuned", "3-NN", "scikit-learn NCA", "RBF-SVM", "LightGBM"),
    ),
    "secom": TableSet(
        ("SECOM",),
        (
            "defaults", "balanced", "tuned", "tuned AUC", "3-NN", "RBF-SVM, AUC", "L1 logistic",
            "L1 logistic, balanced", "LightGBM", "LightGBM, balanced",
        ),
    ),
    "missing": TableSet(
        tuple(tables.MISSING),
        (
            "imputing", "defaults, imputed", "3-NN, imputed", "3-NN, nan-Euclidean",
            "RBF-SVM, imputed", "LightGBM",
        ),
        reference="3-NN, imputed",
    ),
    "ablation": TableSet(
        (*CHOSEN_ON, *tables.INTERACTIONS, "XOR, N 500, p 500", "double ring, N 500, p 500"),
        (
            "defaults", "one fit", "without all columns", "margin alone", "without pruning",
            "without clipping", "ranks", "without gate", "without screening",
        ),
        "defaults", "choices", (100, 120),
    ),
    "tuning": TableSet(CHOSEN_ON, ("tuned", "tuned, one model"), "tuned", "choices", (100, 120)),
}  # fmt: skip
#: Tables with two million products and more, which do not fit into memory.
TOO_LARGE = {
    ("pure XOR, N 300, p 2000", "L1 logistic, all pairs"),
    ("pure XOR, N 500, p 5000", "L1 logistic, all pairs"),
}
#: Scores of which larger values are better.
RISING = {"auc", "balanced_accuracy"}
#: title, key, format
COLUMNS = [
    ("error", "error", ".3f"),
    ("AUC", "auc", ".3f"),
    ("balanced", "balanced_accuracy", ".3f"),
    ("Brier", "brier", ".3f"),
    ("log loss", "log_loss", ".2f"),
    ("variables", "variables", ".1f"),
    ("on true", "share_relevant", ".2f"),
    ("found", "found", ".1f"),
    ("rank", "rank", ".1f"),
    ("fit s", "cpu_seconds", ".2f"),
    ("MB", "megabytes", ".0f"),
]


def selected(chosen: TableSet) -> Iterator[Cell]:
    """The cells in blocks of five seeds, so that an unfinished run has some splits of each."""
    seeds = range(*chosen.seeds)
    settings = {model: default_settings(model) for model in chosen.models}
    for first in range(0, len(seeds), 5):
        for table in chosen.tables:
            for model in chosen.models:
                if (table, model) not in TOO_LARGE:
                    for seed in seeds[first : first + 5]:
                        yield Cell(chosen.experiment, table, model, seed, settings[model])


def show(results: Results, experiment: str, table: str, models: Sequence[str], to: str) -> None:
    """Print the models on one table, and the difference of each to the reference."""
    print(table)
    reference = measured(results.seeds(experiment, table, to))
    share = tables.overlap(table)
    for model in models:
        recorded = results.summary(experiment, table, model)
        if recorded is not None and recorded["status"] == "ok":
            mean = f"{recorded['error']:.3f} ({recorded.get('error s.e.', '')})"
            print(f"  {model:24}{recorded['splits']:7}{mean:>16}  {recorded['code']}")
            continue
        rows = results.seeds(experiment, table, model)
        errors = measured(rows)
        head = f"  {model:24}{len(errors):7}"
        mean = number(*mean_and_error(errors.values(), share))
        difference = number(*paired(errors, reference, share), sign="+")
        values = "".join(_column(rows, key, form) for _, key, form in COLUMNS[1:])
        states = [row["status"] for row in rows if row["status"] != "ok"]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        print(f"{head}{mean:>16}{difference:>18}{values}  {counts}".rstrip())


def _column(rows: list[Row], key: str, form: str) -> str:
    mean, _ = mean_and_error(measured(rows, key).values())
    return f"{'' if np.isnan(mean) else format(mean, form):>10}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tableset", choices=STUDY)
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--tables", nargs="+", metavar="TABLE")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="CPU seconds of a cell")
    parser.add_argument("--give-up", type=int, default=2, help="timeouts that stop a model")
    parser.add_argument("--fresh", action="store_true", help="measure known cells again")
    parser.add_argument("--print-only", action="store_true")
    return parser.parse_args()


def main() -> None:
    arguments, results = parsed(), Results()
    chosen = STUDY[arguments.tableset]
    names, models = arguments.tables or chosen.tables, arguments.models or chosen.models
    if not arguments.print_only:
        seeds = tuple(arguments.seeds or chosen.seeds)
        some = TableSet(names, models, chosen.reference, chosen.experiment, seeds)
        measure_missing(
            list(selected(some)), results, error_of_split, jobs=arguments.jobs,
            limit=arguments.limit, give_up=arguments.give_up, fresh=arguments.fresh,
        )  # fmt: skip
    titles = "".join(f"{title:>10}" for title, _, _ in COLUMNS[1:])
    print(f"{'':26}{'splits':>7}{'error (s.e.)':>16}{'to ' + chosen.reference:>18}{titles}")
    for table in names:
        show(results, chosen.experiment, table, models, chosen.reference)


if __name__ == "__main__":
    main()
