"""How good a model is on labelled rows: scores with their intervals, and what the curves are."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from .._typing import Float, Index

#: Points of a ROC curve, at most, and bins of a calibration curve.
ROC_POINTS = 200
BINS = 10


def quality(labels: Index, probabilities: Float, predicted: Index) -> dict[str, Any]:
    """Everything that follows from the classes and what a model says about them."""
    n_classes = probabilities.shape[1]
    errors = int((predicted != labels).sum())
    return {
        "n": len(labels),
        "errors": errors,
        "error": errors / len(labels),
        "interval": interval(errors, len(labels)),
        "scores": _scores(labels, probabilities, predicted),
        "confusion": confusion_matrix(labels, predicted, labels=range(n_classes)).tolist(),
        "roc": _curves(labels, probabilities),
        "calibration": calibration(labels, probabilities),
    }


def interval(errors: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share: never too narrow, also for few rows.

    Examples
    --------
    >>> from metricboost.report._quality import interval
    >>> low, high = interval(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    tail = (1 - level) / 2
    low = 0.0 if errors == 0 else float(beta.ppf(tail, errors, n - errors + 1))
    high = 1.0 if errors == n else float(beta.ppf(1 - tail, errors + 1, n - errors))
    return low, high


def _scores(labels: Index, probabilities: Float, predicted: Index) -> list[tuple[str, float, str]]:
    """Name, value and what it means."""
    n_classes = probabilities.shape[1]
    present = np.unique(labels)
    # As balanced_accuracy_score, which warns where the rows are all of one class.
    recognised = float(recall_score(labels, predicted, labels=present, average="macro"))
    found = [
        ("Balanced accuracy", recognised,
         "the mean over the classes of the share that is recognised; guessing gives "
         f"{1 / n_classes:.2f}"),
    ]  # fmt: skip
    if len(present) == n_classes:
        found.append(("Area under the ROC curve", _auc(labels, probabilities),
                      "how well rows are ranked; guessing gives 0.5, 1 is perfect"))  # fmt: skip
    one_hot = np.eye(n_classes)[labels]
    brier = float(((probabilities - one_hot) ** 2).sum(axis=1).mean())
    if n_classes == 2:
        brier = float(((probabilities[:, 1] - labels) ** 2).mean())
    found.append(("Brier score", brier, "the mean squared error of the probabilities; 0 is best"))
    loss = float(log_loss(labels, probabilities, labels=range(n_classes)))
    found.append(("Log loss", loss, "punishes confident errors; 0 is best"))
    return found


def _auc(labels: Index, probabilities: Float) -> float:
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(labels, probabilities[:, 1]))
    return float(roc_auc_score(labels, probabilities, multi_class="ovr"))


def _curves(labels: Index, probabilities: Float) -> list[dict[str, Any]]:
    """The ROC curve of the second of two classes, or of each of several against the rest."""
    n_classes = probabilities.shape[1]
    found = []
    for c in [1] if n_classes == 2 else range(n_classes):
        own = labels == c
        if own.any() and not own.all():
            false, true, _ = roc_curve(own, probabilities[:, c])
            some = np.unique(np.linspace(0, len(false) - 1, ROC_POINTS).astype(int))
            area = float(roc_auc_score(own, probabilities[:, c]))
            points = np.stack([false[some], true[some]], axis=1).round(4).tolist()
            found.append({"class": int(c), "points": points, "auc": area})
    return found


def calibration(labels: Index, probabilities: Float) -> list[dict[str, float]]:
    """What was said and what came true: of the second of two classes, or of the predicted one.

    Bins hold equally many rows, so that each point is as sure as the next.
    """
    if probabilities.shape[1] == 2:
        said, true = probabilities[:, 1], labels == 1
    else:
        said, true = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    order = np.argsort(said, kind="stable")
    bins = [
        part for part in np.array_split(order, min(BINS, max(1, len(order) // 10))) if len(part)
    ]
    found = []
    for part in bins:
        count = int(true[part].sum())
        low, high = interval(count, len(part))
        found.append({"said": float(said[part].mean()), "true": count / len(part),
                      "low": low, "high": high, "n": len(part)})  # fmt: skip
    return found
