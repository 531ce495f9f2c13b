"""The tables of the page, with the numbers of the paper, and summaries of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..results import Row, mean_and_error, measured, number, paired
from ..tables import REAL, SIZES, simulation_name
from .causes import Causes
from .columns import OURS, Column, best_rival, excess
from .document import Block, Grid, Heading, Items
from .prose import paragraphs, prose
from .published import ERRORS, SECONDS
from .studies import SHORT_ROWS, Extent

#: The simulation of a table.
KINDS = {"table1": "double ring", "table2": "XOR"}


def _beside(
    values: dict[int, float],
    paper: float | None,
    most: int,
    rows: Sequence[Row] = (),
    overlap: float = 0.0,
) -> str:
    """Our error / the paper's / the difference, the number of repeats if not all, and failures."""
    mean, error = mean_and_error(values.values(), overlap)
    if np.isnan(mean):
        text = _failures(rows) or "not measured"
        return text if paper is None else f"{text} / {paper:.3f}"
    text = number(mean, error)
    if paper is not None:
        text += f" / {paper:.3f} / {mean - paper:+.3f}"
    if len(values) < most:
        text += f", {len(values)} repeat" + ("s" if len(values) > 1 else "")
    return ", ".join(part for part in (text, _failures(rows)) if part)


def _failures(rows: Sequence[Row]) -> str:
    states = Counter(row["status"] for row in rows if row["status"] != "ok")
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def simulation_table(name: str, found: dict[str, Column]) -> list[Block]:
    kind = KINDS[name]
    number = name.removeprefix("table")
    blocks: list[Block] = [
        Heading(f"Table {number}: {kind}"),
        *prose("table"),
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
            paper = ERRORS.get((source, line))
            left_out = line != "Bayes" and line not in column.lines()
            cells.append(
                "" if left_out else _beside(values, paper, most, column.of(line), column.overlap)
            )
        rows.append(cells)
    return Grid(["", *(source.split(", ")[-1] for source in sources)], rows)


class _Tally:
    """Count the sources on which each of our lines reaches a bound, among the measured ones."""

    def __init__(self) -> None:
        self.reached = {name: [0, 0] for name, _, _ in OURS}

    def judged(self, name: str, mean: float, error: float, bound: float, sign: str = "") -> str:
        """A mean, in bold if it is at most one standard error above the bound."""
        if np.isnan(mean):
            return ""
        good = mean <= bound + np.nan_to_num(error)
        self.reached[name][0] += good
        self.reached[name][1] += 1
        text = number(mean, error, sign)
        return f"**{text}**" if good else text

    def __str__(self) -> str:
        told = (f"{name} {good} of {total}" for name, (good, total) in self.reached.items())
        return "; ".join(told)


def excess_table(columns: dict[str, Column]) -> tuple[str, list[Block]]:
    """The excess over the Bayes error beside the paper's: a summary and the table."""
    rows, tally = [], _Tally()
    for source, column in columns.items():
        paper = ERRORS[source, "sDist"] - ERRORS[source, "Bayes"]
        cells = (tally.judged(n, *excess(column, method, key), paper) for n, method, key in OURS)
        rows.append([source, f"{paper:.3f}", *cells])
    return f"{paragraphs('excess in short')[0]} {tally}.", [
        Heading("Excess over the Bayes error"),
        *prose("excess"),
        Grid(["", "the paper's sDist", *(name for name, _, _ in OURS)], rows),
    ]


def _to_rival(column: Column, method: str, key: str, rival: str) -> tuple[float, float]:
    return paired(column.errors(method, key), column.errors(rival), column.overlap)


def best_table(columns: dict[str, Column]) -> tuple[str, list[Block]]:
    """sDist against the best metric learner of every source: a summary and the table."""
    rows, tally = [], _Tally()
    for source, column in columns.items():
        rival = best_rival(column)
        if rival is None:
            continue
        errors = column.errors(rival)
        cells = (
            tally.judged(name, *_to_rival(column, method, key, rival), 0.0, "+")
            for name, method, key in OURS
        )
        rows.append(
            [source, f"{rival}, {number(*mean_and_error(errors.values(), column.overlap))}", *cells]
        )
    return f"{paragraphs('best in short')[0]} {tally}.", [
        Heading("Against the best metric learner"),
        *prose("best"),
        Grid(["", "best rival", *(name for name, _, _ in OURS)], rows),
    ]


def differences_table(columns: dict[str, Column], causes: Causes) -> list[Block]:
    """The cells that differ from the paper's by more than two standard errors, with the causes."""
    rows = []
    for source, column in columns.items():
        for line in column.lines():
            mean, error, paper = _beside_paper(source, line, column)
            if abs(mean - paper) > 2 * error:
                why = causes.why(source, line, column)
                compared = [number(mean, error), number(paper), number(mean - paper, sign="+")]
                rows.append([source, line, *compared, why])
    return [
        Heading("Where we differ"),
        *prose("differences"),
        Items(paragraphs("reasons")),
        Grid(["", "method", "ours", "the paper's", "difference", "why"], rows),
    ]


def _beside_paper(source: str, line: str, column: Column) -> tuple[float, float, float]:
    """(mean, standard error, the paper's) of the error; for simulations, of the excess."""
    paper = ERRORS.get((source, line), np.nan)
    if (source, "Bayes") in ERRORS:
        return *excess(column, line, "error"), paper - ERRORS[source, "Bayes"]
    return *mean_and_error(column.errors(line).values(), column.overlap), paper


def pure_table(found: dict[str, Column]) -> list[Block]:
    """The tables in which a single column holds no information about the class."""
    names = list(dict.fromkeys(line for column in found.values() for line in column.lines()))
    rows = []
    most = max(len(column.bayes()) for column in found.values())
    for line in [*names, "Bayes"]:
        values = [c.bayes() if line == "Bayes" else c.lines().get(line, {}) for c in found.values()]
        texts = (_beside(one, None, most, c.of(line)) for one, c in zip(values, found.values()))
        rows.append([line, *texts])
    return [
        Heading("Pure interactions"),
        *prose("pure"),
        Grid(["", *(source.replace(", N 500", "") for source in found)], rows),
    ]


def real_in_short(found: dict[str, Column]) -> str:
    """Our errors and those of the paper's sDist, with two digits as in the paper."""
    told = []
    for source, column in found.items():
        means = ((n, mean_and_error(column.errors(m, key).values())[0]) for n, m, key in OURS)
        errors = ", ".join(f"{name} {mean:.3f}" for name, mean in means if not np.isnan(mean))
        told.append(f"{source}: {errors or 'not measured'} (paper {ERRORS[source, 'sDist']:.2f})")
    return f"{paragraphs('real in short')[0]} {'; '.join(told)}."


def real_tables(found: dict[str, Column], extent: Extent) -> list[Block]:
    blocks: list[Block] = [
        Heading("Table 3: real data"),
        *prose("real"),
    ]
    for source, column in found.items():
        note = f", subsampled to {SHORT_ROWS} rows" if extent.short else ""
        shape = f"{REAL[source].rows} x {REAL[source].columns}"
        blocks.append(Heading(f"{source}, {shape} training rows{note}", 3))
        blocks.append(_real_table(source, column))
        if source == "SECOM":
            blocks += prose("secom")
    return blocks


def _real_table(source: str, column: Column) -> Grid:
    most = max(len(values) for values in column.lines().values())
    rows = []
    for line, values in column.lines().items():
        own = column.of(line)
        paper = ERRORS.get((source, line))
        text = _beside(values, paper, most, own, column.overlap)
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
