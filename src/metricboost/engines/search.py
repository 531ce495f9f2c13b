"""The neighbours of all training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index, Rows
from .base import Engine, NeighborLists


@dataclass(frozen=True)
class Neighborhoods:
    """Row numbers of the nearest rows of the own class and of the other classes.

    With coded classes ``other`` has k rows of each other class, class after class. ``found`` is
    the result of the search, in which -1 stands where a class has fewer than k rows.
    """

    same: Rows
    other: Rows
    found: Rows


def neighborhoods(
    engine: Engine,
    place: Float,
    labels: Index,
    lists: NeighborLists,
    previous: Neighborhoods | None = None,
) -> Neighborhoods:
    """The nearest rows in every list of every row; the first list is that of the own class.

    The neighbours of an earlier metric make the search faster and do not change its result.
    """
    known = None if previous is None else previous.found
    found = engine.nearest_by_class(place, labels, lists, known)[0]
    rows = repeated(found, lists)
    k_same = lists.sizes[0]
    return Neighborhoods(rows[:, :k_same].copy(), rows[:, k_same:].copy(), found)


def repeated(found: Rows, lists: NeighborLists) -> Rows:
    """Fill short lists by repeating their rows in turn.

    A class with fewer than k rows gives lists of fewer than k neighbours. The margin is a mean over
    k, so that repeating the neighbours gives the mean over those that there are (with k no
    multiple of their number, the nearest ones count up to once more than the others).
    """
    short = (found < 0).any(axis=1)
    if not short.any():
        return found
    result = found.copy()
    ends = np.cumsum(lists.sizes)
    for start, end in zip(ends - lists.sizes, ends):
        part = found[:, start:end]
        counts = (part >= 0).sum(axis=1)
        for count in np.unique(counts[counts < end - start]):
            own = np.flatnonzero(counts == count)
            places = np.arange(end - start) % max(int(count), 1)
            result[own, start:end] = part[np.ix_(own, places)]
    return result
