"""``SDistClassifier``: nearest neighbours under the learned metric."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._typing import Float
from ..boosting import Learned
from ..boosting.classification import (
    NEIGHBOR_CHOICES,
    leave_one_out_errors,
    margin_score,
    vote_score,
)
from ..boosting.neighborhoods import nearest
from ._sdist import SDist


class SDistClassifier(ClassifierMixin, SDist):  # type: ignore[misc]
    """Classification by nearest neighbours under a learned sparse non-linear metric.

    All of :class:`SDist`, and a classifier on its embedding.

    Parameters
    ----------
    classifier : {"margin", "knn"}, default="margin"
        "margin" compares the mean squared distances to the nearest rows of each class (the
        paper's f), "knn" counts the classes of the nearest rows.
    n_neighbors_predict : int or "auto", default="auto"
        How many nearest rows (of each class for "margin") a prediction looks at. "auto" takes the
        one of 3, 5, 10 and 20 with the smallest leave-one-out error on the training rows.
    max_iter, n_neighbors, n_nonzero, learning_rate, subsample, max_features, max_degree, \
    refresh_every, complexity_penalty, oob_gate, screen_pairs, prune, init, standardize, \
    class_weight, engine, device, random_state, n_jobs, verbose
        As in :class:`SDist`.

    Attributes
    ----------
    metric_, classes_, feature_importances_, path_, best_iter_, n_iter_, n_features_in_, \
    feature_names_in_
        As in :class:`SDist`.
    n_neighbors_predict_ : int
        The number of nearest rows that predictions look at.

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=800, n_features=100, informative=2, random_state=0)
    >>> model = SDistClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SDist._parameter_constraints,
        "classifier": [StrOptions({"margin", "knn"})],
        "n_neighbors_predict": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        max_iter: int = 150,
        n_neighbors: int = 20,
        n_nonzero: int | float = 8,
        learning_rate: float = 0.05,
        subsample: float = 0.5,
        max_features: int | float | str | None = None,
        max_degree: int = 2,
        refresh_every: int | None = 10,
        complexity_penalty: float = 0.0,
        oob_gate: float | None = 2.25,
        screen_pairs: int | str = "auto",
        prune: int | str | None = "auto",
        init: Any = "zero",
        standardize: bool = True,
        class_weight: Any = None,
        classifier: str = "margin",
        n_neighbors_predict: int | str = "auto",
        engine: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            max_iter=max_iter,
            n_neighbors=n_neighbors,
            n_nonzero=n_nonzero,
            learning_rate=learning_rate,
            subsample=subsample,
            max_features=max_features,
            max_degree=max_degree,
            refresh_every=refresh_every,
            complexity_penalty=complexity_penalty,
            oob_gate=oob_gate,
            screen_pairs=screen_pairs,
            prune=prune,
            init=init,
            standardize=standardize,
            class_weight=class_weight,
            engine=engine,
            device=device,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.classifier = classifier
        self.n_neighbors_predict = n_neighbors_predict

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _set_fitted(self, learned: Learned, X: Float, y: npt.NDArray[Any]) -> None:
        super()._set_fitted(learned, X, y)
        self._training_rows = X
        self._training_positive = y == self.classes_[1]
        self._training_embedding = self.metric_.transform(X)
        self.n_neighbors_predict_ = self._chosen_neighbors()

    def _chosen_neighbors(self) -> int:
        if self.n_neighbors_predict != "auto":
            return int(self.n_neighbors_predict)
        rule = margin_score if self.classifier == "margin" else vote_score
        wrong = leave_one_out_errors(
            self._engine(),
            self._training_embedding,
            self._training_positive,
            NEIGHBOR_CHOICES,
            rule,
        )
        errors = wrong.mean(axis=0)
        return NEIGHBOR_CHOICES[np.flatnonzero(errors == errors.min())[-1]]

    def decision_function(self, X: Any) -> Float:
        """Evidence for ``classes_[1]``: positive where it is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._score(self._embedded(X), self._training_embedding)

    def _score(self, queries: Float, training: Float) -> Float:
        rule = margin_score if self.classifier == "margin" else vote_score
        k, positive = (self.n_neighbors_predict_,), self._training_positive
        return rule(self._engine(), training, positive, k, queries)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted class of every row."""
        return self._labels(self.decision_function(X))

    def _labels(self, score: Float) -> npt.NDArray[Any]:
        labels: npt.NDArray[Any] = self.classes_[(score > 0).astype(np.intp)]
        return labels

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """The predictions after each accepted step, before pruning."""
        check_is_fitted(self)
        pairs = zip(self.staged_transform(X), self._staged_training())
        for queries, training in pairs:
            yield self._labels(self._score(queries, training))

    def _staged_training(self) -> Iterator[Float]:
        path = self._learned.path
        for m in range(1, len(path) + 1):
            yield self._learned.metric(path.factor(m), None).transform(self._training_rows)

    def predict_proba(self, X: Any) -> Float:
        """Class probabilities.

        For "knn" the shares of the votes. For "margin" the link of the exponential loss,
        ``1 / (1 + exp(-2 f))``: it ranks rows as ``decision_function`` does, and is not
        calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        score = self.decision_function(X)
        positive = expit(2 * score) if self.classifier == "margin" else score + 0.5
        return np.stack([1 - positive, positive], axis=1)

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):  # log(0) is -inf, as in scikit-learn's classifiers
            result: Float = np.log(self.predict_proba(X))
        return result

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Float, npt.NDArray[np.int32]] | npt.NDArray[np.int32]:
        """The nearest training rows of every row under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_neighbors : int, default=None
            How many; ``n_neighbors_predict_`` by default.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors), if ``return_distance``
        rows : ndarray of shape (n_samples, n_neighbors)
            Row numbers of the training data (those with a positive weight).
        """
        check_is_fitted(self)
        k = self.n_neighbors_predict_ if n_neighbors is None else n_neighbors
        n_rows = len(self._training_embedding)
        if not isinstance(k, Integral) or not 1 <= k <= n_rows:
            raise ValueError(f"n_neighbors={k} must be an integer from 1 to {n_rows}, the rows.")
        rows, squared = nearest(self._engine(), self._embedded(X), self._training_embedding, k)
        return (np.sqrt(squared), rows) if return_distance else rows
