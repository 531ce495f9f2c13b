"""The tables of the other experiments: the paper's rivals, large tables, clusters and engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..against import OURS, REFERENCE, ratio, runs
from ..against import TABLES as YARDSTICK
from ..paper.published import ERRORS
from ..paper.studies import SHARED
from ..readouts import LARGE, PARTS, SMALL, Worth, worth
from ..results import number
from ..rivals import GRIDS
from .shown import Shown, Value, bold, grid


def demo(shown: Shown) -> str:
    """The errors that ``make demo`` prints."""
    found = {model: shown.value("demo", "pure XOR", model) for model in DEMO}
    rows = [[model, value.plain(".2f")] for model, value in found.items() if value]
    rows[-1] = [f"**{text}**" for text in rows[-1]]
    return grid(["method", "test error"], rows, shown)


DEMO = (
    "3 nearest neighbours", "NCA + 3-NN", "RBF-SVM", "random forest", "gradient boosting",
    "pair screening + logistic regression", "metricboost",
)  # fmt: skip


def rivals_on(table: str) -> Callable[[Shown], str]:
    """The metric learners on one of the paper's tables, from the study of the paper."""
    lines = ("kNN", *GRIDS, "sDist, defaults", "sDist, tuned")
    cells = [
        ("quality", table, SHARED[n]) if n in SHARED else ("paper/table3", table, n) for n in lines
    ]
    details = {
        "variables": ".1f", "rank": ".1f", "one_fit_seconds": ".2f", "cpu_seconds": ".1f",
        "megabytes": ".0f",
    }  # fmt: skip

    def made(shown: Shown) -> str:
        values = [shown.value(*cell) for cell in cells]
        errors = bold(values, [value.text() for value in values])
        rows = []
        for line, cell, error in zip(lines, cells, errors):
            more = [shown.value(*cell, key) for key in details]
            told = [v.plain(form) for v, form in zip(more, details.values())]
            known = ERRORS.get((table, "sDist" if line == "sDist, tuned" else line))
            printed = "" if known is None else f"{known:.2f}"
            name = "3-NN" if line == "kNN" else line
            rows.append([name, error, str(shown.splits(*cell)), printed, *told])
        head = [table, "error (s.e.)", "splits", "the paper", "variables", "rank"]
        return grid([*head, "one fit, s", "with tuning, CPU s", "MB"], rows, shown)

    return made


def lmnn(shown: Shown) -> str:
    models = ("metric-learn 0.7.0", "metricboost")
    seconds, cpu, objective, error = (
        [shown.value("lmnn", table, model, key) for model in models]
        for table, key in (
            ("Madelon", "seconds"), ("Madelon", "cpu_seconds"), ("Madelon", "objective"),
            ("Ionosphere", "error"),
        )
    )  # fmt: skip
    both = [f"{wall.plain('.1f')} ({used.plain('.1f')})" for wall, used in zip(seconds, cpu)]
    rows = [
        ["Madelon, 1820 x 500: seconds (CPU seconds)", *both],
        ["Madelon: objective", *(value.plain(".0f") for value in objective)],
        ["Ionosphere: test error of 3-NN, 20 splits (s.e.)", *(value.text() for value in error)],
    ]
    return grid(["", *models], rows, shown)


def pgdm(shown: Shown) -> str:
    rows = []
    for table, model, _ in sorted(shown.results.of("pgdm"), key=_cost):
        name, _, size = table.partition(", ")
        n, p = size.split(" x ")
        seconds, count = (shown.value("pgdm", table, model, k) for k in ("seconds", "iterations"))
        rows.append([name, n, p, seconds.plain(".1f"), count.plain(".0f")])
    return grid(["table", "rows", "columns", "seconds", "iterations"], rows, shown)


def _cost(key: tuple[str, str, Any]) -> int:
    return int(np.prod([int(part) for part in key[0].rpartition(", ")[2].split(" x ")]))


def growth(shown: Shown) -> str:
    rows = []
    for size in ("50,000", "1,000,000"):
        found = [
            shown.value("large", f"growth, {size} x 50", "defaults", key)
            for key in ("seconds", "pass_seconds", "ratio")
        ]
        seconds, passes, ratio = (value.mean for value in found)
        longer = "" if ratio == 1 else f", {ratio:.2f} times as long"
        rows.append([size, f"{seconds:.1f} s{longer}", f"{passes:.2g} s"])
    head = ["rows", "median of three fits", "time of the passes over all rows"]
    return grid(head, rows, shown)


def samples(shown: Shown) -> str:
    rows = []
    for size in (3000, 5000, 10_000, 20_000):
        model = f"max_rows={size}"
        errors = [shown.value("large", f"{kind}, 200,000 rows", model) for kind in SAMPLED]
        seconds = shown.value("large", "rings, 200,000 rows", model, "seconds")
        texts = [value.plain(".4f") for value in errors]
        rows.append([f"{size:,}", *texts, seconds.plain(".0f")])
    return grid(["`max_rows`", *SAMPLED.values(), "seconds, rings"], rows, shown)


SAMPLED = {"rings": "rings, 50 columns", "xor": "XOR, 2 of 50 columns", "weak": "weak"}


def all_rows(shown: Shown) -> str:
    """The errors of samples against those of fits that learn from every row."""
    rows = []
    for table, name in EVERY_ROW.items():
        every, sample = (
            shown.value("large", table, f"max_rows={size}") for size in ("None", "auto")
        )
        gap = shown.difference("large", table, "max_rows=auto", "max_rows=None")
        if sample:
            texts = every.plain(".4f"), sample.plain(".4f"), number(gap.mean, gap.error, "+", 4)
            rows.append([name, str(shown.splits("large", table, "max_rows=None")), *texts])
    head = ["table", "seeds", "`max_rows=None`", '`max_rows="auto"`', "difference (s.e.)"]
    return grid(head, rows, shown)


EVERY_ROW = {
    "xor, 100,000 rows": "XOR, 2 of 50 columns, 100,000 rows",
    "rings, 50,000 rows": "rings, 50 columns, 50,000 rows",
    "weak, 50,000 rows": "weak, 50,000 rows",
    "letter": "letter, 14,000 rows",
}


def memory(shown: Shown) -> str:
    kinds = {
        "1,000,000 x 50, in memory": ("1,000,000 x 50, float64 in memory", "memory"),
        "10,000,000 x 50, mapped": ("10,000,000 x 50, float32 in a file of 2 GB", "mapped"),
    }
    rows = []
    for table, (name, command) in kinds.items():
        fit, count, seconds, most = (
            shown.value("large", table, "defaults", key)
            for key in ("seconds", "predicted_rows", "predict_seconds", "megabytes")
        )
        took = f" in {seconds.plain('.0f')} s" if seconds else ""
        told = f"fit in {fit.plain('.0f')} s, predictions of {count.plain(',.0f')} rows{took}"
        rows.append(
            [name, told, f"{most.plain('.0f')} MB", f"`python -m experiments.large {command}`"]
        )
    return grid(["table", "work", "memory above the table", "command"], rows, shown)


def wide(shown: Shown) -> str:
    table, rows = "XOR, 20 of 100,000 columns, 200 rows", []
    for model in ("defaults", "3-NN", "L1 logistic regression", "LightGBM"):
        seconds, error = (shown.value("scale", table, model, key) for key in ("seconds", "error"))
        name = "sDist, defaults" if model == "defaults" else model
        rows.append([name, seconds.plain(".3g"), error.plain()])
    return grid(["", "seconds", "error"], rows, shown)


def cluster(shown: Shown) -> str:
    table, rows = "1,000,000 x 100", []
    for how in ("in memory", "4 workers", "4 workers, one killed"):
        seconds, most, apart = (
            shown.value("cluster", table, how, key) for key in ("seconds", "megabytes", "apart")
        )
        told = apart.plain(".1e") if apart.mean else "0 (the same bits)"
        rows.append([how, seconds.plain(".0f"), most.plain(".0f"), told])
    head = ["", "seconds", "memory of the client, MB", "largest relative difference of the weights"]
    return grid(head, rows, shown)


def engines(shown: Shown) -> str:
    models, rows = ("torch, NVIDIA H200", "native, 16 cores"), []
    for table in ("2,000 x 200", "20,000 x 200", "100,000 x 200", "1,000,000 x 1,000"):
        cells = []
        for key, unit, factor, form in STEP:
            for model in models:
                value = shown.value("engines", table, model, key)
                scaled = value if isinstance(value.mean, str) else Value(value.mean * factor)
                cells.append(f"{scaled.plain(form)} {unit}" if value else "")
        rows.append([table, *cells])
    head = [f"{what}, {where}" for what in ("a step", "a refresh") for where in ("GPU", "16 cores")]
    return grid(["rows x columns", *head], rows, shown)


STEP = (("step_seconds", "ms", 1e3, ".0f"), ("refresh_seconds", "s", 1, ".2f"))


def against(shown: Shown) -> str:
    """The times of fits in the last run of the yardstick, and the ratio in the first run."""
    known, rows, found = runs(shown.results), [], []
    (first, *_), last = known.values(), list(known.values())[-1]
    for name in [name for name in YARDSTICK if name in last]:
        own, before = last[name], ratio(first[name]) if name in first else np.nan
        for model, row in own.items():
            shown.codes[row["code"]][name, model] = None
        times = [f"{own[m]['seconds']:.2f}" if m in own else "" for m in TIMED]
        found.append((ratio(own), before))
        past = "" if np.isnan(before) else f"{before:.1f}"
        rows.append([f"{name}, {own[OURS]['shape']}", *times, f"{found[-1][0]:.1f}", past])
    means = [f"{np.exp(np.nanmean(np.log(one))):.1f}" for one in zip(*found)]
    rows.append(["geometric mean", *[""] * len(TIMED), *means])
    return grid(["table", *TIMED, "ratio to LightGBM", "before"], rows, shown)


def parts_of_the_choice(shown: Shown) -> str:
    """The defaults against the defaults without a part of the choice of a readout."""
    known = {table for table, *_ in shown.results.of("readouts")}
    sets = {
        "public tables": [table for table in sorted(known) if table.startswith("pmlb/")],
        "small tables": SMALL,
        "tables with many rows": LARGE,
    }
    rows = []
    for part in PARTS:
        cells = []
        for tables in sets.values():
            found = worth(shown.results, tables, part)
            cells.append("" if found is None else _worth(found))
        rows.append([part.removeprefix("without "), *cells])
    return grid(["part", *sets], rows)


def _worth(found: Worth) -> str:
    mean = f"{found.mean:+.4f} ({found.standard_error:.4f})"
    return f"{mean}, {len(found.differences)} tables, time {found.time:.2f}"


TIMED = (OURS, REFERENCE, "random forest", "NCA")

OTHERS: dict[str, Callable[[Shown], str]] = {
    "demo": demo,
    **{f"rivals {table}": rivals_on(table) for table in ("Ionosphere", "SECOM", "Madelon")},
    "lmnn": lmnn,
    "pgdm": pgdm,
    "large growth": growth,
    "large samples": samples,
    "large all rows": all_rows,
    "large memory": memory,
    "scale wide": wide,
    "cluster": cluster,
    "engines": engines,
    "against": against,
    "readouts": parts_of_the_choice,
}
