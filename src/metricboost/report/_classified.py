"""The rows that were given to a report, and what the model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from .._typing import Float, Index
from ..engines import Engine
from ..inputs import class_codes
from ..model import Blend, Model
from ..model.model import PREDICTED_ROWS


@dataclass(frozen=True, eq=False)
class ClassifiedRows:
    """The rows that were given to a report, classified.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    numbers : ndarray of int
        The numbers that the page gives to the rows.
    embedding : ndarray of shape (n_samples, rank)
    nearest : ndarray of int of shape (n_samples, n_classes)
        The place of the nearest training row of each class.
    squared : ndarray of shape (n_samples, n_classes)
        The squared distances to them.
    probabilities : ndarray of shape (n_samples, n_classes)
    predicted : ndarray of int
        The number of every row's predicted class.
    labels : ndarray of int or None
        The number of every row's class; None if the classes are unknown.
    """

    X: Float
    numbers: Index
    embedding: Float
    nearest: Index
    squared: Float
    probabilities: Float
    predicted: Index
    labels: Index | None

    def __len__(self) -> int:
        return len(self.X)

    def first(self, n: int) -> ClassifiedRows:
        """The first n rows."""
        labels = None if self.labels is None else self.labels[:n]
        return ClassifiedRows(
            self.X[:n], self.numbers[:n], self.embedding[:n], self.nearest[:n], self.squared[:n],
            self.probabilities[:n], self.predicted[:n], labels,
        )  # fmt: skip


def classified(
    model: Model | Blend, X: Float, y: Any, numbers: Index | None, engine: Engine | None
) -> ClassifiedRows:
    """Classify rows.

    Parameters
    ----------
    model, X, y, numbers, engine
        As in ``make_report``; X is an array.
    """
    if not len(X):
        raise ValueError("X has no rows, so there is nothing to report on.")
    labels = None if y is None else class_codes(y, model.classes, len(X))
    embedding = model.best.embed(X)
    log_odds = _log_odds(model, X, embedding, engine)
    near = [model.best.nearest(embedding, 1, engine, c) for c in range(len(model.classes))]
    return ClassifiedRows(
        X=X,
        numbers=np.arange(len(X)) if numbers is None else np.asarray(numbers, dtype=np.intp),
        embedding=embedding,
        nearest=np.hstack([rows for rows, _ in near]),
        squared=np.hstack([squared for _, squared in near]),
        probabilities=softmax(log_odds, axis=1),
        predicted=class_codes(model.labels_of(log_odds), model.classes, len(X)),
        labels=labels,
    )


def _log_odds(model: Model | Blend, X: Float, embedding: Float, engine: Engine | None) -> Float:
    """The log odds of rows that the best model has embedded."""
    if isinstance(model, Blend) or model.the_reading.readout.on_terms:
        return model.log_odds(X, engine)
    starts = range(0, len(X), PREDICTED_ROWS)
    parts = [model.log_odds_of(embedding[s : s + PREDICTED_ROWS], engine) for s in starts]
    return np.concatenate(parts)
