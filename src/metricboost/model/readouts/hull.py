"""The hull: the squared distance to the flat through the k nearest rows of each class.

A flat is the affine subspace through some rows. The readout is the local hyperplane distance of
Vincent and Bengio, with a ridge. A flat also contains the points between and around its rows, so a
class with few rows covers more space. With a large ridge the distance to the flat becomes the
distance to the mean of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from ..._typing import Float
from .base import Near, Queries, Readout, Training, as_evidence

#: The numbers of neighbours and the ridges to choose from.
NEIGHBORS = (10, 20)
RIDGES = (0.3, 3.0)
#: Flats are computed for blocks of at most BLOCK queries. A flat needs a system of k x k numbers,
#: and the systems of a block have at most FLAT_ENTRIES numbers.
BLOCK = 256
FLAT_ENTRIES = 2**22
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
        margins = queries.margins(self.k)
        n_flats = min(CLASSES_WITH_FLATS, margins.shape[1])
        nearest_classes = np.argsort(margins, axis=1, kind="stable")[:, :n_flats]
        distances = margins.copy()
        for c in range(margins.shape[1]):
            near = queries.of_class[c]
            chosen = np.flatnonzero((nearest_classes == c).any(axis=1))
            size = max(1, min(BLOCK, FLAT_ENTRIES // near.rows.shape[1] ** 2))
            for start in range(0, len(chosen), size):
                block = chosen[start : start + size]
                make = partial(Flats.of, near.only(block), self.k)
                flats = queries.once(("flats", self.k, c, start), make)
                distances[block, c] = flats.distances(self.ridge)
        return as_evidence(distances, queries.training)


@dataclass(frozen=True)
class Flats:
    """The flats through the k nearest rows of each query, for any ridge.

    Attributes
    ----------
    gram : ndarray of shape (n_queries, k, k)
        The matrix G of inner products of the centred rows.
    along : ndarray of shape (n_queries, k, 1)
        The vector b of inner products of the centred rows with the centred query.
    away : ndarray of shape (n_queries,)
        The squared distance between the query and the mean of the rows.
    floor : float
        The smallest ridge.
    """

    gram: Float
    along: Float
    away: Float
    floor: float

    @classmethod
    def of(cls, near: Near, k: int) -> Flats:
        share = near.weight[:, :k] / near.weight[:, :k].sum(axis=1, keepdims=True)
        rows = near.references[near.rows[:, :k]]
        mean = (share[:, None, :] @ rows)[:, 0]
        rows -= mean[:, None]
        rows *= np.sqrt(share)[:, :, None]
        away = near.queries - mean
        gram, along = rows @ rows.transpose(0, 2, 1), rows @ away[:, :, None]
        return cls(gram, along, (away**2).sum(axis=1), near.floor)

    def distances(self, ridge: float) -> Float:
        """The squared distances to the flats: ``|x - mean|^2 - b'(G + rI)^-1 b``."""
        k = self.gram.shape[1]
        mean_square = np.trace(self.gram, axis1=1, axis2=2) / k
        ridged, diagonal = self.gram.copy(), np.arange(k)
        ridged[:, diagonal, diagonal] += np.maximum(ridge * mean_square, self.floor)[:, None]
        along_flat = (self.along * np.linalg.solve(ridged, self.along)).sum(axis=(1, 2))
        result: Float = self.away - along_flat
        return result
