"""``SMLsm``: sparse metric learning via smooth optimisation, of Ying, Huang and Campbell (2009).

The objective is

    sum of max(0, 1 + d^2(i, j) - d^2(i, l))  +  mu |W|_(2,1)      d^2 = delta' U' W U delta

over positive semi-definite W and orthonormal U. There is one triplet (i, j, l) per row i: j is the
nearest row of its own class, and l is the nearest row of another class. ``|W|_(2,1)`` is the sum of
the norms of the columns of W.

The norm favours few nonzero columns of W, but these are columns after the rotation U. The best U
makes W diagonal, so the minimum of the norm over U is the trace of the metric U'WU. The learned
metric therefore has **a low rank, and uses all columns of the table**. With ``rotate=False``
(U = I), the norm removes columns of the table.

Hinges are smoothed as in Nesterov's method (`_hinge`). The problem is convex in the metric. The
final steps are always accelerated proximal gradient steps on the metric (`_convex`), which give
exact ranks and exact zeros. With the trace penalty, L-BFGS on a factor gives a good start quickly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._typing import Float, Index
from ..engines import get_engine
from ._base import (
    LinearMetricLearner,
    Solution,
    in_its_span,
    no_metric,
    of_unit_size,
    rooted,
    square_root,
)
from ._convex import ColumnPenalty, TracePenalty, minimise_over_cone
from ._descent import Objective, descend, sharp, widths
from ._hinge import HingeLoss, best_scale, nearest_comparisons
from ._progress import Iterations

#: Largest number of iterations on the factor before the convex steps, for each width.
ON_FACTOR = 500


class SMLsm(LinearMetricLearner):
    """Sparse metric learning via smooth optimisation (Ying, Huang and Campbell).

    The metric has a low rank or few columns, and makes every row nearer to its nearest row of its
    own class than to its nearest row of another class, by a margin.

    Parameters
    ----------
    penalty : float, default=0.05
        The weight mu of the norm, between 0 and 1, relative to the smallest weight for which the
        metric with ``rotate=True`` is zero. With ``rotate=False`` the metric is zero at a smaller
        weight. The absolute weight is the attribute `mu_`.
    rotate : bool, default=True
        Whether the columns are rotated first, as in the original method. The metric then has a low
        rank, but uses all columns. If False, the metric uses few columns.
    max_iter : int, default=2000
        The largest number of iterations.
    tol : float, default=0.01
        The approximate relative distance of the objective from its optimum at convergence.
    random_state : int, RandomState instance or None, default=None
        Not used, because the method is deterministic. The parameter exists for consistency with the
        other metric learners.
    verbose : int, default=0
        If 1, show a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
        The loss with exact hinges, plus the penalty.
    mu_ : float
        The weight of the norm.
    n_iter_ : int
        The number of iterations.
    converged_ : bool
        Whether the solver has converged.
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
    Y. Ying, K. Huang and C. Campbell, "Sparse metric learning via smooth optimization", NIPS 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metricboost.baselines import SMLsm
    >>> X, y = load_iris(return_X_y=True)
    >>> len(SMLsm().fit(X, y).components_) < 4
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, 1, closed="neither")],
        "rotate": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty: float = 0.05,
        rotate: bool = True,
        max_iter: int = 2000,
        tol: float = 0.01,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.rotate = rotate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Float, labels: Index) -> Solution:
        X, unit = of_unit_size(X)
        found = (
            in_its_span(partial(self._metric, labels), X)
            if self.rotate
            else self._metric(labels, X)
        )
        self.mu_ *= unit**2
        return replace(found, components=found.components / unit)

    def _metric(self, labels: Index, X: Float) -> Solution:
        loss = HingeLoss(X, nearest_comparisons(get_engine("auto"), X, labels))
        mu, p = self.penalty * largest_penalty(loss), X.shape[1]
        self.mu_ = mu
        if mu == 0:
            return no_metric(p, float(len(X)))
        norm = TracePenalty(mu) if self.rotate else ColumnPenalty(mu, p)
        W, n_iter, converged = self._minimised(loss, norm)
        if not self.rotate:
            W = _without_small_columns(W, 0.1 * self.tol)
        objective = loss.of_matrix(W, 0.0)[0] + norm(W)
        return Solution(rooted(W), objective, n_iter, converged)

    def _minimised(
        self, loss: HingeLoss, norm: TracePenalty | ColumnPenalty
    ) -> tuple[Float, int, bool]:
        """Minimise with decreasing widths: on the factor if ``rotate`` is true, then on W."""
        watch = Iterations(type(self).__name__, self.max_iter) if self.verbose else None
        p, n_iter = loss.X.shape[1], 0
        scale = best_scale(loss, np.eye(p), norm(np.eye(p)))
        W = scale * np.eye(p)
        for width, tol in widths(self.tol):
            left = self.max_iter - n_iter
            if self.rotate:
                lead = descend(_with_squares(loss, norm.weight, width), square_root(W), tol,
                               min(left, ON_FACTOR), watch)  # fmt: skip
                W, left = lead.at.T @ lead.at, left - lead.n_iter
                n_iter += lead.n_iter
                if left < 1:
                    return W, n_iter, False
            found = minimise_over_cone(
                partial(loss.of_matrix, width=width), norm, W, tol, left, watch
            )
            W, n_iter = found.at, n_iter + found.n_iter
            exact = loss.of_matrix(W, 0.0)[0] + norm(W)
            if not found.converged or sharp(exact, found.value, self.tol):
                break
        return W, n_iter, found.converged


def largest_penalty(loss: HingeLoss) -> float:
    """The smallest weight of the trace at which the zero matrix is optimal.

    At zero all hinges are 1. The zero matrix is optimal if no direction gains more than its cost.
    """
    p = loss.X.shape[1]
    gradient = loss.of_matrix(np.zeros((p, p)), 1e-12)[1]
    values = np.linalg.eigvalsh(-gradient)
    # If all gains are rounding errors, zero is optimal at every weight.
    return float(values[-1]) if values[-1] > 1e-12 * np.abs(values).max() else 0.0


def _with_squares(loss: HingeLoss, weight: float, width: float) -> Objective:
    """The loss plus the trace penalty as a function of a factor L: the trace is ``sum of L^2``."""

    def objective(L: Float) -> tuple[float, Float]:
        value, gradient = loss.of_factor(L, width)
        return value + weight * float((L**2).sum()), gradient + 2 * weight * L

    return objective


def _without_small_columns(W: Float, share: float) -> Float:
    """Set columns and rows of W with a very small norm to zero.

    The result is still positive semi-definite.
    """
    norms = np.sqrt((W**2).sum(axis=1))
    kept = norms > share * norms.max(initial=0.0)
    return np.where(kept[:, None] & kept, W, 0.0)
