"""``BoostMetric``: boosting of dense rank-one matrices, of Shen, Kim, Wang and van den Hengel.

    log sum of exp(-(d^2(i, l) - d^2(i, j)))  +  mu * trace(W)

over positive semi-definite W, for triplets (i, j, l): j one of a row's nearest rows of its own
class, l one of its nearest of others, by Euclidean distance. Every step adds ``w v v'``: v is the
leading eigenvector of the weighted sum of ``delta_il delta_il' - delta_ij delta_ij'``, and w the
best weight along it. This is the ancestor of sDist, without its sparse directions, its growing
terms, its neighbourhoods that follow the metric and its penalty on rank.
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

#: Up to this many columns the eigenvectors are all computed.
DENSE = 64
#: A step along which all triplets get better has no best weight: this is the most, in units of
#: the largest improvement.
LONGEST = 1e3
#: Steps end where the best direction gains no more than its penalty, to this share of what the
#: first one gained.
NO_GAIN = 1e-9


class BoostMetric(LinearMetricLearner):
    """Boosting of rank-one matrices on triplets (Shen et al.).

    Parameters
    ----------
    n_neighbors : int, default=3
        Nearest rows of the own class and of the others: a row has the square of this many triplets.
        Fewer, for all rows, where a class has no more.
    penalty : float, default=1e-7
        The weight mu of the trace, as a share of the least that makes the metric zero; `mu_` is the
        weight itself.
    max_iter : int, default=200
        Steps, and so the largest rank.
    random_state : int, RandomState instance or None, default=None
        For the start of the eigenvector search in wide tables; it does not change the result beyond
        rounding.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
    mu_ : float
        The weight of the trace.
    n_iter_ : int
    converged_ : bool
        Whether no further step would help.
    metric_, classes_, n_features_in_, feature_names_in_

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
    _ends_early = False  # the number of steps is a choice, not a limit

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
            if weight == 0:  # what the direction gains is rounding
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
    """The weights of the triplets: those with small margins weigh most."""
    return np.asarray(softmax(-margins))


@dataclass(frozen=True)
class _Triplets:
    """Every row's nearest rows of its own class and of the others, each against each."""

    X: Float
    pairs: Comparisons

    def margins(self, z: Float) -> Float:
        """``(z_i - z_l)^2 - (z_i - z_j)^2`` for every row and pair of neighbours."""
        others = self.pairs.others.reshape(len(z), -1)
        near = (z[:, None] - z[self.pairs.targets]) ** 2
        far = (z[:, None] - z[others]) ** 2
        return np.asarray(far[:, None, :] - near[:, :, None])

    def leading(self, weights: Float, random: Any) -> tuple[float, Float]:
        """The largest eigenvalue of the weighted sum over the triplets, and its vector."""
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
    """The w with the least ``log sum of weights * exp(-w * better) + penalty * w``."""

    def slope(w: float) -> float:
        """Positive while a larger w still helps."""
        exponent = -w * better
        tilted = weights * np.exp(exponent - exponent.max())
        return float((tilted * (better - penalty)).sum() / tilted.sum())

    longest = LONGEST / float(np.abs(better).max())
    if slope(longest) > 0:
        return longest
    if slope(0.0) <= 0:
        return 0.0
    return float(brentq(slope, 0.0, longest, rtol=1e-10))
