"""Compare the terms and weights of fifty steps of the torch engine with the NumPy engine.

    python -m experiments.agreement torch   # float64, float32; CPU and GPU

The tables are both simulations and, if its file is there, Madelon. Steps see panels or all columns.
The command also prints the error on rows that no fit has seen.
"""

from __future__ import annotations

import argparse
import os
from itertools import product

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from metricboost.boosting.loop import BoostingOptions
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.engines import get_engine
from metricboost.training.learn import Learned, learn
from metricboost.training.options import LearningOptions

from .results import record

ROWS = 400


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Tables with a second half of rows, on which the error is measured."""
    found = {
        "rings": make_double_ring(2 * ROWS, 100, random_state=0)[:2],
        "xor": make_xor(2 * ROWS, 100, random_state=0)[:2],
    }
    if "METRICBOOST_DATA" in os.environ:
        data = fetch_madelon()
        found["Madelon"] = data.data[: 2 * ROWS], data.target[: 2 * ROWS]
    return {name: (X, (y == y.max()).astype(np.intp)) for name, (X, y) in found.items()}


def settings(panels: bool, steps: int) -> LearningOptions:
    boosting = BoostingOptions(
        max_iter=steps, n_neighbors=20, n_nonzero=3 if panels else 10, learning_rate=0.1,
        subsample=0.5, max_features="sqrt" if panels else None, refresh_every=10, oob_gate=None,
        seed=0,
    )  # fmt: skip
    return LearningOptions(
        boosting, max_degree=2, screen_pairs="auto", prune=None, complexity_penalty=0.0,
        standardize=True, init="zero",
    )  # fmt: skip


def agreement(found: Learned, expected: Learned) -> tuple[bool, float]:
    """Whether the terms are equal, and the largest relative difference of the weights."""
    steps, others = found.path.steps, expected.path.steps
    terms = [s.support.tolist() for s in steps] == [s.support.tolist() for s in others]
    return terms, max(abs(a.weight / b.weight - 1) for a, b in zip(steps, others))


def error(fit: Learned, X: np.ndarray, labels: np.ndarray) -> float:
    metric = fit.metric(fit.factor)
    rows = KNeighborsClassifier(10).fit(metric.transform(X[:ROWS]), labels[:ROWS])
    return float(1 - rows.score(metric.transform(X[ROWS:]), labels[ROWS:]))


def torch_engine(steps: int) -> None:
    import torch

    from metricboost.engines.torch_engine import TorchEngine

    torch.set_num_threads(1)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    furthest: dict[str, float] = {}
    for (name, (X, labels)), panels in product(tables().items(), (True, False)):
        train = X[:ROWS], labels[:ROWS], np.ones(ROWS)
        expected = learn(*train, get_engine("numpy"), settings(panels, steps))
        table = f"{name}, {'panels' if panels else 'all columns'}"
        print(f"{table}: NumPy, error {error(expected, X, labels):.4f}")
        for device, dtype in product(devices, (torch.float64, torch.float32)):
            engine = TorchEngine(device=device, dtype=dtype)
            found = learn(*train, engine, settings(panels, steps))
            same, apart = agreement(found, expected)
            wrong, how = error(found, X, labels), f"{device}, {str(dtype).partition('.')[2]}"
            print(
                f"  {how}: {len(found.path)} steps, same terms {same}, weights within "
                f"{apart:.1e}, error {wrong:.4f}", flush=True,
            )  # fmt: skip
            record("agreement", table, how, same_terms=same, apart=apart, error=wrong)
            kind = how.partition(", ")[2]
            furthest[kind] = max(furthest.get(kind, 0.0), apart if same else np.inf)
    for kind, apart in furthest.items():
        record("agreement", "all tables", kind, apart=apart)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("engine", choices=("torch",))
    parser.add_argument("--steps", type=int, default=50)
    torch_engine(parser.parse_args().steps)


if __name__ == "__main__":
    main()
