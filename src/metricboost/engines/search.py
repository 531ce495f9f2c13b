"""The neighbours of all training rows, exact or approximate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index, Rows
from .approximate import approximate_by_class, without_itself
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


def exact_of_rows(
    engine: Engine,
    place: Float,
    labels: Index,
    lists: NeighborLists,
    own: Index,
    z: Float | None = None,
    numbers: Index | None = None,
) -> Rows:
    """As ``Engine.nearest_by_class``, of some rows: by number, and where they lie if not in place.

    ``numbers`` are those of the rows in place, sorted, where they are not all.
    """
    z = place[own] if z is None else z
    numbers = np.arange(len(place)) if numbers is None else numbers
    found = np.empty((len(own), lists.width), dtype=np.int32)
    for c in np.unique(labels[own]):
        here = np.flatnonzero(labels[own] == c)
        ends = np.cumsum(lists.sizes)
        for number, (size, end) in enumerate(zip(lists.sizes, ends)):
            among = np.flatnonzero((lists.slots[c] == number)[labels[numbers]])
            own_class = lists.slots[c, c] == number
            near, far = engine.nearest(z[here], place[among], size + own_class)
            rows = numbers[among][near]
            if own_class:
                rows, _ = without_itself(rows, far, own[here])
            found[np.ix_(here, np.arange(end - size, end))] = rows
    return found
