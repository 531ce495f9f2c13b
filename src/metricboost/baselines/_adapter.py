"""``ComponentsMetric``: any estimator with ``components_`` among the metric learners."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from .._typing import Float, Index
from ._base import LinearMetricLearner, Solution


class ComponentsMetric(LinearMetricLearner):
    """The metric of an estimator whose ``components_`` are a linear map.

    scikit-learn's ``NeighborhoodComponentsAnalysis`` and ``PCA`` are such, and metric-learn's
    learners. With this they have the face of the others here: ``matrix``, ``pair_distance`` and
    ``metric_``, and so the pictures of ``metricboost.inspection``.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y)``, after which ``components_`` has a row for every dimension and a column
        for every column of X.

    Attributes
    ----------
    estimator_ : estimator
        Fitted.
    components_ : ndarray of shape (n_components, n_features)
    objective_ : float
        NaN: estimators do not agree on what to call it.
    n_iter_ : int
        That of the estimator; 1 where it has none.
    converged_ : bool
        Whether the estimator took fewer iterations than it may.
    metric_, classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import NeighborhoodComponentsAnalysis
    >>> from metricboost.baselines import ComponentsMetric
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = NeighborhoodComponentsAnalysis(n_components=2, random_state=0)
    >>> ComponentsMetric(nca).fit(X, y).matrix().shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"estimator": [HasMethods("fit")]}
    _ends_early = False  # the estimator warns for itself

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _solve(self, X: Float, labels: Index) -> Solution:
        self.estimator_ = clone(self.estimator).fit(X, labels)
        name = type(self.estimator_).__name__
        components = getattr(self.estimator_, "components_", None)
        if components is None:
            raise TypeError(f"{name} has no components_ after fit: it is no linear metric.")
        components = np.asarray(components, dtype=np.float64)
        if components.ndim != 2 or components.shape[1] != X.shape[1]:
            raise ValueError(
                f"components_ of {name} has shape {components.shape}, but X has {X.shape[1]} "
                "columns: each needs one."
            )
        self._check_transform(X, components)
        n_iter = int(getattr(self.estimator_, "n_iter_", 1))
        most = getattr(self.estimator_, "max_iter", None)
        return Solution(components, np.nan, n_iter, most is None or n_iter < most)

    def _check_transform(self, X: Float, components: Float) -> None:
        """Some estimators do more than multiply: PCA that whitens, for one."""
        if not hasattr(self.estimator_, "transform"):
            return
        embedded = np.asarray(self.estimator_.transform(X))
        expected = (X - X[0]) @ components.T
        if embedded.shape != expected.shape or not np.allclose(
            embedded - embedded[0], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max()
        ):
            raise ValueError(
                f"{type(self.estimator_).__name__} transforms rows by more than its components_: "
                "its distances are not those of a linear map."
            )
