"""The tables of the experiments: splits of real tables, and simulations.

The seed gives a stratified 70/30 split of a real table. For a simulation, the seed draws the
training rows and 2000 test rows. Labels are the codes 0 to K-1 of the sorted original labels.
Madelon, Ionosphere and SECOM come from `metricboost.datasets`, digits and wine from scikit-learn.
Other tables come from files ``<name>.npz`` with the arrays X and y in the folder METRICBOOST_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

from metricboost.datasets import (
    fetch_ionosphere,
    fetch_madelon,
    fetch_secom,
    make_double_ring,
    make_xor,
)

from .mixtures import THREE_XORS, XOR_AND_RING, Mixture

Float = npt.NDArray[np.float64]

N_TEST = 2000
#: Training rows and columns of the paper's simulations, in the order of its tables.
SIZES = [(n, p) for n in (100, 500, 5000) for p in (50, 500, 1000)]
#: In the paper's simulations a tenth of the columns carries the plane.
SHARE = 0.1


@dataclass(frozen=True)
class Split:
    """Training and test rows, and the known structure of a simulation.

    ``relevant`` are the columns that matter, ``bayes_error`` is the error of the best rule, and
    ``test_bayes_error`` that of the best rule on these test rows.
    """

    X_train: Float
    y_train: npt.NDArray[np.int64]
    X_test: Float
    y_test: npt.NDArray[np.int64]
    relevant: npt.NDArray[np.intp] | None = None
    bayes_error: float | None = None
    test_bayes_error: float | None = None


# --- real tables


def varying(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The columns that are not constant."""
    return X[:, X.max(axis=0) > X.min(axis=0)]


def madelon() -> tuple[Any, Any, Any]:
    bunch = fetch_madelon()
    return bunch.data, bunch.target, np.asarray(bunch.relevant)


def ionosphere() -> tuple[Any, Any, Any]:
    """The paper's 33 columns. The 34th column of the table is constant."""
    bunch = fetch_ionosphere()
    return varying(bunch.data), bunch.target, None


def secom() -> tuple[Any, Any, Any]:
    """The paper's 1436 x 414, without columns over 3% missing and rows with any. 1 is a failure."""
    bunch = fetch_secom(preprocessed=True)
    return varying(bunch.data), bunch.target, None


def stored(name: str, prepare: Callable[[Any], Any] = np.asarray) -> tuple[Any, Any, Any]:
    folder = os.environ.get("METRICBOOST_DATA")
    if folder is None:
        raise OSError(f"{name} is read from {name}.npz in the folder METRICBOOST_DATA: set it.")
    with np.load(Path(folder) / f"{name}.npz") as file:
        return prepare(file["X"]), file["y"], None


def collection(folder: str) -> tuple[str, ...]:
    """The names of the tables of a collection that are there."""
    home = Path(os.environ.get("METRICBOOST_DATA", "."), folder)
    return tuple(f"{folder}/{path.stem}" for path in sorted(home.glob("*.npz")))


def is_collected(name: str) -> bool:
    """Whether a table belongs to a collection."""
    return name.split("/")[0] in COLLECTIONS and "/" in name


def collected(name: str) -> tuple[Any, Any, Any]:
    """A table of a collection, without its smallest classes."""
    X, y, _ = stored(name)
    codes = np.unique(y, return_inverse=True)[1]
    kept = np.bincount(codes)[codes] >= LEAST_CLASS
    return X[kept], y[kept], None


def bundled(load_it: Callable[..., Any]) -> tuple[Any, Any, Any]:
    return *load_it(return_X_y=True), None


@dataclass(frozen=True)
class Real:
    """A real table: the function that reads it, and the shape of its training rows.

    The shape is stored, because the pages name it and can be written without the tables.
    """

    read: Callable[[], tuple[Any, Any, Any]]
    rows: int
    columns: int
    classes: int = 2


#: Two classes.
BINARY = {
    "Madelon": Real(madelon, 1820, 500),
    "Ionosphere": Real(ionosphere, 245, 33),
    "SECOM": Real(secom, 1005, 414),
    "Sonar": Real(partial(stored, "sonar"), 145, 60),
    "Spambase": Real(partial(stored, "spambase"), 3220, 57),
    "Colon": Real(partial(stored, "colon", np.log2), 43, 2000),
    "Leukemia": Real(partial(stored, "leukemia"), 50, 7129),
    "Arcene": Real(partial(stored, "arcene", varying), 140, 9961),
}
MULTICLASS = {
    "wine": Real(partial(bundled, load_wine), 124, 13, 3),
    "vehicle": Real(partial(stored, "vehicle"), 592, 18, 4),
    "vowel": Real(partial(stored, "vowel"), 693, 10, 11),
    "digits": Real(partial(bundled, load_digits), 1257, 64, 10),
    "isolet1560": Real(partial(stored, "isolet1560"), 1092, 617, 26),
    "usps11k": Real(partial(stored, "usps11k"), 7700, 256, 10),
    "letter": Real(partial(stored, "letter"), 14000, 16, 26),
}
REAL = BINARY | MULTICLASS
#: Folders with tables of public collections, which nobody chose one by one: the Penn Machine
#: Learning Benchmarks, and wide tables of the ASU feature-selection repository.
COLLECTIONS = ("pmlb", "wide")
#: Smaller classes of these tables are dropped before a split.
LEAST_CLASS = 6
#: Real tables with a share of their entries removed at random.
MISSING = {"Ionosphere, 10% missing": ("Ionosphere", 0.1)}


def real_split(
    read: Callable[[], tuple[Any, Any, Any]], seed: int, rows: int | None = None
) -> Split:
    """A split of a real table, of at most this number of rows."""
    X, y, relevant = read()
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    X = np.asarray(X, dtype=np.float64)
    if rows is not None and rows < len(X):
        X, _, codes, _ = train_test_split(
            X, codes, train_size=rows, stratify=codes, random_state=seed
        )
    X_train, X_test, y_train, y_test = train_test_split(
        X, codes, test_size=0.3, stratify=codes, random_state=seed
    )
    return Split(X_train, y_train, X_test, y_test, relevant)


def with_missing(name: str, share: float, seed: int) -> Split:
    """Remove a share of the entries of both parts at random."""
    rng, split = np.random.default_rng(seed), load(name, seed)

    def removed(X: Float) -> Float:
        return np.where(rng.random(X.shape) < share, np.nan, X)

    return replace(split, X_train=removed(split.X_train), X_test=removed(split.X_test))


# --- simulations


MAKERS = {"double ring": make_double_ring, "XOR": make_xor}
MIXTURES: dict[str, Mixture] = {"XOR and ring": XOR_AND_RING, "three XORs": THREE_XORS}


def simulation_name(kind: str, n: int, p: int) -> str:
    return f"{kind}, N {n}, p {p}"


def size_of(name: str) -> tuple[int, int]:
    """N and p of a simulation."""
    n, p = (int(part.split()[-1]) for part in name.split(", ")[-2:])
    return n, p


#: The paper's simulations.
SIMULATED = [simulation_name(kind, n, p) for kind in MAKERS for n, p in SIZES]
#: Two columns are the coordinates of the plane. A single column holds no information.
PURE = [simulation_name(f"pure {kind}", 500, p) for kind in MAKERS for p in (50, 500)]
#: More tables in which a single column holds no information about the class.
INTERACTIONS = [
    "pure XOR, N 500, p 50",
    "pure XOR, N 500, p 500",
    "pure XOR, N 300, p 2000",
    "pure XOR, N 500, p 5000",
    "pure double ring, N 500, p 500",
    "XOR and ring, N 500, p 500",
    "three XORs, N 500, p 500",
]
#: With a blur only all informative columns together show the plane.
BLURRED = [simulation_name(f"blurred {kind}", 500, 500) for kind in MAKERS]
#: Classes with sharp borders: two columns above a border (three with "AND of three"), or within two
#: borders. 5% of the rows have the wrong label, which is the Bayes error.
BORDERS: dict[str, Callable[[Float], npt.NDArray[np.bool_]]] = {
    "AND": lambda X: (X[:, :2] > -0.5).all(axis=1),
    "AND of three": lambda X: (X[:, :3] > -0.8).all(axis=1),
    "box": lambda X: (np.abs(X[:, :2]) < 1).all(axis=1),
}
WITH_BORDERS = [f"{kind}, N 500, p {p}" for kind in BORDERS for p in (20, 100)]
NAMES = tuple(
    dict.fromkeys((*REAL, *MISSING, *SIMULATED, *PURE, *INTERACTIONS, *BLURRED, *WITH_BORDERS))
)


def simulated(name: str, seed: int, noise: float = 0.5) -> Split:
    """Simulate a table of the given kind, with N training rows and p columns."""
    kind = name.partition(", N ")[0]
    plane = kind.removeprefix("pure ").removeprefix("blurred ")
    if kind in BORDERS:
        n, p = size_of(name)
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n + N_TEST, p))
        y = (BORDERS[kind](X) ^ (rng.random(n + N_TEST) < 0.05)).astype(np.int64)
        return Split(X[:n], y[:n], X[n:], y[n:], None, 0.05)
    if plane not in MAKERS and kind not in MIXTURES:
        raise ValueError(f"There is no table {name!r}.")
    n, p = size_of(name)
    if kind in MIXTURES:
        X, y, relevant = MIXTURES[kind].sample(n + N_TEST, p, seed)
        return Split(X[:n], y[:n], X[n:], y[n:], relevant, MIXTURES[kind].bayes_error)
    X, y, info = MAKERS[plane](
        n + N_TEST, p, informative=2 if kind.startswith("pure ") else SHARE, noise=noise,
        blur=0.5 if kind.startswith("blurred ") else 0.0, return_info=True, random_state=seed,
    )  # fmt: skip
    best = float(np.mean((info.posterior[n:] > 0.5) != y[n:]))
    return Split(X[:n], y[:n], X[n:], y[n:], info.informative, info.bayes_error, best)


def overlap(name: str) -> float:
    """Test rows per training row if the repeats are splits of one table, otherwise 0."""
    return 0.3 / 0.7 if name in REAL or name in MISSING or is_collected(name) else 0.0


def load(name: str, seed: int, rows: int | None = None, **drawing: float) -> Split:
    """A split of a table. ``drawing`` has parameters of a simulation, such as its noise."""
    if name in REAL:
        return real_split(REAL[name].read, seed, rows)
    if is_collected(name):
        return real_split(partial(collected, name), seed, rows)
    return (
        with_missing(*MISSING[name], seed) if name in MISSING else simulated(name, seed, **drawing)
    )
