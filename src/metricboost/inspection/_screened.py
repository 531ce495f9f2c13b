"""``ScreenedPairs``: the products that pair screening finds, as columns for any model."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._typing import Float
from ..boosting.scaling import Scaling
from ..boosting.screening import screen_pairs
from ..inputs import check_classes, check_table, check_training, column_names
from ..model import SparseMetric


class ScreenedPairs(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The standardised products of two columns whose mean differs between the classes.

    :class:`~metricboost.SDist` screens for these products before its first step. This transformer
    does the screening alone. Followed by a linear model it is the baseline for every claim about
    interactions, and it finds interactions cheaply for any other model.

    Parameters
    ----------
    n_pairs : int, default=20
        The largest number of products to keep. Products that do not stand out from the noise are
        left out.

    Attributes
    ----------
    pairs_ : list of tuple of int
        The two columns of every product, in order of decreasing score. They are equal for a square.
    scores_ : ndarray
        With two classes, the studentised differences of the products' means. With more classes,
        the square roots of chi-squared statistics.
    n_features_in_ : int
        Number of columns seen in ``fit``.

    Examples
    --------
    >>> from metricboost.datasets import make_xor
    >>> from metricboost.inspection import ScreenedPairs
    >>> X, y, info = make_xor(500, 100, informative=2, return_info=True, random_state=0)
    >>> ScreenedPairs().fit(X, y).pairs_[0] == tuple(info.informative)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_pairs: int = 20) -> None:
        self.n_pairs = n_pairs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> ScreenedPairs:
        """Find the products. If none stands out from the noise, the one with the best score stays.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The class of every row.

        Returns
        -------
        self
        """
        X, y = check_training(self, X, y)
        _, labels = check_classes(self, y)
        scaling = Scaling.of(X, standardize=True)
        standard = scaling.transposed(X).T
        if not standard.shape[1]:
            raise ValueError("All columns are constant: there is nothing to screen.")
        found = screen_pairs(standard, labels, self.n_pairs)
        if not found.pairs:
            found = screen_pairs(standard, labels, 1, threshold=-np.inf)
        self.pairs_ = [tuple(int(scaling.kept[j]) for j in pair) for pair in found.pairs]
        self.scores_ = np.array(found.scores)
        raw = np.stack([standard[:, a] * standard[:, b] for a, b in found.pairs], axis=1)
        deviation = raw.std(axis=0)
        self._products = SparseMetric(
            self.pairs_,
            np.eye(len(self.pairs_)),
            scaling.center,
            scaling.scale,
            raw.mean(axis=0),
            np.where(deviation > 0, deviation, 1.0),
            column_names(self, X.shape[1]),
        )
        return self

    def transform(self, X: Any) -> Float:
        """The standardised products, in the order of ``pairs_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_products)
        """
        check_is_fitted(self)
        return self._products.term_features(check_table(self, X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.pairs_)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The names of the products, such as ``age*income`` and ``age^2``.

        Parameters
        ----------
        input_features : ignored
            Only here because scikit-learn's transformers have it.

        Returns
        -------
        ndarray of str objects of shape (n_products,)
        """
        check_is_fitted(self)
        return self._products.get_feature_names_out()
