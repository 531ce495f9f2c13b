"""The threshold of the pair screening: errors of the defaults with each margin, paired by seed.

python -m benchmarks.screening
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from metricboost import SDistClassifier
from metricboost.datasets import make_double_ring, make_xor
from metricboost.studies._results import mean_and_error
from metricboost.studies._sources import simulated

MARGINS = (0.5, 0.0, -0.5)
#: maker, rows, columns, informative, seeds
TABLES = (
    (make_double_ring, 100, 50, 0.1, 12),
    (make_double_ring, 100, 500, 0.1, 8),
    (make_xor, 100, 500, 0.1, 8),
    (make_double_ring, 200, 60, 2, 16),
    (make_xor, 150, 60, 2, 16),
    (make_xor, 300, 20, 2, 16),
    (make_xor, 400, 60, 2, 16),
    (make_double_ring, 500, 500, 0.1, 6),
    (make_xor, 500, 500, 2, 6),
)


def errors(make: Any, n: int, p: int, informative: float, seeds: int) -> np.ndarray:
    """One row a seed, one column a margin; the seeds are those the defaults were chosen on."""
    learning = importlib.import_module("metricboost.boosting.learn")
    found = np.empty((seeds, len(MARGINS)))
    for i in range(seeds):
        split = simulated(make, n, p, informative, 100 + i)
        for j, margin in enumerate(MARGINS):
            learning.MARGIN_BEFORE_GATE = margin
            model = SDistClassifier(random_state=0).fit(split.X_train, split.y_train)
            found[i, j] = np.mean(model.predict(split.X_test) != split.y_test)
    return found


def main() -> None:
    print(f"{'margin':44}" + "".join(f"{margin:>8}" for margin in MARGINS) + "   last - first")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for make, n, p, informative, seeds in TABLES:
            found = errors(make, n, p, informative, seeds)
            name = f"{make.__name__}({n}, {p}, informative={informative}), {seeds} seeds"
            means = "".join(f"{mean:8.3f}" for mean in found.mean(axis=0))
            mean, error = mean_and_error(found[:, -1] - found[:, 0])
            print(f"{name:44}{means}   {mean:+.3f} ({error:.3f})", flush=True)


if __name__ == "__main__":
    main()
