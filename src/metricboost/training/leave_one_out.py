"""Leave-one-out errors by the margin rule, for several numbers of neighbours at once.

The evidence is an array of shape (n_rows, n_classes, n_numbers_of_neighbours). The class with the
largest evidence is predicted. Without queries, the evidence is computed for the training rows, and
a row is not one of its own neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._typing import Float, Index
from ..boosting.classes import members
from ..engines import Engine, NeighborLists

#: The numbers of neighbours for which leave-one-out errors are computed.
NEIGHBOR_CHOICES = (3, 5, 10, 20)


def leave_one_out_errors(
    engine: Engine,
    training: Float,
    labels: Index,
    ks: Sequence[int],
    rule: Callable[..., Float] | None = None,
) -> Float:
    """The error of each training row, classified by the other rows, with one column for each k.

    If the class of the row is tied for the largest evidence among t classes, the error is 1 - 1/t.
    No class is then preferred to another one.
    """
    evidence = (rule or margin_score)(engine, training, labels, ks, None)
    best = evidence == evidence.max(axis=1, keepdims=True)
    found = best[np.arange(len(labels)), labels]
    return np.where(found, 1 - 1 / best.sum(axis=1), 1.0)


def margin_score(
    engine: Engine, training: Float, labels: Index, ks: Sequence[int], queries: Float | None
) -> Float:
    """The paper's f of each class: the mean distance to the other classes minus that to the class.

    The distance d_c to class c is the mean squared distance to the k nearest rows of the class. For
    two classes ``f_1 = d_0 - d_1`` is the paper's f, and ``f_0 = -f_1``. For more classes the
    result is the f of the paper's coded loss.
    """
    distance = _class_distances(engine, training, labels, ks, queries)
    return _mean_of_others(distance) - distance


def _mean_of_others(values: Float) -> Float:
    """For each class, the mean over the other classes. Equal values give exactly equal means."""
    n_classes = values.shape[1]
    if n_classes == 2:  # the value of the other class, without rounding
        return values[:, ::-1]
    result: Float = (values.sum(axis=1, keepdims=True) - values) / (n_classes - 1)
    return result


def _class_distances(
    engine: Engine, training: Float, labels: Index, ks: Sequence[int], queries: Float | None
) -> Float:
    """The mean squared distances to the k nearest rows of each class."""
    groups, k = members(labels), max(ks)
    if queries is not None:
        found = [engine.nearest(queries, training[group], k)[1] for group in groups]
        return np.stack([_first_means(squared, ks) for squared in found], axis=1)
    sizes = tuple(min(k, len(group)) for group in groups)
    slots = np.tile(np.arange(len(groups), dtype=np.int32), (len(groups), 1))
    squared = engine.nearest_by_class(training, labels, NeighborLists(slots, sizes))[1]
    parts = np.split(squared, np.cumsum(sizes)[:-1], axis=1)
    return np.stack([_first_means(part, ks) for part in parts], axis=1)


def _first_means(values: Float, ks: Sequence[int]) -> Float:
    """The means over the first k columns, without infinite values."""
    known = np.isfinite(values)
    values = np.where(known, values, 0.0)
    return np.stack([values[:, :k].sum(axis=1) / known[:, :k].sum(axis=1) for k in ks], axis=1)
