"""The margin: the mean squared distance to the k nearest rows of each class.

The paper's f is the difference of the means of two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from ..._typing import Float
from .base import Queries, Readout, Training, as_evidence

#: The numbers of neighbours to choose from.
NEIGHBORS = (1, 3, 5, 10, 20)


@dataclass(frozen=True)
class Margin(Readout):
    """The mean squared distance to the k nearest rows of the class."""

    k: int

    name: ClassVar[str] = "margin"
    searched_by_default: ClassVar[bool] = True
    automatic: ClassVar[bool] = True
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "everywhere"

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(k) for k in (NEIGHBORS if n_neighbors is None else (n_neighbors,))]

    @property
    def n_neighbors(self) -> int:
        return self.k

    @property
    def k_of_class(self) -> int:
        return self.k

    def fit(self, training: Training) -> Self:
        return self

    def evidence(self, queries: Queries) -> Float:
        return as_evidence(queries.margins(self.k), queries.training)
