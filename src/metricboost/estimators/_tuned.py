"""``SDistClassifierCV``: the classifier with everything chosen by cross-validation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import delayed, effective_n_jobs
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, _fit_context, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._processes import run_fits
from .._threads import one_blas_thread
from .._typing import Float, Index
from ..checkpoints import checkpoints_in, digest_of_table
from ..engines import is_torch
from ..selection.choosing import plain_score
from ..selection.crossfit import CrossFit, fold_tasks, over_folds, whole_of
from ..selection.tuning import (
    FINALISTS,
    MOST_KERNEL_ROWS,
    Limits,
    Scored,
    cheap_search,
    kernel_search,
    learn_timed,
    of_classifier,
    simplest_within_one_error,
    to_blend,
)
from ._classifier import SDistClassifier
from ._explaining import ExplainingMixin
from ._folds import folds_of
from ._progress import Counter
from ._rows import Table
from ._scoring import FoldScorer
from ._sdist import reference_rows, with_own_rows
from ._search import Configuration, Tasks, results
from ._validation import check_seed, column_names, refuse_far_rows
from ._warnings import warn_about_fit

#: What the default search tries: the degree of the terms, and how far out values may lie.
DEFAULT_GRID: Mapping[str, Sequence[Any]] = {"max_degree": [1, 2], "clip": [1.5, 3.0]}
#: The parameters that need fits of their own; everything else is read off the same fits.
NEED_FITS = (
    "max_iter", "n_neighbors", "n_nonzero", "learning_rate", "subsample", "max_features",
    "max_degree", "refresh_every", "oob_gate", "screen_pairs", "init", "standardize", "clip",
    "multiclass",
)  # fmt: skip


class SDistClassifierCV(ClassifierMixin, ExplainingMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """:class:`SDistClassifier` with its parameters chosen by cross-validation.

    Only the parameters of ``param_grid`` need fits. Where a path stops (the paper's lambda_C and a
    few more places), how many variables stay, the share of the plain distance and the readout are
    all read off the same fits, a few dozen variants of each. The rows left out play no part in
    scaling, screening or selection. A model averages the metrics of a configuration's folds, so
    nothing is fitted again.

    Predictions average the log odds of the best model and of up to ``n_blended - 1`` others that
    the folds cannot tell from it. ``metric_`` and all that explains is the best model's;
    ``n_blended=1`` predicts by it alone.

    Parameters
    ----------
    estimator : SDistClassifier, default=None
        Holds the parameters that are not searched; ``SDistClassifier()`` by default. Where its
        ``classifier``, ``n_neighbors_predict``, ``start_share`` or ``prune`` is not "auto", the
        search keeps to it ("auto" tries all readouts but "knn"). ``n_averaged`` plays no part: the
        folds of ``cv`` take its place.
    param_grid : dict or list of dict, default=None
        Parameters of the fits with the values to try; by default
        ``{"max_degree": [1, 2], "clip": [1.5, 3.0]}``. The paper's rho is
        ``{"n_nonzero": [0.05, 0.1, 0.2]}``.
    n_iter : int, default=None
        Try so many configurations of the grid, drawn at random; None tries all.
    cv : int, splitter or iterable, default=5
        The folds, at least 2. With groups, give ``list(splitter.split(X, y, groups))``.
    scoring : "brier", "error", "loss", str or callable, default="brier"
        What is best: the Brier score (it sees more than errors do where rows are few), the share
        of errors, the log loss, or any scorer of scikit-learn, such as "roc_auc". Larger scores are
        better, so the first three are negated; the Brier score is summed over the classes. Rows
        count by their weights, but for callables that are no scorers of scikit-learn; callables
        get the predictions of an estimator, but not X.
    one_standard_error : bool, default=False
        Take the metric with the fewest variables that is within one standard error of the best,
        and predict by it alone.
    n_blended : int, default=6
        The most models to blend. Each is the best of its kind (configuration, sort of readout,
        with all columns or without) and within one standard error of the best.
    refit : bool, default=True
        Make ``best_estimator_`` and ``estimators_``.
    random_state : int, RandomState instance or None, default=None
        Seed of the fits and of ``n_iter``; the estimator's where it is None.
    n_jobs : int or None, default=None
        Processes for folds and configurations.
    verbose : int, default=0
        1 shows a progress line.
    checkpoint : str, path or None, default=None
        A directory for what the fits have learned, as in :class:`SDistClassifier`; that of the
        estimator is not used.

    Attributes
    ----------
    best_estimator_ : SDistClassifier
    estimators_ : list of SDistClassifier
        The models whose log odds are averaged, ``best_estimator_`` first.
    best_params_ : dict
        The parameters of the best configuration, and what was read off its fits: ``start_share``,
        ``recurrences``, ``size``, ``steps``, ``penalty`` and ``rule``.
    best_score_ : float
        The best model's mean score of the folds. It is the best of hundreds, calibrated on the rows
        that it is scored on, so it is kind where rows are few. For an honest figure put the whole
        search into ``cross_val_score``.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [None, SDistClassifier],
        "param_grid": [None, dict, list],
        "n_iter": [None, Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "scoring": [str, callable],
        "one_standard_error": ["boolean"],
        "n_blended": [Interval(Integral, 1, None, closed="left")],
        "refit": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": SDistClassifier._parameter_constraints["n_jobs"],
        "verbose": ["verbose"],
        "checkpoint": [None, str, os.PathLike],
    }

    def __init__(
        self,
        estimator: SDistClassifier | None = None,
        param_grid: Any = None,
        n_iter: int | None = None,
        cv: Any = 5,
        scoring: Any = "brier",
        one_standard_error: bool = False,
        n_blended: int = 6,
        refit: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_iter = n_iter
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.n_blended = n_blended
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = SDistClassifier() if self.estimator is None else self.estimator
        tags.input_tags.sparse = base.missing != "impute"
        tags.input_tags.allow_nan = base.missing == "impute"
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
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
        given = base.random_state if self.random_state is None else self.random_state
        check_seed(self.checkpoint, given)
        random = check_random_state(given)
        base.set_params(random_state=int(random.randint(2**31 - 1)))
        base._validate_params()
        table = base._prepared(X, y, sample_weight)
        self._remember(base)
        splits = folds_of(self.cv, table, self.classes_)
        self.n_splits_ = len(splits)
        tried = self._search(base, table, splits, self._configurations(random))
        self._set_results(tried)
        chosen = self._blended(tried)
        first, best = chosen[0]
        gain = best.candidate.gain
        warn_about_fit(base, tried[first].crossfit, tried[first].options, table.imputation, gain)
        if self.refit:
            self._set_estimators(base, table, tried, chosen)
        return self

    def _base(self) -> SDistClassifier:
        """The estimator whose parameters are searched."""
        if hasattr(self.estimator, "client"):
            raise TypeError(
                "The estimator is one of metricboost.dask: use metricboost.dask.SDistClassifierCV, "
                "or an estimator of metricboost for a table in memory."
            )
        return SDistClassifier() if self.estimator is None else clone(self.estimator)

    def _set_estimators(
        self,
        base: SDistClassifier,
        table: Table,
        tried: list[Configuration],
        chosen: list[tuple[int, Scored]],
    ) -> None:
        """The models to blend, over one copy of the training rows."""
        numbers = sorted({i for i, _ in chosen})
        variants = [scored.variant for _, scored in chosen]
        crossfits = [tried[i].crossfit for i in numbers]
        own = dict(zip(numbers, with_own_rows(crossfits, variants, table.pool.references)))
        first = numbers[0]
        plain = plain_score(tried[first].crossfit, [s.candidate for s in tried[first].found])
        self.estimators_ = []
        for i, scored in chosen:
            model = self._made(base, table, tried[i], own[i], scored)
            model._plain_score = plain
            self.estimators_.append(model)
        self.best_estimator_ = self.estimators_[0]

    def _remember(self, base: SDistClassifier) -> None:
        """What is known before the search; what an earlier fit left is forgotten."""
        for name in ("feature_names_in_", "estimators_", "best_estimator_"):
            self.__dict__.pop(name, None)
        self.classes_, self.class_count_ = base.classes_, base.class_count_
        self.n_features_in_ = base.n_features_in_
        if hasattr(base, "feature_names_in_"):
            self.feature_names_in_ = base.feature_names_in_

    def _configurations(self, random: np.random.RandomState) -> list[dict[str, Any]]:
        grid = DEFAULT_GRID if self.param_grid is None else self.param_grid
        wrong = {name for part in ParameterGrid(grid) for name in part} - set(NEED_FITS)
        if wrong:
            raise ValueError(
                f"param_grid has {', '.join(sorted(wrong))}: only parameters of the fits are "
                f"searched there ({', '.join(NEED_FITS)}). Readouts, pruning and start_share are "
                "searched anyway; anything else is set in estimator."
            )
        all_of_them = list(ParameterGrid(grid))
        if not all_of_them:
            raise ValueError("param_grid is empty: give at least one configuration.")
        if self.n_iter is None or self.n_iter >= len(all_of_them):
            return all_of_them
        chosen = random.choice(len(all_of_them), self.n_iter, replace=False)
        return [all_of_them[i] for i in sorted(chosen)]

    def _search(
        self,
        base: SDistClassifier,
        table: Table,
        splits: list[tuple[Index, Index]],
        configurations: list[dict[str, Any]],
    ) -> list[Configuration]:
        scorer = FoldScorer(self.scoring, self.classes_)  # first: a wrong name costs no fits
        # A device has room for one fit at a time.
        n_jobs = 1 if is_torch(base.engine) else effective_n_jobs(self.n_jobs)
        engine = base._engine()
        options = []
        for params in configurations:
            one = clone(base).set_params(**params)
            one._validate_params()
            options.append(one._options(table))
        pool, kept_rows = table.pool, [kept for kept, _ in splits]
        wholes = [whole_of(pool, kept_rows, option) for option in options]
        with checkpoints_in(self.checkpoint, partial(digest_of_table, pool.X)) as kept_in:
            fits = run_fits(
                n_jobs,
                (
                    delayed(learn_timed)(task, kept_in)
                    for whole, option in zip(wholes, options)
                    for task in fold_tasks(pool, whole, engine, option, splits)
                ),
                kept_in is not None,
                Counter("fits") if self.verbose else None,
            )
        n = len(splits)
        crossfits = [
            over_folds(
                pool, whole, engine, option, splits, [fit for fit, _ in fits[i * n : (i + 1) * n]]
            )
            for i, (whole, option) in enumerate(zip(wholes, options))
        ]
        for crossfit, option in zip(crossfits, options):
            refuse_far_rows(crossfit, option.max_degree, column_names(base, table.n_columns))
        seconds = [[s for _, s in fits[i * n : (i + 1) * n]] for i in range(len(options))]
        found = self._scored(base, crossfits, scorer, n_jobs)
        parts = zip(configurations, options, crossfits, seconds, found)
        return [Configuration(*part) for part in parts]

    def _scored(
        self, base: SDistClassifier, crossfits: list[CrossFit], scorer: FoldScorer, n_jobs: int
    ) -> list[list[Scored]]:
        kind, k = base.classifier, base.n_neighbors_predict
        limits = Limits(base.start_share, base.prune)
        run = Tasks(n_jobs, "configurations scored" if self.verbose else None)
        found = run(delayed(cheap_search)(part, kind, k, scorer, limits) for part in crossfits)
        if kind == "kernel" or (kind == "auto" and crossfits[0].X.shape[0] <= MOST_KERNEL_ROWS):
            order = sorted(range(len(found)), key=lambda i: -max(s.score for s in found[i]))
            finalists = order if kind == "kernel" else order[:FINALISTS]
            run = Tasks(n_jobs, "finalists scored" if self.verbose else None)
            more = run(delayed(kernel_search)(crossfits[i], found[i], scorer) for i in finalists)
            for i, part in zip(finalists, more):
                found[i] = found[i] + part
        return [of_classifier(part, kind) for part in found]

    def _set_results(self, tried: list[Configuration]) -> None:
        self.cv_results_ = results(tried)
        mean = self.cv_results_["mean_test_score"]
        if np.isnan(mean).all():
            raise ValueError(
                f"scoring={self.scoring} is undefined in a fold for every candidate: use fewer "
                "folds, so that each has rows of every class, or another score."
            )
        self.best_index_ = int(np.nanargmax(mean))
        if self.one_standard_error:
            found = [scored for one in tried for scored in one.found]
            self.best_index_ = found.index(simplest_within_one_error(found))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(mean[self.best_index_])

    def _blended(self, tried: list[Configuration]) -> list[tuple[int, Scored]]:
        """The models to make, with the numbers of their configurations; the best comes first."""
        numbered = [(i, scored) for i, one in enumerate(tried) for scored in one.found]
        best = numbered[self.best_index_]
        if self.one_standard_error:
            return [best]
        chosen = to_blend([one.found for one in tried], int(self.n_blended))
        others = [pair for pair in chosen if pair[1] is not best[1]]
        return [best, *others][: int(self.n_blended)]

    def _made(
        self,
        base: SDistClassifier,
        table: Table,
        configuration: Configuration,
        own: CrossFit,
        scored: Scored,
    ) -> SDistClassifier:
        """A configuration's metrics, averaged, with a readout."""
        model = clone(base).set_params(**configuration.params)
        self._remember_in(model)
        model._training_rows = reference_rows(table)
        model._candidate = scored.candidate
        model._set_fitted(configuration.crossfit, own, scored.variant, table.imputation)
        return model

    def _remember_in(self, model: SDistClassifier) -> None:
        model.classes_, model.class_count_ = self.classes_, self.class_count_
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_params_")

    def _best_model(self) -> SDistClassifier:
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError("refit=False: there is no best_estimator_ to use.")
        return self.best_estimator_

    @property
    def metric_(self) -> Any:
        return self._best_model().metric_

    @property
    def feature_importances_(self) -> Float:
        return self._best_model().feature_importances_

    @property
    def stability_(self) -> Float:
        return self._best_model().stability_

    @property
    def _n_features_out(self) -> int:
        return self._best_model()._n_features_out

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted class of every row."""
        return self._best_model()._labels(self._log_odds(X))

    def predict_proba(self, X: Any) -> Float:
        """Class probabilities, calibrated on rows out of fold."""
        result: Float = np.exp(self.predict_log_proba(X))
        return result

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of ``predict_proba``."""
        result: Float = log_softmax(self._log_odds(X), axis=1)
        return result

    def decision_function(self, X: Any) -> Float:
        """Calibrated log odds: of ``classes_[1]`` where there are two classes, else of each."""
        log_odds = self._log_odds(X)
        return log_odds[:, 1] - log_odds[:, 0] if len(self.classes_) == 2 else log_odds

    def _log_odds(self, X: Any) -> Float:
        """The mean of the models' log probabilities: log odds up to a constant of the row."""
        self._best_model()
        parts = [log_softmax(model._log_odds(X), axis=1) for model in self.estimators_]
        result: Float = np.mean(parts, axis=0)
        return result

    def _check_ready(self) -> None:
        self._best_model()

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the models to a file, which :func:`metricboost.load` reads; see `SDist.save`.

        ``cv_results_`` does not go along.
        """
        from ..persistence import save

        self._best_model()
        save(self, path, rows)

    def transform(self, X: Any) -> Float:
        """Embed rows under the best metric."""
        return self._best_model()._embedded(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of ``transform``."""
        return self._best_model().get_feature_names_out(input_features)

    def pair_distance(self, X: Any, Y: Any) -> Float:
        """The distance between row i of X and row i of Y."""
        return self._best_model().pair_distance(X, Y)

    def get_metric(self) -> Any:
        """A function of two rows."""
        return self._best_model().get_metric()

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """The nearest training rows under the best metric."""
        return self._best_model().kneighbors(X, n_neighbors, return_distance)

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """The best model's predictions after each accepted step of its fits."""
        return self._best_model().staged_predict(X)
