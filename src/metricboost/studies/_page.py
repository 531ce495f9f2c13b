"""The page: every table and figure beside what the paper has, and what the differences mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _figures
from ._cells import Cell, Row
from ._document import Block, Grid, Heading, Items, Paragraph, Picture
from ._experiments import EXPERIMENTS, SHORT_ROWS, Extent
from ._prose import paragraphs, why
from ._published import ERRORS, SECONDS
from ._results import Results, mean_and_error, measured
from ._sources import REAL, SIZES, load, simulation_name

#: The simulation of a table.
KINDS = {"table1": "double ring", "table2": "XOR"}
#: Rows whose metric or rule is sDist's, each from one cell: (name on the page, method, key).
OURS = (
    ("sDist", "sDist", "error"),
    ("sDist, margin classifier", "sDist", "margin_error"),
    ("sDist, defaults", "sDist, defaults", "error"),
    ("sDist, tuned", "sDist, tuned", "error"),
)
#: The metric learners that sDist is held against.
RIVALS = ("kNN", "kNN, standardised", "PGDM", "LMNN", "SMLsm", "SMLsm, columns", "SMLlp",
          "SMLlp, dominant", "BoostMetric", "NCA")  # fmt: skip


@dataclass(frozen=True)
class Column:
    """What was measured on one source: the lines of a table, repeat to value."""

    source: str
    rows: dict[str, list[Row]]

    def errors(self, method: str, key: str = "error") -> dict[int, float]:
        return measured(self.rows.get(method, []), key)

    def lines(self) -> dict[str, dict[int, float]]:
        """Every line of the table and its errors; sDist's metric is read in two ways."""
        found: dict[str, dict[int, float]] = {}
        for method in self.rows:
            found[method] = self.errors(method)
            if method == "sDist":
                found["sDist, margin classifier"] = self.errors(method, "margin_error")
        return found

    def bayes(self) -> dict[int, float]:
        """The error of the best rule on the test rows of every repeat."""
        return self.errors("kNN", "bayes_error")


def columns(cells: list[Cell], results: Results) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for cell in cells:
        column = found.setdefault(cell.source, Column(cell.source, {}))
        rows = column.rows.setdefault(cell.method, [])
        row = results.row(cell)
        if row is not None:
            rows.append(row)
    return found


def blocks(names: list[str], extent: Extent, results: Results) -> list[Block]:
    """The page of some tables and figures."""
    found: list[Block] = [Heading("The paper's tables and figures, computed again", 1)]
    found += _prose("introduction")
    if extent.short:
        found.append(Paragraph(_shortened()))
    cells = {name: list(EXPERIMENTS[name](extent)) for name in names}
    simulated = [name for name in names if name in KINDS]
    for name in simulated:
        found += _simulation(name, columns(cells[name], results))
    if simulated:
        every = {name: columns(cells[name], results) for name in simulated}
        found += _excess(every) + _best(every) + _differences(every)
    if "pure" in names:
        found += _pure(columns(cells["pure"], results))
    if "table3" in names:
        found += _real(columns(cells["table3"], results), extent)
    for name in names:
        if name in FIGURES:
            found += FIGURES[name](cells[name], results, extent)
    return [*found, Heading("What was run"), *_prose("methods")]


def _prose(section: str, added: str = "") -> list[Block]:
    *first, last = paragraphs(section)
    return [Paragraph(text) for text in (*first, f"{last} {added}".strip())]


def _shortened() -> str:
    return (
        f"**This is the short form**: 1 repeat, simulations up to N 500 and p 500, real tables cut "
        f'to {SHORT_ROWS} rows ("subsampled"), one value of what rivals tune, fewer steps to the '
        f"letter. It shows that everything runs; its numbers are not the study's."
    )


def _number(mean: float, error: float = np.nan, sign: str = "") -> str:
    if np.isnan(mean):
        return ""
    return f"{mean:{sign}.3f}" + ("" if np.isnan(error) else f" ({error:.3f})")


def _count(values: dict[int, float], most: int) -> str:
    """How many repeats, where they are fewer than those of the table."""
    return f", {len(values)} repeats" if 1 < len(values) < most or len(values) == 1 < most else ""


def _beside(values: dict[int, float], paper: float | None, most: int) -> str:
    """Ours / the paper's / the difference."""
    mean, error = mean_and_error(values.values())
    if np.isnan(mean):
        return "" if paper is None else f"– / {paper:.3f}"
    text = _number(mean, error)
    if paper is not None:
        text += f" / {paper:.3f} / {mean - paper:+.3f}"
    return text + _count(values, most)


def _state(rows: list[Row]) -> str:
    """Why there is no number."""
    states = {row["status"] for row in rows if row["status"] != "ok"}
    return "not measured" if not states else ", ".join(sorted(states))


def _simulation(name: str, found: dict[str, Column]) -> list[Block]:
    kind = KINDS[name]
    number = name.removeprefix("table")
    blocks: list[Block] = [
        Heading(f"Table {number}: {kind}"),
        *_prose("table"),
    ]
    for n in dict.fromkeys(n for n, _ in SIZES):
        sources = [simulation_name(kind, n, p) for m, p in SIZES if m == n]
        sources = [source for source in sources if source in found]
        if sources:
            blocks += [Heading(f"N = {n}", 3), _side_by_side(found, sources)]
    return blocks


def _side_by_side(found: dict[str, Column], sources: list[str]) -> Grid:
    most = max(len(found[source].bayes()) for source in sources)
    names = list(dict.fromkeys(line for source in sources for line in found[source].lines()))
    rows = []
    for line in [*names, "Bayes"]:
        cells = [line]
        for source in sources:
            column = found[source]
            values = column.bayes() if line == "Bayes" else column.lines().get(line, {})
            text = _beside(values, ERRORS.get((source, line)), most)
            cells.append(text or (_state(column.rows[line]) if line in column.rows else ""))
        rows.append(cells)
    return Grid(["", *(source.split(", ")[-1] for source in sources)], rows)


def _excess(tables: dict[str, dict[str, Column]]) -> list[Block]:
    """How far above the Bayes error, beside the paper."""
    rows, reached, total = [], dict.fromkeys((name for name, _, _ in OURS), 0), 0
    for found in tables.values():
        for source, column in found.items():
            paper = ERRORS[source, "sDist"] - ERRORS[source, "Bayes"]
            cells, total = [source, f"{paper:.3f}"], total + 1
            for name, method, key in OURS:
                mean, error = excess(column, method, key)
                good = mean <= paper + np.nan_to_num(error)
                reached[name] += good
                cells.append(f"**{_number(mean, error)}**" if good else _number(mean, error))
            rows.append(cells)
    told = "; ".join(f"{name} {count} of {total}" for name, count in reached.items())
    return [
        Heading("Excess over the Bayes error"),
        *_prose("excess", f"Reached: {told}."),
        Grid(["", "the paper's sDist", *(name for name, _, _ in OURS)], rows),
    ]


def excess(column: Column, method: str, key: str) -> tuple[float, float]:
    errors, bayes = column.errors(method, key), column.bayes()
    return mean_and_error(errors[r] - bayes[r] for r in sorted(errors.keys() & bayes.keys()))


def paired(one: dict[int, float], other: dict[int, float]) -> tuple[float, float]:
    return mean_and_error(one[r] - other[r] for r in sorted(one.keys() & other.keys()))


def best_rival(column: Column) -> str | None:
    """The metric learner with the lowest mean."""
    found = {m: column.errors(m) for m in RIVALS if m in column.rows}
    means = {m: np.mean(list(values.values())) for m, values in found.items() if values}
    return min(means, key=lambda m: means[m]) if means else None


def _best(tables: dict[str, dict[str, Column]]) -> list[Block]:
    """sDist against the best metric learner of every source."""
    rows, reached, total = [], dict.fromkeys((name for name, _, _ in OURS), 0), 0
    for found in tables.values():
        for source, column in found.items():
            rival = best_rival(column)
            if rival is None:
                continue
            total += 1
            mean, error = mean_and_error(column.errors(rival).values())
            cells = [source, f"{rival}, {_number(mean, error)}"]
            for name, method, key in OURS:
                mean, error = paired(column.errors(method, key), column.errors(rival))
                good = mean <= np.nan_to_num(error)
                reached[name] += good
                text = _number(mean, error, "+")
                cells.append(f"**{text}**" if good else text)
            rows.append(cells)
    told = "; ".join(f"{name} {count} of {total}" for name, count in reached.items())
    return [
        Heading("Against the best metric learner"),
        *_prose("best", f"Reached: {told}."),
        Grid(["", "best rival", *(name for name, _, _ in OURS)], rows),
    ]


def _differences(tables: dict[str, dict[str, Column]]) -> list[Block]:
    """Every cell that differs from the paper's by more than two standard errors, and why."""
    rows = []
    for found in tables.values():
        for source, column in found.items():
            for line, values in column.lines().items():
                row = _difference(source, line, values, column)
                if row:
                    rows.append(row)
    return [
        Heading("Where we differ"),
        *_prose("differences"),
        Items(paragraphs("reasons")),
        Grid(["", "method", "excess, ours", "the paper's", "difference", "why"], rows),
    ]


def _difference(
    source: str, line: str, values: dict[int, float], column: Column
) -> list[str] | None:
    if (source, line) not in ERRORS or not values:
        return None
    paper = ERRORS[source, line] - ERRORS[source, "Bayes"]
    mean, error = excess(column, line, "error")
    if np.isnan(error) or abs(mean - paper) <= 2 * error:
        return None
    n_rows = int(source.split("N ")[1].split(",")[0])
    reason = why(line, n_rows, mean - paper)
    return [source, line, _number(mean, error), f"{paper:.3f}", f"{mean - paper:+.3f}", reason]


def _pure(found: dict[str, Column]) -> list[Block]:
    """No column alone says anything: the ablations beside sDist."""
    names = list(dict.fromkeys(line for column in found.values() for line in column.lines()))
    rows = []
    most = max(len(column.bayes()) for column in found.values())
    for line in [*names, "Bayes"]:
        values = [c.bayes() if line == "Bayes" else c.lines().get(line, {}) for c in found.values()]
        texts = [_beside(one, None, most) for one in values]
        states = [_state(c.rows.get(line, [])) for c in found.values()]
        rows.append([line, *(text or state for text, state in zip(texts, states))])
    return [
        Heading("Pure interactions"),
        *_prose("pure"),
        Grid(["", *(source.replace(", N 500", "") for source in found)], rows),
    ]


def _real(found: dict[str, Column], extent: Extent) -> list[Block]:
    blocks: list[Block] = [
        Heading("Table 3: real data"),
        *_prose("real"),
    ]
    for source, column in found.items():
        shape = load(source, 0).X_train.shape
        note = f", subsampled to {SHORT_ROWS} rows" if extent.short else ""
        blocks.append(Heading(f"{source}, {shape[0]} x {shape[1]} training rows{note}", 3))
        blocks.append(_real_table(source, column))
        if source == "SECOM":
            blocks += _prose("secom")
    return blocks


def _real_table(source: str, column: Column) -> Grid:
    most = max(len(values) for values in column.lines().values())
    rows = []
    for line, values in column.lines().items():
        method = "sDist" if line == "sDist, margin classifier" else line
        own = column.rows[method]
        paper = ERRORS.get((source, line))
        text = _beside(values, paper, most) or _state(own)
        seconds = mean_and_error(measured(own, "cpu_seconds").values())[0]
        once = mean_and_error(measured(own, "one_fit_seconds").values())[0]
        used = mean_and_error(measured(own, "variables").values())[0]
        rows.append(
            [
                line,
                text,
                "" if np.isnan(used) else f"{used:.1f}",
                "" if np.isnan(once) else f"{once:.2f}",
                "" if np.isnan(seconds) else f"{seconds:.1f}",
                f"{SECONDS[source, line]:.1f}" if (source, line) in SECONDS else "",
            ]
        )
    head = ["", "error / the paper's / difference", "variables", "one fit, s", "all, s", "paper, s"]
    return Grid(head, rows)


def _grouped(cells: list[Cell], results: Results) -> dict[str, dict[str, list[Row]]]:
    """source to method to rows, those that were measured."""
    return {
        source: {
            method: [row for row in rows if row["status"] == "ok"]
            for method, rows in column.rows.items()
        }
        for source, column in columns(cells, results).items()
    }


def _figure1(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    (row,) = next(iter(_grouped(cells, results).values()))["sDist"]
    weights = ", ".join(f"x{i + 1} {value:.0%}" for i, value in enumerate(row["importances"]))
    caption = (
        "Figure 1. XOR of 200 rows on a tilted plane; x3 is a combination of x1 and x2. Right: the "
        "surface on which distances are taken, its height z the first principal component of "
        f"L φ(x). Importances: {weights}."
    )
    return [Heading("Figure 1"), Picture("figure1", _figures.tilted_plane(row), caption)]


def _figure2(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = {source: methods["sDist"] for source, methods in _grouped(cells, results).items()}
    caption = (
        "Figure 2. The first principal component of L φ(x) over the two informative of 50 columns, "
        "the others at their means, at the first, middle and last step: the parabola of the rings, "
        "the saddle of the XOR."
    )
    return [Heading("Figure 2"), Picture("figure2", _figures.surfaces(rows), caption)]


def _figure3(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    tables = _grouped(cells, results)
    shape = {source: load(source, 0).X_train.shape[1] for source in REAL}
    caption = (
        "Figure 3. Variables that each method uses, in percent of p; for sDist a dash marks the "
        "paper's count, terms selected among the candidates at the stop. Below, seconds of one fit."
    )
    picture = _figures.selection_and_time(tables, shape)
    return [Heading("Figure 3"), Picture("figure3", picture, caption)]


def _figure4(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = _grouped(cells, results)["Madelon"]
    repeats = min(len(found) for found in rows.values())
    caption = (
        f"Figure 4. Madelon, to the letter, {_steps(cells)} steps: errors in five folds, "
        f"{repeats} times. Above: refreshes; below: bagging fraction and sparsity."
    )
    return [Heading("Figure 4"), Picture("figure4", _figures.sensitivity(rows), caption)]


def _steps(cells: list[Cell]) -> int:
    return int(cells[0].settings["max_iter"])


def _figure5(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = _grouped(cells, results)["Ionosphere"]
    repeats = min(len(found) for found in rows.values())
    caption = (
        f"Figure 5. Ionosphere: kNN and the margin classifier under the same metrics, errors in "
        f"five folds, {repeats} times."
    )
    return [Heading("Figure 5"), Picture("figure5", _figures.classifiers(rows), caption)]


def _figure6(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    caption = (
        "Figure 6. Along the path, at the refreshed steps, one line for each of "
        f"{extent.few()} repeats: loss, complexity, and the error of 3-NN on the training rows, "
        "each left out (dotted), and on the test rows."
    )
    return [
        Heading("Figure 6"),
        Picture("figure6", _figures.paths(_grouped(cells, results)), caption),
    ]


FIGURES = {
    "figure1": _figure1,
    "figure2": _figure2,
    "figure3": _figure3,
    "figure4": _figure4,
    "figure5": _figure5,
    "figure6": _figure6,
}
