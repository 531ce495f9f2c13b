"""One cell of a study: a table, a model and a seed, fitted in a process of its own.

The limit is in CPU seconds of the fit, which runs on one thread: a busy machine slows a fit down,
but does not turn it into a timeout. A cell is one JSON file, written in one piece.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from metricboost.baselines import LinearMetricLearner

from . import models
from .rivals import NotAvailableError
from .tables import Split, load

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    table: str
    model: str
    seed: int

    def path(self, results: Path) -> Path:
        """The key is in the name: a cell of other parameters is another file."""
        name = f"{self.seed:03d}-{models.key(self.model)}.json"
        return results / _slug(self.table) / _slug(self.model) / name

    def __str__(self) -> str:
        return f"{self.table} | {self.model} | seed {self.seed}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read(path: Path) -> Row | None:
    return json.loads(path.read_text()) if path.exists() else None


def write(path: Path, cell: Cell, row: Row) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.part")
    known = {"table": cell.table, "model": cell.model, "seed": cell.seed}
    temporary.write_text(json.dumps({**known, **row}, indent=1, default=_plain) + "\n")
    temporary.replace(path)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else repr(value)


def run(cell: Cell, path: Path, limit: float) -> None:
    """Fit and score, and write the file; beyond the limit SIGXCPU ends the process instead."""
    try:
        row = measure(models.build(cell.model), load(cell.table, cell.seed), limit)
    except TimeoutError:
        row = {"status": "timeout", "limit": limit}
    except NotAvailableError as error:
        row = {"status": "not available", "message": str(error)}
    except Exception as error:
        row = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
    write(path, cell, row)


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


def timed_fit(model: BaseEstimator, split: Split, limit: float) -> Row:
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if math.isfinite(limit):
        most = math.ceil(time.process_time() + limit)
        resource.setrlimit(resource.RLIMIT_CPU, (most, hard))
    cpu, wall, memory = _cpu_seconds(), time.perf_counter(), _peak_megabytes()
    model.fit(split.X_train, split.y_train)
    seconds = {"cpu_seconds": _cpu_seconds() - cpu, "seconds": time.perf_counter() - wall}
    seconds["megabytes"] = _peak_megabytes() - memory
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    return seconds


def _cpu_seconds() -> float:
    """Of this process and of those that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _peak_megabytes() -> float:
    """The most memory that this process, or one that it waited for, has had."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


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


def variables(model: BaseEstimator, split: Split) -> Row:
    """How many columns are used, and where the truth is known, how well they are chosen."""
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
    """Of the p columns, where the model's parts tell: their weights, and which are used."""
    for part in _parts(model):
        if hasattr(part, "pairs_"):  # the pair screening
            return None, np.isin(np.arange(p), np.ravel(part.pairs_))
    final = _parts(model)[-1]
    linear = _linear_map(model)
    values = getattr(final, "feature_importances_", None)
    if linear is not None and linear.shape[1] == p:
        values = (linear**2).sum(axis=0)
    if values is None and hasattr(final, "coef_"):
        values = np.abs(final.coef_).sum(axis=0)
    if values is None or len(values) != p:
        return None, None
    return np.asarray(values, dtype=np.float64), np.asarray(values) > 0


def rank(model: BaseEstimator) -> Row:
    """Dimensions of the metric."""
    linear = _linear_map(model)
    if linear is not None:
        return {"rank": int(np.linalg.matrix_rank(linear)) if linear.size else 0}
    metric = getattr(_parts(model)[-1], "metric_", None)
    return {} if metric is None else {"rank": metric.rank}


def _linear_map(model: BaseEstimator) -> npt.NDArray[np.float64] | None:
    """The factor of a linear metric among the parts."""
    for part in _parts(model):
        if isinstance(part, LinearMetricLearner):
            return part.components_
    return None


def _parts(model: BaseEstimator) -> list[BaseEstimator]:
    """The steps of a pipeline in order, also of one inside another, or of the best of a search."""
    if isinstance(model, GridSearchCV):
        return _parts(model.best_estimator_)
    if isinstance(model, Pipeline):
        return [part for _, step in model.steps for part in _parts(step)]
    return [model]


def chosen(model: BaseEstimator) -> Row:
    """What tuning chose."""
    if isinstance(model, GridSearchCV):
        return {"best_params": dict(model.best_params_), "one_fit_seconds": model.refit_time_}
    final = _parts(model)[-1]
    if hasattr(final, "best_params_"):
        return {"best_params": dict(final.best_params_)}
    return {"best_params": {"C": float(final.C_)}} if hasattr(final, "C_") else {}
