"""Scores of out-of-fold predictions, by name or by any scorer of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

from .._ignoring import ignoring
from .._typing import Float, Index
from .choosing import brier, errors

#: The scores that are computed here: the Brier score, the share of errors, and the log loss.
OWN_SCORES = ("brier", "error", "loss")


class FoldScorer:
    """Computes one score for each fold. Larger scores are better."""

    def __init__(self, scoring: Any, classes: npt.NDArray[Any]) -> None:
        self._own = isinstance(scoring, str) and scoring in OWN_SCORES
        named = isinstance(scoring, str) and not self._own
        self._scoring = get_scorer(scoring) if named else scoring
        self._name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", scoring)
        self._classes = classes

    def __call__(
        self, probabilities: Float, labels: Index, weight: Float, sizes: Sequence[int]
    ) -> Float:
        ends = np.cumsum(sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, sizes)]
        if self._own:
            rows = -self._losses(probabilities, labels)
            return np.array([np.average(rows[p], weights=weight[p]) for p in parts])
        return np.array([self._scored(probabilities[p], labels[p], weight[p]) for p in parts])

    def _scored(self, probabilities: Float, labels: Index, weight: Float) -> float:
        """The score of a scorer. Scorers of scikit-learn get the weights, unless all are equal."""
        rows, y = np.arange(len(labels))[:, None], self._classes[labels]
        arguments = _Foreseen(self._classes, probabilities), rows, y
        with ignoring(UndefinedMetricWarning):  # the search handles scores that are NaN
            try:
                if np.ptp(weight) > 0 and hasattr(self._scoring, "_sign"):  # a scikit-learn scorer
                    return float(self._scoring(*arguments, sample_weight=weight))
                return float(self._scoring(*arguments))
            except ValueError as error:
                seen = ", ".join(str(c) for c in np.unique(y))
                raise ValueError(
                    f"scoring={self._name} failed on a fold with the classes {seen}: {error} "
                    "Use fewer folds, so that each fold leaves out rows of every class, or another "
                    "score."
                ) from error

    def _losses(self, probabilities: Float, labels: Index) -> Float:
        if self._scoring == "brier":
            return brier(probabilities, labels)
        if self._scoring == "error":
            return errors(probabilities, labels)
        own = probabilities[np.arange(len(labels)), labels]
        result: Float = -np.log(np.maximum(own, np.finfo(float).tiny))
        return result


class _Foreseen(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for scorers, with known predictions. Its X has a single column, row numbers."""

    def __init__(self, classes: Any = None, probabilities: Any = None) -> None:
        self.classes = classes
        self.probabilities = probabilities
        self.classes_ = classes

    def fit(self, X: Any, y: Any = None) -> _Foreseen:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Float:
        result: Float = self.probabilities[np.asarray(X)[:, 0]]
        return result

    def decision_function(self, X: Any) -> Float:
        p = np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))
        return p[:, 1] - p[:, 0] if p.shape[1] == 2 else p

    def predict(self, X: Any) -> npt.NDArray[Any]:
        labels: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels
