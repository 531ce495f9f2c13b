"""``EmbeddingMixin``: embeddings and distances under the metric of a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin

from .._typing import Data, Float
from ..engines import Engine
from ..model import Blend, Model, SparseMetric


class ModelHolder:
    """The methods of an estimator that the mixins call."""

    if TYPE_CHECKING:
        n_features_in_: int

        def _ready(self) -> Model | Blend:
            """The fitted model. Raises an error if the estimator is not fitted."""

        def _checked(self, X: Any) -> Data:
            """X as a table that the fitted model accepts."""

        def _engine(self) -> Engine:
            """The engine that searches for neighbours."""

        def _embedded(self, X: Any) -> Float:
            """The embedding of rows."""

        def _parameters_of_best(self) -> dict[str, Any]:
            """The parameters of the estimator that learned ``metric_``."""


class EmbeddingMixin(ModelHolder, TransformerMixin):  # type: ignore[misc]
    """Embeddings under the metric of the fitted model (for a search, of its best model)."""

    def __dask_tokenize__(self) -> Any:
        """A hash of the parameters and of the fitted model.

        The parameters are fields of a dataclass, and Dask would look at nothing but them.
        """
        state = self.__getstate__()
        return type(self).__qualname__, joblib.hash(state)

    @property
    def metric_(self) -> SparseMetric:
        return self._ready().best.metric

    @property
    def feature_importances_(self) -> Float:
        return self.metric_.importances()

    @property
    def stability_(self) -> Float:
        return self._ready().best.stability

    @property
    def _n_features_out(self) -> int:
        return self.metric_.rank

    def transform(self, X: Any) -> Float:
        """Embed rows. Euclidean distances between embedded rows are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        return self._embedded(X)

    def _embedded(self, X: Any) -> Float:
        """The embedding as an array. Unlike ``transform``, it does not depend on ``set_output``."""
        return self._ready().best.embed(self._checked(X))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The names of the columns of ``transform``: "sdist0", "sdist1", ...

        Parameters
        ----------
        input_features : object
            Not used. The parameter exists because scikit-learn passes it.

        Returns
        -------
        ndarray of str objects
        """
        return np.asarray([f"sdist{i}" for i in range(self.metric_.rank)], dtype=object)

    def pair_distance(self, X: Any, Y: Any) -> Float:
        """The distance (not its square) between row i of X and row i of Y.

        Parameters
        ----------
        X, Y : array-like of shape (n_pairs, n_features)

        Returns
        -------
        ndarray of shape (n_pairs,)
        """
        a, b = self._embedded(X), self._embedded(Y)
        if len(a) != len(b):
            raise ValueError(
                f"X has {len(a)} rows, but Y has {len(b)} rows. pair_distance compares row i of X "
                "with row i of Y: pass tables with the same number of rows."
            )
        result: Float = np.linalg.norm(a - b, axis=1)
        return result

    def get_metric(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """The distance as a function of two rows.

        The function can be passed as ``metric`` to the nearest neighbours of scikit-learn. It is
        much faster to embed all rows once with ``transform`` and to use Euclidean distances.
        """
        return partial(_distance, self.metric_)


def _distance(metric: SparseMetric, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    return float(metric.pair_distance(np.atleast_2d(x), np.atleast_2d(y))[0])
