"""``metricboost reproduce``: the paper's tables and figures, cell by cell."""

from __future__ import annotations

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from ..studies._cells import Cell, Row
from ..studies._document import write_page
from ..studies._experiments import EXPERIMENTS, Extent, cells_of
from ..studies._page import blocks
from ..studies._results import Results
from ..studies._running import run_cells
from ..studies._tasks import measure
from ._console import Voice, WrongUsageError

#: The name of the page.
PAGE = "reproduction"


def run_reproduce(
    voice: Voice, names: list[str], extent: Extent, jobs: int | None, limit: float,
    results: Path, output: Path, run: bool,
) -> None:  # fmt: skip
    names = chosen_names(names)
    _check_installed()
    known = Results(results)
    cells = cells_of(names, extent)
    todo = known.missing(cells, limit) if run else []
    voice.say(f"{len(cells)} cells, {len(todo)} to measure")
    if todo:
        _measured(voice, todo, results, jobs or os.cpu_count() or 1, limit)
    if run:
        known.pack(cells)
    found = known.rows(cells)
    if not found:
        raise WrongUsageError("No cell is measured yet, so there is no page to write.")
    written = write_page(blocks(names, extent, known), output, PAGE)
    states = Counter(row["status"] for row in found)
    voice.say(", ".join(f"{count} {state}" for state, count in states.items()))
    voice.say(f"written: {written[0]}, {written[1]}")
    pages = {"markdown": str(written[0]), "html": str(written[1])}
    voice.result({"cells": len(cells), "states": dict(states), **pages})


def chosen_names(names: list[str]) -> list[str]:
    """Tables and figures in the order of the page; "all" is everything."""
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        raise WrongUsageError(f"No {unknown[0]!r} here: choose from {', '.join(EXPERIMENTS)}, all.")
    everything = not names or "all" in names
    return [name for name in EXPERIMENTS if everything or name in names]


def _check_installed() -> None:
    """Before hours of work: what draws the figures, and LightGBM."""
    for module in ("matplotlib", "lightgbm"):
        if find_spec(module) is None:
            raise ValueError(f'This needs {module}: pip install "metricboost[study]"')


def _measured(voice: Voice, todo: list[Cell], results: Path, jobs: int, limit: float) -> None:
    with voice.counting(len(todo)) as count:

        def tell(cell: Cell, row: Row, done: int, total: int) -> None:
            count(str(cell))
            if row["status"] != "ok":
                voice.warn(f"{cell}: {row['status']} {row.get('message', '')}".rstrip())

        run_cells(todo, results, measure, jobs=jobs, limit=limit, tell=tell)
