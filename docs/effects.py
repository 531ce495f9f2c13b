"""What each parameter of ``SDistClassifier`` does, on three small simulated tables.

    python docs/effects.py                  # everything, some ten minutes
    python docs/effects.py max_degree clip  # some of them

Prints the mean test error, the variables kept and the seconds of a fit over three seeds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from metricboost import SDistClassifier
from metricboost.datasets import make_double_ring, make_madelon, make_xor

SEEDS = range(3)
N_TRAIN, N_TEST = 300, 1000
Maker = Callable[[int], tuple[np.ndarray, np.ndarray]]
TABLES: dict[str, Maker] = {
    "XOR, 2 of 60": lambda seed: make_xor(N_TRAIN + N_TEST, 60, informative=2, random_state=seed),
    "ring, 6 of 60": lambda seed: make_double_ring(
        N_TRAIN + N_TEST, 60, informative=0.1, random_state=seed
    ),
    "clusters, 8 of 60": lambda seed: make_madelon(
        N_TRAIN + N_TEST, 60, n_informative=4, n_redundant=4, random_state=seed
    ),
}
#: Beside the default, which is measured first.
VALUES: dict[str, list[object]] = {
    "max_iter": [20, 300],
    "n_neighbors": [3, 60],
    "n_nonzero": [1, 4],
    "learning_rate": [0.02, 0.5],
    "subsample": [0.2, 0.8, 1.0],
    "max_features": ["sqrt", None],
    "max_degree": [1, 3],
    "refresh_every": [2, None],
    "complexity_penalty": [1.0, 30.0],
    "oob_gate": [0.0, 4.0, None],
    "screen_pairs": [0, 500],
    "prune": [2, 8, None],
    "init": ["identity"],
    "clip": [1.5, None],
    "n_averaged": [1, 10],
    "start_share": [0.0, 1.0],
    "classifier": ["margin", "hull", "knn", "kernel", "mixture"],
    "n_neighbors_predict": [3, 20],
}


def measured(make: Maker, parameters: dict[str, object]) -> list[float]:
    """Test error, variables kept and seconds of a fit, means over the seeds."""
    found = []
    for seed in SEEDS:
        X, y = make(seed)
        start = time.perf_counter()
        model = SDistClassifier(random_state=seed, **parameters).fit(X[:N_TRAIN], y[:N_TRAIN])
        seconds = time.perf_counter() - start
        used = np.count_nonzero(model.feature_importances_)
        found.append((1 - model.score(X[N_TRAIN:], y[N_TRAIN:]), used, seconds))
    return np.mean(found, axis=0).tolist()


def show(name: str, parameters: dict[str, object]) -> None:
    cells = [measured(make, parameters) for make in TABLES.values()]
    line = "".join(f"   {error:.3f} {used:5.1f} {seconds:5.1f}" for error, used, seconds in cells)
    print(f"{name:32}{line}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    print(f"{'':32}" + "".join(f"   {name:18}" for name in TABLES))
    print(f"{'':32}" + "   error  vars     s" * len(TABLES))
    show("defaults", {})
    for parameter in sys.argv[1:] or VALUES:
        for value in VALUES[parameter]:
            show(f"{parameter}={value!r}", {parameter: value})


if __name__ == "__main__":
    main()
