"""The kernel: a support vector machine with the Gaussian kernel of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.svm import SVC

from ..._typing import Float
from .base import Queries, Readout, Training

#: The widths and costs to choose from.
WIDTHS = (0.25, 1.0)
COSTS = (1.0, 10.0)
#: The largest number of training rows. The kernel of all pairs of training rows is in memory.
MOST_ROWS = 30_000
#: The number of queries whose kernel is computed at once.
BLOCK = 256


@dataclass(frozen=True)
class Kernel(Readout):
    """A support vector machine with the kernel ``exp(-d^2 / (width * median d^2))``."""

    width: float
    cost: float

    name: ClassVar[str] = "kernel"
    searched_by_default: ClassVar[bool] = True
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "finalists"

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(width, cost) for width in WIDTHS for cost in COSTS]

    def fit(self, training: Training) -> FittedKernel:
        if len(training.rows) > MOST_ROWS:
            raise ValueError(
                'classifier="kernel" needs the kernel of all pairs of training rows in memory, '
                f"and {len(training.rows)} rows are too many: set max_references to {MOST_ROWS} or "
                "less."
            )
        rows = training.rows
        median = training.once("median distance", lambda: median_squared(rows))
        squared = training.once("distances", lambda: squared_distances(rows, rows))
        gamma = 1.0 / (self.width * median)
        machine = SVC(C=self.cost, kernel="precomputed")
        machine.fit(gaussian(squared, gamma), training.labels, sample_weight=training.weight)
        return FittedKernel(machine, gamma)


@dataclass(frozen=True)
class FittedKernel:
    """A fitted machine. BLAS computes the kernel several times faster than libsvm does."""

    machine: SVC
    gamma: float

    def evidence(self, queries: Queries) -> Float:
        starts = range(0, max(len(queries.rows), 1), BLOCK)
        kernels = (gaussian(self._squared(queries, start), self.gamma) for start in starts)
        score = np.concatenate([self.machine.decision_function(kernel) for kernel in kernels])
        return np.stack([-score, score], axis=1) if score.ndim == 1 else score

    def _squared(self, queries: Queries, start: int) -> Float:
        block, rows = queries.rows[start : start + BLOCK], queries.training.rows
        return queries.once(("distances", start), lambda: squared_distances(block, rows))


def gaussian(squared: Float, gamma: float) -> Float:
    """``exp(-gamma * squared distance)``."""
    result = -gamma * squared
    return np.exp(result, out=result)


def squared_distances(queries: Float, rows: Float) -> Float:
    """The squared distances of all pairs, by a matrix product. Negative results are set to 0."""
    center = rows.mean(axis=0)
    a, b = queries - center, rows - center
    squared: Float = -2 * a @ b.T
    squared += (a**2).sum(axis=1)[:, None]
    squared += (b**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


def median_squared(rows: Float, max_rows: int = 1000) -> float:
    """The median squared distance between rows; between ``max_rows`` evenly spaced rows if more."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), max_rows)).astype(np.intp)]
    squared = squared_distances(some, some)[np.triu_indices(len(some), k=1)]
    median = float(np.median(squared))
    return median if median > 0 else 1.0
