"""What a user gives to a display: an estimator, a model or a metric."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...model import Blend, Model, SparseMetric
from .._terms import ModelExplanation, explain_model


def check_estimator(estimator: Any) -> None:
    """Refuse an object without a metric, and an estimator that is not fitted."""
    if isinstance(estimator, SparseMetric | Model | Blend):
        return
    if hasattr(estimator, "fit"):
        check_is_fitted(estimator)
    if not hasattr(estimator, "metric_"):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}, but must be an SDist, SDistClassifier, "
            "SDistClassifierCV, TableClassifier, SparseMetric or one of metricboost.baselines. Of "
            "a pipeline, give the last step. Of another estimator with components_, give a "
            "metricboost.baselines.ComponentsMetric of it."
        )


def metric_of(estimator: Any) -> SparseMetric:
    """The metric of a fitted estimator or a model; a metric itself."""
    check_estimator(estimator)
    if isinstance(estimator, SparseMetric):
        return estimator
    if isinstance(estimator, Model | Blend):
        return estimator.best.metric
    metric: SparseMetric = estimator.metric_
    return metric


def explained(estimator: Any) -> ModelExplanation:
    """What a fitted estimator, a model or a metric has learned.

    A metric, and an estimator without a model such as the baselines, has no stability of columns.
    """
    check_estimator(estimator)
    model = model_in(estimator)
    return explain_model(metric_of(estimator) if model is None else model)


def fitted_model(estimator: Any, what: str) -> Model:
    """The fitted model of an estimator; the best model of a search.

    Parameters
    ----------
    estimator : object
        What a user gave to a display.
    what : str
        What the display needs, for the error about an object without a model.
    """
    check_estimator(estimator)
    model = model_in(estimator)
    if model is None:
        metric = isinstance(estimator, SparseMetric)
        advice = ": give the estimator that learned the metric" if metric else ""
        raise TypeError(f"estimator is a {type(estimator).__name__}, which has no {what}{advice}.")
    return model.best


def model_in(estimator: Any) -> Model | Blend | None:
    """The model of an estimator, or of the estimator that a TableClassifier holds."""
    while not isinstance(estimator, Model | Blend | None):
        estimator = getattr(estimator, "model_", None)
    return estimator


def check_count(name: str, value: Any, least: int = 1) -> int:
    """The value of a parameter that counts something.

    Parameters
    ----------
    name : str
        The name of the parameter, for the error.
    value : object
    least : int, default=1
        The smallest value that is allowed.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    return int(value)
