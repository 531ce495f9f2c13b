"""``LMNN``: large margin nearest neighbours, of Weinberger and Saul (2009).

The objective is

    (1 - mu) sum of d^2(i, j)  +  mu sum of max(0, 1 + d^2(i, j) - d^2(i, l))

The sums are over all rows i, over the targets j of row i (its nearest rows of its own class by
Euclidean distance), and over all rows l of other classes. Only rows l within the margin contribute
to the second sum. These rows are called impostors. The solver uses the pairs (i, l) that are near
the margin, and searches for these pairs again when the metric changes.

The objective is convex in W = L'L. It is minimised over L by L-BFGS with smoothed hinges
(`_hinge`). If L is square, all local minima are global. The columns are first whitened by the
scatter of the targets. The first sum then has the same curvature in all directions, and far fewer
iterations are needed. ``solver="matrix"`` solves the convex problem in W with all pairs at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._typing import Float, Index
from ..boosting.classes import members
from ..boosting.neighborhoods import nearest_of_the_same, neighbors_in_all_classes
from ..engines import Engine, get_engine
from ._base import LinearMetricLearner, Solution, first_factor, rooted, rooted_factor
from ._convex import TracePenalty, minimise_over_cone
from ._descent import Objective, descend, sharp, widths
from ._hinge import Comparisons, HingeLoss, best_scale
from ._progress import Iterations

#: The search for impostors starts with FIRST neighbours of a row in other classes. If all of them
#: are impostors, the search is repeated with MORE times as many.
FIRST, MORE = 16, 4
#: The search includes pairs whose distance exceeds the margin by up to this share, because the
#: metric changes between two searches.
SPARE = 0.02
#: Number of iterations between two searches.
ROUND = 40
#: Number of rows from which the scale of the start is chosen.
SCALE_ROWS = 200
#: Added to the eigenvalues of the whitening, whose mean is 1, because the targets may not vary in
#: some directions. The value is larger for steps on W, which have one step length for all
#: directions and need eigenvalues of similar size.
RIDGE = {"factor": 1e-3, "matrix": 0.1}

#: No penalty: the constraint that W is positive semi-definite remains.
NONE = TracePenalty(0.0)

FindLoss = Callable[[Float], HingeLoss]


class LMNN(LinearMetricLearner):
    """Large margin nearest neighbours (Weinberger and Saul).

    The metric makes the distances of a row to its nearest rows of its own class small, and the
    distances to rows of other classes larger by a margin.

    Parameters
    ----------
    n_neighbors : int, default=3
        The number of targets of a row. If a class is too small, the number is lower for all rows.
    mu : float, default=0.5
        The weight of the hinges. The weight of the distances to the targets is ``1 - mu``.
    n_components : int, optional
        The number of rows of L, which is the largest rank of the metric. By default the number of
        columns. With a smaller number, the problem is not convex. It must be None with
        ``solver="matrix"``.
    impostors : {"all", "euclidean"}, default="all"
        The rows of other classes in the second sum. "all" is the original method. "euclidean" uses
        only rows that are at most as far away as the furthest target by Euclidean distance, as
        printed in the sDist paper.
    solver : {"factor", "matrix"}, default="factor"
        "factor" is L-BFGS on L. "matrix" is accelerated proximal gradient steps on W, with all
        pairs at once and an eigendecomposition per step. It is slow and meant for small tables.
    init : {"identity", "random"}, default="identity"
        The start of the search for L. "identity" is the Euclidean distance, or the first principal
        components if ``n_components`` is less than the number of columns. "random" is a random L.
    max_iter : int, default=500
        The largest number of iterations.
    tol : float, default=0.03
        The approximate relative distance of the objective from its optimum at convergence.
    random_state : int, RandomState instance or None, default=None
        The seed for ``init="random"``.
    verbose : int, default=0
        If 1, show a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
        The objective with exact hinges.
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
    K. Q. Weinberger and L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metricboost.baselines import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "mu": [Interval(Real, 0, 1, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "impostors": [StrOptions({"all", "euclidean"})],
        "solver": [StrOptions({"factor", "matrix"})],
        "init": [StrOptions({"identity", "random"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        mu: float = 0.5,
        n_components: int | None = None,
        impostors: str = "all",
        solver: str = "factor",
        init: str = "identity",
        max_iter: int = 500,
        tol: float = 0.03,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.n_components = n_components
        self.impostors = impostors
        self.solver = solver
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Float, labels: Index) -> Solution:
        if self.solver == "matrix" and self.n_components is not None:
            raise ValueError(
                f'n_components={self.n_components} cannot be used with solver="matrix". Use '
                'n_components=None or solver="factor".'
            )
        order = np.argsort(labels, kind="stable")  # sorted classes make blocks of pairs dense
        X, labels = X[order] - X.mean(axis=0), labels[order]
        engine = get_engine("auto")
        k = neighbors_in_all_classes(labels, self.n_neighbors)
        targets = nearest_of_the_same(engine, X, labels, k)
        white = _Whitening.of_targets(X, targets, RIDGE[self.solver])
        search = _Search(engine, white.of_rows(X), labels, Comparisons(targets, *_no_pairs()))
        start = white.of_factor(first_factor(X, self.n_components, self.init, self.random_state))
        start *= search.best_start_scale(start, self.mu)
        if self.impostors == "euclidean":
            fixed = search.within(X, search.furthest_target(X), or_equal=True)
        elif self.solver == "matrix":
            fixed = search.all_pairs()
        else:
            fixed = None
        find = partial(self._loss, search, fixed)
        found = (self._over_matrix if self.solver == "matrix" else self._over_factor)(find, start)
        return Solution(
            rooted_factor(white.to_columns(found.components)),
            found.objective, found.n_iter, found.converged,
        )  # fmt: skip

    def _loss(self, search: _Search, fixed: Comparisons | None, L: Float) -> HingeLoss:
        pairs = search.impostors(L) if fixed is None else fixed
        return HingeLoss(search.Z, pairs, 1 - self.mu, self.mu)

    def _over_factor(self, find: FindLoss, L: Float) -> Solution:
        """Minimise over L: rounds of L-BFGS with a search for impostors after each round.

        The smoothing width is lowered after convergence.
        """
        watch = Iterations("LMNN", self.max_iter) if self.verbose else None
        full, loss, n_iter = len(L) == L.shape[1], find(L), 0
        best = Solution(L, np.inf, 0, False)
        for width, tol in widths(self.tol):
            settled = False
            if n_iter and full:
                L = _with_absent_directions(loss, L, width)
            while not settled and n_iter < self.max_iter:
                limit = min(ROUND, self.max_iter - n_iter)
                objective = partial(loss.of_factor, width=width)
                found = descend(objective, L, tol, limit, watch, once=True)
                L, n_iter = found.at, n_iter + found.n_iter
                seen, loss = loss.comparisons, find(L)
                exact, smooth = loss.values(L, 0.0, width)
                if exact < best.objective:
                    best = Solution(L, exact, n_iter, False)
                settled = found.converged and smooth <= found.value * (1 + tol)
                if not settled:  # pairs of earlier rounds are kept, so that rounds cannot cycle
                    loss = replace(loss, comparisons=loss.comparisons.joined(seen))
            if not settled or sharp(exact, smooth, self.tol):
                break
        return replace(best, n_iter=n_iter, converged=settled)

    def _over_matrix(self, find: FindLoss, L: Float) -> Solution:
        watch = Iterations("LMNN", self.max_iter) if self.verbose else None
        loss, W, n_iter = find(L), L.T @ L, 0
        for width, tol in widths(self.tol):
            smooth = partial(loss.of_matrix, width=width)
            settled = False
            while not settled and n_iter < self.max_iter:
                found = minimise_over_cone(smooth, NONE, W, tol, self.max_iter - n_iter, watch)
                W, n_iter = found.at, n_iter + found.n_iter
                settled = found.converged and _is_complementary(smooth, W, self.tol)
            exact = loss.of_matrix(W, 0.0)[0]
            if not settled or sharp(exact, found.value, self.tol):
                break
        return Solution(rooted(W), exact, n_iter, settled)


def _is_complementary(smooth: Objective, W: Float, tol: float) -> bool:
    """Whether W satisfies the complementary slackness condition: scaling W down gains little.

    A small gain per step is not enough, because the gain is also small if the steps are short.
    """
    value, gradient = smooth(W)
    return bool((gradient * W).sum() <= 10 * tol * value)


def _with_absent_directions(loss: HingeLoss, L: Float, width: float) -> Float:
    """A factor of W after one step on W.

    A descent on L cannot bring back a direction that L has lost. The step on W can.
    """
    smooth = partial(loss.of_matrix, width=width)
    after = rooted(minimise_over_cone(smooth, NONE, L.T @ L, 0.0, max_iter=1).at)
    return after if len(after) else np.zeros((1, L.shape[1]))


def _no_pairs() -> tuple[Index, Index]:
    return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class _Whitening:
    """Coordinates in which the differences of rows and their targets have unit covariance.

    Columns are scaled first, so that the ridge is small relative to every column.
    """

    vectors: Float
    roots: Float
    scale: Float

    @classmethod
    def of_targets(cls, X: Float, targets: Any, ridge: float) -> _Whitening:
        n, k = targets.shape
        apart = (X[targets] - X[:, None]).reshape(n * k, -1)
        scale = np.sqrt((apart**2).mean(axis=0))
        scale = np.where(scale > 0, scale, scale.max() if scale.any() else 1.0)
        apart /= scale
        values, vectors = np.linalg.eigh(apart.T @ apart / (n * k))
        return cls(vectors, np.sqrt(np.maximum(values, 0.0) + ridge), scale)

    def of_rows(self, X: Float) -> Float:
        return np.asarray(X / self.scale @ self.vectors / self.roots)

    def of_factor(self, L: Float) -> Float:
        """The factor on whitened rows that corresponds to L on rows."""
        return np.asarray(L * self.scale @ self.vectors * self.roots)

    def to_columns(self, L: Float) -> Float:
        """The factor on rows that corresponds to L on whitened rows."""
        return np.asarray(L / self.roots @ self.vectors.T / self.scale)


@dataclass(frozen=True)
class _Search:
    """Search for rows of other classes within given distances."""

    engine: Engine
    Z: Float
    labels: Index
    targets: Comparisons

    def furthest_target(self, E: Float) -> Float:
        return np.asarray(self.targets.distances(E)[0].max(axis=1))

    def impostors(self, L: Float) -> Comparisons:
        """The pairs within the margin under the metric L'L, and pairs slightly beyond."""
        E = self.Z @ L.T
        return self.within(E, (1 + self.furthest_target(E)) * (1 + SPARE))

    def all_pairs(self) -> Comparisons:
        rows, others = np.nonzero(self.labels[:, None] != self.labels)
        return Comparisons(self.targets.targets, rows, others)

    def within(self, E: Float, radius: Float, or_equal: bool = False) -> Comparisons:
        """For every row of E, all rows of other classes within its squared radius."""
        found = [
            self._of_class(E, own, np.flatnonzero(self.labels != c), radius, or_equal)
            for c, own in enumerate(members(self.labels))
        ]
        rows, others = (np.concatenate(part) for part in zip(*found))
        order = np.lexsort((others, rows))
        return Comparisons(self.targets.targets, rows[order], others[order])

    def _of_class(
        self, E: Float, own: Index, rest: Index, radius: Float, or_equal: bool
    ) -> tuple[Index, Index]:
        """The pairs of the rows of one class.

        The number of neighbours is increased for rows whose neighbours are all within the radius.
        """
        parts, k = [_no_pairs()], FIRST
        while len(own):
            found, squared = self.engine.nearest(E[own], E[rest], k)
            limit = radius[own][:, None]
            inside = squared <= limit if or_equal else squared < limit
            unsure = inside.all(axis=1) & (found.shape[1] < len(rest))
            i, place = np.nonzero(inside & ~unsure[:, None])
            parts.append((own[i], rest[found[i, place]]))
            own, k = own[unsure], k * MORE
        rows, others = (np.concatenate(part) for part in zip(*parts))
        return rows, others

    def best_start_scale(self, L: Float, mu: float) -> float:
        """The multiple of L with the smallest loss on a sample of the rows."""
        n = len(self.Z)
        some = np.unique(np.linspace(0, n - 1, min(n, SCALE_ROWS)).round().astype(np.intp))
        place, others = np.nonzero(self.labels[some][:, None] != self.labels)
        pairs = Comparisons(self.targets.targets, some[place], others)
        loss = HingeLoss(self.Z, pairs, 1 - mu, mu * n / len(some))
        return float(np.sqrt(best_scale(loss, L)))
