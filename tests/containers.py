"""One table in several containers, and the methods of estimators that take a table, for tests."""

from __future__ import annotations

import pandas as pd
import polars as pl

from metricboost import SDistClassifier

NAMES = ["age", "income", "height", "weight", "pulse"]
#: The ways in which a table of five columns is given.
CONTAINERS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}


def small(cls=SDistClassifier, **params):
    """An estimator with one short fit. A test that is about folds sets ``n_averaged``."""
    return cls(**{"max_iter": 12, "n_averaged": 1, "oob_gate": 1.5, "random_state": 0, **params})


def named(kind, column):
    """The name of a column in messages, for a table in a container of this kind."""
    return NAMES[column] if kind in ("pandas", "polars") else f"x{column}"


def methods(model):
    """All methods that take a table."""
    names = ["transform", "staged_transform"]
    if isinstance(model, SDistClassifier):
        names += [
            "predict", "predict_proba", "predict_log_proba", "decision_function", "kneighbors",
            "staged_predict",
        ]  # fmt: skip
    return {name: getattr(model, name) for name in names}


def run(method, X):
    """Call a method to the end, also if it is a generator."""
    return list(method(X))
