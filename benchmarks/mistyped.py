"""One mistyped value in an informative column, and what the remedy costs where there is none.

    python -m benchmarks.mistyped                           # XOR with one value far out
    METRICBOOST_DATA=... python -m benchmarks.mistyped SECOM Leukemia Arcene

The deviation of a column that a few values have made is that of the other rows
(``boosting.scaling``): with it and without, the same fits. Seeds from 100 on, as for all choices.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.metrics import roc_auc_score

from metricboost import SDistClassifier
from metricboost.boosting import scaling
from metricboost.datasets import make_xor

from . import tables

REMEDIES = {"without": 0.0, "with": scaling.INFLATED}
#: How far out the value lies, in deviations of its column.
FAR = (50, 100, 200, 300, 1000, 10_000)


def errors(fit_and_score: Callable[[], float]) -> list[float]:
    found = []
    for share in REMEDIES.values():
        scaling.INFLATED = share
        found.append(fit_and_score())
    return found


def mistyped(far: float, seed: int) -> list[float]:
    X, y, info = make_xor(1300, 20, informative=2, random_state=seed, return_info=True)
    rows, column = X[:300].copy(), info.informative[0]
    rows[seed % 7, column] = far * X[:, column].std()

    def score() -> float:
        model = SDistClassifier(random_state=seed).fit(rows, y[:300])
        return 1 - float(model.score(X[300:], y[300:]))

    return errors(score)


def on_table(name: str, seed: int) -> list[float]:
    split = tables.load(name, seed)

    def score() -> float:
        model = SDistClassifier(random_state=seed).fit(split.X_train, split.y_train)
        if name == "SECOM":  # its error says nothing
            return float(roc_auc_score(split.y_test, model.predict_proba(split.X_test)[:, 1]))
        return 1 - float(model.score(split.X_test, split.y_test))

    return errors(score)


def show(name: str, found: list[list[float]]) -> None:
    rows = np.array(found)
    means = ", ".join(f"{how} {mean:.3f}" for how, mean in zip(REMEDIES, rows.mean(axis=0)))
    apart = rows[:, 1] - rows[:, 0]
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    print(f"{name}: {means}; difference {apart.mean():+.4f} ({error:.4f})", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # of constant columns
    for name in sys.argv[1:]:
        show(f"{name}, 20 splits", [on_table(name, seed) for seed in range(100, 120)])
    for far in () if sys.argv[1:] else FAR:
        show(f"one value at {far}, 10 tables", [mistyped(far, s) for s in range(100, 110)])
