"""What every term adds to a squared distance.

With Delta the difference of two rows' terms, the squared distance is ``Delta' W Delta``. This is
the sum over the terms a of ``Delta_a (W Delta)_a``, the contribution of term a. The decomposition
is exact. A contribution is negative if W weighs the term against another one and the two rows
differ in both in the same direction.
"""

from __future__ import annotations

import numpy.typing as npt

from .._typing import Float
from ..model import SparseMetric


def contributions(metric: SparseMetric, X: npt.ArrayLike, Y: npt.ArrayLike) -> Float:
    """What every term adds to the squared distance between row i of X and row i of Y.

    Parameters
    ----------
    metric : SparseMetric
    X, Y : array-like of shape (n_pairs, n_features)

    Returns
    -------
    ndarray of shape (n_pairs, n_terms)
        In the order of ``metric.columns``. Rows sum to the squared distances. Entries may be
        negative.

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import contributions
    >>> metric = SparseMetric([(0,), (1,)], [[1.0, -0.5]], np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2))
    >>> contributions(metric, [[1.0, 1.0]], [[0.0, 0.0]])
    array([[ 0.5 , -0.25]])
    >>> metric.pair_distance([[1.0, 1.0]], [[0.0, 0.0]]) ** 2
    array([0.25])
    """
    return decomposed(metric, metric.term_features(X) - metric.term_features(Y))


def decomposed(metric: SparseMetric, difference: Float) -> Float:
    """What every term adds to squared distances, given the differences of the rows' terms.

    Parameters
    ----------
    metric : SparseMetric
    difference : ndarray of shape (n_pairs, n_terms)
        Differences of rows of ``metric.term_features``.

    Returns
    -------
    ndarray of shape (n_pairs, n_terms)
    """
    weighted = (difference @ metric.components.T) @ metric.components
    result: Float = difference * (weighted + difference * metric.diagonal)
    return result
