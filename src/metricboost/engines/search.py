"""The neighbours of all training rows, exact or approximate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index, Rows
from .approximate import approximate_by_class
from .base import Engine, NeighborLists


@dataclass(frozen=True)
class Neighborhoods:
    """Row numbers of the nearest rows of the own class and of the other classes.

    Where they are coded, ``other`` has k rows of each other class, class after class.
    """

    same: Rows
    other: Rows
    #: The share of them that are the nearest indeed, as a sample of rows has it.
    recall: float = 1.0


def neighborhoods(
    engine: Engine,
    place: Float,
    labels: Index,
    lists: NeighborLists,
    previous: Neighborhoods | None = None,
    approximate: bool = False,
) -> Neighborhoods:
    """The nearest rows in every list of every row; the first list is that of the own class.

    Those of an earlier metric make the search faster, and no difference to what it finds. Where
    approximate ones would miss too many, they are exact.
    """
    found = approximate_by_class(engine, place, labels, lists) if approximate else None
    if found is None:
        known = None if previous is None else np.hstack([previous.same, previous.other])
        found = engine.nearest_by_class(place, labels, lists, known)[0], 1.0
    rows, recall = found
    k_same = lists.sizes[0]
    return Neighborhoods(rows[:, :k_same].copy(), rows[:, k_same:].copy(), recall)
