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
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

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
            **chosen(model),
        }


def timed_fit(model: BaseEstimator, split: Split, limit: float) -> Row:
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if math.isfinite(limit):
        most = math.ceil(time.process_time() + limit)
        resource.setrlimit(resource.RLIMIT_CPU, (most, hard))
    cpu, wall = _cpu_seconds(), time.perf_counter()
    model.fit(split.X_train, split.y_train)
    seconds = {"cpu_seconds": _cpu_seconds() - cpu, "seconds": time.perf_counter() - wall}
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    return seconds


def _cpu_seconds() -> float:
    """Of this process and of those that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


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
    values = getattr(final, "feature_importances_", None)
    if values is None and hasattr(final, "coef_"):
        values = np.abs(final.coef_).sum(axis=0)
    if values is None or len(values) != p:
        return None, None
    return np.asarray(values, dtype=np.float64), np.asarray(values) > 0


def _parts(model: BaseEstimator) -> list[BaseEstimator]:
    """The steps of a pipeline in order, also of one inside another."""
    if isinstance(model, Pipeline):
        return [part for _, step in model.steps for part in _parts(step)]
    return [model]


def chosen(model: BaseEstimator) -> Row:
    """What tuning chose."""
    final = _parts(model)[-1]
    if hasattr(final, "best_params_"):
        return {"best_params": dict(final.best_params_)}
    return {"best_params": {"C": float(final.C_)}} if hasattr(final, "C_") else {}
