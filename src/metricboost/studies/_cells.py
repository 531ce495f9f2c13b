"""Cells: the pieces that a study is cut into, each with a file of its own.

A file holds what was measured, or why nothing was. It is written in one piece when the cell ends,
so that a study that was stopped, however it was stopped, goes on where it was. Its name has a
fingerprint of the cell's settings: other settings are another file, and no others are touched.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .._files import replacing

#: What a file holds: "status" is "ok", "timeout" or "failed".
Row = dict[str, Any]


class Piece(Protocol):
    """What the runner needs to know of a cell."""

    def path(self, results: Path) -> Path:
        """Its file."""

    def names(self) -> dict[str, Any]:
        """What stands in the file beside the result."""

    def group(self) -> tuple[str, str]:
        """Cells of one group take about as long as one another."""


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Attributes
    ----------
    study : str
        The table or figure it belongs to, such as ``table1``.
    task : str
        What is to be done, a name in ``_tasks.TASKS``.
    method : str
        The row of a table, or the curve of a figure.
    source : str
        Where the data come from.
    repeat : int
        The seed of everything drawn at random.
    settings : mapping
        All else that the result depends on; plain values, as in JSON.
    """

    study: str
    task: str
    method: str
    source: str
    repeat: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def path(self, results: Path) -> Path:
        name = f"{self.repeat:03d}-{self.fingerprint}.json"
        return results / slug(self.study) / slug(self.source) / slug(self.method) / name

    def names(self) -> dict[str, Any]:
        return {
            "study": self.study,
            "method": self.method,
            "source": self.source,
            "repeat": self.repeat,
        }

    def group(self) -> tuple[str, str]:
        return self.source, self.method

    @property
    def fingerprint(self) -> str:
        told = [self.task, self.method, self.source, dict(self.settings)]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]

    def __hash__(self) -> int:
        return hash((self.study, self.task, self.method, self.source, self.repeat))

    def __str__(self) -> str:
        return f"{self.study}: {self.method} on {self.source}, repeat {self.repeat}"


def slug(name: str) -> str:
    """A name as a folder of that name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read(cell: Piece, results: Path) -> Row | None:
    """What is known of a cell; a file that cannot be read is no file."""
    try:
        content = json.loads(cell.path(results).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "status" in content else None


def write(cell: Piece, results: Path, row: Row) -> None:
    path = cell.path(results)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**cell.names(), **row}, default=_plain)
    with replacing(path) as unfinished:
        unfinished.write_text(_lines(text) + "\n", encoding="utf-8")


def _lines(text: str) -> str:
    """One line for every key, long lists of numbers in one line too."""
    content = json.loads(text)
    pairs = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(pairs) + "\n}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else repr(value)


def is_open(row: Row | None, limit: float) -> bool:
    """Whether a cell is to be measured: also one that failed, or that had less time."""
    if row is None or row["status"] not in ("ok", "timeout"):
        return True
    return bool(row["status"] == "timeout" and row.get("limit", 0) < limit)
