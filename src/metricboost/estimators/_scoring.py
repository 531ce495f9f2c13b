"""Scores out of fold for cross-validation, by name or by any scikit-learn scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from .._typing import Float, Index
from ..selection.choosing import brier, errors

#: Scores that need no scorer: the Brier score, the share of errors, the log loss.
OWN_SCORES = ("brier", "error", "loss")


class FoldScorer:
    """Scores of every fold, larger for better."""

    def __init__(self, scoring: Any, classes: npt.NDArray[Any]) -> None:
        self._scoring = scoring
        self._classes = classes

    def __call__(
        self, probabilities: Float, labels: Index, weight: Float, sizes: Sequence[int]
    ) -> Float:
        ends = np.cumsum(sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, sizes)]
        if isinstance(self._scoring, str) and self._scoring in OWN_SCORES:
            rows = -self._losses(probabilities, labels)
            return np.array([np.average(rows[p], weights=weight[p]) for p in parts])
        return np.array([self._scored(probabilities[p], labels[p]) for p in parts])

    def _scored(self, probabilities: Float, labels: Index) -> float:
        scorer = get_scorer(self._scoring) if isinstance(self._scoring, str) else self._scoring
        foreseen = _Foreseen(self._classes, probabilities)
        return float(scorer(foreseen, np.arange(len(labels))[:, None], self._classes[labels]))

    def _losses(self, probabilities: Float, labels: Index) -> Float:
        if self._scoring == "brier":
            return brier(probabilities, labels)
        if self._scoring == "error":
            return errors(probabilities, labels)
        own = probabilities[np.arange(len(labels)), labels]
        result: Float = -np.log(np.maximum(own, np.finfo(float).tiny))
        return result


class _Foreseen(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose answers are known: what scorers ask is looked up by row number."""

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
