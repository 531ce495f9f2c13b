"""``LMNN``: large margin nearest neighbours, of Weinberger and Saul (2009).

    (1 - mu) sum of d^2(i, j)  +  mu sum of max(0, 1 + d^2(i, j) - d^2(i, l))

over the targets j of every row i, its nearest rows of its own class by Euclidean distance, and over
all rows l of other classes. Of those only the few that come within the margin count (impostors):
the solver works with the pairs that are near it, and looks for them anew as the metric changes.

The loss is convex in W = L'L and minimised over L by L-BFGS, hinges smoothed (`_hinge`). A square L
has no local minima that are not global. Columns are whitened by the scatter of the targets first:
the first sum is then equally curved everywhere, and far fewer iterations are needed.
``solver="matrix"`` is the convex form in W itself, all pairs at once.
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

#: Impostors of a row looked for at first, and how many times more where all of them are near.
FIRST, MORE = 16, 4
#: Pairs this much further than the margin are kept too: the metric changes between two searches.
SPARE = 0.02
#: Iterations between two searches.
ROUND = 40
#: Rows by which the scale of the start is chosen.
SCALE_ROWS = 200
#: Added to the whitening's eigenvalues, whose mean is 1: targets may not vary in all directions.
#: Steps on W, which have one length for all of them, want them less unequal.
RIDGE = {"factor": 1e-3, "matrix": 0.1}

#: The cone alone.
NONE = TracePenalty(0.0)

FindLoss = Callable[[Float], HingeLoss]


class LMNN(LinearMetricLearner):
    """Large margin nearest neighbours (Weinberger and Saul).

    Makes the distances to a row's nearest rows of its own class small, and those to rows of other
    classes larger by a margin.

    Parameters
    ----------
    n_neighbors : int, default=3
        Targets of a row; fewer, for all rows, where a class has no more.
    mu : float, default=0.5
        The weight of the margins; that of the targets is ``1 - mu``.
    n_components : int, optional
        Rows of L, the rank of the metric. As many as columns by default; with fewer the problem is
        not convex, and the first principal components are the start.
    impostors : {"all", "euclidean"}, default="all"
        Which rows of other classes count: all, as in the original, or only those that were nearer
        than the furthest target by Euclidean distance, or as near, as the sDist paper prints it.
    solver : {"factor", "matrix"}, default="factor"
        L-BFGS on L, or accelerated proximal gradient steps on W, which takes all pairs at once and
        an eigendecomposition a step: slow, and for small tables.
    init : {"identity", "random"}, default="identity"
        Where the search on L starts: plain distances (of the first principal components, where
        n_components is less than the columns), or a random L.
    max_iter : int, default=500
    tol : float, default=0.03
        How near the optimum to come, about, as a share of the objective.
    random_state : int, RandomState instance or None, default=None
        For ``init="random"``.
    verbose : int, default=0
        1 shows a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
        The loss, with hinges as they are.
    n_iter_ : int
    converged_ : bool
    metric_, classes_, n_features_in_, feature_names_in_

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
            raise ValueError('solver="matrix" has no n_components: leave it None.')
        order = np.argsort(labels, kind="stable")  # blocks of pairs are then blocks of classes
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
        """Rounds of L-BFGS, between which impostors are looked for; ever narrower hinges."""
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
                if not settled:  # pairs once seen stay, or rounds might go in circles
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
    """Whether W has nothing where the loss has a slope, as at an optimum: to shrink W is no gain.

    Steps may gain little because they are short, and that is no optimum.
    """
    value, gradient = smooth(W)
    return bool((gradient * W).sum() <= 10 * tol * value)


def _with_absent_directions(loss: HingeLoss, L: Float, width: float) -> Float:
    """A factor after a step on W itself: a direction that L has lost cannot come back on L."""
    smooth = partial(loss.of_matrix, width=width)
    after = rooted(minimise_over_cone(smooth, NONE, L.T @ L, 0.0, max_iter=1).at)
    return after if len(after) else np.zeros((1, L.shape[1]))


def _no_pairs() -> tuple[Index, Index]:
    return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class _Whitening:
    """Coordinates in which the targets of a row lie about it equally far in every direction.

    Columns are brought to one scale first, so that the ridge is little beside each of them.
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
        """The factor that does to whitened rows what L does to rows."""
        return np.asarray(L * self.scale @ self.vectors * self.roots)

    def to_columns(self, L: Float) -> Float:
        """The factor that does to rows what L does to whitened rows."""
        return np.asarray(L / self.roots @ self.vectors.T / self.scale)


@dataclass(frozen=True)
class _Search:
    """Finds rows of other classes within given distances."""

    engine: Engine
    Z: Float
    labels: Index
    targets: Comparisons

    def furthest_target(self, E: Float) -> Float:
        return np.asarray(self.targets.distances(E)[0].max(axis=1))

    def impostors(self, L: Float) -> Comparisons:
        """The pairs within the margin under the metric of L, and those nearly there."""
        E = self.Z @ L.T
        return self.within(E, (1 + self.furthest_target(E)) * (1 + SPARE))

    def all_pairs(self) -> Comparisons:
        rows, others = np.nonzero(self.labels[:, None] != self.labels)
        return Comparisons(self.targets.targets, rows, others)

    def within(self, E: Float, radius: Float, or_equal: bool = False) -> Comparisons:
        """For every row of E all rows of other classes nearer than its radius (squared)."""
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
        """More and more neighbours of the rows all of whose neighbours so far are within."""
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
        """What to multiply L by for the least loss, as some of the rows see it."""
        n = len(self.Z)
        some = np.unique(np.linspace(0, n - 1, min(n, SCALE_ROWS)).round().astype(np.intp))
        place, others = np.nonzero(self.labels[some][:, None] != self.labels)
        pairs = Comparisons(self.targets.targets, some[place], others)
        loss = HingeLoss(self.Z, pairs, 1 - mu, mu * n / len(some))
        return float(np.sqrt(best_scale(loss, L)))
