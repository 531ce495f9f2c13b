"""``SDistClassifierCV``: the classifier with everything chosen by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, _fit_context, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._threads import one_blas_thread
from .._typing import Data
from ..engines import Engine
from ..errors import ModelFileError
from ..inputs import check_table, column_names
from ..model import Blend, Model
from ..storage import Saved
from ..training.fits import CrossFit
from ..training.given_folds import folds_of
from ..training.run import Run
from ..training.scoring import FoldScorer
from ..training.searching import Searched, Tried, best_of, blended, results, search, to_make
from ..training.tuning import Limits, Scored
from ._classifier import SDistClassifier
from ._embedding import EmbeddingMixin
from ._parameters import declared, names_of, parameter, parameter_of, positive_integer
from ._predicting import PredictingMixin
from ._saving import SavingMixin, estimator_of, parameters_of_the_model, restore_features
from ._sdist import Given, check_seed
from ._warnings import warn_about_fit

#: What the default search tries: the degree of the terms, and where values are clipped.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {"max_degree": [1, 2], "clip": [1.5, 3.0]}


@declared
class SDistClassifierCV(
    PredictingMixin,
    SavingMixin,
    EmbeddingMixin,
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """:class:`SDistClassifier` with its parameters chosen by cross-validation.

    Only the parameters of ``param_grid`` need fits. Where a path stops (the paper's lambda_C and a
    few more places), how many variables stay, the share of the plain distance and the readout are
    all read off the same fits, a few dozen variants of each. The rows left out play no part in
    scaling, screening or selection. A model averages the metrics of a configuration's folds, so
    nothing is fitted again.

    Predictions average the log odds of the best model and of up to ``n_blended - 1`` others that
    the folds cannot tell from it. ``metric_`` and everything that explains is the best model's.
    With ``n_blended=1`` the best model predicts alone.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Blend
        The models whose log odds are averaged, the best one first.
    best_estimator_ : SDistClassifier
        A classifier with the best model.
    estimators_ : list of SDistClassifier
        A classifier with each of the models, ``best_estimator_`` first.
    best_params_ : dict
        The parameters of the best configuration, and what was read off its fits: ``start_share``,
        ``recurrences``, ``size``, ``steps``, ``penalty`` and ``readout``.
    best_score_ : float
        The best model's mean score of the folds. It is the best of hundreds, calibrated on the rows
        that it is scored on, so it is optimistic if rows are few. For an honest figure put the
        whole search into ``cross_val_score``.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays
        As in scikit-learn's searches, one entry per configuration, variant and readout.
    n_splits_ : int
    classes_, class_count_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from metricboost import SDistClassifierCV
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=600, n_features=20, informative=2, random_state=0)
    >>> search = SDistClassifierCV(param_grid={"max_degree": [1, 2]}, cv=3, random_state=0)
    >>> round(search.fit(X[:300], y[:300]).score(X[300:], y[300:]), 2)
    0.83
    """

    estimator: SDistClassifier | None = parameter(
        None,
        "SDistClassifier",
        [None, SDistClassifier],
        """
        Holds the parameters that are not searched; ``SDistClassifier()`` by default. If its
        ``classifier``, ``n_neighbors_predict``, ``start_share`` or ``prune`` is not "auto", the
        search keeps to it ("auto" tries all readouts but "knn"). ``n_averaged`` plays no part: the
        folds of ``cv`` take its place.
        """,
    )
    param_grid: Any = parameter(
        None,
        "dict or list of dict",
        [None, dict, list],
        """
        Parameters of the fits with the values to try; by default
        ``{"max_degree": [1, 2], "clip": [1.5, 3.0]}``. The paper's rho is
        ``{"n_nonzero": [0.05, 0.1, 0.2]}``.
        """,
    )
    n_iter: int | None = parameter(
        None,
        "int",
        [None, positive_integer()],
        """
        Try this number of configurations of the grid, drawn at random; None tries all.
        """,
    )
    cv: Any = parameter(
        5,
        "int, splitter or iterable",
        ["cv_object"],
        """
        The folds, at least 2. With groups, give ``list(splitter.split(X, y, groups))``.
        """,
    )
    scoring: Any = parameter(
        "brier",
        '"brier", "error", "loss", str or callable',
        [str, callable],
        """
        What is best: the Brier score (which says more than errors do if rows are few), the share
        of errors, the log loss, or any scorer of scikit-learn, such as "roc_auc". Larger scores are
        better, so the first three are negated; the Brier score is summed over the classes. Rows
        count by their weights, except for callables that are no scorers of scikit-learn. Callables
        get the predictions of an estimator, but not X.
        """,
    )
    one_standard_error: bool = parameter(
        False,
        "bool",
        ["boolean"],
        """
        Take the metric with the fewest variables that is within one standard error of the best,
        and predict by it alone.
        """,
    )
    n_blended: int = parameter(
        6,
        "int",
        [positive_integer()],
        """
        The most models to blend. Each is the best of its kind (configuration, sort of readout,
        with all columns or without) and within one standard error of the best.
        """,
    )
    refit: bool = parameter(
        True,
        "bool",
        ["boolean"],
        """
        Make ``model_``, ``best_estimator_`` and ``estimators_``.
        """,
    )
    random_state: Any = parameter(
        None,
        "int, RandomState instance or None",
        ["random_state"],
        """
        Seed of the fits and of ``n_iter``; the estimator's if None.
        """,
    )
    n_jobs: int | None = parameter_of(
        SDistClassifier,
        "n_jobs",
        """
        Processes for folds and configurations.
        """,
    )
    verbose: int = parameter_of(SDistClassifier, "verbose")
    checkpoint: str | os.PathLike[str] | None = parameter_of(
        SDistClassifier,
        "checkpoint",
        """
        A directory for what the fits have learned, as in :class:`SDistClassifier`; that of the
        estimator is not used.
        """,
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = SDistClassifier() if self.estimator is None else self.estimator
        tags.input_tags.sparse = base.missing != "impute"
        tags.input_tags.allow_nan = base.missing == "impute"
        return tags

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDistClassifierCV:
        """Search, and make the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        base = self._base()
        random_state = base.random_state if self.random_state is None else self.random_state
        check_seed(self.checkpoint, random_state)
        random = check_random_state(random_state)
        base.set_params(random_state=int(random.randint(2**31 - 1)))
        base._validate_params()
        given = self._given(base, X, y, sample_weight)
        self._remember(base, given)
        pool = base._pool(given)
        splits = folds_of(self.cv, pool, given.y, given.classes)
        self.n_splits_ = len(splits)
        readings = self._readings(base)  # before the fits: a wrong name costs no time
        configurations = self._configurations(random)
        options = [_configured(base, params)._options(pool) for params in configurations]
        run = Run(base.engine, self.n_jobs, self.checkpoint, bool(self.verbose))
        pairs = list(zip(configurations, options))
        tried = search(pool, pairs, splits, readings, run, base._names())
        names = column_names(base, self.n_features_in_)
        chosen = self._choose(tried)
        first, best = chosen[0]
        fit = Fitted(given.classes, tried[first].crossfit, best.candidate.gain)
        warn_about_fit(fit, pool, tried[first].options, names, base._was_given("n_nonzero"))
        if self.refit:
            self.model_ = blended(tried, chosen, pool, given.classes, base._names())
            made = [_configured(base, tried[i].params) for i, _ in chosen]
            self._parameters = [model.get_params(deep=False) for model in made]
        return self

    def _base(self) -> SDistClassifier:
        """The estimator whose parameters are searched."""
        if hasattr(self.estimator, "client"):
            raise TypeError(
                "The estimator is one of metricboost.dask: use metricboost.dask.SDistClassifierCV, "
                "or an estimator of metricboost for a table in memory."
            )
        return SDistClassifier() if self.estimator is None else clone(self.estimator)

    def _given(self, base: SDistClassifier, X: Any, y: Any, sample_weight: Any) -> Given:
        """The data, checked and weighted."""
        return base._given(X, y, sample_weight)

    def _remember(self, base: SDistClassifier, given: Given) -> None:
        """What is known before the search. What an earlier fit left is forgotten."""
        for name in ("feature_names_in_", "model_", "_parameters"):
            self.__dict__.pop(name, None)
        self.classes_, self.class_count_ = given.classes, given.source.class_count
        self.n_features_in_ = base.n_features_in_
        if hasattr(base, "feature_names_in_"):
            self.feature_names_in_ = base.feature_names_in_

    def _readings(self, base: SDistClassifier) -> Searched:
        """What is read off the fits, and how it is scored."""
        k = base.n_neighbors_predict
        return Searched(
            base.classifier,
            None if k == "auto" else int(k),
            Limits(base.start_share, base.prune),
            FoldScorer(self.scoring, self.classes_),
        )

    def _configurations(self, random: np.random.RandomState) -> list[dict[str, Any]]:
        grid = DEFAULT_GRID if self.param_grid is None else self.param_grid
        of_fits = names_of(SDistClassifier, of_a_fit=True)
        wrong = {name for part in ParameterGrid(grid) for name in part} - set(of_fits)
        if wrong:
            raise ValueError(
                f"param_grid has {', '.join(sorted(wrong))}: only parameters of the fits are "
                f"searched there ({', '.join(of_fits)}). Readouts, pruning and start_share are "
                "searched anyway; anything else is set in estimator."
            )
        all_of_them = list(ParameterGrid(grid))
        if not all_of_them:
            raise ValueError("param_grid is empty: give at least one configuration.")
        if self.n_iter is None or self.n_iter >= len(all_of_them):
            return all_of_them
        chosen = random.choice(len(all_of_them), self.n_iter, replace=False)
        return [all_of_them[i] for i in sorted(chosen)]

    def _choose(self, tried: list[Tried]) -> list[tuple[int, Scored]]:
        """Set the results and what is best; the models to make, with their configurations."""
        self.cv_results_ = results(tried)
        mean = self.cv_results_["mean_test_score"]
        if np.isnan(mean).all():
            raise ValueError(
                f"scoring={self.scoring} is undefined in a fold for every candidate: use fewer "
                "folds, so that each has rows of every class, or another score."
            )
        simplest = bool(self.one_standard_error)
        self.best_index_ = best_of(tried, mean, simplest)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        return to_make(tried, self.best_index_, int(self.n_blended), simplest)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_params_")

    def _ready(self) -> Blend:
        check_is_fitted(self)
        if not hasattr(self, "model_"):
            raise AttributeError("refit=False: there is no best_estimator_ to use.")
        model: Blend = self.model_
        return model

    def _parameters_of_best(self) -> dict[str, Any]:
        self._ready()
        return dict(self._parameters[0])

    @property
    def estimators_(self) -> list[SDistClassifier]:
        pairs = zip(self._ready().models, self._parameters)
        return [self._classifier(model, parameters) for model, parameters in pairs]

    @property
    def best_estimator_(self) -> SDistClassifier:
        return self._classifier(self._ready().best, self._parameters[0])

    def _classifier(self, model: Model, parameters: Mapping[str, Any]) -> SDistClassifier:
        made = SDistClassifier(**parameters)
        made.model_, made.n_features_in_ = model, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        return made

    def _checked(self, X: Any) -> Data:
        self._ready()
        return check_table(self, X, reset=False, missing=self._parameters[0]["missing"])

    def _engine(self) -> Engine:
        return self.best_estimator_._engine()

    def _saved_attributes(self) -> dict[str, Any]:
        parts = [SDistClassifier(**parameters) for parameters in self._parameters]
        return {
            "best_score": self.best_score_,
            "best_params": self.best_params_,
            "n_splits": self.n_splits_,
            "parts": [parameters_of_the_model(part) for part in parts],
        }

    @classmethod
    def from_saved(cls, saved: Saved) -> SDistClassifierCV:
        """The search that was saved.

        Parameters
        ----------
        saved : metricboost.storage.Saved

        Returns
        -------
        SDistClassifierCV
        """
        made = estimator_of(cls, saved.parameters)
        model = saved.model
        if not isinstance(model, Blend):
            raise ModelFileError(f"The file of a {cls.__name__} must hold a blend of models.")
        made.model_ = model
        made.classes_, made.class_count_ = model.classes, model.best.class_count
        restore_features(made, saved)
        parts = saved.records("parts", len(model.models))
        estimators = [estimator_of(SDistClassifier, part) for part in parts]
        made._parameters = [estimator.get_params(deep=False) for estimator in estimators]
        made.best_score_, made.best_params_ = (
            saved.number("best_score"),
            saved.record("best_params"),
        )
        made.n_splits_ = saved.integer("n_splits", 1)
        return made


@dataclass(frozen=True)
class Fitted:
    """What warnings need to know of the best configuration."""

    classes: npt.NDArray[Any]
    crossfit: CrossFit
    gain: float


def _configured(base: SDistClassifier, params: Mapping[str, Any]) -> SDistClassifier:
    """The estimator with the parameters of a configuration, checked."""
    one: SDistClassifier = clone(base).set_params(**params)
    one._validate_params()
    return one
