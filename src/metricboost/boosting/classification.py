"""Evidence for the positive class from nearest rows, for several numbers of neighbours at once.

Without queries the training rows are scored, each left out of its own neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .._typing import Float
from ..engines import Engine
from .neighborhoods import nearest

#: Numbers of neighbours to choose from by the leave-one-out error.
NEIGHBOR_CHOICES = (3, 5, 10, 20)


def leave_one_out_errors(
    engine: Engine,
    training: Float,
    positive: npt.NDArray[np.bool_],
    ks: Sequence[int],
    rule: Callable[..., Float] | None = None,
) -> Float:
    """Errors of the training rows, each classified by the others, one column a k.

    A tie is half an error, so that the classes are treated alike.
    """
    score = (rule or margin_score)(engine, training, positive, ks, None)
    return np.where(score == 0, 0.5, (score > 0) != positive[:, None])


def margin_score(
    engine: Engine,
    training: Float,
    positive: npt.NDArray[np.bool_],
    ks: Sequence[int],
    queries: Float | None,
) -> Float:
    """The paper's f: mean squared distance to the k nearest negatives less to the positives."""
    near_positive = _mean_distances(engine, training, positive, ks, queries)
    return _mean_distances(engine, training, ~positive, ks, queries) - near_positive


def _mean_distances(
    engine: Engine,
    training: Float,
    members: npt.NDArray[np.bool_],
    ks: Sequence[int],
    queries: Float | None,
) -> Float:
    """Mean squared distances to the k nearest members of a class, one column a k."""
    if queries is not None:
        return _first_means(nearest(engine, queries, training[members], max(ks))[1], ks)
    result = np.empty((len(training), len(ks)))
    own, others = training[members], training[~members]
    itself = np.arange(len(own))
    result[members] = _first_means(nearest(engine, own, own, max(ks), itself)[1], ks)
    result[~members] = _first_means(nearest(engine, others, own, max(ks))[1], ks)
    return result


def _first_means(values: Float, ks: Sequence[int]) -> Float:
    """Means over the first k columns; over all where there are fewer."""
    return np.stack([values[:, :k].mean(axis=1) for k in ks], axis=1)


def vote_score(
    engine: Engine,
    training: Float,
    positive: npt.NDArray[np.bool_],
    ks: Sequence[int],
    queries: Float | None,
) -> Float:
    """The share of the k nearest rows that are positive, less a half."""
    itself = np.arange(len(training)) if queries is None else None
    sought = training if queries is None else queries
    rows, _ = nearest(engine, sought, training, max(ks), itself)
    return _first_means(positive[rows].astype(np.float64), ks) - 0.5
