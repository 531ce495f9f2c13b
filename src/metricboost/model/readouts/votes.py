"""Votes: the share of the k nearest rows of all classes that belong to each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from ..._typing import Float
from .base import Queries, Readout, Training
from .margin import NEIGHBORS


@dataclass(frozen=True)
class Votes(Readout):
    """The weighted share of the class among the k nearest rows of all classes."""

    k: int

    name: ClassVar[str] = "knn"
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "everywhere"

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(k) for k in (NEIGHBORS if n_neighbors is None else (n_neighbors,))]

    @property
    def n_neighbors(self) -> int:
        return self.k

    @property
    def k_of_all(self) -> int:
        return self.k

    def fit(self, training: Training) -> Self:
        return self

    def evidence(self, queries: Queries) -> Float:
        training = queries.training
        votes = np.eye(training.n_classes)[training.labels] * training.weight[:, None]
        counts = votes[queries.of_all[:, : self.k]].sum(axis=1)
        result: Float = np.log(counts + 0.5 * training.weight.mean())
        return result
