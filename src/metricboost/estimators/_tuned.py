"""``SDistClassifierCV``: a classifier whose parameters are chosen by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
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

#: The default of ``param_grid``.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {"max_degree": [1, 2], "clip": [1.5, 3.0]}

#: The attributes that a search sets, besides those that it knows before the search.
FOUND = (
    "feature_names_in_", "model_", "_parameters", "_estimators", "cv_results_", "best_index_",
    "best_params_", "best_score_", "n_splits_",
)  # fmt: skip


@declared
class SDistClassifierCV(
    PredictingMixin,
    SavingMixin,
    EmbeddingMixin,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """:class:`SDistClassifier` with its parameters chosen by cross-validation.

    Each configuration of ``param_grid`` is fitted once per fold of ``cv``. The step at which a path
    is cut (the paper's lambda_C and several fixed steps), the number of variables, the share of the
    plain distance and the readout do not need fits of their own: a few dozen variants of each fit
    are scored. The rows that a fold leaves out are not used for scaling, screening or boosting in
    this fold. The final model averages the metrics of the folds of a configuration, so nothing is
    fitted again after the search.

    Predictions average the log probabilities of the best model and of up to ``n_blended - 1`` other
    models: the one that ``estimator`` would choose without a search, if its configuration is in the
    grid, and models whose scores are within one standard error of the best. ``metric_`` and the
    explanations are those of the best model. With ``n_blended=1`` the best model predicts alone.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Blend
        The models whose log probabilities are averaged, the best one first.
    best_estimator_ : SDistClassifier
        A classifier with the best model.
    estimators_ : list of SDistClassifier
        A classifier for each of the models, ``best_estimator_`` first.
    best_params_ : dict
        The parameters of the best configuration, its variant (``start_share``, ``recurrences``,
        ``size``, ``steps`` and ``penalty``) and its ``readout``.
    best_score_ : float
        The mean over the folds of the score of the best model. The score is optimistic for small
        tables, because it is the best of hundreds of scores, and because the probabilities are
        calibrated on the same rows. Pass the whole search to ``cross_val_score`` for an unbiased
        score.
    best_index_ : int
        The index of the best model in ``cv_results_``.
    cv_results_ : dict of arrays
        The scores, as in the searches of scikit-learn. There is one entry for each configuration,
        variant and readout.
    n_splits_ : int
        The number of folds.
    classes_, class_count_, n_features_in_, feature_names_in_
        As in :class:`SDistClassifier`.

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
        The estimator whose parameters are searched; None means ``SDistClassifier()``. Parameters
        that are not in ``param_grid`` have the values of this estimator. If ``classifier``,
        ``n_neighbors_predict``, ``start_share`` or ``prune`` is "auto", the search chooses the
        value (for ``classifier`` among all readouts but "knn"); any other value is kept.
        ``n_averaged`` is ignored, because the fits of the folds of ``cv`` are averaged.
        """,
    )
    param_grid: Any = parameter(
        None,
        "dict or list of dict",
        [None, dict, list],
        """
        The values to try for parameters of the fits, as in ``GridSearchCV`` of scikit-learn. None
        means ``{"max_degree": [1, 2], "clip": [1.5, 3.0]}``. The paper searches its rho, which is
        ``{"n_nonzero": [0.05, 0.1, 0.2]}``.
        """,
    )
    n_iter: int | None = parameter(
        None,
        "int",
        [None, positive_integer()],
        """
        The number of configurations that are drawn at random from ``param_grid`` and tried. None
        tries all configurations.
        """,
    )
    cv: Any = parameter(
        5,
        "int, splitter or iterable",
        ["cv_object"],
        """
        The folds, at least 2. An int is a number of stratified folds. None means 5. A splitter or
        an iterable of (kept rows, left out rows) is used as in scikit-learn. For a splitter that
        needs groups, pass ``list(splitter.split(X, y, groups))``.
        """,
    )
    scoring: Any = parameter(
        "brier",
        '"brier", "error", "loss", str or callable',
        [str, callable],
        """
        The score by which candidates are compared. "brier" is the Brier score, summed over the
        classes; for small tables it distinguishes models better than the share of errors. "error"
        is the share of errors and "loss" is the log loss. These three are negated, so that larger
        scores are better. Any other value is the name of a scorer of scikit-learn, such as
        "roc_auc", or a callable ``scoring(estimator, X, y)``. The predictions of ``estimator`` are
        known, so a callable does not receive the columns of X. The rows are weighted, except if a
        callable is not a scorer of scikit-learn.
        """,
    )
    one_standard_error: bool = parameter(
        False,
        "bool",
        ["boolean"],
        """
        Whether the metric with the fewest variables whose score is within one standard error of
        the best score is chosen. This model then predicts alone, without a blend.
        """,
    )
    n_blended: int = parameter(
        6,
        "int",
        [positive_integer()],
        """
        The largest number of models whose log probabilities are averaged: the best, the one that
        ``estimator`` would choose without a search, and others. Another model is used if its score
        is within one standard error of the best score, and if it is the best of its kind: of
        the candidates with the same configuration, the same type of readout, and no, a partial or
        the full share of the plain distance.
        """,
    )
    refit: bool = parameter(
        True,
        "bool",
        ["boolean"],
        """
        Whether ``model_``, ``best_estimator_`` and ``estimators_`` are created. With False the
        search only has scores and cannot predict.
        """,
    )
    random_state: Any = parameter(
        None,
        "int, RandomState instance or None",
        ["random_state"],
        """
        The seed of the fits and of the draw of ``n_iter`` configurations. None means
        ``random_state`` of the estimator.
        """,
    )
    n_jobs: int | None = parameter_of(
        SDistClassifier,
        "n_jobs",
        """
        The number of threads in which the fits of all folds and configurations run, and the choices
        after them. Their values and limits are those of :class:`SDistClassifier`. ``n_jobs`` of the
        estimator is ignored.
        """,
    )
    verbose: int = parameter_of(SDistClassifier, "verbose")
    checkpoint: str | os.PathLike[str] | None = parameter_of(
        SDistClassifier,
        "checkpoint",
        """
        A directory in which the fits store their progress, as in :class:`SDistClassifier`; None
        stores nothing. ``checkpoint`` of the estimator is ignored.
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
        """Fit and score all candidates, and create the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Rows with the weight 0 are left out.

        Returns
        -------
        self
        """
        for name in FOUND:  # a search that fails leaves nothing of an earlier one
            self.__dict__.pop(name, None)
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
        readings = self._readings(base)  # before the fits, so that a wrong name fails at once
        configurations = self._configurations(random)
        options = [_configured(base, params)._options(pool) for params in configurations]
        run = Run(base.engine, self.n_jobs, self.checkpoint, bool(self.verbose))
        pairs = list(zip(configurations, options))
        tried = search(pool, pairs, splits, readings, run, base._names())
        names = column_names(base, self.n_features_in_)
        chosen = self._choose(tried, base.get_params(deep=False))
        first, best = chosen[0]
        fit = Fitted(given.classes, tried[first].crossfit, best.candidate.gain)
        warn_about_fit(fit, pool, tried[first].options, names, base._was_given("n_nonzero"))
        if self.refit:
            self.model_ = blended(tried, chosen, pool, given.classes, base._names())
            made = [_configured(base, tried[i].params) for i, _ in chosen]
            self._parameters = [model.get_params(deep=False) for model in made]
            self._estimators = self._made_estimators()
        return self

    def _base(self) -> SDistClassifier:
        """The estimator whose parameters are searched."""
        if hasattr(self.estimator, "client"):
            raise TypeError(
                f"estimator is a {type(self.estimator).__name__} of metricboost.dask, which this "
                "search cannot fit. Use metricboost.dask.SDistClassifierCV for Dask collections, "
                "or metricboost.SDistClassifier as the estimator for a table in memory."
            )
        return SDistClassifier() if self.estimator is None else clone(self.estimator)

    def _given(self, base: SDistClassifier, X: Any, y: Any, sample_weight: Any) -> Given:
        """The checked table and labels, and the weights of the rows."""
        return base._given(X, y, sample_weight)

    def _remember(self, base: SDistClassifier, given: Given) -> None:
        """Set the attributes that are known before the search."""
        self.classes_, self.class_count_ = given.classes, given.source.class_count
        self.n_features_in_ = base.n_features_in_
        if hasattr(base, "feature_names_in_"):
            self.feature_names_in_ = base.feature_names_in_

    def _readings(self, base: SDistClassifier) -> Searched:
        """The readouts that are scored, and the score."""
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
                f"param_grid has {', '.join(sorted(wrong))}: param_grid may only contain "
                f"parameters of the fits, which are {', '.join(of_fits)}. classifier, "
                "n_neighbors_predict, prune and start_share are searched without an entry in "
                "param_grid; set all other parameters in estimator."
            )
        all_of_them = list(ParameterGrid(grid))
        if not all_of_them:
            raise ValueError(
                "param_grid is empty: give at least one configuration, or None for the default "
                "grid."
            )
        if self.n_iter is None or self.n_iter >= len(all_of_them):
            return all_of_them
        chosen = random.choice(len(all_of_them), self.n_iter, replace=False)
        return [all_of_them[i] for i in sorted(chosen)]

    def _choose(self, tried: list[Tried], usual: dict[str, Any]) -> list[tuple[int, Scored]]:
        """Set the results of the search. Return the chosen models and their configurations."""
        self.cv_results_ = results(tried)
        mean = self.cv_results_["mean_test_score"]
        if np.isnan(mean).all():
            raise ValueError(
                f"scoring={self.scoring} is undefined in a fold for every candidate, probably "
                "because the fold lacks a class: use fewer folds, so that each fold leaves out "
                "rows of every class, or another score."
            )
        simplest = bool(self.one_standard_error)
        self.best_index_ = best_of(tried, mean, simplest)
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        return to_make(tried, self.best_index_, int(self.n_blended), simplest, usual)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_params_")

    def _ready(self) -> Blend:
        check_is_fitted(self)
        if not hasattr(self, "model_"):
            raise AttributeError(
                "The search was fitted with refit=False, so it has no model to predict with. Set "
                "refit=True and fit again."
            )
        model: Blend = self.model_
        return model

    def _parameters_of_best(self) -> dict[str, Any]:
        self._ready()
        return dict(self._parameters[0])

    @property
    def estimators_(self) -> list[SDistClassifier]:
        self._ready()
        if "_estimators" not in vars(self):  # after unpickling
            self._estimators = self._made_estimators()
        return self._estimators

    def _made_estimators(self) -> list[SDistClassifier]:
        pairs = zip(self._ready().models, self._parameters)
        return [self._classifier(model, given) for model, given in pairs]

    @property
    def best_estimator_(self) -> SDistClassifier:
        return self.estimators_[0]

    def __getstate__(self) -> dict[str, Any]:
        """Without the estimators, which are made again from the models."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_estimators"}

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
        """Restore a search from the content of a model file.

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
            raise ModelFileError(
                f"The model file is damaged: the file of a {cls.__name__} must hold a blend of "
                "models."
            )
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
        made._estimators = made._made_estimators()
        return made


@dataclass(frozen=True)
class Fitted:
    """The results of the best configuration on which the warnings depend."""

    classes: npt.NDArray[Any]
    crossfit: CrossFit
    gain: float


def _configured(base: SDistClassifier, params: Mapping[str, Any]) -> SDistClassifier:
    """The estimator with the parameters of a configuration. The parameters are checked."""
    one: SDistClassifier = clone(base).set_params(**params)
    one._validate_params()
    return one
