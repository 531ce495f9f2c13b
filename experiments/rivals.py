"""Other methods that metricboost is compared with, as scikit-learn classifiers.

Columns are standardised inside (LightGBM needs no scaling). Parameters are tuned by
cross-validation within the training rows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import SelectFromModel, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC

from metricboost import baselines
from metricboost.inspection import ScreenedPairs

from .runner import NotAvailableError

#: The interpreter of an environment with metric-learn 0.7.0 and scikit-learn 1.5.
RIVALS_PYTHON = "METRICBOOST_RIVALS_PYTHON"


#: The neighbours of the final classifier, as in the paper.
K = 3
#: The tuned parameters of the paper's rivals. They are chosen by the error of 3-NN in three folds.
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


def folds(count: int = 5) -> StratifiedKFold:
    return StratifiedKFold(count, shuffle=True, random_state=0)


def nearest(scaling: str = "standard", k: int = K) -> BaseEstimator:
    near = KNeighborsClassifier(k)
    return near if scaling == "none" else make_pipeline(StandardScaler(), near)


def nearest_nan_euclidean() -> Pipeline:
    """Distances over the columns in which neither row has a missing value."""
    return make_pipeline(StandardScaler(), KNeighborsClassifier(3, metric="nan_euclidean"))


def imputed(model: BaseEstimator) -> Pipeline:
    return make_pipeline(SimpleImputer(), model)


class RBFSVM(ClassifierMixin, BaseEstimator):
    """A support vector machine with tuned C and width. Widths are multiples of 1 / p."""

    def __init__(
        self,
        costs: tuple[float, ...] = (1, 10, 100),
        widths: tuple[float, ...] = (0.25, 1, 4),
        scoring: str = "accuracy",
        class_weight: str | None = None,
    ) -> None:
        self.costs = costs
        self.widths = widths
        self.scoring = scoring
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any) -> RBFSVM:
        grid = {"C": self.costs, "gamma": [width / X.shape[1] for width in self.widths]}
        machine = SVC(class_weight=self.class_weight)
        search = GridSearchCV(machine, grid, scoring=self.scoring, cv=folds()).fit(X, y)
        self.classes_, self.best_params_ = search.classes_, search.best_params_
        self.best_estimator_ = search.best_estimator_
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        return self.best_estimator_.predict(X)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        return self.best_estimator_.decision_function(X)


def svm(**parameters: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), RBFSVM(**parameters))


def l1_logistic(class_weight: str | None = None) -> Pipeline:
    """C is chosen by the log loss, because the error hardly depends on C if a class is rare."""
    logistic = LogisticRegressionCV(
        Cs=[0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        l1_ratios=(1.0,),
        solver="liblinear",
        cv=folds(),
        scoring="neg_log_loss",
        class_weight=class_weight,
        intercept_scaling=10.0,  # liblinear shrinks the intercept, here negligibly
        random_state=0,
        use_legacy_attributes=False,
    )
    return make_pipeline(StandardScaler(), logistic)


class WidePCA(TransformerMixin, BaseEstimator):
    """The first principal components of wide tables. Other tables are not changed."""

    def __init__(self, wider_than: int = 200, n_components: int = 50) -> None:
        self.wider_than = wider_than
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> WidePCA:
        few = min(self.n_components, len(X))
        wide = X.shape[1] > self.wider_than
        self.pca_ = PCA(few, random_state=0).fit(X) if wide else None
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        return X if self.pca_ is None else self.pca_.transform(X)


class ForeignMetric(TransformerMixin, BaseEstimator):
    """A linear metric of metric-learn, learned by ``foreign.py`` in its own environment."""

    def __init__(self, kind: str, parameters: dict[str, Any], version: str = "0.7.0") -> None:
        self.kind = kind
        self.parameters = parameters
        self.version = version

    def fit(self, X: Any, y: Any) -> ForeignMetric:
        python = os.environ.get(RIVALS_PYTHON)
        if python is None:
            raise NotAvailableError(f"{self.kind}: {RIVALS_PYTHON} names no interpreter.")
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "training.npz", Path(folder) / "components.npz"
            np.savez(source, X=X, y=y)
            worker = Path(__file__).with_name("foreign.py")
            command = [python, worker, self.kind, json.dumps(self.parameters), source, target]
            _run(command)
            with np.load(target) as file:
                self.components_ = file["components"]
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        return X @ self.components_.T


def _run(command: list[Any]) -> None:
    """Run a worker, which inherits the limit of CPU seconds. A signal ends it at the limit."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        raise TimeoutError("the worker ran out of its CPU seconds")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])


def linear_metric(metric: BaseEstimator) -> Pipeline:
    """3-NN under a learned linear metric, without constant columns, after PCA of wide tables.

    With more than 200 columns the metric sees the first 50 principal components. On a split outside
    the study this lowered the errors of NCA, LMNN and LFDA (isolet1560, usps11k), and LMNN was
    faster.
    """
    return make_pipeline(
        VarianceThreshold(), StandardScaler(), WidePCA(), metric, KNeighborsClassifier(3)
    )


def nca() -> Pipeline:
    return linear_metric(NeighborhoodComponentsAnalysis(n_components=10, random_state=0))


def lmnn() -> Pipeline:
    return linear_metric(ForeignMetric("LMNN", {"n_neighbors": 3, "random_state": 0}))


def lfda() -> Pipeline:
    return linear_metric(ForeignMetric("LFDA", {}))


# --- linear classifiers


def l2_logistic() -> Pipeline:
    logistic = LogisticRegressionCV(
        Cs=[1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0], cv=folds(), scoring="neg_log_loss", max_iter=2000,
        tol=1e-3, use_legacy_attributes=False,
    )  # fmt: skip
    return make_pipeline(StandardScaler(), logistic)


def linear_svm() -> Pipeline:
    grid = {"C": [1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0]}
    machine = LinearSVC(dual="auto", random_state=0)
    return make_pipeline(StandardScaler(), GridSearchCV(machine, grid, cv=folds()))


def ridge() -> Pipeline:
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-2, 6, 17)))


# --- the metrics that the paper compares with


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


def tuned_rival(name: str, grid: Mapping[str, list[Any]], scaling: str) -> GridSearchCV:
    """3-NN under a rival's metric.

    ``scaling`` is "standard", "none", or "tuned", which chooses the one with the smaller error.
    """
    scaler = "passthrough" if scaling == "none" else StandardScaler()
    steps = [("scale", scaler), ("metric", rival(name)), ("knn", KNeighborsClassifier(K))]
    tuned: dict[str, list[Any]] = {f"metric__{key}": values for key, values in grid.items()}
    if scaling == "tuned":
        tuned["scale"] = ["passthrough", StandardScaler()]
    return GridSearchCV(Pipeline(steps), tuned, cv=folds(3))


class TunedOnSome(ClassifierMixin, BaseEstimator):
    """A search on some of the rows, and a fit of the best parameters on all rows."""

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


# --- pairs of columns, and trees


def screened(model: BaseEstimator) -> Pipeline:
    """The pair screening without a metric, followed by a plain model."""
    return make_pipeline(ScreenedPairs(), StandardScaler(), model)


def l1_all_pairs() -> Pipeline:
    """All p(p+1)/2 products. C suits the simulations, because tuning takes too long."""
    l1 = LogisticRegression(C=0.03, l1_ratio=1.0, solver="liblinear")
    return make_pipeline(
        StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), l1
    )


#: The tuned parameters of the trees, chosen by the error in five folds.
LIGHTGBM_GRID = {
    "num_leaves": [7, 31], "min_child_samples": [5, 20], "learning_rate": [0.03, 0.1],
    "n_estimators": [100, 300],
}  # fmt: skip
FOREST_GRID = {"max_features": ["sqrt", 0.3, 1.0], "min_samples_leaf": [1, 4]}


def forest(kind: type[BaseEstimator], tuned: bool = False) -> BaseEstimator:
    """500 trees: a ``RandomForestClassifier`` or ``ExtraTreesClassifier``."""
    model = kind(500, random_state=0)
    return GridSearchCV(model, FOREST_GRID, cv=folds()) if tuned else model


def tuned_lightgbm() -> BaseEstimator:
    return GridSearchCV(lightgbm(), LIGHTGBM_GRID, cv=folds())


def ranked_neighbors() -> GridSearchCV:
    """kNN on the columns that ExtraTrees find most important. Their number and k are tuned."""
    steps = [
        ("scale", StandardScaler()),
        ("rank", SelectFromModel(ExtraTreesClassifier(500, random_state=0), threshold=-np.inf)),
        ("knn", KNeighborsClassifier()),
    ]
    grid = {"rank__max_features": [5, 10, 20, 50], "knn__n_neighbors": [1, 3, 5, 10]}
    return GridSearchCV(Pipeline(steps, memory=None), grid, cv=folds(), error_score=0.0)


def lightgbm(class_weight: str | None = None) -> BaseEstimator:
    """LightGBM with its defaults and a fixed seed."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        class_weight=class_weight, n_jobs=1, random_state=0, deterministic=True,
        force_row_wise=True, verbose=-1,
    )  # fmt: skip
