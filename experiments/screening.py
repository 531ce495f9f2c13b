"""The threshold of the pair screening: errors of the defaults with each margin, paired by seed.

python -m experiments.screening
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from .measures import error_of_split
from .results import Cell, Results, Row, mean_and_error, measured, number, paired
from .runner import measure_missing

MARGINS = (0.5, 0.0, -0.5)
#: Seeds of each simulation, from 100 on, as for all choices.
TABLES = {
    "double ring, N 100, p 50": 12,
    "double ring, N 100, p 500": 8,
    "XOR, N 100, p 500": 8,
    "pure double ring, N 200, p 60": 16,
    "pure XOR, N 150, p 60": 16,
    "pure XOR, N 300, p 20": 16,
    "pure XOR, N 400, p 60": 16,
    "double ring, N 500, p 500": 6,
    "pure XOR, N 500, p 500": 6,
}


def measure(cell: Cell) -> Row:
    """The error with another margin. The process does nothing else: a constant is changed."""
    learning: Any = importlib.import_module("metricboost.training.learn")
    learning.MARGIN_BEFORE_GATE = cell.settings["margin"]
    return error_of_split(Cell("", cell.table, "defaults", cell.seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="at most this number for each table")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print-only", action="store_true")
    arguments, results = parser.parse_args(), Results()
    cells = [
        Cell("screening", table, f"margin {margin}", 100 + i, {"margin": margin})
        for table, seeds in TABLES.items()
        for i in range(min(seeds, arguments.seeds or seeds))
        for margin in MARGINS
    ]
    if not arguments.print_only:
        measure_missing(cells, results, measure, jobs=arguments.jobs)
    print(f"{'margin':32}" + "".join(f"{margin:>8}" for margin in MARGINS) + "   last - first")
    for table in TABLES:
        found = [measured(results.seeds("screening", table, f"margin {m}")) for m in MARGINS]
        means = "".join(f"{mean_and_error(errors.values())[0]:8.3f}" for errors in found)
        print(f"{table:32}{means}   {number(*paired(found[-1], found[0]), sign='+')}")


if __name__ == "__main__":
    main()
