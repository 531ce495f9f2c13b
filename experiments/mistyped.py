"""The scaling by the other rows: its gain with a mistyped value, and its cost without one.

    python -m experiments.mistyped                           # XOR with one extreme value
    python -m experiments.mistyped SECOM Leukemia            # real tables

If a few values determine the deviation of a column, the column is scaled by the deviation of the
other rows (``boosting.scaling``). The same fits are run with and without this scaling. Seeds start
at 100, as for all choices of defaults.
"""

from __future__ import annotations

import argparse

from metricboost.boosting import scaling
from metricboost.datasets import make_xor

from . import tables
from .measures import scores, timed_fit
from .models import build
from .results import Cell, Results, Row, mean_and_error, measured, number, paired
from .runner import measure_missing
from .tables import Split

REMEDIES = {"without": 0.0, "with": scaling.INFLATED}
#: The size of the mistyped value, in deviations of its column.
FAR = (50, 100, 200, 300, 1000, 10_000)


def mistyped(far: float, seed: int) -> Split:
    X, y, info = make_xor(1300, 20, informative=2, random_state=seed, return_info=True)
    rows, column = X[:300].copy(), info.informative[0]
    rows[seed % 7, column] = far * X[:, column].std()
    return Split(rows, y[:300], X[300:], y[300:])


def measure(cell: Cell) -> Row:
    """Fit with or without the scaling. The process does nothing else: a constant is changed."""
    scaling.INFLATED = REMEDIES[cell.model]
    far = cell.settings.get("far")
    split = tables.load(cell.table, cell.seed) if far is None else mistyped(far, cell.seed)
    model = build("defaults", {}).set_params(random_state=cell.seed)
    return timed_fit(model, split) | scores(model, split)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print-only", action="store_true")
    arguments, results = parser.parse_args(), Results()
    settings: dict[str, dict[str, int]] = {name: {} for name in arguments.tables}
    settings = settings or {f"XOR, one value at {far}": {"far": far} for far in FAR}
    seeds = range(*(arguments.seeds or (100, 120 if arguments.tables else 110)))
    cells = [
        Cell("mistyped", name, model, seed, own)
        for name, own in settings.items()
        for seed in seeds
        for model in REMEDIES
    ]
    if not arguments.print_only:
        measure_missing(cells, results, measure, jobs=arguments.jobs)
    for name in settings:
        key = "auc" if name == "SECOM" else "error"  # the error on SECOM has no meaning
        found = [measured(results.seeds("mistyped", name, model), key) for model in REMEDIES]
        share = tables.overlap(name)
        means = [number(*mean_and_error(one.values(), share)) for one in found]
        told = ", ".join(f"{how} {mean}" for how, mean in zip(REMEDIES, means))
        gap = number(*paired(found[1], found[0], share), sign="+")
        print(f"{name}: {key} {told}; difference {gap}")


if __name__ == "__main__":
    main()
