"""Where the rows come from: the paper's simulations in all sizes, and its three real tables.

Real tables are split 70/30, stratified, by the seed. Of a simulation the seed draws the training
rows and 2000 test rows. Labels are the codes 0 to K-1 of the sorted original labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from .._typing import Float
from ..datasets import (
    fetch_ionosphere,
    fetch_madelon,
    fetch_secom,
    make_double_ring,
    make_xor,
)

N_TEST = 2000
#: Training rows and columns of the paper's simulations, in the order of its tables.
SIZES = [(n, p) for n in (100, 500, 5000) for p in (50, 500, 1000)]
#: Test rows per training row of the real tables, whose repeats are splits 70/30 of one table.
OVERLAP = dict.fromkeys(("Ionosphere", "SECOM", "Madelon"), 0.3 / 0.7)
#: Of the paper's simulations a tenth of the columns carries the plane.
SHARE = 0.1


@dataclass(frozen=True)
class Split:
    """Training and test rows, and what is known about the truth.

    ``relevant`` are the columns that matter, ``bayes_error`` is the error of the best rule, and
    ``test_bayes_error`` that of the best rule on these test rows.
    """

    X_train: Float
    y_train: npt.NDArray[np.int64]
    X_test: Float
    y_test: npt.NDArray[np.int64]
    relevant: npt.NDArray[np.intp] | None
    bayes_error: float | None
    test_bayes_error: float | None = None


#: A seed, and at most how many rows of a real table, None for all.
Loader = Callable[[int, int | None], Split]


def real_split(
    X: Any, y: Any, seed: int, relevant: Any = None, rows: int | None = None
) -> Split:  # fmt: skip
    """The splits of all real tables: 70/30, stratified; of at most so many rows."""
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    X = np.asarray(X, dtype=np.float64)
    if rows is not None and rows < len(X):
        X, _, codes, _ = train_test_split(
            X, codes, train_size=rows, stratify=codes, random_state=seed
        )
    X_train, X_test, y_train, y_test = train_test_split(
        X, codes, test_size=0.3, stratify=codes, random_state=seed
    )
    return Split(X_train, y_train, X_test, y_test, relevant, None)


def varying(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return X[:, X.max(axis=0) > X.min(axis=0)]


def madelon(seed: int, rows: int | None = None) -> Split:
    bunch = fetch_madelon()
    return real_split(bunch.data, bunch.target, seed, np.asarray(bunch.relevant), rows)


def ionosphere(seed: int, rows: int | None = None) -> Split:
    """The paper's 33 inputs: the 34th is constant."""
    bunch = fetch_ionosphere()
    return real_split(varying(bunch.data), bunch.target, seed, None, rows)


def secom(seed: int, rows: int | None = None) -> Split:
    """The paper's 1436 x 414: no column with over 3% missing, then no row with any; 1 = fail."""
    bunch = fetch_secom(preprocessed=True)
    return real_split(varying(bunch.data), bunch.target, seed, None, rows)


def simulated(
    make: Any, n: int, p: int, informative: float, seed: int, rows: int | None = None,
    noise: float = 0.5,
) -> Split:  # fmt: skip
    X, y, info = make(
        n + N_TEST, p, informative=informative, noise=noise, return_info=True, random_state=seed
    )
    best = float(np.mean((info.posterior[n:] > 0.5) != y[n:]))
    return Split(X[:n], y[:n], X[n:], y[n:], info.informative, info.bayes_error, best)


MAKERS = {"double ring": make_double_ring, "XOR": make_xor}


def simulation_name(kind: str, n: int, p: int) -> str:
    return f"{kind}, N {n}, p {p}"


def size_of(source: str) -> tuple[int, int]:
    """N and p of a simulation."""
    n, p = (int(part.split()[-1]) for part in source.split(", ")[-2:])
    return n, p


SIMULATED: dict[str, partial[Split]] = {
    simulation_name(kind, n, p): partial(simulated, make, n, p, SHARE)
    for kind, make in MAKERS.items()
    for n, p in SIZES
}
#: Two columns are the plane itself: no column alone says anything about the class.
PURE: dict[str, Loader] = {
    f"pure {kind}, N 500, p {p}": partial(simulated, make, 500, p, 2)
    for kind, make in MAKERS.items()
    for p in (50, 500)
}
REAL: dict[str, Loader] = {"Ionosphere": ionosphere, "SECOM": secom, "Madelon": madelon}
#: Training rows and columns, so that the page can be written where the tables are not at hand.
SHAPES = {"Ionosphere": (245, 33), "SECOM": (1005, 414), "Madelon": (1820, 500)}
SOURCES: dict[str, Loader] = {**SIMULATED, **PURE, **REAL}


def load(source: str, seed: int, rows: int | None = None) -> Split:
    return SOURCES[source](seed, rows)
