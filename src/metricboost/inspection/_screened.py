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
from ..estimators._validation import (
    check_classes,
    check_table,
    check_training,
    column_names,
)
from ..metric import SparseMetric


class ScreenedPairs(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The standardised products of two columns whose mean differs between the classes.

    What :class:`~metricboost.SDist` screens for before its first step, on its own: followed by
    a plain linear model it is the ablation beside which every claim about interactions belongs,
    and a cheap finder of interactions to put in front of any model.

    Parameters
    ----------
    n_pairs : int, default=20
        The most products kept; only those that stand out from the noise are.

    Attributes
    ----------
    pairs_ : list of tuple of int
        The columns of every product, the clearest first; equal for a square.
    scores_ : ndarray
        Studentised differences between two classes; the roots of chi2 statistics for more.
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> ScreenedPairs:
        """Find the products; where none stands out, the single clearest is kept."""
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
        """The standardised products, in the order of ``pairs_``."""
        check_is_fitted(self)
        return self._products.term_features(check_table(self, X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.pairs_)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names such as ``age*income`` and ``age^2``."""
        check_is_fitted(self)
        names = [self._products.name(pair) for pair in self.pairs_]
        return np.asarray(names, dtype=object)
