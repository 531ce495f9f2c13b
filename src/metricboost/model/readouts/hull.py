"""The hull: the squared distance to the flat through the k nearest rows of each class.

A flat is the affine subspace through some rows. The readout is the local hyperplane distance of
Vincent and Bengio, with a ridge. A flat also contains the points between and around its rows, so a
class with few rows covers more space. With a large ridge the distance to the flat becomes the
distance to the mean of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from ..._typing import Float
from .base import Queries, Readout, Training, as_evidence

#: The numbers of neighbours and the ridges to choose from.
NEIGHBORS = (10, 20)
RIDGES = (0.3, 3.0)
#: For each query, flats are computed only for this number of classes: those with the smallest
#: margins. The other classes keep their margin as the distance, which is never smaller than the
#: distance to the flat. With many classes this takes several times less work, and few predictions
#: change.
CLASSES_WITH_FLATS = 4


@dataclass(frozen=True)
class Hull(Readout):
    """The squared distance to the flat through the k nearest rows of the class.

    The distance is ``min_a |x - mean - Z'a|^2 + r |a|^2``, where Z has the k rows minus their mean,
    and r is ``ridge`` times the mean square of these differences.
    """

    k: int
    ridge: float

    name: ClassVar[str] = "hull"
    searched_by_default: ClassVar[bool] = True
    automatic: ClassVar[bool] = True

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        ks = NEIGHBORS if n_neighbors is None else (n_neighbors,)
        return [cls(k, ridge) for k in ks for ridge in RIDGES]

    @property
    def n_neighbors(self) -> int:
        return self.k

    @property
    def k_of_class(self) -> int:
        return self.k

    def fit(self, training: Training) -> Self:
        return self

    def evidence(self, queries: Queries) -> Float:
        ridges = sorted(
            {one.ridge for one in queries.readouts if isinstance(one, Hull) and one.k == self.k}
        )
        squared = queries.once(("flats", self.k), partial(_squared, queries, self.k, ridges))
        return as_evidence(squared[ridges.index(self.ridge)], queries.training)


def _squared(queries: Queries, k: int, ridges: Sequence[float]) -> Float:
    """The squared distances for all ridges, of shape (n_ridges, n_queries, n_classes)."""
    margins = queries.margins(k)
    n_flats = min(CLASSES_WITH_FLATS, margins.shape[1])
    nearest_classes = np.argsort(margins, axis=1, kind="stable")[:, :n_flats]
    squared = np.repeat(margins[None], len(ridges), axis=0)
    for c in range(margins.shape[1]):
        chosen = np.flatnonzero((nearest_classes == c).any(axis=1))
        squared[:, chosen, c] = queries.flat_distances(c, chosen, k, np.array(ridges)).T
    return squared
