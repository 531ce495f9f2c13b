"""The time of a prediction: for one row, and for 100,000 rows.

    python -m experiments.latency                         # two tables
    python -m experiments.latency Spambase Madelon
    python -m experiments.latency --calls 1000

A model learns from at most 2,000 rows with each readout that ``classifier="auto"`` tries. Then
``predict`` is called with one row after the other, and once with 100,000 rows, which repeat the
test rows in random order. The models predict with all cores. Other work on the machine shows in the
upper percentiles.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from metricboost import SDistClassifier
from metricboost.model.readouts import READOUTS

from .against import SEED, load
from .results import record

TABLES = "double ring, N 5000, p 50", "Spambase"
MOST_TRAINED, MANY_ROWS = 2000, 100_000
PERCENTILES = 5, 50, 90, 99
AUTOMATIC = [name for name, readout in READOUTS.items() if readout.automatic]


def fitted(X: npt.NDArray[Any], y: npt.NDArray[Any], classifier: str) -> SDistClassifier:
    if len(X) > MOST_TRAINED:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_TRAINED, stratify=y, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SDistClassifier(classifier=classifier, random_state=0).fit(X, y)


def seconds_of(model: SDistClassifier, X: npt.NDArray[Any]) -> float:
    start = time.perf_counter()
    model.predict(X)
    return time.perf_counter() - start


def measure(table: str, classifier: str, calls: int) -> None:
    split = load(table)
    model = fitted(split.X_train, split.y_train, classifier)
    rng = np.random.default_rng(SEED)
    rows = np.asarray(split.X_test)[rng.integers(0, len(split.X_test), MANY_ROWS)]
    seconds_of(model, rows[:1])  # the first prediction embeds the training rows
    single = [seconds_of(model, rows[i : i + 1]) for i in range(calls)]
    found = dict(zip(PERCENTILES, 1e3 * np.percentile(single, PERCENTILES)))
    many = seconds_of(model, rows)
    trained = len(model.model_.rows)
    record(
        "latency", table, classifier, rows=trained, milliseconds=found, many_rows=MANY_ROWS,
        seconds=many, rank=model.metric_.rank, calls=calls,
    )  # fmt: skip
    told = ", ".join(f"{share}%: {value:.2f}" for share, value in found.items())
    print(
        f"{table}, {classifier}, {trained} training rows, {model.metric_.rank} dimensions: "
        f"one row in ms: {told}; {MANY_ROWS:,} rows: {many:.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="as in experiments.against")
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()
    for table in arguments.tables or TABLES:
        for classifier in AUTOMATIC:
            measure(table, classifier, arguments.calls)


if __name__ == "__main__":
    main()
