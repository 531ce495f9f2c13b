"""The base class of linear metric learners. They learn a factor L of the metric W = L'L."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.base import _fit_context as fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._typing import Float, Index
from ..inputs import check_classes, check_table, check_training, column_names
from ..model import SparseMetric

#: Smallest eigenvalue of the start of a descent, relative to the largest eigenvalue.
ABSENT = 1e-6


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        The factor L.
    objective : float
        The objective at L.
    n_iter : int
    converged : bool
    """

    components: Float
    objective: float
    n_iter: int
    converged: bool


class LinearMetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of metric learners that learn a linear map L from a table and its classes.

    A subclass implements ``_solve``. The columns are not scaled. Standardise the columns first if
    their scales differ.
    """

    #: Whether a solver that reaches ``max_iter`` has not converged.
    _ends_early: ClassVar[bool] = True
    #: Number of BLAS threads. It is 1 unless matrix products are large, because the threads of
    #: SciPy and NumPy block each other.
    _blas_threads: ClassVar[int | None] = 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> LinearMetricLearner:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            The class labels.

        Returns
        -------
        self
            The fitted estimator.
        """
        X, y = check_training(self, X, y)
        self.classes_, labels = check_classes(self, y)
        if (X[0] == X).all():
            raise ValueError("All rows of X are equal, so no distance can be learned.")
        with threadpool_limits(self._blas_threads, user_api="blas"):
            found = self._solve(X, labels)
        self.components_ = found.components
        self.objective_ = found.objective
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self.metric_ = self._sparse_metric()
        self._warn(found)
        return self

    def _sparse_metric(self) -> SparseMetric:
        """The metric as a ``SparseMetric`` on the columns with nonzero components."""
        p = self.n_features_in_
        used = np.flatnonzero((self.components_ != 0).any(axis=0))
        return SparseMetric(
            [(int(j),) for j in used], self.components_[:, used], np.zeros(p), np.ones(p),
            np.zeros(len(used)), np.ones(len(used)), column_names(self, p),
        )  # fmt: skip

    def _warn(self, found: Solution) -> None:
        name = type(self).__name__
        if self._ends_early and not found.converged:
            warnings.warn(
                f"{name} did not converge in {found.n_iter} iterations. Raise max_iter or tol, or "
                "standardise the columns.",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip
        elif not self.components_.any():
            warnings.warn(
                f"{name} learned the zero metric: all distances are zero. Lower its penalty. If "
                "this does not help, the columns do not separate the classes.",
                UserWarning, stacklevel=3,
            )  # fmt: skip

    def _solve(self, X: Float, labels: Index) -> Solution:
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Float:
        """Embed rows, so that Euclidean distances of the result are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The embedded rows.
        """
        check_is_fitted(self)
        result: Float = check_table(self, X, reset=False) @ self.components_.T
        return result

    def matrix(self) -> Float:
        """Return the matrix W = L'L of the metric.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            A symmetric positive semi-definite matrix.
        """
        check_is_fitted(self)
        result: Float = self.components_.T @ self.components_
        return result

    def pair_distance(self, X: Any, Y: Any) -> Float:
        """Compute the distance between row i of X and row i of Y, for every i.

        Parameters
        ----------
        X, Y : array-like of shape (n_pairs, n_features)
            Two tables with the same number of rows.

        Returns
        -------
        ndarray of shape (n_pairs,)
            The distances (not squared).
        """
        check_is_fitted(self)
        X, Y = (check_table(self, table, reset=False) for table in (X, Y))
        if len(X) != len(Y):
            raise ValueError(
                f"X has {len(X)} rows and Y has {len(Y)} rows. X and Y must have the same number "
                "of rows."
            )
        result: Float = np.linalg.norm((X - Y) @ self.components_.T, axis=1)
        return result

    def get_metric(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """Return the metric as a function of two rows.

        Returns
        -------
        callable
            A function for the parameter ``metric`` of the neighbour estimators of scikit-learn.
        """
        check_is_fitted(self)
        return partial(_distance, self.components_)


def _distance(components: Float, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    return float(np.linalg.norm(components @ (np.asarray(x) - np.asarray(y))))


def rooted(matrix: Float) -> Float:
    """A factor L with L'L equal to a positive semi-definite matrix.

    The rows of L are sorted by decreasing norm.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > max(values[-1] * len(values) * np.finfo(float).eps, 0.0)
    result: Float = (np.sqrt(values[kept]) * vectors[:, kept]).T[::-1]
    return result


def rooted_factor(factor: Float) -> Float:
    """A factor of the same metric with orthogonal rows, as many as the rank."""
    _, values, vectors = np.linalg.svd(factor, full_matrices=False)
    kept = values > values.max(initial=0.0) * len(values) * np.finfo(float).eps
    result: Float = values[kept, None] * vectors[kept]
    return result


def square_root(W: Float) -> Float:
    """A square factor of W with full rank.

    Small eigenvalues are raised, because a descent over factors cannot leave the span of its start.
    """
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    floor = ABSENT * max(float(values[-1]), np.finfo(float).tiny)
    result: Float = (vectors * np.sqrt(np.maximum(values, floor))).T
    return result


def of_unit_size(X: Float) -> tuple[Float, float]:
    """The centred rows divided by their root mean square, and this divisor."""
    X = X - X.mean(axis=0)
    size = float(np.abs(X).max())
    unit = size * float(np.sqrt(((X / size) ** 2).mean())) if size > 0 else 1.0
    unit = 2.0 ** round(np.log2(unit))  # a power of two, so that the division is exact
    return X / unit, unit


def in_its_span(solve: Callable[[Float], Solution], X: Float) -> Solution:
    """Solve for centred rows in an orthonormal basis of their span, if there are more columns.

    If the objective penalises the size of the metric, the optimal metric is zero outside of the
    span. The solver then works on fewer columns.
    """
    n, p = X.shape
    if n > p:
        return solve(X)
    _, sizes, basis = np.linalg.svd(X, full_matrices=False)
    basis = basis[sizes > max(n, p) * np.finfo(float).eps * sizes[0]]
    if not len(basis):
        return solve(X)
    found = solve(np.ascontiguousarray(X @ basis.T))
    return replace(found, components=found.components @ basis)


def no_metric(p: int, objective: float) -> Solution:
    """The zero metric, for problems with the optimum at zero."""
    return Solution(np.zeros((0, p)), objective, 1, True)


def first_factor(X: Float, n_components: int | None, init: str, random_state: Any) -> Float:
    """The start of a search over factors.

    The start is a random matrix (``init="random"``), the identity, or the first ``n_components``
    principal components if ``n_components`` is less than the number of columns.
    """
    p = X.shape[1]
    rank = p if n_components is None else min(n_components, p)
    if init == "random":
        return np.asarray(check_random_state(random_state).normal(size=(rank, p)) / np.sqrt(p))
    if rank == p:
        return np.eye(p)
    return np.asarray(np.linalg.svd(X, full_matrices=False)[2][:rank])
