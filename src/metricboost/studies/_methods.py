"""The rows of the tables: what learns from the training rows, by name and settings.

Settings are plain values, and all that a method's result depends on: they are part of a cell's
fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from .. import baselines
from ..estimators import SDistClassifier, SDistClassifierCV
from ..inspection import ScreenedPairs
from ._protocol import REFINED, TO_THE_LETTER, K, PaperSDist

Settings = Mapping[str, Any]

#: What is tuned of each rival, by the error of 3-NN in three folds.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "PGDM": {"diagonal": [False, True], "regularization": [1e-6, 0.1, 1.0, 10.0]},
    "LMNN": {"n_neighbors": [1, 3, 5]},
    "SMLsm": {"penalty": [0.3, 0.1, 0.03, 0.01]},
    "SMLsm, columns": {"penalty": [0.2, 0.1, 0.05]},
    "SMLlp": {"penalty": [1.0, 0.3, 0.1, 0.03]},
    "SMLlp, dominant": {"penalty": [0.8, 0.5, 0.3]},
    "BoostMetric": {"max_iter": [10, 50, 200]},
    "NCA": {"estimator__n_components": [5, 10, 20]},
}
#: Rivals with one thing changed, to see what it does.
APART: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}, {how}": (name, {"scaling": scaling})
    for name in ("PGDM", "LMNN", "SMLsm", "NCA")
    for how, scaling in (("as they are", "none"), ("standardised", "standard"))
} | {
    "LMNN, one step": ("LMNN", {"grid": {"max_iter": [1]}}),
    "LMNN, at its optimum": ("LMNN", {"grid": {"max_iter": [500]}}),
    "PGDM, without ridge": ("PGDM", {"grid": {"diagonal": [False], "regularization": [1e-6]}}),
}


def rival(name: str) -> BaseEstimator:
    """One of the metrics that the paper compares with, or NCA, before any tuning."""
    return {
        "PGDM": baselines.PGDM(),
        "LMNN": baselines.LMNN(),
        "SMLsm": baselines.SMLsm(),
        "SMLsm, columns": baselines.SMLsm(rotate=False, tol=0.03),
        "SMLlp": baselines.SMLlp(n_components=20),
        "SMLlp, dominant": baselines.SMLlp(form="dominant", tol=0.01),
        "BoostMetric": baselines.BoostMetric(random_state=0),
        "NCA": baselines.ComponentsMetric(NeighborhoodComponentsAnalysis(random_state=0)),
    }[name]


def tuned_rival(
    name: str, grid: Mapping[str, list[Any]] | None = None, scaling: str = "standard"
) -> GridSearchCV:
    """3-NN under a rival's metric.

    ``scaling`` is "standard", "none", or "tuned": the one of the two that errs less.
    """
    scaler = "passthrough" if scaling == "none" else StandardScaler()
    steps = [("scale", scaler), ("metric", rival(name)), ("knn", KNeighborsClassifier(K))]
    tuned = {f"metric__{key}": values for key, values in (grid or GRIDS[name]).items()}
    if scaling == "tuned":
        tuned["scale"] = ["passthrough", StandardScaler()]
    return GridSearchCV(Pipeline(steps), tuned, cv=StratifiedKFold(3, shuffle=True, random_state=0))


class TunedOnSome(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A search on some of the rows, then one fit of the best on all."""

    def __init__(self, search: GridSearchCV, rows: int) -> None:
        self.search = search
        self.rows = rows

    def fit(self, X: Any, y: Any) -> TunedOnSome:
        some = np.arange(len(y))
        if len(y) > self.rows:
            some, _ = train_test_split(some, train_size=self.rows, stratify=y, random_state=0)
        search = clone(self.search).set_params(refit=False).fit(X[some], y[some])
        self.best_params_ = search.best_params_
        best = clone(self.search.estimator).set_params(**search.best_params_)
        self.best_estimator_ = best.fit(X, y)
        self.classes_ = best.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.best_estimator_.predict(X)


def nearest(scaling: str, k: int = K) -> BaseEstimator:
    near = KNeighborsClassifier(k)
    return near if scaling == "none" else make_pipeline(StandardScaler(), near)


def screened(model: BaseEstimator) -> Pipeline:
    """The pair screening alone, in front of a plain model."""
    return make_pipeline(ScreenedPairs(), StandardScaler(), model)


def l1_all_pairs() -> Pipeline:
    """All p(p+1)/2 products; C is one that suits the simulations, as tuning takes too long."""
    l1 = LogisticRegression(C=0.03, l1_ratio=1.0, solver="liblinear")
    return make_pipeline(
        StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), l1
    )


def lightgbm(class_weight: str | None = None) -> BaseEstimator:
    """The defaults, made repeatable."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        class_weight=class_weight, n_jobs=1, random_state=0, deterministic=True,
        force_row_wise=True, verbose=-1,
    )  # fmt: skip


def _rival(name: str, settings: Settings) -> BaseEstimator:
    search = tuned_rival(name, settings["grid"], settings["scaling"])
    return TunedOnSome(search, settings["tuning_rows"]) if "tuning_rows" in settings else search


def _paper_sdist(settings: Settings) -> PaperSDist:
    return PaperSDist(**settings)


#: Settings to a model.
Builder = Callable[[Settings], BaseEstimator]

METHODS: dict[str, Builder] = {
    "kNN": lambda settings: nearest(settings["scaling"]),
    "kNN, standardised": lambda settings: nearest("standard"),
    "kNN, as they are": lambda settings: nearest("none"),
    "1-NN": lambda settings: nearest("standard", 1),
    **{name: partial(_rival, name) for name in GRIDS},
    **{method: partial(_rival, name) for method, (name, _) in APART.items()},
    "sDist": _paper_sdist,
    "sDist, to the letter": _paper_sdist,
    "sDist, defaults": lambda settings: SDistClassifier(random_state=0),
    "sDist, tuned": lambda settings: SDistClassifierCV(random_state=0),
    "screening + logistic": lambda settings: screened(LogisticRegression(max_iter=2000)),
    "screening + 10-NN": lambda settings: screened(KNeighborsClassifier(10)),
    "sDist without screening": lambda settings: SDistClassifier(screen_pairs=0, random_state=0),
    "L1 logistic, all pairs": lambda settings: l1_all_pairs(),
    "LightGBM": lambda settings: lightgbm(),
}


def default_settings(method: str) -> dict[str, Any]:
    """What a method's result depends on, where a study does not say otherwise."""
    if method in GRIDS:
        return {"grid": GRIDS[method], "scaling": "standard"}
    if method in APART:
        name, changed = APART[method]
        grid = changed.get("grid", {})
        return default_settings(name) | changed | {"grid": GRIDS[name] | grid}
    if method == "sDist, to the letter":
        own = {"margin_neighbors": TO_THE_LETTER["n_neighbors"]}
        return {"parameters": TO_THE_LETTER, "max_iter": 500} | own
    if method.startswith("sDist") and METHODS[method] is _paper_sdist:
        own = {"margin_neighbors": REFINED["n_neighbors"]}
        return {"parameters": REFINED, "max_iter": 2000} | own
    if method.startswith("sDist"):
        return {"parameters": _all_parameters(METHODS[method]({}))}
    return {"scaling": "none"} if method == "kNN" else {}


def _all_parameters(model: BaseEstimator) -> dict[str, str]:
    """The defaults too: where they change, so has the method."""
    return {name: repr(value) for name, value in sorted(model.get_params().items())}


def build(method: str, settings: Settings) -> BaseEstimator:
    return METHODS[method](settings)
