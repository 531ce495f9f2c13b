"""Evidence for every class from nearest rows, for several numbers of neighbours at once.

Evidence is n x K x the numbers of neighbours, and the class with the most is predicted. Without
queries the training rows are scored, each left out of its own neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._typing import Float, Index
from ..boosting.classes import members
from ..engines import Engine, NeighborLists

#: Numbers of neighbours to choose from by the leave-one-out error.
NEIGHBOR_CHOICES = (3, 5, 10, 20)


def leave_one_out_errors(
    engine: Engine,
    training: Float,
    labels: Index,
    ks: Sequence[int],
    rule: Callable[..., Float] | None = None,
) -> Float:
    """Errors of the training rows, each classified by the others, one column a k.

    A tie of t classes, the true one among them, is 1 - 1/t of an error (half of one for two), so
    that the classes are treated alike.
    """
    evidence = (rule or margin_score)(engine, training, labels, ks, None)
    best = evidence == evidence.max(axis=1, keepdims=True)
    found = best[np.arange(len(labels)), labels]
    return np.where(found, 1 - 1 / best.sum(axis=1), 1.0)


def margin_score(
    engine: Engine, training: Float, labels: Index, ks: Sequence[int], queries: Float | None
) -> Float:
    """The paper's f of every class: mean squared distance to the other classes less to it.

    The distance to a class is that to its k nearest rows. For two classes ``f_1 = d_0 - d_1`` is
    the paper's f and ``f_0 = -f_1``; for more this is the f of its coded loss.
    """
    distance = _class_distances(engine, training, labels, ks, queries)
    return _mean_of_others(distance) - distance


def _mean_of_others(values: Float) -> Float:
    """For every class the mean over the other ones; classes with equal values stay equal."""
    n_classes = values.shape[1]
    if n_classes == 2:  # the other one itself, to the last bit
        return values[:, ::-1]
    result: Float = (values.sum(axis=1, keepdims=True) - values) / (n_classes - 1)
    return result


def _class_distances(
    engine: Engine, training: Float, labels: Index, ks: Sequence[int], queries: Float | None
) -> Float:
    """Mean squared distances to the k nearest rows of every class."""
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
    """Means over the first k columns; over all where there are fewer."""
    known = np.isfinite(values)
    values = np.where(known, values, 0.0)
    return np.stack([values[:, :k].sum(axis=1) / known[:, :k].sum(axis=1) for k in ks], axis=1)
