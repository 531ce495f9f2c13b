"""The intermediate results of a fit, for tests: the pool, the options, the fits and the choice.

A fitted estimator only has its model. The functions here repeat the fit from the parameters of an
estimator, with the public functions of ``training``. The seed is the same, so the intermediate
results are those of the estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from metricboost import SDistClassifier, SparseMetric
from metricboost.inputs import check_weights
from metricboost.model.readouts import Readout, readouts
from metricboost.sources import InMemory
from metricboost.training.choosing import Candidate, candidates, chosen
from metricboost.training.fits import CrossFit
from metricboost.training.fitting import Choices
from metricboost.training.folds import cross_fit
from metricboost.training.given_folds import folds_of
from metricboost.training.options import LearningOptions, learning_options
from metricboost.training.pool import Pool, RowLimits, pooled
from metricboost.training.run import Run
from metricboost.training.scoring import FoldScorer
from metricboost.training.searching import Searched, Tried, search
from metricboost.training.tuning import Limits

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Prepared:
    """The arguments that an estimator passes to ``fit_model``."""

    pool: Pool
    options: LearningOptions
    choices: Choices
    classes: Array


def new_seed(random_state: Any) -> int:
    """The seed of the fit of an estimator. ``random_state`` must be a number."""
    return int(np.random.RandomState(random_state).randint(2**31 - 1))


def prepared(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
    """The pool and the options of a fit of ``model`` to a table of numbers."""
    X, (classes, labels) = np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)
    rows, weight = check_weights(sample_weight, model.class_weight, X, np.asarray(y))
    source = InMemory(X, labels[rows], weight, rows if len(rows) < len(X) else None)
    limits = RowLimits.of(model.max_rows, model.max_references, model.n_averaged, source, None)
    seed = new_seed(model.random_state)
    pool = pooled(
        source, limits, model.missing == "impute", seed if limits.need_seed(source) else 0
    )
    options = learning_options(model.get_params(deep=False), pool, seed)
    choices = Choices(model.n_averaged, options.prune, model.start_share, readouts_of(model))
    return Prepared(pool, options, choices, classes)


def readouts_of(model: Any) -> list[Readout] | None:
    """The readouts from which an estimator chooses."""
    if not isinstance(model, SDistClassifier):
        return None
    k = model.n_neighbors_predict
    return readouts(model.classifier, None if k == "auto" else k)


def cross_fitted(model: Any, X: Any, y: Any, sample_weight: Any = None) -> CrossFit:
    """The fits that ``model`` averages."""
    made = prepared(model, X, y, sample_weight)
    return cross_fit(made.pool, made.options, model.n_averaged, Run(model.engine))


def choice(model: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[CrossFit, Candidate]:
    """The fits of a classifier, and the candidate that the classifier chooses."""
    choices = prepared(model, X, y, sample_weight).choices
    made = cross_fitted(model, X, y, sample_weight)
    tried = choices.variants(len(made.fits))
    return made, chosen(made, candidates(made, tried, choices.readouts or [])).best


def searched(model: Any, X: Any, y: Any) -> list[Tried]:
    """The configurations of a search, with their fits and scored candidates."""
    base, random = clone(model.estimator), np.random.RandomState(model.random_state)
    base.set_params(random_state=int(random.randint(2**31 - 1)))
    k = base.n_neighbors_predict
    reading = Searched(
        base.classifier, None if k == "auto" else k, Limits(base.start_share, base.prune),
        FoldScorer(model.scoring, np.unique(y)),
    )  # fmt: skip
    pool = prepared(base, X, y).pool
    configurations = [
        (params, prepared(clone(base).set_params(**params), X, y).options)
        for params in ParameterGrid(model.param_grid)
    ]
    splits = folds_of(model.cv, pool, np.asarray(y), np.unique(y))
    return search(pool, configurations, splits, reading, Run(base.engine))


#: Three short fits, for tests that do not depend on the defaults.
SHORT = {
    "max_iter": 8, "n_averaged": 3, "learning_rate": 0.1, "oob_gate": 1.5, "n_nonzero": 4,
    "clip": 3.0, "random_state": 0,
}  # fmt: skip


def short(cls: Any = SDistClassifier, **params: Any) -> Any:
    """An estimator whose fits are short."""
    return cls(**{**SHORT, **params})


def product_table() -> tuple[Array, Array]:
    """The classes depend on the product of columns 1 and 4 of six, and a little on column 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [1, 2, 3, 4, 5, 6] + 7
    signal = (X[:, 1] - 7) * (X[:, 4] - 7) / 10 + (X[:, 2] - 7) / 6
    return X, (signal + 0.3 * rng.normal(size=150) > 0).astype(int)


def used(metric: Any) -> set[int]:
    """The columns that a metric uses."""
    return {column for term in metric.columns for column in term}


def total_variance(rows: Array) -> float:
    """The total variance of embedded rows."""
    return float(rows.var(axis=0).sum())


def squared(metric: Any, X: Array, Y: Array) -> Array:
    """The squared distances between row i of X and row i of Y."""
    result: Array = metric.pair_distance(X, Y) ** 2
    return result


def plain(X: Array, fresh: Array, clip: float | None) -> Array:
    """The rows ``fresh``, standardised with the rows of X and clipped."""
    standard = (fresh - X.mean(axis=0)) / X.std(axis=0)
    return standard if clip is None else np.clip(standard, -clip, clip)


#: A single fit from all rows, so that the path of the fit belongs to the metric.
ONE_FIT = {
    "n_averaged": 1, "clip": None, "learning_rate": 0.05, "oob_gate": 2.25, "n_nonzero": 6,
    "max_iter": 25, "random_state": 0,
}  # fmt: skip


def one_fit(cls: Any = SDistClassifier, **params: Any) -> Any:
    """An estimator with a single fit, from all rows."""
    return cls(**{**ONE_FIT, **params})


def as_learned(model: Any, train: tuple[Array, Array], steps: int | None = None) -> SparseMetric:
    """The metric of the single fit before it is scaled to a total variance of 1.

    Parameters
    ----------
    model : SDist
        An estimator with ``n_averaged=1``.
    train : tuple of (X, y)
    steps : int, optional
        If given, the result is the metric after this number of accepted steps, without pruning.
    """
    (fit,) = cross_fitted(model, *train).fits
    return fit.metric(fit.factor if steps is None else fit.path.factor(steps))


def variables(model: Any) -> set[int]:
    """The columns that a fitted estimator uses."""
    return set(np.flatnonzero(model.feature_importances_).tolist())


def distances_agree(a: Any, b: Any, X: Array, **tolerance: float) -> None:
    """Assert that two metrics give the same distances. The embeddings may differ by a rotation."""
    half = len(X) // 2
    pairs = X[:half], X[half : 2 * half]
    assert_allclose(a.pair_distance(*pairs), b.pair_distance(*pairs), **tolerance)
