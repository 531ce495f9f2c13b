"""The tables that ``pages`` writes: each is a function of the results that returns Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .paper.published import ERRORS
from .paper.studies import SHARED
from .results import Results, Row, mean_and_error, measured, number, paired
from .rivals import GRIDS
from .tables import BINARY, MULTICLASS, REAL, overlap, simulation_name

RISING = {"auc", "balanced_accuracy"}
#: Models whose name on the pages is another one.
TITLES = {
    "scikit-learn NCA": "NCA",
    "metric-learn LMNN": "LMNN",
    "metric-learn LFDA": "LFDA",
    "isolet1560": "isolet",
    "usps11k": "usps",
}
Cells = Sequence[str]


@dataclass(frozen=True)
class Value:
    """A mean with its standard error; either may be a text if it was recorded as one."""

    mean: Any
    error: Any = np.nan

    def plain(self, form: str = ".3f") -> str:
        return self.mean if isinstance(self.mean, str) else format(self.mean, form)

    def text(self, sign: str = "") -> str:
        if isinstance(self.error, str):
            return f"{self.plain(sign + '.3f')} ({self.error})"
        return self.mean if isinstance(self.mean, str) else number(self.mean, self.error, sign)

    def at(self, digits: int) -> float:
        return round(float(self.mean), digits)


class Shown:
    """The results, and a note of the code behind those that were asked for."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.codes: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)

    def _rows(
        self, experiment: str, table: str, model: str, key: str
    ) -> tuple[Row | None, dict[int, float]]:
        """The summary with a key, or else the values of the key."""
        recorded = self.results.summary(experiment, table, model, key)
        rows = [row for row in self.results.seeds(experiment, table, model) if key in row]
        for row in [recorded] if recorded else rows:
            self.codes[row["code"]][table, model] = None
        return recorded, {} if recorded else measured(rows, key)

    def value(self, experiment: str, table: str, model: str, key: str = "error") -> Value | None:
        """The mean over the splits and its standard error; None if nothing was measured."""
        recorded, values = self._rows(experiment, table, model, key)
        if recorded is not None:
            mean = recorded.get(key)
            return None if mean is None else Value(mean, recorded.get(f"{key} s.e.", np.nan))
        return Value(*mean_and_error(values.values(), overlap(table))) if values else None

    def difference(
        self, experiment: str, table: str, model: str, reference: str, key: str = "error"
    ) -> Value | None:
        """The mean difference to another model on the splits that both have."""
        found = self.value(experiment, table, model, f"{key} to {reference}")
        if found is not None:
            return found
        one, other = (self._rows(experiment, table, m, key)[1] for m in (model, reference))
        mean, error = paired(one, other, overlap(table))
        return None if np.isnan(mean) else Value(mean, error)

    def splits(self, experiment: str, table: str, model: str) -> int:
        recorded, values = self._rows(experiment, table, model, "error")
        return int(recorded["splits"]) if recorded else len(values)

    def timed_out(self, experiment: str, table: str, model: str) -> bool:
        known = self.results.of(experiment).items()
        states = {row["status"] for key, row in known if key[:2] == (table, model)}
        return "timeout" in states

    def measured_with(self) -> str:
        """A line about the code behind the table: the usual one, and the cells of others."""
        if not self.codes:
            return ""
        usual, *others = sorted(self.codes, key=lambda code: -len(self.codes[code]))
        told = "".join(f"; {_cells(self.codes[code])}: {code}" for code in others)
        return f"*Measured with {usual}{told}.*"


def _cells(cells: dict[tuple[str, str], None]) -> str:
    """Cells by their models if they are of one table, by their tables if they are of one model."""
    tables, models = (list(dict.fromkeys(title(name) for name in names)) for names in zip(*cells))
    if len(tables) == 1 or len(models) == 1:
        return " / ".join(models if len(tables) == 1 else tables)
    return " / ".join(f"{title(model)} on {title(table)}" for table, model in cells)


def grid(head: Cells, rows: Iterable[Cells], shown: Shown | None = None) -> str:
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = shown.measured_with() if shown is not None else ""
    return f"{text}\n\n{note}" if note else text


def title(name: str) -> str:
    return TITLES.get(name, name)


def shape(name: str, classes: bool = False) -> str:
    """A real table with its training rows and columns."""
    real = REAL[name]
    told = f"{title(name)}, {real.rows} x {real.columns}"
    return f"{told}, {real.classes} classes" if classes else told


def bold(values: Sequence[Value | None], texts: Sequence[str], key: str = "error") -> list[str]:
    """The texts, the best value to three digits in bold."""
    sign = -1 if key in RISING else 1
    means = [np.inf if value is None else sign * value.at(3) for value in values]
    return [f"**{t}**" if m == min(means) and np.isfinite(m) else t for m, t in zip(means, texts)]


# --- the quality study

PLAIN = ("defaults", "tuned", "3-NN", "RBF-SVM", "L1 logistic", "LightGBM")
METRICS = ("defaults", "3-NN", "scikit-learn NCA", "metric-learn LMNN", "metric-learn LFDA")
#: Tables and columns of the short comparison, in its order.
SHORT = ("Madelon", "Ionosphere", "Sonar", "Arcene", "Spambase", "Colon", "Leukemia")


def _row(shown: Shown, table: str, models: Cells, errors: bool, key: str = "error") -> list[str]:
    """The models on one table, the best in bold."""
    values = [shown.value("quality", table, model, key) for model in models]
    texts = [
        ("over 10 minutes" if shown.timed_out("quality", table, model) else "")
        if value is None
        else value.text()
        if errors
        else value.plain()
        for model, value in zip(models, values)
    ]
    return bold(values, texts, key)


def _ranks(shown: Shown, tables: Iterable[str], models: Cells) -> list[float]:
    """The mean over the tables of the ranks; a model without a result is last."""
    ranks = []
    for table in tables:
        values = [shown.value("quality", table, model) for model in models]
        ranks.append(rankdata([np.inf if value is None else value.at(3) for value in values]))
    return [float(rank) for rank in np.mean(ranks, axis=0)]


def binary(shown: Shown) -> str:
    rows = [[shape(table), *_row(shown, table, PLAIN, errors=True)] for table in BINARY]
    ranks = _ranks(shown, BINARY, PLAIN)
    best = [f"**{rank:.1f}**" if rank == min(ranks) else f"{rank:.1f}" for rank in ranks]
    return grid(["table", *PLAIN], [*rows, ["mean rank", *best]], shown)


def multiclass(shown: Shown) -> str:
    head = ["table", "metricboost", *map(title, METRICS[1:])]
    rows = [[shape(table, True), *_row(shown, table, METRICS, True)] for table in MULTICLASS]
    ranks = [f"{rank:.1f}" for rank in _ranks(shown, MULTICLASS, METRICS)]
    return grid(head, [*rows, ["mean rank", *ranks]], shown)


def comparison_binary(shown: Shown) -> str:
    rows = [[shape(table), *_row(shown, table, PLAIN, errors=False)] for table in SHORT]
    return grid(["table", *PLAIN], rows, shown)


def comparison_multiclass(shown: Shown) -> str:
    head = ["table", "metricboost", *map(title, METRICS[1:])]
    rows = [
        [f"{title(t)}, {REAL[t].classes} classes", *_row(shown, t, METRICS, errors=False)]
        for t in MULTICLASS
    ]
    return grid(head, rows, shown)


SECOM = {
    "defaults": "defaults",
    "balanced": '`class_weight="balanced"`',
    "tuned": "tuned",
    "tuned AUC": 'tuned with `class_weight="balanced"` and `scoring="roc_auc"`',
    "3-NN": "3-NN",
    "RBF-SVM, AUC": "RBF-SVM, balanced, tuned for AUC",
    "L1 logistic": "L1 logistic",
    "L1 logistic, balanced": "L1 logistic, balanced",
    "LightGBM": "LightGBM",
    "LightGBM, balanced": "LightGBM, balanced",
}


def secom(shown: Shown) -> str:
    models = tuple(SECOM)
    areas = _row(shown, "SECOM", models, True, "auc")
    balanced = [shown.value("quality", "SECOM", model, "balanced_accuracy") for model in models]
    texts = bold(balanced, [value.plain(".2f") if value else "" for value in balanced], "auc")
    rows = zip(SECOM.values(), areas, texts)
    return grid(["model", "AUC", "balanced accuracy"], list(rows), shown)


def brier(shown: Shown) -> str:
    models = ("defaults", "3-NN")
    rows = [
        [t, *_row(shown, t, models, False, "brier")]
        for t in (*SHORT[:2], "SECOM", "Sonar", "Spambase")
    ]
    return grid(["Brier score", *models], rows, shown)


def missing(shown: Shown) -> str:
    models = {
        "imputing": 'metricboost, `missing="impute"`',
        "3-NN, imputed": "3-NN after imputing medians",
        "RBF-SVM, imputed": "RBF-SVM after imputing medians",
        "LightGBM": "LightGBM, which needs no imputation",
    }
    errors = _row(shown, "Ionosphere, 10% missing", tuple(models), True)
    return grid(["model", "error"], list(zip(models.values(), errors)), shown)


#: The interactions with what the pages call them.
INTERACTIONS = {
    "pure XOR, N 500, p 50": "pure XOR, 2 of 50",
    "pure XOR, N 500, p 500": "pure XOR, 2 of 500",
    "pure XOR, N 300, p 2000": "pure XOR, 2 of 2000, 300 rows",
    "pure XOR, N 500, p 5000": "pure XOR, 2 of 5000",
    "pure double ring, N 500, p 500": "pure ring, 2 of 500",
    "XOR and ring, N 500, p 500": "XOR and ring at once, 4 of 500",
    "three XORs, N 500, p 500": "three XORs at once, 6 of 500",
}


def interactions(shown: Shown) -> str:
    rivals = ("screening + logistic", "screening + 10-NN", "L1 logistic, all pairs")
    rows = []
    for table, name in INTERACTIONS.items():
        errors = [shown.value("quality", table, model) for model in rivals]
        texts = ["too large" if value is None else value.plain() for value in errors]
        own = shown.value("quality", table, "defaults")
        more = [shown.value("quality", table, "defaults", key) for key in MORE]
        told = [v.plain(form) if v else "" for v, form in zip(more, MORE.values())]
        rows.append([name, own.text() if own else "", *texts, *told])
    head = [
        "table",
        "metricboost",
        *rivals,
        "Bayes",
        "variables kept",
        "importance on the true ones",
    ]
    return grid(head, rows, shown)


MORE = {"best possible": ".3f", "variables": ".1f", "share_relevant": ".0%"}


def simulated(shown: Shown) -> str:
    """From the study of the paper: the defaults on its simulations with 500 rows."""
    rows = []
    for kind, experiment in (("double ring", "paper/table1"), ("XOR", "paper/table2")):
        for p in (50, 500, 1000):
            name = simulation_name(kind, 500, p)
            error = shown.value(experiment, name, "sDist, defaults")
            best = shown.value(experiment, name, "sDist, defaults", "bayes_error")
            published = ERRORS[name, "sDist"] - ERRORS[name, "Bayes"]
            if error is None or best is None:
                continue
            numbers = [
                error.text(),
                best.plain(),
                f"{error.mean - best.mean:.3f}",
                f"{published:.3f}",
            ]
            rows.append([f"{kind}, {p // 10} of {p}", *numbers])
    return grid(
        ["table", "error (s.e.)", "Bayes", "excess", "the paper's sDist, its excess"], rows, shown
    )


ABLATION = {
    "one fit": "one fit",
    "without all columns": "without the share of all columns",
    "margin alone": "margins only",
    "without pruning": "without pruning",
    "without clipping": "without clipping",
    "ranks": "ranks in place of clipping",
    "without gate": "without the gate",
    "without screening": "without screening",
}


def ablation(shown: Shown) -> str:
    rows = []
    names = ["Madelon", "Ionosphere", "SECOM", "Sonar", *INTERACTIONS]
    for table in [*names, "XOR, N 500, p 500", "double ring, N 500, p 500"]:
        key = "auc" if table == "SECOM" else "error"
        found = [shown.value("choices", table, "defaults", key)]
        apart = [shown.difference("choices", table, m, "defaults", key) for m in ABLATION]
        texts = [value.text("+") if value else "" for value in apart]
        name = (
            "SECOM, AUC" if key == "auc" else INTERACTIONS.get(table, table.replace("N 500, ", ""))
        )
        rows.append([name, found[0].text() if found[0] else "", *texts])
    return grid(["table", "defaults", *ABLATION.values()], rows, shown)


def tuning(shown: Shown) -> str:
    rows = []
    for table in ("Sonar", "Ionosphere", "SECOM"):
        key, single = ("auc" if table == "SECOM" else "error"), "tuned, one model"
        means = [shown.value("choices", table, model, key) for model in ("tuned", single)]
        apart = [shown.difference("choices", table, single, "tuned", k) for k in (key, "brier")]
        texts = [value.plain() if value else "" for value in means]
        name = "SECOM, AUC" if key == "auc" else table
        rows.append([name, *texts, *(value.text("+") if value else "" for value in apart)])
    head = ["table", "up to six models", "the best one alone", "difference", "of the Brier score"]
    return grid(head, rows, shown)


def expected(shown: Shown) -> str:
    """The table of the README."""
    rows = [_expected_binary(shown, table) for table in EXPECTED]
    for table in ("vowel", "isolet1560"):
        own = shown.value("quality", table, "defaults")
        rivals = _best_rival(shown, table, METRICS[2:], ".3f")
        near, kept = _near(shown, table), _kept(shown, table)
        text = f"{rivals} (of NCA, LMNN, LFDA)"
        rows.append(
            [shape(table, True), f"**{own.plain()}** ({own.error:.3f})", "", kept, near, text]
        )
    for table, name in EXPECTED_PURE.items():
        own = shown.value("quality", table, "defaults")
        best = shown.value("quality", table, "defaults", "best possible")
        near = _near(shown, table)
        rows.append(
            [name, own.text(), "", _kept(shown, table, ".1f"), near, f"Bayes {best.plain()}"]
        )
    head = ["table", "defaults", "tuned", "variables kept", "3-NN"]
    return grid([*head, "best of RBF-SVM, L1 logistic, LightGBM"], rows, shown)


EXPECTED = ("Madelon", "Ionosphere", "SECOM", "Sonar", "Spambase", "Arcene", "Colon", "Leukemia")
EXPECTED_PURE = {
    "pure XOR, N 500, p 500": "pure XOR, 2 of 500 columns, 500 rows",
    "pure XOR, N 500, p 5000": "pure XOR, 2 of 5000 columns, 500 rows",
    "pure double ring, N 500, p 500": "pure ring, 2 of 500 columns, 500 rows",
    "three XORs, N 500, p 500": "three XORs at once, 6 of 500 columns",
}


def _expected_binary(shown: Shown, table: str) -> list[str]:
    auc = table == "SECOM"
    key, name = ("auc", f"{shape(table)}, AUC") if auc else ("error", shape(table))
    rivals = ("RBF-SVM, AUC" if auc else "RBF-SVM", "L1 logistic", "LightGBM")
    ours = [
        shown.value("quality", table, m, key) for m in ("defaults", "tuned AUC" if auc else "tuned")
    ]
    rival = _best_rival(shown, table, rivals, ".3f", key)
    values = [*ours, shown.value("quality", table, rival.partition(", ")[2], key)]
    texts = [value.text() if value else "" for value in ours]
    own = bold(values, [*texts, rival], key)
    return [name, *own[:2], _kept(shown, table), _near(shown, table, key), own[2]]


def _best_rival(shown: Shown, table: str, models: Cells, form: str, key: str = "error") -> str:
    sign = -1 if key in RISING else 1
    found = {model: shown.value("quality", table, model, key) for model in models}
    known = {model: value for model, value in found.items() if value is not None}
    best = min(known, key=lambda model: sign * known[model].mean)
    return f"{known[best].plain(form)}, {title(best)}"


def _near(shown: Shown, table: str, key: str = "error") -> str:
    value = shown.value("quality", table, "3-NN", key)
    return value.plain() if value else ""


def _kept(shown: Shown, table: str, form: str = ".0f") -> str:
    value = shown.value("quality", table, "defaults", "variables")
    found = shown.value("quality", table, "defaults", "found")
    if value is not None and found is not None:
        return f"{value.plain('.1f')}, {found.plain('.1f')} of them true"
    return value.plain(form) if value else ""


def demo(shown: Shown) -> str:
    """What ``make demo`` prints."""
    found = {model: shown.value("demo", "pure XOR", model) for model in DEMO}
    rows = [[model, value.plain(".2f")] for model, value in found.items() if value]
    rows[-1] = [f"**{text}**" for text in rows[-1]]
    return grid(["method", "test error"], rows, shown)


DEMO = (
    "3 nearest neighbours", "NCA + 3-NN", "RBF-SVM", "random forest", "gradient boosting",
    "pair screening + logistic regression", "metricboost",
)  # fmt: skip


# --- the paper's rivals


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
        errors = bold(values, [value.text() if value else "" for value in values])
        rows = []
        for line, cell, error in zip(lines, cells, errors):
            more = [shown.value(*cell, key) for key in details]
            told = [v.plain(form) if v else "" for v, form in zip(more, details.values())]
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


# --- large tables


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
    head = ["rows", "median of three fits", "of that in passes over all rows"]
    return grid(head, rows, shown)


def samples(shown: Shown) -> str:
    rows = []
    for size in (3000, 5000, 10_000, 20_000):
        model = f"max_rows={size}"
        errors = [shown.value("large", f"{kind}, 200,000 rows", model) for kind in SAMPLED]
        seconds = shown.value("large", "rings, 200,000 rows", model, "seconds")
        texts = [value.plain(".4f") if value else "" for value in errors]
        rows.append([f"{size:,}", *texts, seconds.plain(".0f") if seconds else ""])
    return grid(["`max_rows`", *SAMPLED.values(), "seconds, rings"], rows, shown)


SAMPLED = {"rings": "rings, 50 columns", "xor": "XOR, 2 of 50 columns", "weak": "weak"}


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
    return grid(["table", "what", "memory above the table", "command"], rows, shown)


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
        client = most.plain(".0f") if most is not None and most.mean is not None else ""
        told = "" if apart is None else f"{apart.mean:.1e}" if apart.mean else "the same bits"
        rows.append([how, seconds.plain(".0f") if seconds else "", client, told])
    return grid(
        ["", "seconds", "memory of the client, MB", "weights apart, relatively"], rows, shown
    )


def engines(shown: Shown) -> str:
    models, rows = ("torch, NVIDIA H200", "native, 16 cores"), []
    for table in ("2,000 x 200", "20,000 x 200", "100,000 x 200", "1,000,000 x 1,000"):
        cells = []
        for key, unit, factor, form in STEP:
            for model in models:
                value = shown.value("engines", table, model, key)
                text = "" if value is None else value.mean
                scaled = text if isinstance(text, str) else f"{text * factor:{form}}"
                cells.append(f"{scaled} {unit}" if scaled else "")
        rows.append([table, *cells])
    head = [f"{what}, {where}" for what in ("a step", "a refresh") for where in ("GPU", "16 cores")]
    return grid(["rows x columns", *head], rows, shown)


STEP = (("step_seconds", "ms", 1e3, ".0f"), ("refresh_seconds", "s", 1, ".2f"))

#: The name of a table on a page.
TABLES: dict[str, Callable[[Shown], str]] = {
    "quality binary": binary,
    "quality secom": secom,
    "quality brier": brier,
    "quality multiclass": multiclass,
    "quality interactions": interactions,
    "quality simulated": simulated,
    "quality missing": missing,
    "quality ablation": ablation,
    "quality tuning": tuning,
    "comparison binary": comparison_binary,
    "comparison multiclass": comparison_multiclass,
    "what to expect": expected,
    "demo": demo,
    **{f"rivals {table}": rivals_on(table) for table in ("Ionosphere", "SECOM", "Madelon")},
    "lmnn": lmnn,
    "pgdm": pgdm,
    "large growth": growth,
    "large samples": samples,
    "large memory": memory,
    "scale wide": wide,
    "cluster": cluster,
    "engines": engines,
}
