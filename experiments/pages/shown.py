"""Values with their standard errors, and tables in Markdown, for the pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..results import Results, Row, mean_and_error, measured, number, paired
from ..tables import REAL, overlap

RISING = {"auc", "balanced_accuracy"}
#: How the pages name the code of results that were measured before single results were kept.
UNKEPT = (" of 2026-11, before results were kept", " (2026-11, single results not kept)")
#: Models and tables that have another name on the pages.
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
    """A mean with its standard error. The value is false if nothing was measured.

    Mean or error may be a text if a text was recorded, such as "< 0.002".
    """

    mean: Any = np.nan
    error: Any = np.nan

    def __bool__(self) -> bool:
        return isinstance(self.mean, str) or not np.isnan(self.mean)

    def plain(self, form: str = ".3f") -> str:
        if not self:
            return ""
        return self.mean if isinstance(self.mean, str) else format(self.mean, form)

    def text(self, sign: str = "") -> str:
        if isinstance(self.error, str):
            return f"{self.plain(sign + '.3f')} ({self.error})"
        return self.mean if isinstance(self.mean, str) else number(self.mean, self.error, sign)

    def at(self, digits: int) -> float:
        return round(float(self.mean), digits)


class Shown:
    """The results, with a note of the code that measured the values on a page."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.codes: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)

    def _rows(
        self, experiment: str, table: str, model: str, key: str
    ) -> tuple[Row | None, dict[int, float]]:
        """The summary that has a key. Without a summary, the value of the key for every seed."""
        recorded = self.results.summary(experiment, table, model, key)
        rows = [row for row in self.results.seeds(experiment, table, model) if key in row]
        for row in [recorded] if recorded else rows:
            self.codes[row["code"]][table, model] = None
        return recorded, {} if recorded else measured(rows, key)

    def value(self, experiment: str, table: str, model: str, key: str = "error") -> Value:
        """The mean over the splits and its standard error."""
        recorded, values = self._rows(experiment, table, model, key)
        if recorded is not None:
            return Value(recorded.get(key, np.nan), recorded.get(f"{key} s.e.", np.nan))
        return Value(*mean_and_error(values.values(), overlap(table)))

    def difference(
        self, experiment: str, table: str, model: str, reference: str, key: str = "error"
    ) -> Value:
        """The mean difference to another model on the splits that both have."""
        found = self.value(experiment, table, model, f"{key} to {reference}")
        if found:
            return found
        one, other = (self._rows(experiment, table, m, key)[1] for m in (model, reference))
        return Value(*paired(one, other, overlap(table)))

    def errors(self, experiment: str, table: str, model: str) -> dict[int, float]:
        """The error of every split."""
        return self._rows(experiment, table, model, "error")[1]

    def splits(self, experiment: str, table: str, model: str) -> int:
        recorded, values = self._rows(experiment, table, model, "error")
        return int(recorded["splits"]) if recorded else len(values)

    def timed_out(self, experiment: str, table: str, model: str) -> bool:
        known = self.results.of(experiment).items()
        states = {row["status"] for key, row in known if key[:2] == (table, model)}
        return "timeout" in states

    def measured_with(self) -> str:
        """A line that names the code of most cells, and the cells that other code measured."""
        cells: dict[tuple[str, str], list[str]] = defaultdict(list)
        for code, own in self.codes.items():
            for cell in own:
                cells[cell].append(code.replace(*UNKEPT))
        groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for cell, codes in cells.items():
            groups[" and ".join(sorted(codes))].append(cell)
        if not groups:
            return ""
        usual, *others = sorted(groups, key=lambda code: -len(groups[code]))
        told = "".join(f"; {_names(groups[code])} with {code}" for code in others)
        return f"*Measured with {usual}{told}.*"


def _names(cells: list[tuple[str, str]]) -> str:
    """Names of cells. Tables with the same models are joined."""
    models: dict[str, list[str]] = defaultdict(list)
    for table, model in cells:
        models[table].append(title(model))
    tables: dict[str, list[str]] = defaultdict(list)
    for table, own in models.items():
        tables[", ".join(own)].append(title(table))
    return ", ".join(f"{own} on {' / '.join(names)}" for own, names in tables.items())


def grid(head: Cells, rows: Iterable[Cells], shown: Shown | None = None) -> str:
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = shown.measured_with() if shown is not None else ""
    return f"{text}\n\n{note}" if note else text


def title(name: str) -> str:
    return TITLES.get(name, name)


def shape(name: str, classes: bool = False) -> str:
    """The name of a real table, with its number of training rows and columns."""
    real = REAL[name]
    told = f"{title(name)}, {real.rows} x {real.columns}"
    return f"{told}, {real.classes} classes" if classes else told


def bold(values: Sequence[Value], texts: Sequence[str], key: str = "error") -> list[str]:
    """The texts. The text of the best value, to three digits, is bold."""
    sign = -1 if key in RISING else 1
    means = [np.inf if not value else sign * value.at(3) for value in values]
    return [f"**{t}**" if m == min(means) and np.isfinite(m) else t for m, t in zip(means, texts)]
