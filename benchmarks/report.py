"""Cells as text: for every table a block of models, then all tables side by side.

A block has the means over all splits of a model; where the models have different splits, look at
the paired differences, or at the means over the common splits below the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from metricboost.studies._cells import Row
from metricboost.studies._results import mean_and_error

from . import tables

#: table -> model -> seed -> row
Results = dict[str, dict[str, dict[int, Row]]]

#: Test rows per training row of the real tables, whose repeats are splits 70/30 of one table.
OVERLAP = dict.fromkeys((*tables.BINARY, *tables.MULTICLASS, *tables.MISSING), 0.3 / 0.7)

#: Scores of which more is better.
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
    ("one fit s", "one_fit_seconds", ".2f"),
    ("MB", "megabytes", ".0f"),
]


def collect(rows: Iterable[Row]) -> Results:
    results: Results = {}
    for row in rows:
        results.setdefault(row["table"], {}).setdefault(row["model"], {})[row["seed"]] = row
    return results


def values(rows: dict[int, Row], key: str) -> dict[int, float]:
    return {seed: row[key] for seed, row in rows.items() if row["status"] == "ok" and key in row}


def overlap(rows: dict[int, Row]) -> float:
    """Test rows per training row where the repeats are splits of one table, else 0."""
    return next((OVERLAP.get(row["table"], 0.0) for row in rows.values()), 0.0)


def paired(
    rows: dict[int, Row], reference: dict[int, Row] | None, score: str
) -> tuple[float, float]:
    """The difference to the reference on the seeds that both have."""
    one, other = values(rows, score), values(reference or {}, score)
    common = sorted(one.keys() & other.keys())
    return mean_and_error((one[seed] - other[seed] for seed in common), overlap(rows))


def common_means(models: dict[str, dict[int, Row]], score: str) -> tuple[dict[str, float], int]:
    """Means over the splits that all models with a result have, and how many these are."""
    found = {name: values(rows, score) for name, rows in models.items()}
    found = {name: one for name, one in found.items() if one}
    common = set.intersection(*(set(one) for one in found.values())) if found else set()
    means = {name: np.mean([one[s] for s in common or one]) for name, one in found.items()}
    return {name: float(mean) for name, mean in means.items()}, len(common)


def best(models: dict[str, dict[int, Row]], score: str) -> set[str]:
    """The models with the best mean over the common splits, to three digits."""
    sign = -1 if score in RISING else 1
    means = {name: round(sign * mean, 3) for name, mean in common_means(models, score)[0].items()}
    return {name for name, mean in means.items() if mean == min(means.values())}


def print_blocks(results: Results, score: str, reference: str, notes: dict[str, str]) -> None:
    titles = "".join(f"{title:>10}" for title, key, _ in COLUMNS if key != score)
    main = f"{'splits':>7}{score + ' (s.e.)':>16}{'to ' + reference:>18}"
    print(f"{'* best on common splits':26}{main}{titles}")
    for table, models in results.items():
        print(f"{table}{notes.get(table, '')}")
        marked = best(models, score)
        for model, rows in models.items():
            print(_line(model, rows, models.get(reference), score, model in marked))


def _line(
    model: str, rows: dict[int, Row], reference: dict[int, Row] | None, score: str, marked: bool
) -> str:
    found = values(rows, score)
    head = f"{'* ' if marked else '  '}{model:24}{len(found):7}"
    others = _others(rows)
    if not found:
        return head + "  " + others
    main = _with_error(*mean_and_error(found.values(), overlap(rows)))
    difference = _with_error(*paired(rows, reference, score), sign="+")
    columns = "".join(_column(rows, key, form) for _, key, form in COLUMNS if key != score)
    return f"{head}{main:>16}{difference:>18}{columns}  {others}".rstrip()


def _column(rows: dict[int, Row], key: str, form: str) -> str:
    mean, _ = mean_and_error(values(rows, key).values())
    return f"{'' if np.isnan(mean) else format(mean, form):>10}"


def _with_error(mean: float, error: float, sign: str = "") -> str:
    if np.isnan(mean):
        return ""
    return f"{mean:{sign}.3f}" + ("" if np.isnan(error) else f" ({error:.3f})")


def _others(rows: dict[int, Row]) -> str:
    """What happened to the splits without a result."""
    states = [row["status"] for row in rows.values() if row["status"] != "ok"]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def print_matrix(results: Results, score: str) -> None:
    """Means over the common splits side by side, and the mean over the tables of the ranks."""
    names = list(dict.fromkeys(model for models in results.values() for model in models))
    names = [name for name in names if _measured(results, name)]
    for head in _heads(list(results)):
        print(f"\n{'':26}{head}", end="")
    print(f"{'rank':>8}")
    for name, rank in zip(names, mean_ranks(results, names, score)):
        cells = "".join(_cell(models, name, score) for models in results.values())
        print(f"  {name:24}{cells}{rank:8.2f}")
    counts = "".join(f"{common_means(models, score)[1]:13} " for models in results.values())
    print(f"  {'common splits':24}{counts}")
    print(f"Mean {score} over the common splits; a model without result on a table ranks last.")


def _heads(tables: list[str]) -> list[str]:
    """The names in two lines, parted at the comma."""
    parts = [table.replace("blurred double", "blurred").partition(", ") for table in tables]
    first = "".join(f"{name if size else '':>13} " for name, _, size in parts)
    second = "".join(f"{size or name:>13} " for name, _, size in parts)
    return [first, second] if first.strip() else [second]


def _measured(results: Results, name: str) -> bool:
    rows = (row for models in results.values() for row in models.get(name, {}).values())
    return any(row["status"] == "ok" for row in rows)


def _cell(models: dict[str, dict[int, Row]], name: str, score: str) -> str:
    means, _ = common_means(models, score)
    if name in means:
        return f"{means[name]:.3f}{'*' if name in best(models, score) else ' '}".rjust(14)
    states = [row["status"] for row in models.get(name, {}).values()]
    return f"{states[0] if states else '-':>13} "


def mean_ranks(results: Results, names: list[str], score: str) -> npt.NDArray[np.float64]:
    """Rank 1 is the best; ties share their mean rank."""
    sign = -1 if score in RISING else 1
    ranks = []
    for models in results.values():
        means, _ = common_means(models, score)
        ranks.append(rankdata([round(sign * means.get(name, sign * np.inf), 6) for name in names]))
    return np.mean(ranks, axis=0)


def print_verdicts(results: Results, score: str, ours: Iterable[str], rivals: list[str]) -> None:
    """Each of our models against the best rival of every table, on the splits that both have."""
    sign = -1 if score in RISING else 1
    for name in ours:
        found = {
            table: models
            for table, models in results.items()
            if values(models.get(name, {}), score)
        }
        if not found:
            continue
        print(f"\n{name} against the best of {', '.join(rivals)}: difference (s.e.), paired")
        close = 0
        for table, models in found.items():
            means, _ = common_means({r: models[r] for r in rivals if r in models}, score)
            if not means:
                continue
            rival = min(means, key=lambda r: sign * means[r])
            mean, error = paired(models[name], models[rival], score)
            verdict = _verdict(sign * mean, error)
            close += verdict != "behind"
            print(f"  {table:28}{_with_error(mean, error, sign='+'):>18}  to {rival:24}{verdict}")
        print(f"  ahead or within one standard error on {close} of {len(found)}")


def _verdict(loss: float, error: float) -> str:
    if loss < -error:
        return "ahead"
    return "within one s.e." if loss <= error else "behind"


def print_markdown(results: Results, score: str, reference: str | None = None) -> None:
    """One row a table: means and standard errors over all splits of each model.

    With a reference, the others are shown as paired differences to it.
    """
    names = list(dict.fromkeys(model for models in results.values() for model in models))
    names = [name for name in names if _measured(results, name)]
    print(f"| table | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for table, models in results.items():
        marked = best(models, score) if reference is None else set()
        to = {name: models.get(reference) if name != reference else None for name in names}
        cells = (
            _markdown_cell(models.get(name, {}), score, name in marked, to[name]) for name in names
        )
        print(f"| {table} | {' | '.join(cells)} |")


def _markdown_cell(
    rows: dict[int, Row], score: str, marked: bool, reference: dict[int, Row] | None
) -> str:
    found = values(rows, score)
    if not found:
        return _others(rows)
    if reference:
        return _with_error(*paired(rows, reference, score), sign="+")
    text = _with_error(*mean_and_error(found.values(), overlap(rows)))
    return f"**{text}**" if marked else text


#: title, key, format of what is told of each metric learner.
DETAILS = [
    ("variables", "variables", ".1f"),
    ("rank", "rank", ".1f"),
    ("one fit, s", "one_fit_seconds", ".2f"),
    ("with tuning, CPU s", "cpu_seconds", ".1f"),
    ("MB", "megabytes", ".0f"),
]


def print_details(results: Results, published: dict[str, dict[str, float]]) -> None:
    """One Markdown table for every table, beside what the paper has."""
    titles = " | ".join(title for title, _, _ in DETAILS)
    for table, models in results.items():
        print(f"\n| {table} | error (s.e.) | splits | the paper | {titles} |")
        print(f"|---|---|---|---|{'---|' * len(DETAILS)}")
        marked = best(models, "error")
        for model, rows in models.items():
            error = _markdown_cell(rows, "error", model in marked, None)
            count = len(values(rows, "error"))
            paper = published.get(table, {}).get(model)
            cells = [_column(rows, key, form).strip() for _, key, form in DETAILS]
            known = "" if paper is None else f"{paper:.2f}"
            name = model.removesuffix(", tuned") if model != "tuned" else "sDist, tuned"
            name = "sDist, defaults" if model == "defaults" else name
            print(f"| {name} | {error} | {count} | {known} | {' | '.join(cells)} |")
