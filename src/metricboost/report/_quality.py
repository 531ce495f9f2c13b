"""How well a model classifies labelled rows: scores, intervals and curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from .._intervals import interval
from .._typing import Float, Index

#: The most points of a ROC curve, and the most bins of a calibration curve.
ROC_POINTS = 200
BINS = 10
#: The least number of rows in a bin.
BIN_ROWS = 10


class Score(NamedTuple):
    """A score and an explanation of its values."""

    name: str
    value: float
    meaning: str


@dataclass(frozen=True)
class RocCurve:
    """The ROC curve of one class against the others.

    Attributes
    ----------
    code : int
        The number of the class.
    points : list of (float, float)
        False positive rates and true positive rates.
    area : float
    """

    code: int
    points: list[tuple[float, float]]
    area: float


@dataclass(frozen=True)
class Bin:
    """Rows with similar predicted probabilities.

    Attributes
    ----------
    predicted : float
        The mean of the predicted probabilities.
    observed : float
        The observed frequency.
    low, high : float
        The 95% interval of the frequency.
    n : int
        The number of rows.
    """

    predicted: float
    observed: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Quality:
    """How well a model classifies labelled rows.

    Attributes
    ----------
    n, errors : int
        The numbers of rows and of wrong predictions.
    scores : list of Score
    confusion : list of list of int
        One list for every class: how often its rows were predicted as each class.
    roc : list of RocCurve
    calibration : list of Bin
    """

    n: int
    errors: int
    scores: list[Score]
    confusion: list[list[int]]
    roc: list[RocCurve]
    calibration: list[Bin]

    @property
    def error(self) -> float:
        """The share of wrong predictions."""
        return self.errors / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the error."""
        return interval(self.errors, self.n)


def quality(labels: Index, probabilities: Float, predicted: Index) -> Quality:
    """Scores and curves of predictions.

    Parameters
    ----------
    labels, predicted : ndarray of int of shape (n_samples,)
        The numbers of the true and of the predicted classes.
    probabilities : ndarray of shape (n_samples, n_classes)
    """
    n_classes = probabilities.shape[1]
    return Quality(
        n=len(labels),
        errors=int((predicted != labels).sum()),
        scores=_scores(labels, probabilities, predicted),
        confusion=confusion_matrix(labels, predicted, labels=range(n_classes)).tolist(),
        roc=_curves(labels, probabilities),
        calibration=calibration(labels, probabilities),
    )


def _scores(labels: Index, probabilities: Float, predicted: Index) -> list[Score]:
    n_classes = probabilities.shape[1]
    present = np.unique(labels)
    # This is balanced_accuracy_score, which warns if all rows are of one class.
    recall = float(recall_score(labels, predicted, labels=present, average="macro"))
    found = [
        Score(
            "Balanced accuracy",
            recall,
            "the mean over the classes of the share of rows that are classified correctly; "
            f"guessing gives {1 / n_classes:.2f}",
        )
    ]
    if len(present) == n_classes:
        meaning = "how well the probabilities rank the rows; guessing gives 0.5, 1 is perfect"
        found.append(Score("Area under the ROC curve", _auc(labels, probabilities), meaning))
    brier = float(((probabilities - np.eye(n_classes)[labels]) ** 2).sum(axis=1).mean())
    if n_classes == 2:
        brier = float(((probabilities[:, 1] - labels) ** 2).mean())
    found.append(
        Score("Brier score", brier, "the mean squared error of the probabilities; 0 is best")
    )
    loss = float(log_loss(labels, probabilities, labels=range(n_classes)))
    found.append(Score("Log loss", loss, "confident wrong predictions cost most; 0 is best"))
    return found


def _auc(labels: Index, probabilities: Float) -> float:
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels, probabilities[:, 1]))
    return float(roc_auc_score(labels, probabilities, multi_class="ovr"))


def _curves(labels: Index, probabilities: Float) -> list[RocCurve]:
    """The ROC curve of the second of two classes, or of each of several against the others."""
    n_classes = probabilities.shape[1]
    found = []
    for c in [1] if n_classes == 2 else range(n_classes):
        own = labels == c
        if own.any() and not own.all():
            false, true, _ = roc_curve(own, probabilities[:, c])
            kept = np.unique(np.linspace(0, len(false) - 1, ROC_POINTS).astype(int))
            points = [(float(a), float(b)) for a, b in zip(false[kept], true[kept])]
            found.append(RocCurve(c, points, float(roc_auc_score(own, probabilities[:, c]))))
    return found


def calibration(labels: Index, probabilities: Float) -> list[Bin]:
    """Predicted probabilities and observed frequencies, in bins with equally many rows.

    With two classes they are those of the second class. With more classes they are the probability
    of the predicted class, and how often the prediction is correct.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
    probabilities : ndarray of shape (n_samples, n_classes)
    """
    if probabilities.shape[1] == 2:
        predicted, observed = probabilities[:, 1], labels == 1
    else:
        predicted = probabilities.max(axis=1)
        observed = probabilities.argmax(axis=1) == labels
    order = np.argsort(predicted, kind="stable")
    n_bins = min(BINS, max(1, len(order) // BIN_ROWS))
    found = []
    for part in np.array_split(order, n_bins):
        count = int(observed[part].sum())
        low, high = interval(count, len(part))
        mean = float(predicted[part].mean())
        found.append(Bin(mean, count / len(part), low, high, len(part)))
    return found
