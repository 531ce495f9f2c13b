"""``metricboost bench``: the same splits for metricboost and for what one would use instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from .. import SDistClassifier, SDistClassifierCV
from ..datasets import make_double_ring, make_xor
from ..tables import TableEncoder
from ..tables._classifier import has_label, labels_of
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_target, read_data

Split = tuple[Any, Any, Any, Any]


def run_bench(
    voice: Voice, data: Path | None, target: str | None, drop: tuple[str, ...],
    keep: tuple[str, ...], splits: int, tune: bool, seed: int,
) -> None:  # fmt: skip
    if (data is None) != (target is None):
        raise WrongUsageError("Give a table and its --target, or neither.")
    models = _models(tune, seed)
    found = []
    for name, make in _tables(voice, data, target, drop, keep, splits, seed):
        # One thread each, so that times can be compared and processes do not wait for each other.
        with voice.hearing_warnings(), voice.working(name) as progress, threadpool_limits(1):
            found.append({"table": name, "results": _measured(make, models, splits, progress)})
        _say(voice, found[-1])
    voice.result({"splits": splits, "tables": found})


def _models(tune: bool, seed: int) -> dict[str, Any]:
    def scaled(model: Any) -> Any:
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), model)

    penalties = {"C": np.logspace(-4, 2, 7)}
    logistic = GridSearchCV(LogisticRegression(max_iter=2000), penalties, cv=5)
    svm = GridSearchCV(SVC(), {"C": [1, 10, 100], "gamma": ["scale", 0.01, 0.001]}, cv=5)
    found = {
        "metricboost": SDistClassifier(missing="impute", random_state=seed),
        "3 nearest neighbours": scaled(KNeighborsClassifier(3)),
        "logistic regression": scaled(logistic),
        "RBF-SVM, tuned": scaled(svm),
        "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
    }
    if tune:
        base = SDistClassifier(missing="impute")
        found["metricboost, tuned"] = SDistClassifierCV(base, random_state=seed, n_jobs=-1)
    return found


def _tables(
    voice: Voice, data: Path | None, target: str | None, drop: tuple[str, ...],
    keep: tuple[str, ...], splits: int, seed: int,
) -> Iterator[tuple[str, Callable[[int], Split]]]:  # fmt: skip
    if data is not None and target is not None:
        yield data.name, _of_file(voice, data, target, drop, keep, seed)
        return
    for name, maker in (("XOR, 2 of 200 columns", make_xor), ("ring, 2 of 200", make_double_ring)):
        yield name, _simulated(maker, seed)


def _of_file(
    voice: Voice, data: Path, target: str, drop: tuple[str, ...], keep: tuple[str, ...], seed: int
) -> Callable[[int], Split]:
    check_target(target, drop)
    frame = read_data(voice, data)
    check_columns(frame, (target, *drop, *keep))
    frame = frame[has_label(frame[target])]
    y = labels_of(frame[target], target)
    features = frame.drop(columns=target)

    def make(number: int) -> Split:
        rows = np.arange(len(y))
        kept, out = train_test_split(rows, test_size=0.3, stratify=y, random_state=seed + number)
        encoder = TableEncoder(drop, keep).fit(features.iloc[kept])  # inside the split
        encoded = (encoder.transform(features.iloc[part]) for part in (kept, out))
        return (*encoded, y[kept], y[out])

    return make


def _simulated(maker: Callable[..., Any], seed: int) -> Callable[[int], Split]:
    def make(number: int) -> Split:
        X, y = maker(n_samples=2500, n_features=200, informative=2, random_state=seed + number)
        return X[:500], X[500:], y[:500], y[500:]

    return make


def _measured(
    make: Callable[[int], Split],
    models: dict[str, Any],
    splits: int,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    errors: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for number in range(splits):
        A, B, a, b = make(number)
        for name, model in models.items():
            progress(f"split {number + 1} of {splits}: {name}")
            start = time.perf_counter()
            fitted = clone(model).fit(A, a)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(float(np.mean(fitted.predict(B) != b)))
    found = [
        {
            "model": name,
            "error": float(np.mean(errors[name])),
            "standard_error": _standard_error(errors[name]),
            "seconds": round(float(np.mean(seconds[name])), 3),
        }
        for name in models
    ]
    return sorted(found, key=lambda row: row["error"])


def _standard_error(errors: list[float]) -> float | None:
    return float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None


def _say(voice: Voice, found: dict[str, Any]) -> None:
    rows = [
        [
            row["model"],
            f"{row['error']:.3f}",
            _number(row["standard_error"]),
            f"{row['seconds']:.1f}",
        ]
        for row in found["results"]
    ]
    voice.table(["model", "error", "s.e.", "fit s"], rows, title=found["table"])
    voice.say()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
