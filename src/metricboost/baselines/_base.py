"""The common face of linear metric learners: a factor L, the metric W = L'L, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.base import _fit_context as fit_context
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from .._typing import Float, Index
from ..estimators._validation import check_classes, check_table, check_training


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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    @fit_context(prefer_skip_nested_validation=True)
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
        found = self._solve(X, labels)
        self.components_ = found.components
        self.objective_ = found.objective
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        return self

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
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    result: Float = (np.sqrt(values[kept]) * vectors[:, kept]).T[::-1]
    return result
