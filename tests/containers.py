"""Tables in several containers, and the methods of estimators that take a table, for tests."""

from __future__ import annotations

import pandas as pd
import polars as pl

from metricboost import SDistClassifier

NAMES = ["age", "income", "height", "weight", "pulse"]
#: Functions that convert an array of five columns to each container.
CONTAINERS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}


def small(cls=SDistClassifier, **params):
    """An estimator with one short fit. Tests of folds set ``n_averaged``."""
    return cls(**{"max_iter": 12, "n_averaged": 1, "oob_gate": 1.5, "random_state": 0, **params})


def named(kind, column):
    """The name of a column in messages, for a table in a given container."""
    return NAMES[column] if kind in ("pandas", "polars") else f"x{column}"


def methods(model):
    """All methods of an estimator that take a table."""
    names = ["transform", "staged_transform"]
    if isinstance(model, SDistClassifier):
        names += [
            "predict", "predict_proba", "predict_log_proba", "decision_function", "kneighbors",
            "staged_predict",
        ]  # fmt: skip
    return {name: getattr(model, name) for name in names}


def run(method, X):
    """Call a method. If it is a generator, run the generator to its end."""
    return list(method(X))
