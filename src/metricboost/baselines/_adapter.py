"""``ComponentsMetric``: metric learner interface for estimators with ``components_``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from .._typing import Float, Index
from ._base import LinearMetricLearner, Solution


class ComponentsMetric(LinearMetricLearner):
    """The metric of an estimator whose ``components_`` are a linear map.

    Examples of such estimators are ``NeighborhoodComponentsAnalysis`` and ``PCA`` of scikit-learn,
    and the learners of metric-learn. This class adds the methods and attributes of the other metric
    learners: ``matrix``, ``pair_distance`` and ``metric_``. The displays of
    ``metricboost.inspection`` can then be used.

    Parameters
    ----------
    estimator : estimator
        An estimator with a method ``fit(X, y)``, which sets ``components_`` of shape
        (n_components, n_features).

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    components_ : ndarray of shape (n_components, n_features)
        The components of the fitted estimator.
    objective_ : float
        Always NaN, because estimators have no common attribute for their objective.
    n_iter_ : int
        The attribute ``n_iter_`` of the fitted estimator, or 1 if it has none.
    converged_ : bool
        Whether the estimator used fewer iterations than its parameter ``max_iter``, if it has one.
    metric_ : SparseMetric
        The metric.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        The number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of the columns, if ``X`` has column names that are all strings.

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
    _ends_early = False  # the estimator gives its own convergence warning

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _solve(self, X: Float, labels: Index) -> Solution:
        self.estimator_ = clone(self.estimator).fit(X, labels)
        name = type(self.estimator_).__name__
        components = getattr(self.estimator_, "components_", None)
        if components is None:
            raise TypeError(
                f"{name} has no attribute components_ after fit. ComponentsMetric needs an "
                "estimator that learns a linear map."
            )
        components = np.asarray(components, dtype=np.float64)
        if components.ndim != 2 or components.shape[1] != X.shape[1]:
            raise ValueError(
                f"components_ of {name} has shape {components.shape}, but must have one column for "
                f"each of the {X.shape[1]} columns of X."
            )
        self._check_transform(X, components)
        n_iter = int(getattr(self.estimator_, "n_iter_", 1))
        most = getattr(self.estimator_, "max_iter", None)
        return Solution(components, np.nan, n_iter, most is None or n_iter < most)

    def _check_transform(self, X: Float, components: Float) -> None:
        """Check that ``transform`` multiplies by ``components_`` only.

        PCA with ``whiten=True``, for example, also rescales.
        """
        if not hasattr(self.estimator_, "transform"):
            return
        embedded = np.asarray(self.estimator_.transform(X))
        expected = (X - X[0]) @ components.T
        if embedded.shape != expected.shape or not np.allclose(
            embedded - embedded[0], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max()
        ):
            raise ValueError(
                f"transform of {type(self.estimator_).__name__} does more than multiply by "
                "components_, so components_ does not give its distances. Use an estimator without "
                "rescaling (for PCA: whiten=False)."
            )
