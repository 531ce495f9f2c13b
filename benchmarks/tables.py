"""The tables of the benchmarks: a name, a seed, and what is known about the truth."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from metricboost.datasets import fetch_ionosphere, fetch_madelon, make_double_ring, make_xor

N_TEST = 2000


@dataclass(frozen=True)
class Split:
    """Training and test rows, and the columns that matter where they are known."""

    X_train: npt.NDArray[np.float64]
    y_train: npt.NDArray[np.int64]
    X_test: npt.NDArray[np.float64]
    y_test: npt.NDArray[np.int64]
    relevant: npt.NDArray[np.intp] | None
    bayes_error: float | None


def madelon(seed: int) -> Split:
    bunch = fetch_madelon()
    return _real(bunch.data, bunch.target, seed, np.asarray(bunch.relevant))


def ionosphere(seed: int) -> Split:
    bunch = fetch_ionosphere()
    varies = bunch.data.std(axis=0) > 0  # the paper's 33 inputs
    return _real(bunch.data[:, varies], bunch.target, seed, None)


def sonar(seed: int) -> Split:
    """Every column matters a little: read from METRICBOOST_DATA, there is no fetcher for it."""
    with np.load(Path(os.environ["METRICBOOST_DATA"]) / "sonar.npz") as file:
        return _real(file["X"], file["y"], seed, None)


def _real(X, y, seed: int, relevant) -> Split:
    """The splits of all tables: 70/30, stratified."""
    y = (y == np.unique(y)[1]).astype(np.int64)
    X_train, X_test, y_train, y_test = train_test_split(
        X.astype(np.float64), y, test_size=0.3, stratify=y, random_state=seed
    )
    return Split(X_train, y_train, X_test, y_test, relevant, None)


def simulated(make, n: int, p: int, informative: float, seed: int) -> Split:
    X, y, info = make(n + N_TEST, p, informative=informative, return_info=True, random_state=seed)
    return Split(X[:n], y[:n], X[n:], y[n:], info.informative, info.bayes_error)


REAL = {"Madelon": madelon, "Ionosphere": ionosphere}

#: name -> (generator, rows, columns, informative)
SIMULATIONS = {
    "double ring, p 50": (make_double_ring, 500, 50, 0.1),
    "double ring, p 500": (make_double_ring, 500, 500, 0.1),
    "XOR, p 50": (make_xor, 500, 50, 0.1),
    "XOR, p 500": (make_xor, 500, 500, 0.1),
    "pure XOR, p 50": (make_xor, 500, 50, 2),
    "pure XOR, p 500": (make_xor, 500, 500, 2),
    "pure XOR, p 2000, N 300": (make_xor, 300, 2000, 2),
    "pure ring, p 500": (make_double_ring, 500, 500, 2),
}


#: Where it is not the tool to use; measured on request only.
LIMITS = {
    "Sonar": sonar,
    "blurred double ring, p 500": lambda seed: simulated(
        partial(make_double_ring, blur=0.5), 500, 500, 0.1, seed
    ),
    "blurred XOR, p 500": lambda seed: simulated(partial(make_xor, blur=0.5), 500, 500, 0.1, seed),
}


def load(name: str, seed: int) -> Split:
    if name in REAL or name in LIMITS:
        return {**REAL, **LIMITS}[name](seed)
    return simulated(*SIMULATIONS[name], seed)
