"""The common part of the readouts that are logistic regressions on the terms of the metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from .base import Readout


@dataclass(frozen=True)
class Regression(Readout):
    """A logistic regression on the terms.

    Attributes
    ----------
    cost : float
        The C of scikit-learn's logistic regression.
    costs : tuple of float
        The costs to choose from, the usual one first.
    """

    cost: float

    costs: ClassVar[tuple[float, ...]]
    automatic: ClassVar[bool] = True
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "finalists"
    searched_by_default: ClassVar[bool] = True
    with_plain_distance: ClassVar[bool] = False
    cautious: ClassVar[bool] = True
    on_terms: ClassVar[bool] = True

    @classmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        return [cls(cost) for cost in cls.costs]
