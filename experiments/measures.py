"""Measurements of one fit: errors, time, memory, variables, rank and tuned parameters."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from metricboost.baselines import LinearMetricLearner

from .limits import cpu_seconds, peak_megabytes
from .models import build
from .paper.protocol import PaperSDist
from .results import Cell, Row
from .tables import Split, load


def error_of_split(cell: Cell) -> Row:
    """Learn from the training rows of a split, and predict its test rows."""
    settings = dict(cell.settings)
    split = load(cell.table, cell.seed, settings.pop("rows", None))
    model = build(cell.model, settings)
    row = timed_fit(model, split) | scores(model, split)
    best = split.bayes_error if split.test_bayes_error is None else split.test_bayes_error
    if best is not None:
        row["bayes_error"] = best
    row.update({**variables(model, split), **rank(model), **chosen(model)})
    return row | model.details(split) if isinstance(model, PaperSDist) else row


def timed_fit(model: BaseEstimator, split: Split) -> Row:
    cpu, wall, memory = cpu_seconds(), time.perf_counter(), peak_megabytes()
    model.fit(split.X_train, split.y_train)
    return {
        "cpu_seconds": cpu_seconds() - cpu,
        "seconds": time.perf_counter() - wall,
        "megabytes": peak_megabytes() - memory,
    }


def scores(model: BaseEstimator, split: Split) -> Row:
    """The error, and scores of the probabilities and of the evidence if the model has them."""
    X, y = split.X_test, split.y_test
    predicted, labels = model.predict(X), np.unique(split.y_train)
    row = {
        "error": float(np.mean(predicted != y)),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
    }
    graded = hasattr(model, "decision_function")
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(X)
        row["brier"] = brier_score_loss(y, proba[:, 1] if len(labels) == 2 else proba)
        row["log_loss"] = log_loss(y, proba, labels=labels)
    if len(labels) == 2 and (graded or "brier" in row):
        row["auc"] = roc_auc_score(y, model.decision_function(X) if graded else proba[:, 1])
    return row


def variables(model: BaseEstimator, split: Split) -> Row:
    """The number of columns used and, if known, how many of them are relevant."""
    importances, used = _importances(model, split.X_train.shape[1])
    if used is None:
        return {}
    row: Row = {"variables": int(used.sum())}
    if split.relevant is not None:
        row["found"] = int(used[split.relevant].sum())
        row["relevant"] = len(split.relevant)
    if split.relevant is not None and importances is not None and importances.any():
        row["share_relevant"] = float(importances[split.relevant].sum() / importances.sum())
    return row


def _importances(
    model: BaseEstimator, p: int
) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.bool_] | None]:
    """The weights of the p columns, and whether each is used. None if the model has no weights."""
    for part in parts(model):
        if hasattr(part, "pairs_"):  # the pair screening
            return None, np.isin(np.arange(p), np.ravel(part.pairs_))
    values = _weights(model, p)
    if values is None or len(values) != p:
        return None, None
    return np.asarray(values, dtype=np.float64), np.asarray(values) > 0


def _weights(model: BaseEstimator, p: int) -> Any:
    final, linear = parts(model)[-1], _linear_map(model)
    if linear is not None and linear.shape[1] == p:
        return (linear**2).sum(axis=0)
    if hasattr(final, "feature_importances_"):
        return final.feature_importances_
    if hasattr(final, "coef_"):
        return np.abs(np.atleast_2d(final.coef_)).sum(axis=0)
    return final.metric_.importances() if hasattr(final, "metric_") else None


def rank(model: BaseEstimator) -> Row:
    """The number of dimensions of the metric."""
    linear = _linear_map(model)
    if linear is not None:
        return {"rank": int(np.linalg.matrix_rank(linear)) if linear.size else 0}
    metric = getattr(parts(model)[-1], "metric_", None)
    return {} if metric is None else {"rank": metric.rank}


def _linear_map(model: BaseEstimator) -> npt.NDArray[np.float64] | None:
    """The factor of a linear metric among the parts."""
    for part in parts(model):
        if isinstance(part, LinearMetricLearner):
            return part.components_
    return None


def parts(model: BaseEstimator) -> list[BaseEstimator]:
    """The steps of a pipeline in order, including nested pipelines and the best of a search."""
    if hasattr(model, "best_estimator_") and isinstance(model.best_estimator_, Pipeline):
        return parts(model.best_estimator_)
    if isinstance(model, Pipeline):
        return [part for _, step in model.steps for part in parts(step)]
    return [model]


def chosen(model: BaseEstimator) -> Row:
    """The parameters that tuning chose."""
    if isinstance(model, GridSearchCV):
        return {"best_params": dict(model.best_params_), "one_fit_seconds": model.refit_time_}
    final = parts(model)[-1]
    for part in (model, final):
        if hasattr(part, "best_params_"):
            return {"best_params": dict(part.best_params_)}
    return {"best_params": {"C": float(final.C_)}} if hasattr(final, "C_") else {}
