"""Fifty steps of every engine held against those of the NumPy engine: terms and weights.

    METRICBOOST_DATA=... python -m benchmarks.agreement torch   # float64, float32; CPU and GPU

On both simulations and, if it is there, on Madelon; in panels and matrix-free. Also the error on
rows that no fit has seen.
"""

from __future__ import annotations

import argparse
import os
from itertools import product

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from metricboost.boosting import BoostingOptions, Learned, LearningOptions, learn
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.engines import get_engine

ROWS = 400


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Twice as many rows: the second half is for the error."""
    found = {
        "rings": make_double_ring(2 * ROWS, 100, random_state=0)[:2],
        "xor": make_xor(2 * ROWS, 100, random_state=0)[:2],
    }
    if "METRICBOOST_DATA" in os.environ:
        data = fetch_madelon()
        found["Madelon"] = data.data[: 2 * ROWS], data.target[: 2 * ROWS]
    return {name: (X, (y == y.max()).astype(np.intp)) for name, (X, y) in found.items()}


def settings(panels: bool) -> LearningOptions:
    boosting = BoostingOptions(
        50, 20, 3 if panels else 10, 0.1, 0.5, "sqrt" if panels else None, 10, None, 0
    )
    return LearningOptions(boosting, 2, "auto", None, 0.0, True, "zero")


def agreement(found: Learned, expected: Learned) -> str:
    steps, others = found.path.steps, expected.path.steps
    terms = [s.support.tolist() for s in steps] == [s.support.tolist() for s in others]
    apart = max(abs(a.weight / b.weight - 1) for a, b in zip(steps, others))
    return f"{len(steps)} steps, same terms {terms}, weights within {apart:.1e}"


def error(fit: Learned, X: np.ndarray, labels: np.ndarray) -> float:
    metric = fit.metric(fit.factor, None)
    rows = KNeighborsClassifier(10).fit(metric.transform(X[:ROWS]), labels[:ROWS])
    return float(1 - rows.score(metric.transform(X[ROWS:]), labels[ROWS:]))


def torch_engine() -> None:
    import torch

    from metricboost.engines.torch_engine import TorchEngine

    torch.set_num_threads(1)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for name, (X, labels) in tables().items():
        for panels in (True, False):
            train = X[:ROWS], labels[:ROWS], np.ones(ROWS)
            expected = learn(*train, get_engine("numpy"), settings(panels))
            mode = "panels" if panels else "matrix-free"
            print(f"{name}, {mode}: NumPy, error {error(expected, X, labels):.4f}")
            for device, dtype in product(devices, (torch.float64, torch.float32)):
                found = learn(*train, TorchEngine(device=device, dtype=dtype), settings(panels))
                said = f"{agreement(found, expected)}, error {error(found, X, labels):.4f}"
                print(f"  {device}, {dtype}: {said}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("engine", choices=("torch",))
    parser.parse_args()
    torch_engine()
