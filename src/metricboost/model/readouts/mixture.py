"""The mixture: a Gaussian mixture for each class, for classes that fall into clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from ..._ignoring import ignoring
from ..._typing import Float
from .base import Queries, Readout, Training

#: The shares of the variance and the numbers of components to choose from.
VARIANCES = (0.8, 0.95)
COMPONENTS = (1, 4, 16)


@dataclass(frozen=True)
class Mixture(Readout):
    """A Gaussian mixture for each class in the leading directions of the embedding.

    The leading directions are the fewest principal directions with at least the share ``variance``
    of the variance of the embedding.
    """

    variance: float
    n_components: int

    name: ClassVar[str] = "mixture"
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "finalists"
    searched_by_default: ClassVar[bool] = True
    with_plain_distance: ClassVar[bool] = False

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(variance, size) for variance in VARIANCES for size in COMPONENTS]

    def fit(self, training: Training) -> FittedMixture:
        center, size, directions = training.once("directions", lambda: _directions(training.rows))
        held = np.cumsum(size**2) / max(float((size**2).sum()), np.finfo(float).tiny)
        n_directions = min(int(np.searchsorted(held, self.variance)) + 1, len(size))
        basis = directions[:n_directions].T
        rows = (training.rows - center) @ basis
        # With more OpenMP threads, the result of k-means would depend on the number of threads.
        with threadpool_limits(1):
            densities = [self._density(rows, c, training) for c in range(training.n_classes)]
        return FittedMixture(center, basis, densities)

    def _density(self, rows: Float, c: int, training: Training) -> GaussianMixture:
        """The density of a class. Readouts with the same directions and components share it."""
        own = rows[training.members(c)]
        affordable = max(1, len(own) // (2 * own.shape[1] + 2))
        size = min(self.n_components, affordable)
        key = "density", c, own.shape[1], size
        return training.once(key, lambda: _density(own, size, training.floor))


@dataclass(frozen=True)
class FittedMixture:
    """The centre and the directions of the embedding, and one density for each class."""

    center: Float
    basis: Float
    densities: list[GaussianMixture]

    def evidence(self, queries: Queries) -> Float:
        rows = (queries.rows - self.center) @ self.basis
        return np.stack([density.score_samples(rows) for density in self.densities], axis=1)


def _directions(rows: Float) -> tuple[Float, Float, Float]:
    """The mean of the rows, their singular values, and their principal directions."""
    center = rows.mean(axis=0)
    _, size, directions = np.linalg.svd(rows - center, full_matrices=False)
    return center, size, directions


def _density(rows: Float, n_components: int, floor: float) -> GaussianMixture:
    """A mixture fitted to rows, which may be equal."""
    rows = rows if len(rows) > 1 else np.repeat(rows, 2, axis=0)  # GaussianMixture needs two rows
    mixture = GaussianMixture(
        n_components, n_init=2, random_state=0,
        reg_covar=max(1e-3 * float(rows.var(axis=0).mean()), floor),
    )  # fmt: skip
    with ignoring(ConvergenceWarning):
        return mixture.fit(rows)
