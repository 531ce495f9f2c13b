"""The models of the benchmarks by name: metricboost, its ablations, and the rivals.

Names are looked up late, so that one that is not installed, or not yet written, costs only itself.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from metricboost.studies._methods import (
    GRIDS,
    l1_all_pairs,
    lightgbm,
    screened,
    tuned_rival,
)

from . import rivals


def ours(name: str = "SDistClassifier", **parameters: Any) -> BaseEstimator:
    import metricboost

    if not hasattr(metricboost, name):
        raise rivals.NotAvailableError(f"metricboost has no {name}.")
    return getattr(metricboost, name)(random_state=0, **parameters)


def plain(**parameters: Any) -> BaseEstimator:
    import metricboost

    return metricboost.SDistClassifier(**parameters)


def normal_scores() -> BaseEstimator:
    """Columns replaced by the normal quantiles of their ranks: the other way with heavy tails."""
    return QuantileTransformer(n_quantiles=1000, output_distribution="normal")


MODELS: dict[str, Callable[[], BaseEstimator]] = {
    "defaults": ours,
    "tuned": partial(ours, "SDistClassifierCV"),
    "tuned AUC": lambda: ours(
        "SDistClassifierCV", estimator=plain(class_weight="balanced"), scoring="roc_auc"
    ),
    "balanced": partial(ours, class_weight="balanced"),
    "without screening": partial(ours, screen_pairs=0),
    "without pruning": partial(ours, prune=None),
    "without gate": partial(ours, oob_gate=None),
    "one fit": partial(ours, n_averaged=1),
    "without all columns": partial(ours, start_share=0.0),
    "margin alone": partial(ours, classifier="margin"),
    "without clipping": partial(ours, clip=None),
    "ranks": lambda: make_pipeline(normal_scores(), ours(clip=None)),
    "tuned, one model": partial(ours, "SDistClassifierCV", n_blended=1),
    "coded": partial(ours, multiclass="coded"),
    "screening + logistic": lambda: screened(LogisticRegression(max_iter=2000)),
    "screening + 10-NN": lambda: screened(KNeighborsClassifier(10)),
    "L1 logistic, all pairs": l1_all_pairs,
    "3-NN": rivals.nearest,
    "NCA": rivals.nca,
    "LMNN": rivals.lmnn,
    "LFDA": rivals.lfda,
    **{f"{name}, tuned": partial(tuned_rival, name) for name in GRIDS},
    "RBF-SVM": rivals.svm,
    "RBF-SVM, AUC": partial(rivals.svm, scoring="roc_auc", class_weight="balanced"),
    "L1 logistic": rivals.l1_logistic,
    "L1 logistic, balanced": partial(rivals.l1_logistic, "balanced"),
    "LightGBM": lightgbm,
    "LightGBM, balanced": partial(lightgbm, "balanced"),
    "imputing": partial(ours, missing="impute"),
    "defaults, imputed": lambda: rivals.imputed(ours()),
    "3-NN, imputed": lambda: rivals.imputed(rivals.nearest()),
    "3-NN, nan-Euclidean": rivals.nearest_nan_euclidean,
    "RBF-SVM, imputed": lambda: rivals.imputed(rivals.svm()),
}


def build(name: str) -> BaseEstimator:
    """A fresh model; NotAvailableError where something is missing."""
    try:
        return MODELS[name]()
    except (ImportError, TypeError) as error:  # the package, or a parameter, is missing
        raise rivals.NotAvailableError(str(error)) from error


@cache
def key(name: str) -> str:
    """A fingerprint of the model's parameters and of the versions of the packages it comes from."""
    try:
        model = build(name)
    except rivals.NotAvailableError:
        return "unavailable"
    described = json.dumps(_described(model), sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()[:10]


def _described(model: BaseEstimator) -> dict[str, str]:
    parameters = {"": model, **model.get_params(deep=True)}
    nested = {name: value for name, value in parameters.items() if hasattr(value, "get_params")}
    plain = {
        name: repr(value)
        for name, value in parameters.items()
        if name not in nested and not name.endswith("steps")  # those are among the nested
    }
    return {**plain, **{name: _kind(value) for name, value in nested.items()}}


def _kind(model: BaseEstimator) -> str:
    package = importlib.import_module(type(model).__module__.split(".")[0])
    return f"{type(model).__qualname__} {getattr(package, '__version__', '')}"
