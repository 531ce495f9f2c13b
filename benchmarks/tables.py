"""The tables of the benchmarks: a name, a seed, and what is known about the truth.

Real tables are split 70/30, stratified, by the seed. Of a simulation the seed draws the training
rows and 2000 test rows. Labels are the codes 0 to K-1 of the sorted original labels. Madelon,
Ionosphere and SECOM come from `metricboost.datasets`, digits and wine from scikit-learn, the others
from files ``<name>.npz`` with the arrays X and y in the folder METRICBOOST_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_wine

from metricboost.datasets import make_double_ring, make_xor
from metricboost.studies._sources import (
    N_TEST,
    Split,
    ionosphere,
    madelon,
    real_split,
    secom,
    simulated,
    varying,
)

from .mixtures import THREE_XORS, XOR_AND_RING, Mixture

Loader = Callable[[int], Split]


def stored(name: str, seed: int, prepare: Callable[[Any], Any] = np.asarray) -> Split:
    folder = os.environ.get("METRICBOOST_DATA")
    if folder is None:
        raise OSError(f"{name} is read from {name}.npz in the folder METRICBOOST_DATA: set it.")
    with np.load(Path(folder) / f"{name}.npz") as file:
        return real_split(prepare(file["X"]), file["y"], seed)


def bundled(load_it: Callable[..., Any], seed: int) -> Split:
    X, y = load_it(return_X_y=True)
    return real_split(X, y, seed)


def with_missing(complete: Loader, share: float, seed: int) -> Split:
    """A share of the entries of both parts removed at random."""
    rng, split = np.random.default_rng(seed), complete(seed)

    def removed(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.where(rng.random(X.shape) < share, np.nan, X)

    return replace(split, X_train=removed(split.X_train), X_test=removed(split.X_test))


def mixed(mixture: Mixture, n: int, p: int, seed: int) -> Split:
    X, y, relevant = mixture.sample(n + N_TEST, p, seed)
    return Split(X[:n], y[:n], X[n:], y[n:], relevant, mixture.bayes_error)


#: Two classes.
BINARY: dict[str, Loader] = {
    "Madelon": madelon,
    "Ionosphere": ionosphere,
    "SECOM": secom,
    "Sonar": partial(stored, "sonar"),
    "Spambase": partial(stored, "spambase"),
    "Colon": partial(stored, "colon", prepare=np.log2),
    "Leukemia": partial(stored, "leukemia"),
    "Arcene": partial(stored, "arcene", prepare=varying),
}

MULTICLASS: dict[str, Loader] = {
    "wine": partial(bundled, load_wine),
    "vehicle": partial(stored, "vehicle"),
    "vowel": partial(stored, "vowel"),
    "digits": partial(bundled, load_digits),
    "isolet1560": partial(stored, "isolet1560"),
    "usps11k": partial(stored, "usps11k"),
    "letter": partial(stored, "letter"),
}

#: The paper's simulations: a tenth of the columns carries the plane.
SIMULATED: dict[str, Loader] = {
    f"{name}, p {p}": partial(simulated, make, 500, p, 0.1)
    for name, make in (("double ring", make_double_ring), ("XOR", make_xor))
    for p in (50, 500, 1000)
}

#: No column alone says anything about the class.
INTERACTIONS: dict[str, Loader] = {
    "pure XOR, p 50": partial(simulated, make_xor, 500, 50, 2),
    "pure XOR, p 500": partial(simulated, make_xor, 500, 500, 2),
    "pure XOR, p 2000, N 300": partial(simulated, make_xor, 300, 2000, 2),
    "pure XOR, p 5000": partial(simulated, make_xor, 500, 5000, 2),
    "pure ring, p 500": partial(simulated, make_double_ring, 500, 500, 2),
    "XOR and ring, p 500": partial(mixed, XOR_AND_RING, 500, 500),
    "three XORs, p 500": partial(mixed, THREE_XORS, 500, 500),
}

MISSING: dict[str, Loader] = {
    "Ionosphere, 10% missing": partial(with_missing, ionosphere, 0.1),
}

#: With a blur no few columns show the plane, only all of them together.
BLURRED: dict[str, Loader] = {
    f"blurred {name}, p 500": partial(simulated, partial(make, blur=0.5), 500, 500, 0.1)
    for name, make in (("double ring", make_double_ring), ("XOR", make_xor))
}

TABLES: dict[str, Loader] = {
    **BINARY,
    **MULTICLASS,
    **SIMULATED,
    **INTERACTIONS,
    **MISSING,
    **BLURRED,
}


def load(name: str, seed: int) -> Split:
    return TABLES[name](seed)
