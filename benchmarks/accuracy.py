"""Errors with the defaults, on real and simulated tables, beside the ablations.

    python -m benchmarks.accuracy                  # seeds 0 to 4, as quoted
    python -m benchmarks.accuracy --seeds 100 105  # others, for choosing

A quick look; `benchmarks.quality` is the study. Nothing is tuned, nothing is kept.
"""

from __future__ import annotations

import argparse

import numpy as np
from joblib import Parallel, delayed

from .cells import Row, measure
from .models import build
from .tables import load

TABLES = (
    "Madelon",
    "Ionosphere",
    "double ring, p 50",
    "double ring, p 500",
    "XOR, p 50",
    "XOR, p 500",
    "pure XOR, p 50",
    "pure XOR, p 500",
    "pure XOR, p 2000, N 300",
    "pure ring, p 500",
)
MODELS = (
    "defaults",
    "without screening",
    "without pruning",
    "without gate",
    "screening + logistic",
    "screening + 10-NN",
    "L1 logistic, all pairs",
    "3-NN",
)


def one(table: str, model: str, seed: int) -> Row:
    return measure(build(model), load(table, seed))


def wanted(table: str, name: str, full: bool) -> bool:
    """The ablations belong beside the pure interactions; L1 on all pairs is slow and large."""
    if name in ("defaults", "3-NN"):
        return True
    if name == "L1 logistic, all pairs":
        return full and table.startswith("pure") and "2000" not in table
    return table.startswith("pure") or full


def line(name: str, rows: list[Row]) -> str:
    def mean(key: str) -> float:
        values = [row[key] for row in rows if key in row]
        return float(np.mean(values)) if values else float("nan")

    errors = [row["error"] for row in rows]
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else float("nan")
    return (
        f"  {name:24}{np.mean(errors):8.3f} ({spread:.3f}){np.max(errors):8.3f}"
        f"{mean('variables'):11.1f}{mean('share_relevant'):10.2f}{mean('seconds'):9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FROM", "TO"))
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="all ablations on all tables")
    arguments = parser.parse_args()
    seeds = range(*arguments.seeds)
    print(f"{'seeds ' + str(list(seeds)):26}{'error':>8} {'(s.e.)':7}{'worst':>8}"
          f"{'variables':>11}{'relevant':>10}{'seconds':>9}")  # fmt: skip
    for table in arguments.tables:
        bayes = load(table, seeds[0]).bayes_error
        print(table + (f" (Bayes error {bayes:.3f})" if bayes else ""))
        for name in MODELS:
            if wanted(table, name, arguments.full):
                jobs = (delayed(one)(table, name, seed) for seed in seeds)
                print(line(name, Parallel(arguments.jobs)(jobs)), flush=True)


if __name__ == "__main__":
    main()
