"""The tables of the quality study."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.stats import rankdata

from ..paper.published import ERRORS
from ..tables import BINARY, MULTICLASS, REAL, simulation_name
from .shown import RISING, Cells, Shown, bold, grid, shape, title

PLAIN = ("defaults", "tuned", "3-NN", "RBF-SVM", "L1 logistic", "LightGBM")
METRICS = ("defaults", "3-NN", "scikit-learn NCA", "metric-learn LMNN", "metric-learn LFDA")
#: Tables and columns of the short comparison, in its order.
SHORT = ("Madelon", "Ionosphere", "Sonar", "Arcene", "Spambase", "Colon", "Leukemia")


def _row(shown: Shown, table: str, models: Cells, errors: bool, key: str = "error") -> list[str]:
    """The errors of the models on one table. The best error is bold."""
    values = [shown.value("quality", table, model, key) for model in models]
    texts = [
        ("over 10 minutes" if shown.timed_out("quality", table, model) else "")
        if not value
        else value.text()
        if errors
        else value.plain()
        for model, value in zip(models, values)
    ]
    return bold(values, texts, key)


def _ranks(shown: Shown, tables: Iterable[str], models: Cells) -> list[float]:
    """The mean rank of every model over the tables. A model without a result ranks last."""
    ranks = []
    for table in tables:
        values = [shown.value("quality", table, model) for model in models]
        ranks.append(rankdata([np.inf if not value else value.at(3) for value in values]))
    return [float(rank) for rank in np.mean(ranks, axis=0)]


def errors_of(
    tables: Iterable[str], models: Cells, full: bool, classes: bool = False
) -> Callable[[Shown], str]:
    """The errors of models on tables. In full, with shapes, standard errors and mean ranks."""

    def made(shown: Shown) -> str:
        names = [shape(t, classes) if full or not classes else short(t) for t in tables]
        rows = [[name, *_row(shown, t, models, full)] for name, t in zip(names, tables)]
        if full:
            ranks = _ranks(shown, tables, models)
            best = [f"**{r:.1f}**" if r == min(ranks) else f"{r:.1f}" for r in ranks]
            rows.append(["mean rank", *best])
        head = ["metricboost" if classes and m == "defaults" else title(m) for m in models]
        return grid(["table", *head], rows, shown)

    return made


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
    texts = bold(balanced, [value.plain(".2f") for value in balanced], "auc")
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


#: The simulated interactions, with their names on the pages.
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
        texts = [value.plain() or "too large" for value in errors]
        own = shown.value("quality", table, "defaults")
        more = [shown.value("quality", table, "defaults", key) for key in MORE]
        told = [v.plain(form) for v, form in zip(more, MORE.values())]
        rows.append([name, own.text(), *texts, *told])
    head = [
        "table",
        "metricboost",
        *rivals,
        "Bayes",
        "variables kept",
        "importance on the true ones",
    ]
    return grid(head, rows, shown)


MORE = {"bayes_error": ".3f", "variables": ".1f", "share_relevant": ".0%"}


def simulated(shown: Shown) -> str:
    """The defaults on the paper's simulations with 500 rows."""
    rows = []
    for kind, experiment in (("double ring", "paper/table1"), ("XOR", "paper/table2")):
        for p in (50, 500, 1000):
            name = simulation_name(kind, 500, p)
            error = shown.value(experiment, name, "sDist, defaults")
            best = shown.value(experiment, name, "sDist, defaults", "bayes_error")
            published = ERRORS[name, "sDist"] - ERRORS[name, "Bayes"]
            if not error or not best:
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
        texts = [value.text("+") for value in apart]
        name = (
            "SECOM, AUC" if key == "auc" else INTERACTIONS.get(table, table.replace("N 500, ", ""))
        )
        rows.append([name, found[0].text(), *texts])
    return grid(["table", "defaults", *ABLATION.values()], rows, shown)


def tuning(shown: Shown) -> str:
    rows = []
    for table in ("Sonar", "Ionosphere", "SECOM"):
        key, single = ("auc" if table == "SECOM" else "error"), "tuned, one model"
        means = [shown.value("choices", table, model, key) for model in ("tuned", single)]
        apart = [shown.difference("choices", table, single, "tuned", k) for k in (key, "brier")]
        texts = [value.plain() for value in means]
        name = "SECOM, AUC" if key == "auc" else table
        rows.append([name, *texts, *(value.text("+") for value in apart)])
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
        best = shown.value("quality", table, "defaults", "bayes_error")
        near = _near(shown, table)
        rows.append(
            [name, own.text(), "", _kept(shown, table, ".1f"), near, f"Bayes {best.plain()}"]
        )
    head = ["table", "defaults", "tuned", "variables kept", "3-NN"]
    return grid([*head, "best rival, or Bayes error"], rows, shown)


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
    texts = [value.text() for value in ours]
    own = bold(values, [*texts, rival], key)
    return [name, *own[:2], _kept(shown, table), _near(shown, table, key), own[2]]


def _best_rival(shown: Shown, table: str, models: Cells, form: str, key: str = "error") -> str:
    sign = -1 if key in RISING else 1
    found = {model: shown.value("quality", table, model, key) for model in models}
    known = {model: value for model, value in found.items() if value}
    best = min(known, key=lambda model: sign * known[model].mean)
    return f"{known[best].plain(form)}, {title(best)}"


def _near(shown: Shown, table: str, key: str = "error") -> str:
    value = shown.value("quality", table, "3-NN", key)
    return value.plain()


def _kept(shown: Shown, table: str, form: str = ".0f") -> str:
    value = shown.value("quality", table, "defaults", "variables")
    found = shown.value("quality", table, "defaults", "found")
    if value and found:
        return f"{value.plain('.1f')} ({found.plain('.1f')} of them relevant)"
    return value.plain(form)


COLLECTED = ("defaults", "LightGBM", "random forest", "ExtraTrees", "RBF-SVM")


def collected(folder: str, models: Cells) -> Callable[[Shown], str]:
    """The errors on all tables of a collection that every model was measured on, and their means.

    Models are compared on the splits that all of them have.
    """

    def made(shown: Shown) -> str:
        known = {table for table, _, _ in shown.results.of("quality")}
        tables = sorted(table for table in known if table.startswith(f"{folder}/"))
        rows, means = [], []
        for table in tables:
            errors = [shown.errors("quality", table, model) for model in models]
            seeds = set.intersection(*(set(one) for one in errors))
            if seeds:
                means.append([float(np.mean([one[s] for s in seeds])) for one in errors])
                texts = [f"{mean:.3f}" for mean in means[-1]]
                best = min(texts)
                told = [f"**{text}**" if text == best else text for text in texts]
                rows.append([table.partition("/")[2], *told])
        if means:
            ranks = np.mean([rankdata(np.round(line, 4)) for line in means], axis=0)
            rows.append(["**mean error**", *(f"{mean:.4f}" for mean in np.mean(means, axis=0))])
            rows.append(["**mean rank**", *(f"{rank:.2f}" for rank in ranks)])
        head = ["metricboost" if model == "defaults" else title(model) for model in models]
        own = (row for table in tables for row in shown.results.seeds("quality", table, "defaults"))
        codes = sorted({row["code"] for row in own})
        return f"{grid(['table', *head], rows)}\n\n*metricboost is {' and '.join(codes)}.*"

    return made


def short(table: str) -> str:
    return f"{title(table)}, {REAL[table].classes} classes"


QUALITY: dict[str, Callable[[Shown], str]] = {
    "quality binary": errors_of(BINARY, PLAIN, full=True),
    "quality secom": secom,
    "quality brier": brier,
    "quality multiclass": errors_of(MULTICLASS, METRICS, full=True, classes=True),
    "quality interactions": interactions,
    "quality simulated": simulated,
    "quality missing": missing,
    "quality ablation": ablation,
    "quality tuning": tuning,
    "quality pmlb": collected("pmlb", (*COLLECTED, "3-NN")),
    "quality wide": collected(
        "wide", (*COLLECTED, "L2 logistic", "linear SVM", "ridge", "1-NN", "3-NN")
    ),
    "comparison binary": errors_of(SHORT, PLAIN, full=False),
    "comparison multiclass": errors_of(MULTICLASS, METRICS, full=False, classes=True),
    "what to expect": expected,
}
