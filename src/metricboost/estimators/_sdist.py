"""``SDist``: the learned metric as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._blocks import only_columns
from .._threads import one_blas_thread
from .._typing import Data, Float, Index
from ..boosting import LearningOptions
from ..boosting.path import Path
from ..checkpoints import checkpoints_in, digest_of_table
from ..engines import Engine, engine_at_hand, get_engine, is_torch
from ..imputation import Imputation
from ..metric import SparseMetric
from ..selection.choosing import (
    Candidate,
    candidates,
    chosen,
    default_rules,
    variants,
    with_share,
)
from ..selection.crossfit import CrossFit, Variant, cross_fit
from ..selection.readouts import Rule
from ..sources import InMemory, Source
from ._options import learning_options
from ._progress import ProgressLine
from ._rows import Table, pooled, row_limits
from ._validation import (
    EngineName,
    check_classes,
    check_scales,
    check_seed,
    check_table,
    check_training,
    check_weights,
    column_names,
    refuse_far_rows,
    refuse_overflow,
)
from ._warnings import warn_about_fit
from ._workers import threads, workers

if TYPE_CHECKING:
    from ..inspection import ModelExplanation


class SDist(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse non-linear distance metric learning by boosting (Ma & Zheng's sDist).

    Learns a sparse, low-rank, positive semi-definite metric on the columns and on products of
    columns, which are grown as they prove useful, so that rows are close to their nearest
    neighbours of the same class and far from those of the other classes. As a transformer it embeds
    rows so that Euclidean distances are distances under the metric.

    Parameters
    ----------
    max_iter : int, default=75
        Attempted boosting steps. A fit ends earlier once 30 attempts in a row were rejected.
    n_neighbors : int, default=20
        Neighbours of each class that define a row's margin while learning.
    n_nonzero : int or float, default=16
        The most terms a step may combine (the paper's kappa), or their share of the candidates a
        step sees (its rho, a float in (0, 1]). With ``oob_gate`` a step keeps as many of them
        as the rows out of the bag support.
    learning_rate : float, default=0.1
        Shrinkage of every step (nu).
    subsample : float, default=0.5
        Share of the rows a step learns from (eta), drawn without replacement.
    max_features : "auto", None, "sqrt", int or float, default="auto"
        How many candidate terms a step sees, drawn at random; None for all of them. "auto" sees
        all, but makes no more products once there are 4096 candidates, or twice as many as columns
        where that is more.
    max_degree : int, default=2
        The highest degree of a product of columns, 1000 at most; 1 learns a linear metric.
    refresh_every : int or None, default=10
        Accepted steps between two searches for neighbours under the learned metric; None keeps
        the first neighbours.
    complexity_penalty : float, default=0
        The paper's lambda_C, on the summed loss: stops where loss + penalty * complexity is
        smallest. 0 keeps every accepted step.
    oob_gate : float or None, default=2
        A step must gain on the rows out of its bag by this many standard errors. None accepts
        every step that gains on its bag, as the paper does. Has no effect with ``subsample=1``.
    screen_pairs : "auto" or int, default="auto"
        How many products of two columns (or squares) whose mean differs between the classes
        become candidates before the first step. "auto" keeps those that stand out from the
        noise, as many at most as there are columns, and on a table where all pairs would take too
        long (rows * columns^2 > 1.6e11) looks among the columns that differ most only, with a
        warning. 0 is off, as is ``max_degree=1``.
    prune : "auto", int or None, default="auto"
        Which variables stay at the end: "auto" drops those that do not recur, in all or in most of
        the ``n_averaged`` fits, as long as rows out of fold are classified as well (with
        ``n_averaged=1``: those that only one accepted step used); an int keeps that many with
        the largest importance, None keeps all.
    init : "zero", "identity", SparseMetric or array of shape (n_features, n_features), \
            default="zero"
        The metric to start from. A matrix refers to the standardised columns.
    standardize : bool, default=True
        Centre and scale the columns inside; the constants are kept in the metric.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.
    missing : {"error", "impute"}, default="error"
        "impute" fills missing values with the column's median. Where the share of missing values
        differs between the classes, the fact that a value was missing can enter as a column of
        its own, named ``missing(...)``. Both are kept in the metric.
    clip : float or None, default=3
        Standardised columns end at this many deviations, so that a few values far out do not own a
        column and its products; None is off, as is ``standardize=False``.
    n_averaged : int, default=5
        Fits that are averaged into the metric, each without one fold of the rows. They also tell
        how stable a term is, and every row is classified once by a metric that has not seen it,
        on which the choices here and in :class:`SDistClassifier` rest. 1 learns once, from all
        rows.
    start_share : "auto" or float, default="auto"
        Share of the plain distance on all standardised columns in the metric: where every column
        matters a little, a sparse metric alone does harm. "auto" chooses from 0, 0.5, 0.8 and 1 on
        rows out of fold (0 where ``n_averaged=1`` or ``prune`` is a number).
    multiclass : {"common", "coded"}, default="common"
        What a row is to be far from where there are more than two classes: its nearest
        neighbours among the rows of all other classes together ("common"), or as many of each other
        class, all with equal weight ("coded", the paper's coded loss). Either way one metric is
        learned: a metric for each pair of classes is not offered, because one distance is what
        can be read.
    max_rows : "auto", int or None, default="auto"
        The most rows that each of the averaged fits learns from, a sample of its own. "auto" is
        10,000, or fewer if the sample would have more than 100 million numbers, or more if there
        are so many classes that each would have fewer than 50 rows. Column constants, medians for
        missing values and the screening of pairs use all rows. The classes are sampled in
        proportion, but a rare class keeps its rows, with weights that put the proportions right.
        None learns from every row.
    max_references : "auto", int or None, default="auto"
        The most training rows among which predictions, and the choices out of fold, search for
        neighbours. "auto" is 50,000, or fewer if they would have more than 200 million numbers.
        None searches among all rows.
    engine : {"auto", "native", "numpy", "torch", "torch:cpu", "torch:cuda", "torch:cuda:1", ...}, \
            default="auto"
        What computes: "auto" takes the C++ kernels if they were built. "torch" needs PyTorch
        (``pip install "metricboost[gpu]"``) and takes a GPU, in float32, if there is one; a
        device can be named after a colon.
    random_state : int, RandomState instance or None, default=None
        Seed of the bags and panels.
    n_jobs : int or None, default=None
        Processes for the averaged fits and the choices that follow; for tables of more than 16
        million numbers, and for one fit, threads inside a fit. -1 means all cores. None means one
        process, and as many threads as BLAS may have (all cores, unless a limit of threadpoolctl
        or a worker of joblib says otherwise) where there is enough to share. The model does not
        depend on it.
    verbose : int, default=0
        1 shows a progress line.
    checkpoint : str, path or None, default=None
        A directory, made where it is missing, for what was learned: written every few seconds, a
        file for every fit, named after its data and parameters. A fit that was killed goes on from
        there, and ends with the model that it would have had, bit for bit on the same engine and
        machine. Ctrl-C then stops after the current step. The files stay until you delete them.
        It needs a ``random_state``.

    Attributes
    ----------
    metric_ : SparseMetric
        The learned metric.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    class_count_ : ndarray of shape (n_classes,)
        How many training rows each class has.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every column in the metric; sums to 1, zero for what is unused.
    stability_ : ndarray of shape (n_features,)
        Share of the fits that used every column; terms have theirs in ``metric_.terms``.
    start_share_ : float
        Share of the plain distance in ``metric_``.
    path_ : structured ndarray
        One row per accepted step:
        ``fit, attempt, weight, loss, complexity, rank, terms, refreshed``.
    best_iter_ : int
        Accepted steps in ``metric_``, over all fits.
    n_iter_ : int
        Attempts made, over all fits.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the columns, where X had names.

    Notes
    -----
    ``warm_start`` is not offered: bags and panels are drawn from the attempt's number, so a longer
    fit simply repeats and continues a shorter one, and ``init=model.metric_`` continues from a
    metric on other data.

    References
    ----------
    Y. Ma and T. Zheng, "Boosted Sparse Non-linear Distance Metric Learning".

    Examples
    --------
    >>> from metricboost import SDist
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=400, n_features=30, informative=2, random_state=0)
    >>> sdist = SDist(random_state=0).fit(X, y)
    >>> [term.name for term in sdist.metric_.terms][:1]
    ['x18*x29']
    >>> sdist.transform(X).shape[0]
    400
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "max_features": [
            None,
            StrOptions({"auto", "sqrt"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        # Products of so many columns would say nothing, and take memory with every candidate.
        "max_degree": [Interval(Integral, 1, 1000, closed="both")],
        "refresh_every": [None, Interval(Integral, 1, None, closed="left")],
        "complexity_penalty": [Interval(Real, 0, None, closed="left")],
        "oob_gate": [None, Interval(Real, None, None, closed="neither")],
        "screen_pairs": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "prune": [None, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"zero", "identity"}), "array-like", Hidden(SparseMetric)],
        "standardize": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "multiclass": [StrOptions({"common", "coded"})],
        "missing": [StrOptions({"error", "impute"})],
        "clip": [None, Interval(Real, 0, None, closed="neither")],
        "n_averaged": [Interval(Integral, 1, None, closed="left")],
        "start_share": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "max_rows": [None, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_references": [None, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "engine": [EngineName()],
        "random_state": ["random_state"],
        "n_jobs": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
        ],
        "verbose": ["verbose"],
        "checkpoint": [None, str, os.PathLike],
    }

    def __init__(
        self,
        max_iter: int = 75,
        n_neighbors: int = 20,
        n_nonzero: int | float = 16,
        learning_rate: float = 0.1,
        subsample: float = 0.5,
        max_features: int | float | str | None = "auto",
        max_degree: int = 2,
        refresh_every: int | None = 10,
        complexity_penalty: float = 0.0,
        oob_gate: float | None = 2.0,
        screen_pairs: int | str = "auto",
        prune: int | str | None = "auto",
        init: Any = "zero",
        standardize: bool = True,
        class_weight: Any = None,
        multiclass: str = "common",
        missing: str = "error",
        clip: float | None = 3.0,
        n_averaged: int = 5,
        start_share: float | str = "auto",
        max_rows: int | str | None = "auto",
        max_references: int | str | None = "auto",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.n_nonzero = n_nonzero
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.max_features = max_features
        self.max_degree = max_degree
        self.refresh_every = refresh_every
        self.complexity_penalty = complexity_penalty
        self.oob_gate = oob_gate
        self.screen_pairs = screen_pairs
        self.prune = prune
        self.init = init
        self.standardize = standardize
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.missing = missing
        self.clip = clip
        self.n_averaged = n_averaged
        self.start_share = start_share
        self.max_rows = max_rows
        self.max_references = max_references
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        tags.input_tags.sparse = self.missing != "impute"
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    @one_blas_thread()  # results then do not depend on the machine's number of cores
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDist:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64, any layout and files in memory (``np.load(mmap_mode="r")``) are
            taken as they are; a sparse matrix is made dense piece by piece.
        y : array-like of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the loss; rows with weight 0 are left out.

        Returns
        -------
        self
        """
        check_seed(self.checkpoint, self.random_state)
        table = self._prepared(X, y, sample_weight)
        options = self._options(table)
        crossfit = self._cross_fit(table, options)
        names = column_names(self, crossfit.X.shape[1])
        refuse_far_rows(crossfit, options.max_degree, names)
        variant, gain = self._chosen(crossfit)
        warn_about_fit(self, crossfit, options, table.imputation, gain)
        (own,) = with_own_rows([crossfit], [variant], table.pool.references)
        self._training_rows = reference_rows(table)
        self._set_fitted(crossfit, own, variant, table.imputation)
        return self

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """The data, checked, weighted and imputed; sets what is known before learning."""
        X, y = check_training(self, X, y, self.missing)
        check_classes(self, y)
        rows, weight = check_weights(sample_weight, self.class_weight, X, y)
        remark = " among the rows whose weight is not 0"
        self.classes_, labels = check_classes(self, y[rows], remark)
        weighted = rows if len(rows) < len(y) else None  # the others have no weight
        return self._table(InMemory(X, labels, weight, weighted), y)

    def _table(self, source: Source, y: npt.NDArray[Any] | None) -> Table:
        """The pool of a source; ``y`` are the labels of the table as it was given, if in memory."""
        self.class_count_ = source.class_count
        pool, imputation = pooled(self, source, self._sampling_seed(source))
        check_scales(pool.X, self.standardize, self.max_degree)
        return Table(pool, imputation, y)

    def _sampling_seed(self, source: Source) -> int | None:
        """A seed, if rows have to be drawn; else the random state is left as it is."""
        limits = row_limits(self, source.shape[1], source.class_count)
        sizes = [size for size in (limits.pool, limits.references) if size is not None]
        if not sizes or source.shape[0] <= min(sizes):
            return None
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "metric_")

    def _options(self, table: Table) -> LearningOptions:
        return learning_options(self, table)

    def _cross_fit(self, table: Table, options: LearningOptions) -> CrossFit:
        line = ProgressLine(options.boosting.max_iter) if self.verbose else None
        X = table.pool.X
        shared = workers(self.n_jobs, _size(X), self._tasks(self.n_averaged))
        with checkpoints_in(self.checkpoint, partial(digest_of_table, X)) as kept:
            crossfit = cross_fit(
                table.pool,
                get_engine(self.engine, shared.threads),
                options,
                self.n_averaged,
                shared.processes,
                None if line is None else line.fold,
                kept,
            )
        if line is not None:
            line.close([fit.path for fit in crossfit.fits])
        return crossfit

    def _chosen(self, crossfit: CrossFit) -> tuple[Variant, float]:
        """The variant of the metric, and how much better than guessing it is out of fold.

        The gain is NaN if there is only one variant: nothing is judged then.
        """
        tried = self._variants(len(crossfit.fits))
        if len(tried) == 1:
            return tried[0], float("nan")
        best = chosen(crossfit, self._candidates(crossfit, tried, default_rules("auto", "auto")))
        return best.variant, best.gain

    def _candidates(
        self, crossfit: CrossFit, tried: Sequence[Variant], rules: Sequence[Rule]
    ) -> list[Candidate]:
        shared = workers(self.n_jobs, _size(crossfit.X), self._tasks(len(tried)))
        with_threads = replace(crossfit, engine=get_engine(self.engine, shared.threads))
        return candidates(with_threads, tried, rules, shared.processes)

    def _variants(self, n_fits: int) -> list[Variant]:
        """What ``prune`` and ``start_share`` leave to choose from."""
        size = self.prune if isinstance(self.prune, Integral) else None
        tried = variants(n_fits if self.prune == "auto" else 1)
        if self.start_share != "auto":
            tried = with_share(tried, float(self.start_share))
        elif n_fits == 1 or size is not None:
            # One metric has seen all rows, so no row can tell; a given number of variables is one.
            tried = with_share(tried, 0.0)
        return [replace(variant, size=None if size is None else int(size)) for variant in tried]

    def _tasks(self, n_tasks: int) -> int:
        """How many tasks processes may share: a device has room for one at a time."""
        return 1 if is_torch(self.engine) else n_tasks

    def _engine(self) -> Engine:
        # A fitted model may have been pickled where there was a GPU; a fit names what is missing.
        get = engine_at_hand if self.__sklearn_is_fitted__() else get_engine
        return get(self.engine, threads(self.n_jobs))

    def _set_fitted(
        self, crossfit: CrossFit, own: CrossFit, variant: Variant, imputation: Imputation | None
    ) -> None:
        """``own`` has a copy of the rows that the model keeps, ``crossfit`` the whole pool."""
        named = hasattr(self, "feature_names_in_")
        names = column_names(self, self.n_features_in_) if named else None
        most = int(self.prune) if isinstance(self.prune, Integral) else None
        self.metric_ = crossfit.metric(variant, names, imputation, most=most)
        self.best_iter_ = sum(fit.best_iter for fit in crossfit.fits)
        self.n_iter_ = sum(fit.path.n_attempts for fit in crossfit.fits)
        plain = not len(self.metric_.components) or (
            isinstance(self.init, str) and self.init == "identity" and not self.best_iter_
        )
        self.start_share_ = 1.0 if plain else variant.share
        self.stability_ = self._stability(crossfit, imputation)
        self._crossfit, self._variant = own, variant
        self.__dict__.pop("path_", None)

    def _stability(self, crossfit: CrossFit, imputation: Imputation | None) -> Float:
        """The share of the fits that used each column, or the fact that it was missing."""
        used = np.zeros((len(crossfit.fits), crossfit.X.shape[1]), dtype=bool)
        for row, fit in zip(used, crossfit.fits):
            if fit.best_iter:
                row[[column for t in fit.factor.index for column in fit.terms[t]]] = True
        for extra, column in enumerate(imputation.indicators if imputation else ()):
            used[:, column] |= used[:, self.n_features_in_ + extra]
        result: Float = used[:, : self.n_features_in_].mean(axis=0)
        return result

    @cached_property
    @one_blas_thread()
    def path_(self) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return path_table([fit.path for fit in self._crossfit.fits])

    @property
    def feature_importances_(self) -> Float:
        check_is_fitted(self)
        return self.metric_.importances()

    @property
    def _n_features_out(self) -> int:
        return self.metric_.rank

    def transform(self, X: Any) -> Float:
        """Embed rows: Euclidean distances between the results are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        return self._embedded(X)

    @one_blas_thread()
    def _embedded(self, X: Any) -> Float:
        """The embedding as an array, whatever ``set_output`` says."""
        check_is_fitted(self)
        return self._embedded_rows(check_table(self, X, reset=False, missing=self.missing))

    def _embedded_rows(self, X: Data) -> Float:
        """The embedding of a checked table."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by name
            embedding = self._engine().embedded(self.metric_, X)
            refuse_overflow(embedding, X, self.metric_, column_names(self, X.shape[1]))
        return embedding

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns of ``transform``: "sdist0", "sdist1", ..."""
        check_is_fitted(self)
        return np.asarray([f"sdist{i}" for i in range(self.metric_.rank)], dtype=object)

    def staged_transform(self, X: Any) -> Iterator[Float]:
        """The embedding after each accepted step of the fits, before pruning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, rank at that step)
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False, missing=self.missing)
        for metric in self._staged_metrics():
            with one_blas_thread():
                embedding = metric.transform(X)
            yield embedding

    def _staged_metrics(self, imputed: bool = False) -> Iterator[SparseMetric]:
        """The metric after each step, for rows as given or for those that are imputed already."""
        imputation = None if imputed else self.metric_.imputation
        crossfit = with_rows(self._crossfit)
        for steps in range(1, max(len(fit.path) for fit in crossfit.fits) + 1):
            variant = Variant(self._variant.share, steps=steps)
            with one_blas_thread():
                metric = crossfit.metric(variant, imputation=imputation, with_gamma=False)
            yield metric

    def explain(self) -> ModelExplanation:
        """What was learned, as data: terms, variables and the network of interactions.

        Returns
        -------
        metricboost.inspection.ModelExplanation
        """
        from ..inspection import explain_model

        check_is_fitted(self)
        return explain_model(self)

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the fitted model to a file, which :func:`metricboost.load` reads.

        Parameters
        ----------
        path : str or path
            Usually with the ending ``.mbz``.
        rows : bool, default=True
            Whether the training rows go along (only the columns that matter). Without them no
            data leaves the machine, but the model can embed and explain only.
        """
        from ..persistence import save

        check_is_fitted(self)
        save(self, path, rows)

    def pair_distance(self, X: Any, Y: Any) -> Float:
        """The distance (not its square) between row i of X and row i of Y."""
        a, b = self._embedded(X), self._embedded(Y)
        if len(a) != len(b):
            raise ValueError(f"X has {len(a)} rows and Y has {len(b)}: pairs need as many of each.")
        result: Float = np.linalg.norm(a - b, axis=1)
        return result

    def get_metric(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """A function of two rows, for ``metric=`` of scikit-learn's neighbours.

        Embedding all rows with ``transform`` once is much faster.
        """
        check_is_fitted(self)
        return partial(_distance, self.metric_)


def with_own_rows(
    crossfits: Sequence[CrossFit], variants: Sequence[Variant], references: Index | None
) -> list[CrossFit]:
    """The same over a copy of the training rows, which they share.

    Nothing that a user does to X after ``fit`` then changes the model. The copy has the columns
    that the fits use, and all columns if a variant has a share of the plain distance; and the rows
    that serve as neighbours for predictions, or all.
    """
    used = {
        j for crossfit in crossfits for fit in crossfit.fits for term in fit.terms for j in term
    }
    if any(variant.share > 0 for variant in variants):
        used.update(int(j) for crossfit in crossfits for j in crossfit.scaling.plain)
    first = crossfits[0]
    rows = slice(None) if references is None else references
    X = first.X if references is None else first.X[references]
    own = {
        "X": only_columns(X, np.array(sorted(used), dtype=np.intp)),
        "labels": first.labels[rows],
        "weight": first.weight[rows],
    }
    return [replace(crossfit, **own) for crossfit in crossfits]


def reference_rows(table: Table) -> Index:
    """The numbers of the model's rows in the table as it was given."""
    numbers, references = table.pool.numbers, table.pool.references
    return numbers if references is None else numbers[references]


def with_rows(crossfit: CrossFit) -> CrossFit:
    """The same, where it has training rows: a model file may lack them."""
    if not crossfit.X.shape[0]:
        raise ValueError(
            "This model was saved without its training rows (rows=False): it can embed rows and "
            "measure distances, but classifying takes neighbours."
        )
    return crossfit


def _size(X: Data) -> int:
    return int(X.shape[0]) * int(X.shape[1])


def _distance(metric: SparseMetric, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    return float(metric.pair_distance(np.atleast_2d(x), np.atleast_2d(y))[0])


def path_table(paths: Sequence[Path]) -> npt.NDArray[Any]:
    """One row per accepted step of every fit, as a structured array."""
    fields = [
        ("fit", np.int64), ("attempt", np.int64), ("weight", np.float64), ("loss", np.float64),
        ("complexity", np.float64), ("rank", np.int64), ("terms", np.int64),
        ("refreshed", np.bool_),
    ]  # fmt: skip
    rows = []
    for number, path in enumerate(paths):
        for m, step in enumerate(path.steps, 1):
            factor = path.factor(m)
            rows.append((
                number, step.attempt, step.weight, step.loss, factor.complexity(),
                factor.matrix.shape[1], step.n_terms, step.refreshed,
            ))  # fmt: skip
    return np.array(rows, dtype=fields)
