"""``metricboost bench``: errors of metricboost and of other classifiers on the same splits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from ..tables.targets import has_label, labels_of
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_target, read_data

#: Training rows, test rows, and their labels.
Split = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    Attributes
    ----------
    target : str or None
        The target of the user's table; None without a table.
    drop, keep : tuple of str
    splits : int
        The number of splits.
    tune : bool
        Whether the tuned model takes part.
    seed : int
    """

    target: str | None
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    splits: int
    tune: bool
    seed: int


def run_bench(voice: Voice, data: Path | None, comparison: Comparison) -> None:
    """Compare classifiers on a table, or on simulated tables.

    Parameters
    ----------
    voice : Voice
    data : Path or None
        The file of the table.
    comparison : Comparison
    """
    if (data is None) != (comparison.target is None):
        raise WrongUsageError("Give a table and its --target, or neither of them.")
    models = classifiers(comparison.tune, comparison.seed)
    found = []
    for name, split in _tables(voice, data, comparison):
        # With one thread each, times can be compared.
        with voice.hearing_warnings(), voice.working(name) as progress, threadpool_limits(1):
            results = measured(split, models, comparison.splits, progress)
        found.append({"table": name, "results": results})
        say_results(voice, name, results)
    voice.result({"splits": comparison.splits, "tables": found})


def classifiers(tune: bool, seed: int) -> dict[str, Any]:
    """The classifiers that are compared, by name.

    Parameters
    ----------
    tune : bool
        Whether the tuned model takes part.
    seed : int
    """

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
    voice: Voice, data: Path | None, comparison: Comparison
) -> Iterator[tuple[str, Callable[[int], Split]]]:
    if data is not None and comparison.target is not None:
        yield data.name, _of_file(voice, data, comparison.target, comparison)
        return
    for name, maker in (("XOR, 2 of 200 columns", make_xor), ("ring, 2 of 200", make_double_ring)):
        yield name, _simulated(maker, comparison.seed)


def _of_file(
    voice: Voice, data: Path, target: str, comparison: Comparison
) -> Callable[[int], Split]:
    drop, keep = comparison.drop, comparison.keep
    check_target(target, drop)
    frame = read_data(voice, data)
    check_columns(frame, (target, *drop, *keep))
    frame = frame[has_label(frame[target])]
    y = labels_of(frame[target], target)
    features = frame.drop(columns=target)

    def split(number: int) -> Split:
        rows, seed = np.arange(len(y)), comparison.seed + number
        kept, out = train_test_split(rows, test_size=0.3, stratify=y, random_state=seed)
        encoder = TableEncoder(drop, keep).fit(features.iloc[kept])  # test rows have no influence
        encoded = (encoder.transform(features.iloc[part]) for part in (kept, out))
        return (*encoded, y[kept], y[out])

    return split


def _simulated(maker: Callable[..., Any], seed: int) -> Callable[[int], Split]:
    def split(number: int) -> Split:
        X, y = maker(n_samples=2500, n_features=200, informative=2, random_state=seed + number)
        return X[:500], X[500:], y[:500], y[500:]

    return split


def measured(
    split: Callable[[int], Split],
    models: dict[str, Any],
    n_splits: int,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """The errors and times of classifiers, in order of increasing error.

    Parameters
    ----------
    split : callable
        Makes a split from its number.
    models : dict of str to estimator
    n_splits : int
    progress : callable
        Is told what is being fitted.
    """
    errors: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for number in range(n_splits):
        A, B, a, b = split(number)
        for name, model in models.items():
            progress(f"split {number + 1} of {n_splits}: {name}")
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


def say_results(voice: Voice, title: str, results: list[dict[str, Any]]) -> None:
    """Print a table of errors and times.

    Parameters
    ----------
    voice : Voice
    title : str
    results : list of dict
        As from ``measured``.
    """
    rows = [
        [
            row["model"],
            f"{row['error']:.3f}",
            "" if row["standard_error"] is None else f"{row['standard_error']:.3f}",
            f"{row['seconds']:.1f}",
        ]
        for row in results
    ]
    voice.table(["model", "error", "s.e.", "fit s"], rows, title=title)
    voice.say()
