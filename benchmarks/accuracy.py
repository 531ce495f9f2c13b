"""Errors with the defaults, on real and simulated tables, beside the ablations.

    python -m benchmarks.accuracy                  # seeds 0 to 4, as quoted
    python -m benchmarks.accuracy --seeds 100 105  # others, for choosing

Nothing is tuned. The real tables need METRICBOOST_DATA or a network (see metricboost.datasets).
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from metricboost import SDistClassifier
from metricboost.inspection import ScreenedPairs

from .tables import REAL, SIMULATIONS, load

#: All p(p+1)/2 products are fitted only up to this many columns.
ALL_PAIRS_UP_TO = 500


def models() -> dict[str, object]:
    """The defaults, then the ablations."""
    logistic = LogisticRegression(max_iter=2000)
    l1 = LogisticRegression(C=0.03, l1_ratio=1.0, solver="liblinear")
    return {
        "metricboost": SDistClassifier(random_state=0),
        "without screening": SDistClassifier(random_state=0, screen_pairs=0),
        "without pruning": SDistClassifier(random_state=0, prune=None),
        "without gate": SDistClassifier(random_state=0, oob_gate=None),
        "screening + logistic": make_pipeline(ScreenedPairs(), StandardScaler(), logistic),
        "screening + 10-NN": make_pipeline(
            ScreenedPairs(), StandardScaler(), KNeighborsClassifier(10)
        ),
        "L1 logistic, all pairs": make_pipeline(
            StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), l1
        ),
        "3-NN": make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
    }


def measure(table: str, name: str, seed: int) -> dict[str, float]:
    """Error, variables, share of the importance on the relevant columns, seconds of the fit."""
    split = load(table, seed)
    model = clone(models()[name])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.X_train, split.y_train)
    seconds = time.perf_counter() - start
    row = {"error": 1 - model.score(split.X_test, split.y_test), "seconds": seconds}
    if hasattr(model, "feature_importances_"):
        importances = model.feature_importances_
        row["variables"] = float((importances > 0).sum())
        if split.relevant is not None:
            row["relevant"] = float(importances[split.relevant].sum())
    return row


def wanted(table: str, name: str, full: bool) -> bool:
    """The ablations belong beside the pure interactions; L1 on all pairs is slow and large."""
    if name in ("metricboost", "3-NN"):
        return True
    if name == "L1 logistic, all pairs":
        return full and table.startswith("pure") and "2000" not in table
    return table.startswith("pure") or full


def line(name: str, rows: list[dict[str, float]]) -> str:
    def mean(key: str) -> float:
        values = [row[key] for row in rows if key in row]
        return float(np.mean(values)) if values else float("nan")

    errors = [row["error"] for row in rows]
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else float("nan")
    return (
        f"  {name:24}{np.mean(errors):8.3f} ({spread:.3f}){np.max(errors):8.3f}"
        f"{mean('variables'):11.1f}{mean('relevant'):10.2f}{mean('seconds'):9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FROM", "TO"))
    parser.add_argument("--tables", nargs="*", default=[*REAL, *SIMULATIONS])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="all ablations on all tables")
    arguments = parser.parse_args()
    seeds = range(*arguments.seeds)
    print(f"{'seeds ' + str(list(seeds)):26}{'error':>8} {'(s.e.)':7}{'worst':>8}"
          f"{'variables':>11}{'relevant':>10}{'seconds':>9}")  # fmt: skip
    for table in arguments.tables:
        bayes = load(table, seeds[0]).bayes_error
        print(table + (f" (Bayes error {bayes:.3f})" if bayes else ""))
        for name in models():
            if wanted(table, name, arguments.full):
                jobs = (delayed(measure)(table, name, seed) for seed in seeds)
                print(line(name, Parallel(arguments.jobs)(jobs)), flush=True)


if __name__ == "__main__":
    main()
