"""Neighbourhoods: the k nearest rows of each class. This module defines S+ and S-.

In training, S+ of a row is its own class and S- is the other class, so that the margin
``m_i = y_i f(x_i)`` is mean d(i, other) - mean d(i, same). For an unseen row, S+ is the positive
class (``classes_[1]``) and S- is the negative class, so that ``f > 0`` predicts the positive class.

With K > 2 classes there is still one metric and one margin per row. S- is one of the two proposals
of the paper. For K = 2 both are equal to the definition above.

- "common" (similar and dissimilar points in the paper): the k nearest rows of all other classes
  together.
- "coded" (coded loss in the paper): the k nearest rows of each other class, all with equal weight.
  The label becomes the vector y with 1 for the own class and -1/(K-1) for the others. The loss is
  ``exp(-y'f / K)`` with ``f_c = (mean of d_l over l other than c) - d_c``, where d_l is the mean
  squared distance to the k nearest rows of class l. The f_c sum to zero, so ``y'f / K`` is equal to
  ``f_own / (K-1)``. The margin in this package is ``f_own``. As f is linear in W, a metric W in
  this package has the margins, weights and loss of the metric ``(K-1) W`` in the paper. Starting
  from zero, every step finds the same direction and a weight that is smaller by the factor K-1.
  **The learned metric is the coded metric of the paper divided by K-1**, and the neighbours are the
  same. A start metric in this package corresponds to K-1 times this metric in the paper. The trace
  of the root is smaller by the factor sqrt(K-1), so a penalty lambda_C in this package corresponds
  to lambda_C / sqrt(K-1) in the paper.
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
    """The nearest rows in every list of every row.

    Parameters
    ----------
    engine : Engine
    place : array of shape (n, r)
        The embedding of the rows.
    labels : ndarray of int
    lists : NeighborLists
        The first list of a row has rows of its own class.
    previous : Neighborhoods, optional
        The neighbours under an earlier metric. They make the search faster and do not change its
        result.
    """
    known = None if previous is None else previous.found
    found = engine.nearest_by_class(place, labels, lists, known)[0]
    rows = repeated(found, lists)
    k_same = lists.sizes[0]
    return Neighborhoods(rows[:, :k_same].copy(), rows[:, k_same:].copy(), found)


def repeated(found: Rows, lists: NeighborLists) -> Rows:
    """Fill lists that have fewer than k neighbours by repeating their neighbours cyclically.

    A list has fewer than k neighbours if a class has too few rows. The margin is a mean over k, so
    with repeated neighbours it is the mean over the neighbours that exist. If k is not a multiple
    of their number, the nearest neighbours count once more than the others.
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
    """The largest number of neighbours, up to k, that every row has in its own class."""
    return min(k, int(_class_counts(labels).min()) - 1)


def _class_counts(labels: Index) -> Index:
    """The number of rows of each class. Raises an error if a class has fewer than two rows."""
    counts = np.bincount(labels)
    if counts.min() < 2:
        raise ValueError(
            "A class has a single row in the rows of a fit, so this row has no neighbour of its "
            "own class. Use fewer folds, or n_averaged=1."
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
    """The nearest rows of each class for every training row. A row is never its own neighbour.

    The neighbours under an earlier metric (``previous``) make the search faster and do not change
    its result.
    """
    lists = training_lists(labels, k, multiclass)
    return neighborhoods(engine, embedding, labels, lists, previous)


def training_lists(labels: Index, k: int, multiclass: Multiclass) -> NeighborLists:
    """The lists of neighbours of a training row.

    The first list is of the own class. It is followed by one list of all other classes ("common"),
    or by one list per other class ("coded"). All lists have the length that the largest class
    allows. Lists of a smaller class have fewer neighbours, and do not shorten the lists of the
    other classes.
    """
    counts = _class_counts(labels)
    k_same = min(k, int(counts.max()) - 1)
    across = int(counts.max()) if multiclass == "coded" else len(labels) - int(counts.min())
    k_other = min(k, across)
    c = np.arange(int(labels.max()) + 1, dtype=np.int32)
    if multiclass == "common":
        return NeighborLists((c[:, None] != c).astype(np.int32), (k_same, k_other))
    place = 1 + c - (c > c[:, None])  # the numbering of the other classes skips the own class
    slots = np.where(c[:, None] == c, 0, place).astype(np.int32)
    return NeighborLists(slots, (k_same, *[k_other] * (len(c) - 1)))


def nearest_of_the_same(engine: Engine, embedding: Float, labels: Index, k: int) -> Rows:
    """The k nearest rows of the own class, for every row."""
    n_classes = int(labels.max()) + 1
    slots = np.where(np.eye(n_classes, dtype=bool), 0, -1).astype(np.int32)
    return engine.nearest_by_class(embedding, labels, NeighborLists(slots, (k,)))[0]
