"""The pairs that screening finds in float32 against those that it finds in float64.

    python -m experiments.lost_pairs
    python -m experiments.lost_pairs --tables 1000

The native engine rules out pairs in float32 and scores the others in float64. The NumPy engine
scores all pairs in float64. Random tables of every kind have 2 to 9 classes, 8 to 500 rows in a
class and 10 to 3,000 columns, and every table is screened with three margins. The printed table has
the number of pairs of the NumPy engine, the pairs that only one engine finds, and the times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from metricboost.boosting.scaling import Scaling
from metricboost.boosting.screening import Screening, screen_pairs
from metricboost.engines import get_engine

Array = npt.NDArray[Any]
MARGINS = (0.5, -0.5, -2.0)
CLIP = 5.0
#: The most multiply-adds (n p^2) of a table.
WORK = 5e8


def normal(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    return rng.normal(size=(n, p))


def xor(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    """The sign of the second column is that of the first one in every other class."""
    X = rng.normal(size=(n, p))
    X[:, 1] = np.abs(X[:, 1]) * np.sign(X[:, 0]) * np.where(labels % 2, 1, -1)
    return X


def rings(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    """The radius of the first two columns depends on the class."""
    X = rng.normal(size=(n, p))
    X[:, :2] *= (1 + labels[:, None]) / np.linalg.norm(X[:, :2], axis=1, keepdims=True)
    return X + 0.2 * rng.normal(size=(n, p))


def main_effects(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    """A tenth of the columns differs in mean, a tenth in spread."""
    X, few = rng.normal(size=(n, p)), max(p // 10, 1)
    X[:, :few] += labels[:, None]
    X[:, few : 2 * few] *= 1 + 0.5 * labels[:, None]
    return X


def correlated(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    return X


def heavy_tails(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    return rng.standard_t(1.5, size=(n, p))


def zeros_and_ones(rng: np.random.Generator, n: int, p: int, labels: Array) -> Array:
    return (rng.random((n, p)) < rng.uniform(0.02, 0.5, p)).astype(float)


KINDS: tuple[Callable[[np.random.Generator, int, int, Array], Array], ...] = (
    normal, xor, rings, main_effects, correlated, heavy_tails, zeros_and_ones,
)  # fmt: skip


def drawn(seed: int) -> tuple[str, Array, Array]:
    """The kind of a table, the scaled table and its labels. The sizes of the classes differ."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    counts = (8 * (500 / 8) ** rng.random(rng.integers(2, 10))).astype(int)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    p = min(int(10 * 300 ** rng.random()), int(np.sqrt(WORK / len(labels))))
    X = kind(rng, len(labels), p, labels)
    return kind.__name__, Scaling.of(X, True, CLIP).transposed(X).T, labels


def screened(X: Array, labels: Array, margin: float, name: str) -> tuple[Screening, float]:
    start = time.process_time()
    found = screen_pairs(X, labels, X.shape[1], margin=margin, engine=get_engine(name))
    return found, time.process_time() - start


def measured(n_tables: int) -> dict[str, list[Array]]:
    """For each kind: pairs, pairs found by one engine only, and seconds of both engines."""
    rows: dict[str, list[Array]] = {}
    for seed in range(n_tables):
        kind, X, labels = drawn(seed)
        for margin in MARGINS:
            expected, slow = screened(X, labels, margin, "numpy")
            found, fast = screened(X, labels, margin, "native")
            other = len(set(found.pairs) ^ set(expected.pairs))
            rows.setdefault(kind, []).append(np.array([len(expected.pairs), other, slow, fast]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=210)
    found = measured(parser.parse_args().tables)
    print(f"{'':16}{'screenings':>12}{'pairs':>10}{'differ':>8}{'numpy s':>10}{'native s':>10}")
    for kind, rows in found.items():
        pairs, other, slow, fast = np.sum(rows, axis=0)
        print(f"{kind:16}{len(rows):12}{pairs:10.0f}{other:8.0f}{slow:10.2f}{fast:10.2f}")


if __name__ == "__main__":
    main()
