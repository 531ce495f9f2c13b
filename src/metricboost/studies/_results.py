"""What is known of a study's cells: files of single cells, and files with many of them.

A cell is written to a file of its own as it ends. When a run is through, the cells of a study are
packed into one file, a line each, which is what lies in a repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .._files import replacing
from ._cells import Cell, Row, is_open, read, slug


@dataclass
class Results:
    """Rows of cells in a folder."""

    folder: Path
    _packed: dict[str, dict[str, Row]] = field(default_factory=dict)

    def row(self, cell: Cell) -> Row | None:
        loose = read(cell, self.folder)
        return loose if loose is not None else self._pack(cell.study).get(self._key(cell))

    def rows(self, cells: Iterable[Cell]) -> list[Row]:
        """The rows of the cells that have one, in their order."""
        return [row for cell in cells if (row := self.row(cell)) is not None]

    def missing(self, cells: Iterable[Cell], limit: float) -> list[Cell]:
        return [cell for cell in cells if is_open(self.row(cell), limit)]

    def pack(self, cells: Iterable[Cell]) -> None:
        """Move the files of finished cells into one file a study."""
        loose: dict[str, dict[str, Row]] = {}
        for cell in cells:
            row = read(cell, self.folder)
            if row is not None and row["status"] in ("ok", "timeout"):
                loose.setdefault(cell.study, {})[self._key(cell)] = row
        for study, rows in loose.items():
            self._packed.pop(study, None)  # another run may have packed some since
            packed = self._pack(study) | rows
            lines = (f"{json.dumps(key)}: {json.dumps(packed[key])}" for key in sorted(packed))
            with replacing(self._file(study)) as unfinished:
                unfinished.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            self._packed[study] = packed
            for key in rows:
                self._remove(self.folder / slug(study) / key)

    def _pack(self, study: str) -> dict[str, Row]:
        if study not in self._packed:
            try:
                content = json.loads(self._file(study).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                content = {}
            self._packed[study] = content
        return self._packed[study]

    def _file(self, study: str) -> Path:
        return self.folder / f"{slug(study)}.json"

    def _key(self, cell: Cell) -> str:
        return cell.path(self.folder).relative_to(self.folder / slug(cell.study)).as_posix()

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.folder or any(folder.iterdir()):
                break
            folder.rmdir()


def measured(rows: Iterable[Row], key: str = "error") -> dict[int, float]:
    """Repeat to value, of the rows that have one."""
    return {row["repeat"]: row[key] for row in rows if row["status"] == "ok" and key in row}


def mean_and_error(values: Iterable[float], overlap: float = 0.0) -> tuple[float, float]:
    """The mean, and its standard error over the repeats.

    Repeats that are splits of one table share most of their training rows, so that they vary too
    little. ``overlap``, the number of test rows divided by the number of training rows, corrects
    the standard error for this (Nadeau and Bengio 2003). It is 0 for tables that are drawn anew.
    """
    array = np.array(list(values))
    if not len(array):
        return np.nan, np.nan
    if len(array) == 1:
        return float(array[0]), np.nan
    return float(array.mean()), float(array.std(ddof=1) * np.sqrt(1 / len(array) + overlap))
