"""Neighbourhoods: the k nearest rows of each class; the only place that fixes S+ and S-.

In training S+ is the row's own class and S- the other one, so that the margin
``m_i = y_i f(x_i)`` is mean d(i, other) - mean d(i, same). For an unseen row S+ is the positive
class (``classes_[1]``) and S- the negative one, so that ``f > 0`` predicts the positive class.

With K > 2 classes there is still one metric and one margin a row, and S- is one of the paper's two
proposals (for K = 2 both are the above):

- "common", its similar and dissimilar points: the k nearest rows of all other classes together.
- "coded", its coded loss: the k nearest rows of each other class, all with equal weight. The label
  becomes the vector y with 1 for the own class and -1/(K-1) for the others, and the loss is
  ``exp(-y'f / K)`` with ``f_c = (mean of d_l over l other than c) - d_c``, d_l the mean squared
  distance to the k nearest rows of class l. The f_c sum to zero, so that ``y'f / K`` is
  ``f_own / (K-1)``. The margin here is ``f_own``: f is linear in W, so a metric W here has the
  margins, weights and loss of ``(K-1) W`` there. From zero every step finds the same direction and
  a weight smaller by the factor K-1: **the metric learned is the paper's coded one divided by
  K-1**, which changes no neighbour. A start metric here is (K-1) times it there, and the trace of
  the root is smaller by sqrt(K-1), so a penalty lambda_C here is lambda_C / sqrt(K-1) there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._typing import Float, Index, Rows
from ..engines import Array, Engine, NeighborLists

Multiclass = Literal["common", "coded"]


@dataclass(frozen=True)
class Neighborhoods:
    """The nearest rows of every row.

    Attributes
    ----------
    same, other : ndarray of shape (n, k)
        Row numbers of the nearest rows of the own class and of the other classes. With coded
        classes ``other`` has k rows of each other class, class after class.
    found : ndarray of shape (n, width of the lists)
        The result of the search, with -1 where a class has too few rows.
    """

    same: Rows
    other: Rows
    found: Rows


def neighborhoods(
    engine: Engine,
    place: Array,
    labels: Index,
    lists: NeighborLists,
    previous: Neighborhoods | None = None,
) -> Neighborhoods:
    """The nearest rows in every list of every row. The first list is that of the own class.

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
    k, so repeating the neighbours gives the mean over the neighbours that exist. If k is no
    multiple of their number, the nearest ones count up to once more than the others.
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


def neighbors_in_all_classes(labels: Index, k: int) -> int:
    """k, or fewer if the smallest class has too few rows for k neighbours of a row within it."""
    return min(k, int(_class_counts(labels).min()) - 1)


def _class_counts(labels: Index) -> Index:
    """Rows of every class that has any."""
    counts = np.bincount(labels)
    if counts.min() < 2:
        raise ValueError(
            "A class has a single row among those that a fit sees, and a row is never its own "
            "neighbour: use fewer folds, or n_averaged=1."
        )
    return counts


def class_neighborhoods(
    engine: Engine,
    embedding: Float,
    labels: Index,
    k: int,
    multiclass: Multiclass = "common",
    previous: Neighborhoods | None = None,
) -> Neighborhoods:
    """The nearest rows of each class for every training row; a row is never its own neighbour.

    The neighbours of an earlier metric make the search faster and do not change its result.
    """
    lists = training_lists(labels, k, multiclass)
    return neighborhoods(engine, embedding, labels, lists, previous)


def training_lists(labels: Index, k: int, multiclass: Multiclass) -> NeighborLists:
    """The own class first, then all others in one list, or in one each.

    The lists are as long as the largest of them can be. A class with fewer rows has short lists,
    which leaves those of the other classes as they are.
    """
    counts = _class_counts(labels)
    k_same = min(k, int(counts.max()) - 1)
    across = int(counts.max()) if multiclass == "coded" else len(labels) - int(counts.min())
    k_other = min(k, across)
    c = np.arange(int(labels.max()) + 1, dtype=np.int32)
    if multiclass == "common":
        return NeighborLists((c[:, None] != c).astype(np.int32), (k_same, k_other))
    place = 1 + c - (c > c[:, None])  # a row has no place for its own class
    slots = np.where(c[:, None] == c, 0, place).astype(np.int32)
    return NeighborLists(slots, (k_same, *[k_other] * (len(c) - 1)))


def nearest_of_the_same(engine: Engine, embedding: Float, labels: Index, k: int) -> Rows:
    """The k nearest rows of the own class."""
    n_classes = int(labels.max()) + 1
    slots = np.where(np.eye(n_classes, dtype=bool), 0, -1).astype(np.int32)
    return engine.nearest_by_class(embedding, labels, NeighborLists(slots, (k,)))[0]
