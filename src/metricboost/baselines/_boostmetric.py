"""``BoostMetric``: boosting of dense rank-one matrices, of Shen, Kim, Wang and van den Hengel.

    log sum of exp(-(d^2(i, l) - d^2(i, j)))  +  mu * trace(W)

is minimised over positive semi-definite W. In a triplet (i, j, l), row j is one of the nearest rows
of row i in its own class, and row l is one of its nearest rows in the other classes, by Euclidean
distance. Every step adds ``w v v'``, where v is the leading eigenvector of the weighted sum of
``delta_il delta_il' - delta_ij delta_ij'``, and w is the weight that minimises the objective along
v. sDist is derived from this method. It adds sparse directions, products of columns as terms,
neighbourhoods under the learned metric, and a penalty on the rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from .._typing import Float, Index
from ..engines import get_engine
from ._base import LinearMetricLearner, Solution, of_unit_size, rooted_factor
from ._hinge import Comparisons, nearest_comparisons
from ._progress import Iterations

#: Up to this number of columns, all eigenvectors are computed.
DENSE = 64
#: Upper bound of the weight of a step, divided by the largest improvement of a triplet. If all
#: triplets improve along a direction, the optimal weight is infinite.
LONGEST = 1e3
#: Boosting ends if the gain of the best direction exceeds its penalty by less than this share of
#: the gain of the first direction.
NO_GAIN = 1e-9


class BoostMetric(LinearMetricLearner):
    """Boosting of rank-one matrices on triplets (Shen et al.).

    Parameters
    ----------
    n_neighbors : int, default=3
        The number k of nearest rows of the own class, and of the other classes. A row has k^2
        triplets. If a class is too small, the number is lower for all rows.
    penalty : float, default=1e-7
        The weight mu of the trace, relative to the smallest weight for which the metric is zero.
        The absolute weight is the attribute `mu_`.
    max_iter : int, default=200
        The largest number of steps, which is also the largest rank.
    random_state : int, RandomState instance or None, default=None
        The seed for the start of the eigenvector search in wide tables. It changes the result by
        rounding errors only.
    verbose : int, default=0
        If 1, show a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
        The objective at the metric.
    mu_ : float
        The weight of the trace.
    n_iter_ : int
        The number of steps.
    converged_ : bool
        Whether a further step would not lower the objective.
    metric_ : SparseMetric
        The metric.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        The number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of the columns, if ``X`` has column names that are all strings.

    References
    ----------
    C. Shen, J. Kim, L. Wang and A. van den Hengel, "Positive semidefinite metric learning using
    boosting-like algorithms", JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metricboost.baselines import BoostMetric
    >>> X, y = load_iris(return_X_y=True)
    >>> BoostMetric(max_iter=5).fit(X, y).components_.shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _ends_early = False  # reaching max_iter is not a failure: it is the chosen number of steps

    def __init__(
        self,
        n_neighbors: int = 3,
        penalty: float = 1e-7,
        max_iter: int = 200,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.penalty = penalty
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Float, labels: Index) -> Solution:
        X, unit = of_unit_size(X)
        pairs = nearest_comparisons(get_engine("auto"), X, labels, self.n_neighbors)
        triplets = _Triplets(X, pairs)
        random = check_random_state(self.random_state)
        watch = Iterations("BoostMetric", self.max_iter) if self.verbose else None
        margins = np.zeros_like(triplets.margins(X[:, 0]))
        steps: list[Float] = []
        gain, direction = triplets.leading(np.full(margins.shape, 1 / margins.size), random)
        mu, noise = self.penalty * max(gain, 0.0), NO_GAIN * max(gain, 0.0)
        self.mu_ = mu * unit**2
        while len(steps) < self.max_iter and gain > mu + noise:
            better = triplets.margins(X @ direction)
            weight = _best_weight(better, _shares(margins), mu)
            if weight == 0:  # the gain of the direction is due to rounding
                gain = 0.0
                break
            margins += weight * better
            steps.append(np.sqrt(weight) * direction)
            gain, direction = triplets.leading(_shares(margins), random)
            if watch is not None:
                watch(steps)
        components = rooted_factor(np.array(steps).reshape(-1, X.shape[1]))
        objective = float(logsumexp(-margins)) + mu * float((components**2).sum())
        converged = gain <= mu + noise
        return Solution(components / unit, objective, max(1, len(steps)), converged)


def _shares(margins: Float) -> Float:
    """The weights of the triplets. Triplets with small margins have large weights."""
    return np.asarray(softmax(-margins))


@dataclass(frozen=True)
class _Triplets:
    """All triplets of a row, a nearest row of its own class, and a nearest row of another class."""

    X: Float
    pairs: Comparisons

    def margins(self, z: Float) -> Float:
        """``(z_i - z_l)^2 - (z_i - z_j)^2`` for every row and pair of neighbours."""
        others = self.pairs.others.reshape(len(z), -1)
        near = (z[:, None] - z[self.pairs.targets]) ** 2
        far = (z[:, None] - z[others]) ** 2
        return np.asarray(far[:, None, :] - near[:, :, None])

    def leading(self, weights: Float, random: Any) -> tuple[float, Float]:
        """The largest eigenvalue of the weighted sum over the triplets, and its eigenvector."""
        p = self.X.shape[1]
        laplacian = self.pairs.laplacian(-weights.sum(axis=2), weights.sum(axis=1).ravel())
        if p <= DENSE:
            values, vectors = np.linalg.eigh(self.X.T @ (laplacian @ self.X))
            return float(values[-1]), vectors[:, -1]
        product = LinearOperator((p, p), lambda v: self.X.T @ (laplacian @ (self.X @ v)))
        start = random.normal(size=p)
        if not (product @ start).any():
            return 0.0, start
        values, vectors = eigsh(product, k=1, which="LA", v0=start)
        return float(values[0]), vectors[:, 0]


def _best_weight(better: Float, weights: Float, penalty: float) -> float:
    """The w that minimises ``log sum of weights * exp(-w * better) + penalty * w``."""

    def slope(w: float) -> float:
        """Minus the derivative of the objective, which is positive if a larger w is better."""
        exponent = -w * better
        tilted = weights * np.exp(exponent - exponent.max())
        return float((tilted * (better - penalty)).sum() / tilted.sum())

    longest = LONGEST / float(np.abs(better).max())
    if slope(longest) > 0:
        return longest
    if slope(0.0) <= 0:
        return 0.0
    return float(brentq(slope, 0.0, longest, rtol=1e-10))
