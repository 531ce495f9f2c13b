"""Compute the tables and figures of the sDist paper again. A stopped run continues.

python -m experiments.paper all              # days; `make reproduce`
python -m experiments.paper table1 --no-run  # only write the page
python -m experiments.paper all --fast       # one repeat of small sizes, in minutes
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from ..results import RESULTS, Results
from ..runner import measure_missing
from .document import write_page
from .page import blocks
from .studies import STUDIES, Extent, cells_of
from .tasks import measure

#: The name of the page.
PAGE = "reproduction"
#: Where ``--fast`` keeps its results and its page.
FAST = Path("build/paper")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, {', '.join(STUDIES)}")
    parser.add_argument("--repeats", type=int, default=20, help="repeats of every cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--fast", action="store_true", help="one repeat of small sizes")
    parser.add_argument("--limit", type=float, default=3600, help="CPU seconds of a cell")
    parser.add_argument("--results", type=Path, help="the folder of the results")
    parser.add_argument("--output", type=Path, help="the folder of the page")
    parser.add_argument("--no-run", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--fresh", action="store_true", help="measure known cells again")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in (*STUDIES, "all"):
            parser.error(
                f"{name!r} is not a table or figure: choose from {', '.join(STUDIES)}, all"
            )
    return arguments


def main() -> None:
    arguments = parsed()
    fast = arguments.fast
    everything = not arguments.names or "all" in arguments.names
    names = [name for name in STUDIES if everything or name in arguments.names]
    results = Results(arguments.results or (FAST / "results" if fast else RESULTS))
    extent = Extent(1 if fast else arguments.repeats, fast)
    cells = cells_of(names, extent)
    if not arguments.no_run:
        measure_missing(
            cells, results, measure,
            jobs=arguments.jobs, limit=arguments.limit, fresh=arguments.fresh,
        )  # fmt: skip
    found = results.rows(cells)
    if not found:
        raise SystemExit("No cell is measured yet, so there is no page to write.")
    output = arguments.output or (FAST if fast else Path("docs"))
    written = write_page(blocks(names, extent, results), output, PAGE)
    states = Counter(row["status"] for row in found)
    print(", ".join(f"{count} {state}" for state, count in states.items()))
    print(f"written: {written[0]}")


if __name__ == "__main__":
    main()
