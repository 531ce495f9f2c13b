"""The common face of linear metric learners: a factor L, the metric W = L'L, and what it took."""

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

#: The least eigenvalue that a descent starts from, as a share of the largest.
ABSENT = 1e-6


@dataclass(frozen=True)
class Solution:
    """What a solver found: the factor, the objective there, and how it got there."""

    components: Float
    objective: float
    n_iter: int
    converged: bool


class LinearMetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns L from a table and its classes; a subclass says how in ``_solve``.

    The columns are taken as they are, so standardise them first where their scales differ.
    """

    #: Whether ``max_iter`` is a limit that a solver should not meet.
    _ends_early: ClassVar[bool] = True
    #: One, unless products are large: SciPy's and NumPy's threads wait on each other.
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
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        X, y = check_training(self, X, y)
        self.classes_, labels = check_classes(self, y)
        if (X[0] == X).all():
            raise ValueError("All rows of X are equal: there is no distance to learn.")
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
        """The metric over the columns that it uses."""
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
                f"{name} did not converge in {found.n_iter} iterations: raise max_iter or tol, or "
                "standardise the columns.",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip
        elif not self.components_.any():
            warnings.warn(
                f"{name} found no metric, all distances are zero: its penalty is too large, or "
                "there is nothing to push apart.",
                UserWarning, stacklevel=3,
            )  # fmt: skip

    def _solve(self, X: Float, labels: Index) -> Solution:
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Float:
        """Embed rows: Euclidean distances between the results are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        result: Float = check_table(self, X, reset=False) @ self.components_.T
        return result

    def matrix(self) -> Float:
        """W, symmetric and positive semi-definite."""
        check_is_fitted(self)
        result: Float = self.components_.T @ self.components_
        return result

    def pair_distance(self, X: Any, Y: Any) -> Float:
        """The distance (not its square) between row i of X and row i of Y."""
        check_is_fitted(self)
        X, Y = (check_table(self, table, reset=False) for table in (X, Y))
        if len(X) != len(Y):
            raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}: pairs need as many of each.")
        result: Float = np.linalg.norm((X - Y) @ self.components_.T, axis=1)
        return result

    def get_metric(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """A function of two rows, for ``metric=`` of scikit-learn's neighbours."""
        check_is_fitted(self)
        return partial(_distance, self.components_)


def _distance(components: Float, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    return float(np.linalg.norm(components @ (np.asarray(x) - np.asarray(y))))


def rooted(matrix: Float) -> Float:
    """A factor L with L'L equal to a positive semi-definite matrix, its rows by weight."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > max(values[-1] * len(values) * np.finfo(float).eps, 0.0)
    result: Float = (np.sqrt(values[kept]) * vectors[:, kept]).T[::-1]
    return result


def rooted_factor(factor: Float) -> Float:
    """The same metric by an orthogonal factor, as long as its rank."""
    _, values, vectors = np.linalg.svd(factor, full_matrices=False)
    kept = values > values.max(initial=0.0) * len(values) * np.finfo(float).eps
    result: Float = values[kept, None] * vectors[kept]
    return result


def square_root(W: Float) -> Float:
    """A square factor with all directions in it: a descent could not bring back an absent one."""
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    floor = ABSENT * max(float(values[-1]), np.finfo(float).tiny)
    result: Float = (vectors * np.sqrt(np.maximum(values, floor))).T
    return result


def of_unit_size(X: Float) -> tuple[Float, float]:
    """The rows about their mean, divided by their typical size, and that size."""
    X = X - X.mean(axis=0)
    size = float(np.abs(X).max())
    unit = size * float(np.sqrt(((X / size) ** 2).mean())) if size > 0 else 1.0
    unit = 2.0 ** round(np.log2(unit))  # so that dividing rounds nothing
    return X / unit, unit


def in_its_span(solve: Callable[[Float], Solution], X: Float) -> Solution:
    """Solve for centred rows in an orthonormal basis of what they span.

    Where a metric pays for its size, what lies outside of the span is zero at the optimum: a table
    wider than long is a narrower one.
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
    """Where nothing is better than zero."""
    return Solution(np.zeros((0, p)), objective, 1, True)


def first_factor(X: Float, n_components: int | None, init: str, random_state: Any) -> Float:
    """Where a search over factors starts: plain distances, their best few dimensions, or random."""
    p = X.shape[1]
    rank = p if n_components is None else min(n_components, p)
    if init == "random":
        return np.asarray(check_random_state(random_state).normal(size=(rank, p)) / np.sqrt(p))
    if rank == p:
        return np.eye(p)
    return np.asarray(np.linalg.svd(X, full_matrices=False)[2][:rank])
