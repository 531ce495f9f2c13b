"""The results on one source, and comparisons of its methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..results import Cell, Results, Row, measured, paired
from ..tables import overlap
from .studies import line_of

#: The lines of sDist: (name on the page, line that the cell belongs to, key of the error).
OURS = (
    ("sDist", "sDist", "error"),
    ("sDist, margin classifier", "sDist", "margin_error"),
    ("sDist, defaults", "sDist, defaults", "error"),
    ("sDist, tuned", "sDist, tuned", "error"),
)
#: The metric learners that sDist is compared with.
RIVALS = ("kNN", "kNN, standardised", "PGDM", "LMNN", "SMLsm", "SMLsm, columns", "SMLlp",
          "SMLlp, dominant", "BoostMetric", "NCA")  # fmt: skip


@dataclass(frozen=True)
class Column:
    """The rows measured on one source, by the line of the table."""

    source: str
    rows: dict[str, list[Row]]

    @property
    def overlap(self) -> float:
        """Test rows per training row if the repeats are splits of one table, otherwise 0."""
        return overlap(self.source)

    def errors(self, method: str, key: str = "error") -> dict[int, float]:
        return measured(self.rows.get(method, []), key)

    def lines(self) -> dict[str, dict[int, float]]:
        """The errors of every line. sDist also has an error of the margin classifier."""
        found: dict[str, dict[int, float]] = {}
        for method in self.rows:
            found[method] = self.errors(method)
            if method == "sDist":
                found["sDist, margin classifier"] = self.errors(method, "margin_error")
        return found

    def of(self, line: str) -> list[Row]:
        """The rows behind a line of the table."""
        return self.rows.get("sDist" if line == "sDist, margin classifier" else line, [])

    def bayes(self) -> dict[int, float]:
        """The error of the best rule on the test rows, for every repeat."""
        found: dict[int, float] = {}
        for method in self.rows:
            found.update(self.errors(method, "bayes_error"))
        return found


def columns(cells: list[Cell], results: Results) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for cell in cells:
        column = found.setdefault(cell.table, Column(cell.table, {}))
        rows = column.rows.setdefault(line_of(cell), [])
        row = results.row(cell)
        if row is not None:
            rows.append(row)
    return found


def measured_rows(cells: list[Cell], results: Results) -> dict[str, dict[str, list[Row]]]:
    """The rows that were measured, by source and line."""
    return {
        source: {
            method: [row for row in rows if row["status"] == "ok"]
            for method, rows in column.rows.items()
        }
        for source, column in columns(cells, results).items()
    }


def excess(column: Column, method: str, key: str) -> tuple[float, float]:
    errors, bayes = column.errors(method, key), column.bayes()
    return paired(errors, bayes)


def best_rival(column: Column) -> str | None:
    """The metric learner with the lowest mean."""
    found = {m: column.errors(m) for m in RIVALS if m in column.rows}
    means = {m: np.mean(list(values.values())) for m, values in found.items() if values}
    return min(means, key=lambda m: means[m]) if means else None
