"""The ridge readout: a ridge regression of the classes on the embedding.

It is linear in the embedding. Under the plain distance it is linear in all standardised columns,
which suits tables with many more columns than rows in which many columns matter a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._typing import Float
from .base import Queries, Readout, Training

#: The penalties to choose from, as multiples of the mean squared length of a row.
PENALTIES = (0.3, 3.0)


@dataclass(frozen=True)
class Ridge(Readout):
    """A ridge regression of the indicators of the classes."""

    penalty: float

    name: ClassVar[str] = "ridge"
    automatic: ClassVar[bool] = True
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "best"
    searched_by_default: ClassVar[bool] = True
    cautious: ClassVar[bool] = True
    only_with_plain_distance: ClassVar[bool] = True

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(penalty) for penalty in PENALTIES]

    def fit(self, training: Training) -> FittedRidge:
        weight = training.weight / training.weight.sum()
        center = weight @ training.rows
        happened = np.eye(training.n_classes)[training.labels]
        shares = weight @ happened
        root = np.sqrt(weight)[:, None]
        rows, targets = root * (training.rows - center), root * (happened - shares)
        size = float(np.einsum("ij,ij->", rows, rows)) or 1.0
        n, d = rows.shape
        wide = d > n
        gram = rows @ rows.T if wide else rows.T @ rows
        gram[np.diag_indices_from(gram)] += self.penalty * size / n
        solved = cho_solve(cho_factor(gram, lower=True), targets if wide else rows.T @ targets)
        return FittedRidge(center, rows.T @ solved if wide else solved, shares)


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """The centre of the rows, the coefficients (rank x C), and the shares of the classes."""

    center: Float
    coefficients: Float
    shares: Float

    def evidence(self, queries: Queries) -> Float:
        result: Float = (queries.rows - self.center) @ self.coefficients + self.shares
        return result
