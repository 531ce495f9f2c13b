"""``SMLlp``: sparse metrics from relative comparisons, after Rosales and Fung (2006).

There is one triplet (i, j, l) per row i: j is the nearest row of its own class, and l is the
nearest row of another class. The method has two forms.

``form="factor"``, as printed in the sDist paper, minimises over L with ``W = L'L``:

    sum of max(0, 1 + d^2(i, j) - d^2(i, l))  +  mu sum of |L_rs|

The constraint in the paper has no margin, and without a margin L = 0 is optimal. The margin here is
1, as in SMLsm. The problem is not convex, and L = 0 is always a local minimum. L is written as the
difference of two nonnegative arrays. The penalty is then the sum of the two arrays, so that L-BFGS
with bounds can be used, and zeros are exact.

``form="dominant"`` is the linear program of the original, as far as it can be reconstructed:

    sum of max(0, 1 + d^2(i, j) - d^2(i, l))  +  mu sum of |W_rs|

It is minimised over diagonally dominant W, which are positive semi-definite. These matrices are
sums of the p^2 matrices vv' with ``v = e_r``, ``v = e_r + e_s`` or ``v = e_r - e_s``, with
nonnegative weights, and few of the weights are positive at the optimum. The program is solved by
column generation. HiGHS solves the program over some of the matrices, its dual prices show which
other matrices would lower the objective most, and these are added until no matrix does. The prices
also give a lower bound of the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import Bounds, linprog
from sklearn.utils._param_validation import Interval, StrOptions

from .._typing import Float, Index
from ..engines import get_engine
from ._base import LinearMetricLearner, Solution, first_factor, no_metric, of_unit_size
from ._descent import Objective, descend, sharp, widths
from ._hinge import Comparisons, HingeLoss, losses_at_scales, nearest_comparisons
from ._progress import Iterations

#: Smallest weight for ``penalty=1``, if the Euclidean distance is not better than the zero metric.
LEAST = 1e-3


class SMLlp(LinearMetricLearner):
    """Sparse metric learning via linear programming (Rosales and Fung).

    The metric has few nonzero entries, and makes every row nearer to its nearest row of its own
    class than to its nearest row of another class, by a margin.

    Parameters
    ----------
    penalty : float, default=0.05
        The weight mu of the absolute values, relative to a reference weight. For ``form="factor"``,
        the reference is the largest weight at which the Euclidean distance is not worse than the
        zero metric. For ``form="dominant"``, the reference is the smallest weight for which the
        metric is zero. The absolute weight is the attribute `mu_`.
    form : {"factor", "dominant"}, default="factor"
        "factor" minimises over factors L, as in the sDist paper. "dominant" minimises over
        diagonally dominant matrices W, by linear programming.
    n_components : int, optional
        The largest number of rows of L. By default the number of columns. It must be None with
        ``form="dominant"``.
    init : {"identity", "random"}, default="identity"
        The start of the search for L. "identity" is the Euclidean distance, or the first principal
        components if ``n_components`` is less than the number of columns. "random" is a random L.
        It is not used with ``form="dominant"``.
    max_iter : int, default=2000
        The largest number of iterations, or of linear programs.
    tol : float, default=1e-3
        The relative distance of the objective from its optimum at convergence. It is approximate
        for ``form="factor"``.
    random_state : int, RandomState instance or None, default=None
        The seed for ``init="random"``.
    verbose : int, default=0
        If 1, show a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        A sparse factor L of the metric, ``W = L'L``.
    objective_ : float
        The loss with exact hinges, plus the penalty.
    mu_ : float
        The weight of the penalty.
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
    R. Rosales and G. Fung, "Learning sparse metrics via linear programming", KDD 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metricboost.baselines import SMLlp
    >>> X, y = load_iris(return_X_y=True)
    >>> (SMLlp(form="dominant", penalty=0.5).fit(X, y).matrix() != 0).any(axis=0)
    array([False, False,  True, False])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "form": [StrOptions({"factor", "dominant"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"identity", "random"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty: float = 0.05,
        form: str = "factor",
        n_components: int | None = None,
        init: str = "identity",
        max_iter: int = 2000,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.form = form
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Float, labels: Index) -> Solution:
        if self.form == "dominant" and self.n_components is not None:
            raise ValueError(
                f'n_components={self.n_components} cannot be used with form="dominant". Use '
                'n_components=None or form="factor".'
            )
        X, unit = of_unit_size(X)
        comparisons = nearest_comparisons(get_engine("auto"), X, labels)
        watch = Iterations("SMLlp", self.max_iter) if self.verbose else None
        if self.form == "dominant":
            program = _Program.of(X, comparisons)
            mu = self.penalty * program.largest_penalty()
            self.mu_ = mu * unit**2
            if mu == 0:
                return no_metric(X.shape[1], float(len(X)))
            found = program.solved(mu, self.tol, self.max_iter, watch)
        else:
            loss = HingeLoss(X, comparisons)
            start, mu = _scaled(
                loss, first_factor(X, self.n_components, self.init, self.random_state), self.penalty
            )
            self.mu_ = mu * unit
            found = self._over_factor(loss, start, mu, watch)
        return replace(found, components=found.components / unit)

    def _over_factor(self, loss: HingeLoss, L: Float, mu: float, watch: Any) -> Solution:
        start = np.stack([np.maximum(L, 0.0), np.maximum(-L, 0.0)])
        at_zero = float(len(loss.comparisons.rows))
        L, exact, parts, n_iter = np.zeros_like(L), at_zero, start, 0
        for width, tol in widths(self.tol):
            objective = _with_absolute_values(loss, mu, width)
            left = max(1, self.max_iter - n_iter)
            found = descend(objective, parts, tol, left, watch, bounds=Bounds(0, np.inf))
            n_iter += found.n_iter
            # With smoothed hinges, zero may seem better than it is. In this case the start is used
            # again, with a smaller width.
            parts = found.at if found.at.any() else start
            reached = found.at[0] - found.at[1]
            value = loss.values(reached, 0.0)[0] + mu * float(np.abs(reached).sum())
            if value < exact:
                L, exact = reached, value
            done = found.at.any() and sharp(value, found.value, self.tol)
            if done or not found.converged:
                break
        used = (L != 0).any(axis=1)
        return Solution(L[used], exact, max(1, n_iter), found.converged)


def _scaled(loss: HingeLoss, L: Float, penalty: float) -> tuple[Float, float]:
    """L at its best scale, and the weight of the penalty.

    The weight for ``penalty=1`` is the largest weight at which a multiple of L is not worse than
    zero.
    """
    scales, losses = losses_at_scales(loss, L)
    sizes = np.sqrt(scales) * float(np.abs(L).sum())
    n = len(loss.comparisons.rows)
    largest = max(float(((n - losses) / sizes).max()), LEAST * n / float(np.median(sizes)))
    mu = penalty * largest
    return L * np.sqrt(scales[int(np.argmin(losses + mu * sizes))]), mu


def _with_absolute_values(loss: HingeLoss, weight: float, width: float) -> Objective:
    """The loss plus the penalty as a function of the positive and negative parts of L."""

    def objective(parts: Float) -> tuple[float, Float]:
        value, gradient = loss.of_factor(parts[0] - parts[1], width)
        penalised = np.stack([gradient, -gradient]) + weight
        return value + weight * float(parts.sum()), penalised

    return objective


@dataclass(frozen=True)
class _Rays:
    """Vectors ``v = e_r + sign * e_s``. If sign is 0, the vector is ``e_r``."""

    r: Index
    s: Index
    sign: Float

    def values(self, D: Float) -> Float:
        """``v'd`` for every row d of D and every vector v."""
        return np.asarray(D[:, self.r] + self.sign * D[:, self.s])

    def costs(self) -> Float:
        """The sum of the absolute values of vv' for every vector v."""
        return np.where(self.sign == 0, 1.0, 4.0)

    def vectors(self, p: int) -> Float:
        result = np.zeros((len(self.r), p))
        every = np.arange(len(self.r))
        result[every, self.r] = 1.0
        np.add.at(result, (every, self.s), self.sign)
        return result

    def joined(self, other: _Rays) -> _Rays:
        return _Rays(
            np.concatenate([self.r, other.r]), np.concatenate([self.s, other.s]),
            np.concatenate([self.sign, other.sign]),
        )  # fmt: skip


@dataclass(frozen=True)
class _Program:
    """The linear program.

    ``near`` has the differences of row i and row j of every triplet (i, j, l), and ``far`` the
    differences of row i and row l. A ray is one of the matrices vv'.
    """

    near: Float
    far: Float

    @classmethod
    def of(cls, X: Float, comparisons: Comparisons) -> _Program:
        targets = comparisons.targets[comparisons.rows, 0]
        rows = X[comparisons.rows]
        return cls(rows - X[targets], rows - X[comparisons.others])

    def largest_penalty(self) -> float:
        """The smallest weight at which the zero matrix is optimal: no ray gains its cost."""
        worth = self._worth(np.ones(len(self.near)))[0]
        # If all gains are rounding errors, zero is optimal at every weight.
        return float(worth.max()) if worth.max() > 1e-12 * np.abs(worth).max() else 0.0

    def _worth(self, prices: Float) -> tuple[Float, _Rays]:
        """The gain of each ray per unit of its cost, for given prices of the comparisons."""
        S = (self.far.T * prices) @ self.far - (self.near.T * prices) @ self.near
        p = len(S)
        diagonal, (r, s) = np.diag(S), np.triu_indices(p, 1)
        sign = np.where(S[r, s] > 0, 1.0, -1.0)  # the better of the two
        both = diagonal[r] + diagonal[s] + 2 * sign * S[r, s]
        alone = np.arange(p)
        rays = _Rays(alone, alone, np.zeros(p)).joined(_Rays(r, s, sign))
        return np.concatenate([diagonal, both / 4]), rays

    def solved(self, weight: float, tol: float, max_iter: int, watch: Any) -> Solution:
        p = self.near.shape[1]
        alone = np.arange(p)
        rays, n_iter, bound, converged = _Rays(alone, alone, np.zeros(p)), 0, 0.0, False
        last = np.inf
        while n_iter < max_iter and not converged:
            weights, objective, prices = self._over(rays, weight)
            worth, candidates = self._worth(prices)
            # Prices scaled so that no ray gains more than its cost are dual feasible, so their sum
            # is a lower bound of the optimum.
            bound = max(bound, float(prices.sum()) / max(1.0, float(worth.max()) / weight))
            n_iter, converged = n_iter + 1, objective - bound <= tol * objective
            if watch is not None:
                watch(weights)
            held = weights > 0
            kept = _Rays(rays.r[held], rays.s[held], rays.sign[held])
            best = np.argsort(-worth, kind="stable")[:p]
            best = best[worth[best] > weight]
            if objective >= last and not converged:
                break  # the precision of the solver is reached
            last = objective
            fresh = _Rays(candidates.r[best], candidates.s[best], candidates.sign[best])
            rays = kept.joined(fresh)
        factor = np.sqrt(weights[held])[:, None] * kept.vectors(p)
        return Solution(factor, objective, n_iter, converged)

    def _over(self, rays: _Rays, weight: float) -> tuple[Float, float, Float]:
        """Solve the program over the given rays: their weights, the objective, and the prices."""
        gains = rays.values(self.far) ** 2 - rays.values(self.near) ** 2
        # The dual program has a price in [0, 1] per comparison and a constraint per ray.
        found = linprog(
            -np.ones(len(gains)), A_ub=gains.T, b_ub=weight * rays.costs(), bounds=(0, 1),
            method="highs",
        )  # fmt: skip
        return np.maximum(-found.ineqlin.marginals, 0.0), -float(found.fun), found.x
