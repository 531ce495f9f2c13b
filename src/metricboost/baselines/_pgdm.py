"""``PGDM``: the global metric of Xing, Ng, Jordan and Russell (2002), also known as MMC.

    minimise   sum over similar pairs of d^2      subject to   sum over dissimilar pairs of d >= 1

over positive semi-definite W, with ``d^2 = delta' W delta``. The constraint is on the sum of the
distances. With squared distances (``constraint="squared"``), both sums are linear in W, and the
optimum has rank one.

The first sum is ``trace(W A)``, where A is the scatter within the classes. In coordinates in which
A is the identity, the problem is to maximise the second sum, which is concave in W, subject to
trace 1. With W = L'L and the sum divided by the norm of L, the problem in L is unconstrained and is
solved by L-BFGS. If L is square, all local optima are global. Pairs are processed in blocks, and no
projection of W is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval, StrOptions

from .._typing import Float, Index
from ._base import LinearMetricLearner, Solution, in_its_span, rooted_factor
from ._progress import Iterations

#: Number of entries in a block of distances.
BLOCK_ENTRIES = 2**22
#: Smallest distance of a pair, relative to the typical distance. Smaller distances are replaced by
#: this value, because the derivative of the distance of equal rows does not exist.
CLOSEST = 1e-9


class PGDM(LinearMetricLearner):
    """Probability global distance metric learning (Xing et al. 2002; MMC).

    The metric minimises the sum of the squared distances between rows of the same class, subject to
    the constraint that the distances between rows of different classes sum to at least 1.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether to learn a diagonal metric, that is one weight per column.
    constraint : {"distance", "squared"}, default="distance"
        The sum over pairs of different classes. "distance" is the sum of the distances, as in the
        original method. "squared" is the sum of the squared distances, as printed in the sDist
        paper. Its solution is a generalised eigenvector, so the metric has rank one. It is seldom
        better than the Euclidean distance.
    regularization : float, default=1e-6
        A multiple of the identity that is added to the scatter within the classes, relative to the
        mean eigenvalue of the scatter. Without it, the scatter is zero in some direction if there
        are fewer rows than columns, and the metric would consist of this direction only.
    max_iter : int, default=500
        The largest number of iterations.
    tol : float, default=1e-6
        The relative gain of an iteration below which the solver stops.
    random_state : int, RandomState instance or None, default=None
        Not used, because the method is deterministic. The parameter exists for consistency with the
        other metric learners.
    verbose : int, default=0
        If 1, show a progress line.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        A factor L of the metric, ``W = L'L``.
    objective_ : float
        The sum of the squared distances between rows of the same class, including the
        regularization. The metric is scaled so that the distances between rows of different classes
        sum to 1.
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
    E. P. Xing, A. Y. Ng, M. I. Jordan and S. Russell, "Distance metric learning, with application
    to clustering with side-information", NIPS 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from metricboost.baselines import PGDM
    >>> X, y = load_iris(return_X_y=True)
    >>> pgdm = PGDM().fit(X, y)
    >>> pgdm.converged_
    True
    >>> pgdm.matrix().shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "diagonal": ["boolean"],
        "constraint": [StrOptions({"distance", "squared"})],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _blas_threads = None

    def __init__(
        self,
        diagonal: bool = False,
        constraint: str = "distance",
        regularization: float = 1e-6,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.diagonal = diagonal
        self.constraint = constraint
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Float, labels: Index) -> Solution:
        X = X - X.mean(axis=0)
        solve = partial(self._metric, labels, X.shape[1])
        return solve(X) if self.diagonal else in_its_span(solve, X)

    def _metric(self, labels: Index, n_columns: int, X: Float) -> Solution:
        similar = within_scatter(X, labels)
        mean = np.trace(similar) / n_columns
        if self.regularization == 0:
            _refuse_flat(similar, self.diagonal)
        similar += self.regularization * (mean if mean > 0 else 1.0) * np.eye(len(similar))
        if self.constraint == "squared":
            return self._squared(X, labels, similar)
        return self._distances(X, labels, similar)

    def _squared(self, X: Float, labels: Index, similar: Float) -> Solution:
        """The metric of rank one in the direction with the largest ratio of the two scatters."""
        dissimilar = len(X) * X.T @ X - within_scatter(X, labels)
        if self.diagonal:
            ratio = np.diag(dissimilar) / np.diag(similar)
            best = int(ratio.argmax())
            direction = np.eye(len(ratio))[best] / np.sqrt(dissimilar[best, best])
            return Solution(direction[None], float(1 / ratio[best]), 1, True)
        values, vectors = eigh(dissimilar, similar, subset_by_index=[len(similar) - 1] * 2)
        direction = vectors[:, 0] / np.sqrt(
            values[0]
        )  # eigh normalises by ``similar``, so the dissimilar sum is the eigenvalue
        return Solution(direction[None], float(1 / values[0]), 1, True)

    def _distances(self, X: Float, labels: Index, similar: Float) -> Solution:
        to_white = _whitening(similar, self.diagonal)
        sums = DissimilarSums(X @ to_white, labels)
        shape = (len(similar),) if self.diagonal else to_white.shape
        start = np.ones(shape) if self.diagonal else np.eye(len(similar))
        watch = Iterations("PGDM", self.max_iter) if self.verbose else None

        def loss(flat: Float) -> tuple[float, Float]:
            factor = flat.reshape(shape)
            total, gradient = sums.diagonal(factor) if self.diagonal else sums.full(factor)
            squared = float((factor**2).sum())
            value = 0.5 * np.log(squared) - np.log(total)
            return value, (factor / squared - gradient / total).ravel()

        found = minimize(
            loss, start.ravel(), jac=True, method="L-BFGS-B", callback=watch,
            options={"maxiter": self.max_iter, "ftol": self.tol**2, "gtol": self.tol, "maxcor": 20},
        )  # fmt: skip
        factor = found.x.reshape(shape)
        white = np.diag(factor) if self.diagonal else factor
        total = (sums.diagonal(factor) if self.diagonal else sums.full(factor))[0]
        components = rooted_factor(white @ to_white.T / total)
        objective = float((factor**2).sum() / total**2)
        return Solution(components, objective, max(1, int(found.nit)), bool(found.success))


def _refuse_flat(scatter: Float, diagonal: bool) -> None:
    values = np.diag(scatter) if diagonal else np.linalg.eigvalsh(scatter)
    if values.min() <= len(values) * np.finfo(float).eps * values.max():
        raise ValueError(
            "With regularization=0, the rows within the classes must vary in every direction, but "
            "they do not. Set regularization above 0, or drop constant and redundant columns."
        )


def within_scatter(X: Float, labels: Index) -> Float:
    """``sum of (x_i - x_j)(x_i - x_j)'`` over all unordered pairs of rows of the same class."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for c in range(int(labels.max()) + 1):
        own = X[labels == c]
        centred = own - own.mean(axis=0)
        total += len(own) * centred.T @ centred
    return total


def _whitening(scatter: Float, diagonal: bool) -> Float:
    """A matrix T such that the scatter (or its diagonal) of the rows ``X T`` is the identity."""
    if diagonal:
        return np.diag(1 / np.sqrt(np.diag(scatter)))
    values, vectors = np.linalg.eigh(scatter)
    result: Float = vectors / np.sqrt(np.maximum(values, values[-1] * 1e-15))
    return result


class DissimilarSums:
    """The sum of the distances over pairs of different classes, and its gradient.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        The whitened rows.
    labels : ndarray of int
    """

    def __init__(self, Z: Float, labels: Index) -> None:
        order = np.argsort(labels, kind="stable")
        self.Z = np.ascontiguousarray(Z[order])
        counts = np.bincount(labels)
        self.first = np.cumsum(counts)  # the first row after each class
        self.labels = labels[order]
        self.floor = CLOSEST * float(np.sqrt((self.Z**2).sum() / max(len(Z), 1)))

    def full(self, L: Float) -> tuple[float, Float]:
        """The sum of the distances between the rows of ``Z L'``, and its gradient by L."""
        total, force = self._forces(self.Z @ L.T, float(np.abs(L).max()))
        return total, force.T @ self.Z

    def diagonal(self, weights: Float) -> tuple[float, Float]:
        """As ``full``, for a diagonal factor with the given weights."""
        total, force = self._forces(self.Z * weights, float(np.abs(weights).max()))
        return total, (force * self.Z).sum(axis=0)

    def _forces(self, E: Float, scale: float) -> tuple[float, Float]:
        """The sum of the distances in the embedding E, and its derivative by each row of E."""
        squares = np.einsum("ij,ij->i", E, E)
        force = np.zeros_like(E)
        total = 0.0
        floor = self.floor * scale
        for rows, others in self._blocks():
            squared = squares[rows, None] + squares[None, others] - 2 * (E[rows] @ E[others].T)
            distance = np.sqrt(np.maximum(squared, floor**2))
            total += float(distance.sum())
            inverse = 1 / distance
            force[rows] += inverse.sum(axis=1)[:, None] * E[rows] - inverse @ E[others]
            force[others] += inverse.sum(axis=0)[:, None] * E[others] - inverse.T @ E[rows]
        return total, force

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Blocks of rows of one class with all rows of later classes, so each pair occurs once."""
        n, start = len(self.Z), 0
        for end in self.first[:-1]:
            step = max(1, BLOCK_ENTRIES // (n - int(end)))
            for row in range(start, int(end), step):
                yield slice(row, min(row + step, int(end))), slice(int(end), n)
            start = int(end)
