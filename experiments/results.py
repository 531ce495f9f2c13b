"""Cells and their results: one file of JSON lines for every experiment.

A line holds the names of a cell, its measurements, and the code that measured it. A line is
appended when its cell ends, so an experiment that was stopped can be continued. A later line
replaces an earlier line of the same cell. ``tidy`` removes the earlier lines and sorts the file.

A line without a seed is a summary: the mean and the standard error over a number of splits whose
single results were not kept. The summary is used until as many splits have been measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from metricboost import __version__
from metricboost._files import replacing

#: The folder of the results. The environment variable METRICBOOST_RESULTS can name another one.
RESULTS = Path(__file__).parent / "results"

#: The result of a cell. "status" is "ok", "timeout", "failed" or "not available".
Row = dict[str, Any]
#: Table, model and seed. The seed of a summary is None.
Key = tuple[str, str, int | None]


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes
    ----------
    experiment : str
        The name of the results file.
    table, model : str
        Names in ``tables`` and ``models``, or others that the task knows.
    seed : int
        The seed of the split, or of everything drawn at random.
    settings : mapping
        Everything else that determines the result, as plain values of JSON.
    task : str
        The name of the task that measures the cell.
    """

    experiment: str
    table: str
    model: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    task: str = "test error"

    @property
    def key(self) -> Key:
        return self.table, self.model, self.seed

    @property
    def fingerprint(self) -> str:
        """A hash of the settings. A result with other settings is not a result of this cell."""
        told = [self.task, self.model, self.table, dict(self.settings)]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]

    def __str__(self) -> str:
        return f"{self.experiment}: {self.model} on {self.table}, seed {self.seed}"


class Results:
    """The results of all experiments in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get("METRICBOOST_RESULTS", RESULTS))
        self._known: dict[str, dict[Key, Row]] = {}

    def path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.jsonl"

    def of(self, experiment: str) -> dict[Key, Row]:
        """The rows of an experiment. An incomplete last line is ignored."""
        if experiment not in self._known:
            rows: dict[Key, Row] = {}
            path = self.path(experiment)
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                rows[row["table"], row["model"], row.get("seed")] = row
            self._known[experiment] = rows
        return self._known[experiment]

    def row(self, cell: Cell) -> Row | None:
        return self.of(cell.experiment).get(cell.key)

    def rows(self, cells: Iterable[Cell]) -> list[Row]:
        """The rows of the cells that have a row, in the order of the cells."""
        return [row for cell in cells if (row := self.row(cell)) is not None]

    def missing(self, cells: Iterable[Cell], limit: float) -> list[Cell]:
        """The cells to measure."""
        return [cell for cell in cells if is_open(cell, self.row(cell), limit)]

    def seeds(self, experiment: str, table: str, model: str) -> list[Row]:
        """The rows of single splits."""
        known = self.of(experiment).items()
        return [row for (t, m, seed), row in known if (t, m) == (table, model) and seed is not None]

    def summary(self, experiment: str, table: str, model: str, key: str = "error") -> Row | None:
        """The summary of splits whose results were not kept, until as many are measured."""
        row = self.of(experiment).get((table, model, None))
        if row is None or (key not in row and row["status"] == "ok"):
            return None
        found = measured(self.seeds(experiment, table, model), key)
        return None if len(found) >= row["splits"] else row

    def add(self, cell: Cell, row: Row) -> None:
        """Append the measurements of a cell."""
        self._append(cell.experiment, {**_names(cell), "settings": cell.fingerprint, **row})

    def _append(self, experiment: str, row: Row) -> None:
        row = {**row, "code": code()}
        text = json.dumps(row, default=_plain)
        path = self.path(experiment)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+") as file:
            file.write((b"" if _ends_with_newline(file) else b"\n") + text.encode() + b"\n")
        kept = json.loads(text)
        self.of(experiment)[kept["table"], kept["model"], kept.get("seed")] = kept

    def tidy(self, experiment: str) -> None:
        """Rewrite the file with one line for every cell, sorted."""
        self._known.pop(experiment, None)
        known = self.of(experiment).values()
        rows = sorted(known, key=lambda row: (row["table"], row["model"], row.get("seed", -1)))
        with replacing(self.path(experiment)) as unfinished:
            lines = "".join(json.dumps(rounded(row)) + "\n" for row in rows)
            unfinished.write_text(lines, encoding="utf-8")
        self._known.pop(experiment, None)


def record(experiment: str, table: str, model: str, seed: int = 0, **values: Any) -> None:
    """Record a measurement that a command made in its own process, such as a time."""
    results = Results()
    results.add(Cell(experiment, table, model, seed), {"status": "ok", **values})
    results.tidy(experiment)


def is_open(cell: Cell, row: Row | None, limit: float) -> bool:
    """Whether a cell must be measured. True also if it failed, or if it had less time."""
    if row is None or row["status"] not in ("ok", "timeout"):
        return True
    if row.get("settings") != cell.fingerprint:
        return True
    return bool(row["status"] == "timeout" and row.get("limit", 0) < limit)


def measured(rows: Iterable[Row], key: str = "error") -> dict[int, float]:
    """A mapping from seed to value, for the rows that have the value."""
    return {row["seed"]: row[key] for row in rows if row["status"] == "ok" and key in row}


def mean_and_error(values: Iterable[float], overlap: float = 0.0) -> tuple[float, float]:
    """The mean, and its standard error over the repeats.

    Splits of one table share most of their training rows, so their results vary too
    little. ``overlap``, the number of test rows divided by the number of training rows, corrects
    the standard error for this (Nadeau and Bengio 2003). It is 0 for tables that are drawn anew.
    """
    array = np.array(list(values))
    if not len(array):
        return np.nan, np.nan
    if len(array) == 1:
        return float(array[0]), np.nan
    return float(array.mean()), float(array.std(ddof=1) * np.sqrt(1 / len(array) + overlap))


def paired(
    one: dict[int, float], other: dict[int, float], overlap: float = 0.0
) -> tuple[float, float]:
    """The mean difference on the common seeds, and its standard error."""
    common = sorted(one.keys() & other.keys())
    return mean_and_error((one[seed] - other[seed] for seed in common), overlap)


def number(mean: float, error: float = np.nan, sign: str = "", digits: int = 3) -> str:
    """A mean and its standard error, as far as they are known."""
    if np.isnan(mean):
        return ""
    text = f"{mean:{sign}.{digits}f}"
    return text if np.isnan(error) else f"{text} ({error:.{digits}f})"


@cache
def code() -> str:
    """The version of the package, and the commit if there is a repository."""
    root = Path(__file__).parents[1]
    try:
        commit = _git(root, "rev-parse", "--short", "HEAD")
        changed = "+" if _git(root, "status", "--porcelain", "--", "src") else ""
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return f"{__version__} {commit}{changed}"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return str(done.stdout).strip()


def rounded(value: Any) -> Any:
    """Numbers rounded to six digits, which are enough for a results file."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {k: rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def _names(cell: Cell) -> Row:
    return {"table": cell.table, "model": cell.model, "seed": cell.seed}


def _ends_with_newline(file: Any) -> bool:
    if file.tell() == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else repr(value)
