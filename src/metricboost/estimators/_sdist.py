"""``SDist``: the learned metric as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._threads import one_blas_thread
from .._typing import Data, Float, Index
from ..engines import Engine, engine_at_hand, get_engine
from ..errors import ModelFileError
from ..inputs import check_classes, check_table, check_training, check_weights, column_names
from ..inspection import explain_model
from ..model import Model, SparseMetric
from ..model.readouts import Readout
from ..sources import InMemory, Source
from ..storage import Saved
from ..training.fitting import Choices, fit_model
from ..training.limits import check_scales
from ..training.options import LearningOptions, learning_options
from ..training.pool import Pool, RowLimits, pooled
from ..training.run import Run
from ._embedding import EmbeddingMixin
from ._parameters import EngineName, declared, parameter, positive_integer, share
from ._saving import SavingMixin, estimator_of, restore_features
from ._warnings import warn_about_fit


@dataclass(frozen=True)
class Given:
    """What was given to ``fit``, checked.

    Attributes
    ----------
    source : Source
        The rows that have a weight.
    classes : ndarray
    y : ndarray or None
        The labels of all rows; None if they are not in memory.
    """

    source: Source
    classes: npt.NDArray[Any]
    y: npt.NDArray[Any] | None


@declared
class SDist(SavingMixin, EmbeddingMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse non-linear distance metric learning by boosting (Ma & Zheng's sDist).

    Learns a sparse, low-rank, positive semi-definite metric on the columns and on products of
    columns, which are grown as they prove useful, so that rows are close to their nearest
    neighbours of the same class and far from those of the other classes. As a transformer it embeds
    rows so that Euclidean distances are distances under the metric.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Model
        The fitted model, from which all other attributes are read.
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

    max_iter: int = parameter(
        75,
        "int",
        [positive_integer()],
        """
        Attempted boosting steps. A fit ends earlier once 30 attempts in a row were rejected.
        """,
        of_a_fit=True,
    )
    n_neighbors: int = parameter(
        20,
        "int",
        [positive_integer()],
        """
        Neighbours of each class that define a row's margin while learning.
        """,
        of_a_fit=True,
    )
    n_nonzero: int | float = parameter(
        16,
        "int or float",
        [positive_integer(), share()],
        """
        The most terms a step may combine (the paper's kappa), or their share of the candidates a
        step sees (its rho, a float in (0, 1]). With ``oob_gate`` a step keeps as many of them
        as the rows out of the bag support.
        """,
        of_a_fit=True,
    )
    learning_rate: float = parameter(
        0.1,
        "float",
        [share()],
        """
        Shrinkage of every step (nu).
        """,
        of_a_fit=True,
    )
    subsample: float = parameter(
        0.5,
        "float",
        [share()],
        """
        Share of the rows a step learns from (eta), drawn without replacement.
        """,
        of_a_fit=True,
    )
    max_features: int | float | str | None = parameter(
        "auto",
        '"auto", None, "sqrt", int or float',
        [None, StrOptions({"auto", "sqrt"}), positive_integer(), share()],
        """
        How many candidate terms a step sees, drawn at random; None for all of them. "auto" sees
        all, but makes no more products once there are 4096 candidates, or twice as many as columns
        where that is more.
        """,
        of_a_fit=True,
    )
    max_degree: int = parameter(
        2,
        "int",
        [Interval(Integral, 1, 1000, closed="both")],
        """
        The highest degree of a product of columns, 1000 at most; 1 learns a linear metric.
        """,
        of_a_fit=True,
    )
    refresh_every: int | None = parameter(
        10,
        "int or None",
        [None, positive_integer()],
        """
        Accepted steps between two searches for neighbours under the learned metric; None keeps
        the first neighbours.
        """,
        of_a_fit=True,
    )
    complexity_penalty: float = parameter(
        0.0,
        "float",
        [Interval(Real, 0, None, closed="left")],
        """
        The paper's lambda_C, on the summed loss: stops where loss + penalty * complexity is
        smallest. 0 keeps every accepted step.
        """,
    )
    oob_gate: float | None = parameter(
        2.0,
        "float or None",
        [None, Interval(Real, None, None, closed="neither")],
        """
        A step must gain on the rows out of its bag by this many standard errors. None accepts
        every step that gains on its bag, as the paper does. Has no effect with ``subsample=1``.
        """,
        of_a_fit=True,
    )
    screen_pairs: int | str = parameter(
        "auto",
        '"auto" or int',
        [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        """
        How many products of two columns (or squares) whose mean differs between the classes
        become candidates before the first step. "auto" keeps those that stand out from the
        noise, as many at most as there are columns, and on a table where all pairs would take too
        long (rows * columns^2 > 1.6e11) looks among the columns that differ most only, with a
        warning. 0 is off, as is ``max_degree=1``.
        """,
        of_a_fit=True,
    )
    prune: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        Which variables stay at the end: "auto" drops those that do not recur, in all or in most of
        the ``n_averaged`` fits, as long as rows out of fold are classified as well (with
        ``n_averaged=1``: those that only one accepted step used); an int keeps that many with
        the largest importance, None keeps all.
        """,
    )
    init: Any = parameter(
        "zero",
        '"zero", "identity", SparseMetric or array of shape (n_features, n_features)',
        [StrOptions({"zero", "identity"}), "array-like", Hidden(SparseMetric)],
        """
        The metric to start from. A matrix refers to the standardised columns.
        """,
        of_a_fit=True,
    )
    standardize: bool = parameter(
        True,
        "bool",
        ["boolean"],
        """
        Centre and scale the columns inside; the constants are kept in the metric.
        """,
        of_a_fit=True,
    )
    class_weight: Any = parameter(
        None,
        'dict, "balanced" or None',
        [dict, StrOptions({"balanced"}), None],
        """
        Weights of the classes in the loss.
        """,
    )
    missing: str = parameter(
        "error",
        '{"error", "impute"}',
        [StrOptions({"error", "impute"})],
        """
        "impute" fills missing values with the column's median. Where the share of missing values
        differs between the classes, the fact that a value was missing can enter as a column of
        its own, named ``missing(...)``. Both are kept in the metric.
        """,
    )
    clip: float | None = parameter(
        3.0,
        "float or None",
        [None, Interval(Real, 0, None, closed="neither")],
        """
        Standardised columns end at this many deviations, so that a few values far out do not own a
        column and its products; None is off, as is ``standardize=False``.
        """,
        of_a_fit=True,
    )
    n_averaged: int = parameter(
        5,
        "int",
        [positive_integer()],
        """
        Fits that are averaged into the metric, each without one fold of the rows. They also tell
        how stable a term is, and every row is classified once by a metric that has not seen it,
        on which the choices here and in :class:`SDistClassifier` rest. 1 learns once, from all
        rows.
        """,
    )
    start_share: float | str = parameter(
        "auto",
        '"auto" or float',
        [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        """
        Share of the plain distance on all standardised columns in the metric: where every column
        matters a little, a sparse metric alone does harm. "auto" chooses from 0, 0.5, 0.8 and 1 on
        rows out of fold (0 where ``n_averaged=1`` or ``prune`` is a number).
        """,
    )
    multiclass: str = parameter(
        "common",
        '{"common", "coded"}',
        [StrOptions({"common", "coded"})],
        """
        What a row is to be far from where there are more than two classes: its nearest
        neighbours among the rows of all other classes together ("common"), or as many of each other
        class, all with equal weight ("coded", the paper's coded loss). Either way one metric is
        learned: a metric for each pair of classes is not offered, because one distance is what
        can be read.
        """,
        of_a_fit=True,
    )
    max_rows: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        The most rows that each of the averaged fits learns from, a sample of its own. "auto" is
        10,000, or fewer if the sample would have more than 100 million numbers, or more if there
        are so many classes that each would have fewer than 50 rows. Column constants, medians for
        missing values and the screening of pairs use all rows. The classes are sampled in
        proportion, but a rare class keeps its rows, with weights that put the proportions right.
        None learns from every row.
        """,
    )
    max_references: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        The most training rows among which predictions, and the choices out of fold, search for
        neighbours. "auto" is 50,000, or fewer if they would have more than 200 million numbers.
        None searches among all rows.
        """,
    )
    engine: str = parameter(
        "auto",
        '{"auto", "native", "numpy", "torch", "torch:cpu", "torch:cuda", "torch:cuda:1", ...}',
        [EngineName()],
        """
        What computes: "auto" takes the C++ kernels if they were built. "torch" needs PyTorch
        (``pip install "metricboost[gpu]"``) and takes a GPU, in float32, if there is one; a
        device can be named after a colon.
        """,
        of_the_machine=True,
    )
    random_state: Any = parameter(
        None,
        "int, RandomState instance or None",
        ["random_state"],
        """
        Seed of the bags and panels.
        """,
    )
    n_jobs: int | None = parameter(
        None,
        "int or None",
        [None, positive_integer(), Interval(Integral, None, -1, closed="right")],
        """
        Processes for the averaged fits and the choices that follow; for tables of more than 16
        million numbers, and for one fit, threads inside a fit. -1 means all cores. None means one
        process, and as many threads as BLAS may have (all cores, unless a limit of threadpoolctl
        or a worker of joblib says otherwise) where there is enough to share. The model does not
        depend on it.
        """,
        of_the_machine=True,
    )
    verbose: int = parameter(
        0,
        "int",
        ["verbose"],
        """
        1 shows a progress line.
        """,
        of_the_machine=True,
    )
    checkpoint: str | os.PathLike[str] | None = parameter(
        None,
        "str, path or None",
        [None, str, os.PathLike],
        """
        A directory, made where it is missing, for what was learned: written every few seconds, a
        file for every fit, named after its data and parameters. A fit that was killed goes on from
        there, and ends with the model that it would have had, bit for bit on the same engine and
        machine. Ctrl-C then stops after the current step. The files stay until you delete them.
        It needs a ``random_state``.
        """,
        of_the_machine=True,
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=True)
        tags.input_tags.sparse = self.missing != "impute"
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        given = self._given(X, y, sample_weight)
        pool = self._pool(given)
        options = self._options(pool)
        choices = Choices(self.n_averaged, options.prune, self.start_share, self._readouts())
        names = self._names()
        fit = fit_model(pool, given.classes, names, options, choices, self._run())
        everything = column_names(self, self.n_features_in_)
        warn_about_fit(fit, pool, options, everything, self._was_given("n_nonzero"))
        self.model_ = fit.model
        return self

    def _given(self, X: Any, y: Any, sample_weight: Any) -> Given:
        """The data, checked and weighted."""
        X, y = check_training(self, X, y, self.missing)
        check_classes(self, y)
        rows, weight = check_weights(sample_weight, self.class_weight, X, y)
        remark = " among the rows whose weight is not 0"
        classes, labels = check_classes(self, y[rows], remark)
        weighted = rows if len(rows) < len(y) else None
        return Given(InMemory(X, labels, weight, weighted), classes, y)

    def _pool(self, given: Given) -> Pool:
        """The rows that come into memory."""
        on_device = get_engine(self.engine).most_rows(given.source.shape[1])
        limits = RowLimits.of(
            self.max_rows, self.max_references, self.n_averaged, given.source, on_device
        )
        seed = new_seed(self.random_state) if limits.need_seed(given.source) else 0
        pool = pooled(given.source, limits, self.missing == "impute", seed)
        check_scales(pool.X, self.standardize, self.max_degree)
        return pool

    def _options(self, pool: Pool) -> LearningOptions:
        return learning_options(self.get_params(deep=False), pool, new_seed(self.random_state))

    def _readouts(self) -> list[Readout] | None:
        """The readouts to choose from; None for a model that only embeds."""
        return None

    def _run(self) -> Run:
        return Run(self.engine, self.n_jobs, self.checkpoint, bool(self.verbose))

    def _names(self) -> list[str] | None:
        """The names of the columns, if X had names."""
        named = hasattr(self, "feature_names_in_")
        return column_names(self, self.n_features_in_) if named else None

    def _was_given(self, name: str) -> bool:
        """Whether a parameter is not at its default."""
        return bool(getattr(self, name) != getattr(type(self)(), name))

    def _engine(self) -> Engine:
        """The engine of a fitted model, or another one if that is not on this machine."""
        return engine_at_hand(self.engine, self._run().threads)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _ready(self) -> Model:
        check_is_fitted(self)
        model: Model = self.model_
        return model

    @property
    def classes_(self) -> npt.NDArray[Any]:
        return self.model_.classes

    @property
    def class_count_(self) -> Index:
        return self.model_.class_count

    @property
    def start_share_(self) -> float:
        return self.model_.start_share

    @property
    def best_iter_(self) -> int:
        return self.model_.best_iter

    @property
    def n_iter_(self) -> int:
        return self.model_.n_attempts

    @property
    @one_blas_thread()
    def path_(self) -> npt.NDArray[Any]:
        return self.model_.history.table()

    def _checked(self, X: Any) -> Data:
        """Rows for the fitted model."""
        self._ready()
        return check_table(self, X, reset=False, missing=self.missing)

    def staged_transform(self, X: Any) -> Iterator[Float]:
        """The embedding after each accepted step of the fits, before pruning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, rank at that step)
        """
        X = self._checked(X)
        for metric in self.model_.history.metrics(self.metric_):
            with one_blas_thread():
                embedding = metric.transform(X)
            yield embedding

    def explain(self) -> Any:
        """What was learned, as data: terms, variables and the network of interactions.

        Returns
        -------
        metricboost.inspection.ModelExplanation
        """
        return explain_model(self._ready())

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        """The estimator that was saved.

        Parameters
        ----------
        saved : metricboost.storage.Saved

        Returns
        -------
        SDist or SDistClassifier
        """
        made = estimator_of(cls, saved.parameters)
        if not isinstance(saved.model, Model):
            raise ModelFileError(f"The file of a {cls.__name__} must hold a single model.")
        if (made._readouts() is None) != (saved.model.reading is None):
            wanted = "must" if saved.model.reading is None else "must not"
            raise ModelFileError(f"The model of a {cls.__name__} {wanted} have a readout.")
        made.model_ = saved.model
        restore_features(made, saved)
        return made


def new_seed(random_state: Any) -> int:
    """A seed, drawn from the parameter ``random_state``."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_seed(checkpoint: Any, random_state: Any) -> None:
    """Refuse a checkpoint without a seed: the fit that goes on must be the same fit."""
    if checkpoint is not None and random_state is None:
        raise ValueError(
            "checkpoint needs random_state to be a number: with None every fit is another one, "
            "and none goes on where it was stopped."
        )
