"""One cell of a study: a table, a model and a seed, fitted in a process of its own.

The limit is in CPU seconds of the fit, which runs on one thread: a busy machine slows a fit down,
but does not turn it into a timeout. A cell is one JSON file, written in one piece.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from threadpoolctl import threadpool_limits

from metricboost.studies._cells import Row, slug, write
from metricboost.studies._measures import chosen, rank, timed_fit, variables
from metricboost.studies._sources import Split

from . import models
from .rivals import NotAvailableError
from .tables import load


@dataclass(frozen=True)
class Cell:
    table: str
    model: str
    seed: int

    def path(self, results: Path) -> Path:
        """The key is in the name: a cell of other parameters is another file."""
        name = f"{self.seed:03d}-{models.key(self.model)}.json"
        return results / slug(self.table) / slug(self.model) / name

    def names(self) -> dict[str, Any]:
        return {"table": self.table, "model": self.model, "seed": self.seed}

    def group(self) -> tuple[str, str]:
        return self.table, self.model

    def __str__(self) -> str:
        return f"{self.table} | {self.model} | seed {self.seed}"


def run(cell: Cell, results: Path, limit: float) -> None:
    """Fit and score, and write the file; beyond the limit SIGXCPU ends the process instead."""
    try:
        row = measure(models.build(cell.model), load(cell.table, cell.seed), limit)
    except TimeoutError:
        row = {"status": "timeout", "limit": limit}
    except NotAvailableError as error:
        row = {"status": "not available", "message": str(error)}
    except Exception as error:
        row = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
    write(cell, results, row)


def measure(model: BaseEstimator, split: Split, limit: float = math.inf) -> Row:
    """What is known after one fit."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        seconds = timed_fit(model, split, limit)
        return {
            "status": "ok",
            **seconds,
            **scores(model, split),
            **variables(model, split),
            **rank(model),
            **chosen(model),
        }


def scores(model: BaseEstimator, split: Split) -> Row:
    X, y = split.X_test, split.y_test
    predicted = model.predict(X)
    row = {
        "error": 1 - accuracy_score(y, predicted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
    }
    labels = np.unique(split.y_train)
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(X)
        row["brier"] = brier_score_loss(y, proba[:, 1] if len(labels) == 2 else proba)
        row["log_loss"] = log_loss(y, proba, labels=labels)
    if len(labels) == 2:
        graded = hasattr(model, "decision_function")
        evidence = model.decision_function(X) if graded else model.predict_proba(X)[:, 1]
        row["auc"] = roc_auc_score(y, evidence)
    return row
