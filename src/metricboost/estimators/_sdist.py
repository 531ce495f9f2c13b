"""``SDist``: the learned metric as a scikit-learn transformer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._threads import one_blas_thread
from .._typing import Data, Float, Index
from ..engines import Engine, engine_at_hand, get_engine
from ..errors import ModelFileError
from ..inputs import check_classes, check_table, check_training, check_weights, column_names
from ..inspection import explain_model
from ..model import Blend, Model, SparseMetric
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
    """The checked arguments of ``fit``.

    Attributes
    ----------
    source : Source
        The rows whose weight is not 0.
    classes : ndarray
    y : ndarray or None
        The labels of all rows; None if they are not in memory.
    """

    source: Source
    classes: npt.NDArray[Any]
    y: npt.NDArray[Any] | None

    @property
    def n_rows(self) -> int:
        """The number of rows, including those whose weight is 0."""
        return self.source.shape[0] if self.y is None else len(self.y)


@declared
class SDist(SavingMixin, EmbeddingMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse non-linear distance metric learning by boosting (Ma & Zheng's sDist).

    ``SDist`` learns a sparse, low-rank, positive semi-definite metric on the columns and on
    products of columns. Under the metric, rows are close to their nearest neighbours of the same
    class and far from their nearest neighbours of the other classes. A product of columns becomes
    a candidate after a step has selected its factors, or if the screening of pairs has found it.
    ``transform`` embeds rows, so that Euclidean distances between embedded rows are distances
    under the metric.

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
        The number of training rows of each class.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each column in the metric. The shares sum to 1. A column that the metric does
        not use has the share 0.
    stability_ : ndarray of shape (n_features,)
        The share of the fits that used each column. The stability of terms is in
        ``metric_.terms``.
    start_share_ : float
        The share of the plain distance in ``metric_``.
    path_ : structured ndarray
        One row per accepted step, with the fields ``fit``, ``attempt``, ``weight``, ``loss``,
        ``complexity``, ``rank``, ``terms`` and ``refreshed``.
    best_iter_ : int
        The number of accepted steps in ``metric_``, summed over the fits.
    n_iter_ : int
        The number of attempted steps, summed over the fits.
    n_features_in_ : int
        The number of columns of X in ``fit``.
    feature_names_in_ : ndarray of str
        The names of the columns. The attribute exists only if X had column names.

    Notes
    -----
    There is no parameter ``warm_start``. The bag and the panel of an attempt depend only on the
    seed and the number of the attempt, so a fit with a larger ``max_iter`` repeats the shorter fit
    and continues it. Use ``init=model.metric_`` to continue from a metric on other data.

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
        The number of boosting steps that each fit attempts. A fit ends earlier if 10 attempts in a
        row are rejected (30 attempts if ``max_features`` makes each attempt see a random panel).
        """,
        of_a_fit=True,
    )
    n_neighbors: int = parameter(
        20,
        "int",
        [positive_integer()],
        """
        The number of neighbours that define the margin of a row during learning: this number of
        nearest rows of its own class, and this number of nearest rows of the other classes (see
        ``multiclass``).
        """,
        of_a_fit=True,
    )
    n_nonzero: int | float = parameter(
        16,
        "int or float",
        [positive_integer(), share()],
        """
        The largest number of terms that a step combines. An int is the number itself (the paper's
        kappa). A float in (0, 1] is a share of the candidates in the panel of the step (the
        paper's rho). With ``oob_gate``, a step keeps only as many of these terms as the rows
        outside its bag support.
        """,
        of_a_fit=True,
    )
    learning_rate: float = parameter(
        0.1,
        "float",
        [share()],
        """
        The factor by which the weight of every step is multiplied (the paper's nu).
        """,
        of_a_fit=True,
    )
    subsample: float = parameter(
        0.5,
        "float",
        [share()],
        """
        The share of the rows in the bag of a step, from which the step learns (the paper's eta).
        The rows are drawn without replacement.
        """,
        of_a_fit=True,
    )
    max_features: int | float | str | None = parameter(
        "auto",
        '"auto", None, "sqrt", int or float',
        [None, StrOptions({"auto", "sqrt"}), positive_integer(), share()],
        """
        The size of the panel: the candidate terms that are drawn at random for each step. An int
        is the number of candidates, a float in (0, 1] is their share, and "sqrt" is the square
        root of their number. None uses all candidates in every step. "auto" is "sqrt" for tables
        with fewer than 150 rows and 20 to 1000 columns, and all candidates for other tables. It
        also stops adding products once there are 4096 candidates, or twice as many candidates as
        columns if this number is larger.
        """,
        of_a_fit=True,
    )
    max_degree: int = parameter(
        2,
        "int",
        [Interval(Integral, 1, 1000, closed="both")],
        """
        The highest degree of a product of columns, from 1 to 1000. With 1 the metric is linear in
        the columns.
        """,
        of_a_fit=True,
    )
    refresh_every: int | None = parameter(
        10,
        "int or None",
        [None, positive_integer()],
        """
        The number of accepted steps after which the neighbours are searched for again, under the
        metric learned so far. None keeps the neighbours under the start metric.
        """,
        of_a_fit=True,
    )
    complexity_penalty: float = parameter(
        0.0,
        "float",
        [Interval(Real, 0, None, closed="left")],
        """
        The paper's lambda_C. Each fit is cut at the accepted step with the smallest value of
        ``loss + complexity_penalty * complexity``, where ``loss`` is summed over the rows. If the
        neighbours were searched for again, only the steps just after such a search are compared,
        because the loss jumps there. With 0 every accepted step is kept.
        """,
    )
    oob_gate: float | None = parameter(
        2.0,
        "float or None",
        [None, Interval(Real, None, None, closed="neither")],
        """
        A step is accepted only if its gain on the rows outside its bag is larger than this number
        of standard errors. None accepts every step that has a gain on its bag, as in the paper.
        The parameter has no effect with ``subsample=1``, because no row is outside the bag.
        """,
        of_a_fit=True,
    )
    screen_pairs: int | str = parameter(
        "auto",
        '"auto" or int',
        [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        """
        The largest number of pairs (products of two columns, and squares) that the screening adds
        to the candidates before the first step. A pair is added only if the difference of its
        means between the classes is larger than is to be expected from noise. An int screens all
        pairs and adds at most this number; 0 turns the screening off. "auto" adds at most as many
        pairs as there are columns. If ``rows * columns^2`` is larger than 1.6e11, "auto" screens
        only pairs of the columns that differ most between the classes, and ``fit`` warns. There is
        no screening with ``max_degree=1``.
        """,
        of_a_fit=True,
    )
    prune: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        Which variables stay in the metric. None keeps all variables. An int keeps this number of
        variables with the largest importance. "auto" prunes each of the ``n_averaged`` fits to as
        many variables as occur in all fits, in at least half of the fits, or in any fit. The
        smallest metric whose predictions for rows out of fold are not clearly worse is chosen.
        With ``n_averaged=1``, "auto" drops the variables that only one accepted step used, unless
        the leave-one-out error on the training rows becomes clearly larger.
        """,
    )
    init: Any = parameter(
        "zero",
        '"zero", "identity", SparseMetric or array of shape (n_features, n_features)',
        [StrOptions({"zero", "identity"}), "array-like", Hidden(SparseMetric)],
        """
        The metric from which boosting starts. "zero" is the zero metric; the first neighbours are
        then those under the Euclidean distance between the scaled columns. "identity" is this
        Euclidean distance. A matrix is a positive semi-definite metric over the scaled columns. A
        ``SparseMetric``, such as ``metric_`` of another model, brings its own constants for the
        columns that it uses, and its own ``clip``.
        """,
        of_a_fit=True,
    )
    standardize: bool = parameter(
        True,
        "bool",
        ["boolean"],
        """
        Whether the columns are centred and scaled to a standard deviation of 1. The metric keeps
        the constants, so tables for prediction are not scaled by the user. False uses the columns
        as they are.
        """,
        of_a_fit=True,
    )
    class_weight: Any = parameter(
        None,
        'dict, "balanced" or None',
        [dict, StrOptions({"balanced"}), None],
        """
        Factors for the weights of the rows of each class. A dict has a factor for each class.
        "balanced" uses factors that are inversely proportional to the number of rows of the class.
        With None every class has the factor 1.
        """,
    )
    missing: str = parameter(
        "error",
        '{"error", "impute"}',
        [StrOptions({"error", "impute"})],
        """
        How missing values are treated. "error" raises an error. "impute" replaces a missing value
        by the median of its column. If the share of missing values of a column differs
        significantly between the classes, an indicator column named ``missing(...)``, which is 1
        where a value was missing, is added. The metric keeps the medians and the indicators.
        """,
    )
    clip: float | None = parameter(
        3.0,
        "float or None",
        [None, Interval(Real, 0, None, closed="neither")],
        """
        Scaled values beyond this number of standard deviations are set to this number, so that a
        few outliers do not dominate a column and its products. None does not clip. Values are not
        clipped with ``standardize=False`` either.
        """,
        of_a_fit=True,
    )
    n_averaged: int = parameter(
        4,
        "int",
        [positive_integer()],
        """
        The number of fits whose metrics are averaged. Each fit leaves out one fold of the rows.
        Every row can therefore be classified once by a metric that was learned without the row;
        parameters that are "auto" are chosen by these predictions out of fold. The fits also
        measure the stability of each term. A class with fewer rows than ``n_averaged`` limits the
        number of fits. With 1 a single fit learns from all rows.
        """,
    )
    start_share: float | str = parameter(
        "auto",
        '"auto" or float',
        [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        """
        The share of the plain distance in the metric. The plain distance gives the same weight to
        all scaled columns. If every column matters a little, a sparse metric alone predicts worse.
        "auto" chooses 0, 0.5, 0.8 or 1 by predictions out of fold; with ``n_averaged=1``, or if
        ``prune`` is an int, "auto" is 0.
        """,
    )
    multiclass: str = parameter(
        "common",
        '{"common", "coded"}',
        [StrOptions({"common", "coded"})],
        """
        With more than two classes, the neighbours from which a row should be far. With "common"
        they are the ``n_neighbors`` nearest rows of all other classes together. With "coded" (the
        paper's coded loss) they are the ``n_neighbors`` nearest rows of each other class, and all
        classes have the same weight. Both learn one metric. Separate metrics for pairs of classes
        are not offered, because a single distance can be interpreted more easily.
        """,
        of_a_fit=True,
    )
    max_rows: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        The largest number of rows that a fit learns from. If a fold keeps more rows, its fit
        learns from a sample of them. None learns from every row. "auto" is 10,000 rows, with three
        exceptions: fewer rows if the sample would have more than 100 million numbers; more rows if
        some class would otherwise have fewer than 50 rows in the sample; and with the engine
        "torch" on a GPU as many rows as the free memory of the GPU holds, if this number is larger.
        Column constants, the medians for missing values and the screening of pairs still use all
        rows. The sample contains at least 50 rows of every class, or all rows of a smaller class.
        Weights restore the proportions of the classes.
        """,
    )
    max_references: int | str | None = parameter(
        "auto",
        '"auto", int or None',
        [None, StrOptions({"auto"}), positive_integer()],
        """
        The largest number of training rows among which predictions, including predictions out of
        fold, search for neighbours. None searches among all rows. "auto" is 50,000 rows, with two
        exceptions: fewer rows if these rows would have more than 200 million numbers, and more
        rows if some class would otherwise have fewer than 50 rows.
        """,
    )
    engine: str = parameter(
        "auto",
        '{"auto", "native", "numpy", "torch", "torch:cpu", "torch:cuda", "torch:cuda:1", ...}',
        [EngineName()],
        """
        The implementation of the computations. "native" is the C++ kernels and "numpy" is NumPy.
        "auto" uses the C++ kernels if they were built, and NumPy otherwise. "torch" needs PyTorch
        (``pip install "metricboost[gpu]"``) and computes on a GPU, in float32, if one is
        available. A colon and a name, as in "torch:cuda:1", select a device.
        """,
        of_the_machine=True,
    )
    random_state: Any = parameter(
        None,
        "int, RandomState instance or None",
        ["random_state"],
        """
        The seed of the folds, bags, panels and samples of rows. With None every fit has another
        seed.
        """,
    )
    n_jobs: int | None = parameter(
        None,
        "int or None",
        [None, positive_integer(), Interval(Integral, None, -1, closed="right")],
        """
        The number of threads in which the averaged fits run, and the choices after the fits. -1 is
        the number of cores. None is the number of threads that BLAS may use: all cores, unless an
        environment variable, threadpoolctl or a worker process of joblib sets a limit. If ``fit``
        is called in another thread than the main thread, for example in a thread of joblib or of a
        Dask worker, None is one thread. A single fit, and each fit of a table of more than 16
        million numbers, uses all of these threads; such fits run one after the other. The engine
        "torch" runs one fit at a time. The model does not depend on ``n_jobs``.
        """,
        of_the_machine=True,
    )
    verbose: int = parameter(
        0,
        "int",
        ["verbose"],
        """
        1 shows a line with the progress of the fit, and 0 shows nothing.
        """,
        of_the_machine=True,
    )
    checkpoint: str | os.PathLike[str] | None = parameter(
        None,
        "str, path or None",
        [None, str, os.PathLike],
        """
        A directory in which the fits store their progress; None stores nothing. The directory is
        created if it does not exist. Each fit writes its steps to a file every few seconds; the
        name of the file depends on the data and the parameters. If a fit was interrupted, calling
        ``fit`` again with the same data and parameters continues from the file. The resulting
        model is the same as without the interruption, bit for bit on the same engine and machine.
        With a checkpoint, Ctrl-C stops the fit after the current step. The files are not deleted
        automatically. ``checkpoint`` needs a ``random_state``.
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
    @one_blas_thread()  # so that results do not depend on the number of cores
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDist:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Arrays of float32 and float64 in any memory layout, and memory-mapped files
            (``np.load(mmap_mode="r")``), are used without a copy. A sparse matrix is converted to
            dense rows in small blocks.
        y : array-like of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the loss. Rows with the weight 0 are left out. By default every
            row has the weight 1.

        Returns
        -------
        self
        """
        check_seed(self.checkpoint, self.random_state)
        self.__dict__.pop("model_", None)  # a fit that fails leaves no model of an earlier table
        given = self._given(X, y, sample_weight)
        pool = self._pool(given)
        options = self._options(pool)
        choices = Choices(self.n_averaged, options.prune, self.start_share, self._readouts())
        names = self._names()
        fit = fit_model(pool, given.classes, names, options, choices, self._run(), given.n_rows)
        everything = column_names(self, self.n_features_in_)
        warn_about_fit(fit, pool, options, everything, self._was_given("n_nonzero"))
        self.model_ = fit.model
        return self

    def _given(self, X: Any, y: Any, sample_weight: Any) -> Given:
        """The checked table and labels, and the weights of the rows."""
        X, y = check_training(self, X, y, self.missing)
        check_classes(self, y)
        rows, weight = check_weights(sample_weight, self.class_weight, X, y)
        remark = " among the rows whose weight is not 0"
        classes, labels = check_classes(self, y[rows], remark)
        weighted = rows if len(rows) < len(y) else None
        return Given(InMemory(X, labels, weight, weighted), classes, y)

    def _pool(self, given: Given) -> Pool:
        """The rows that are held in memory."""
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
        """The names of the columns; None if X had no names."""
        named = hasattr(self, "feature_names_in_")
        return column_names(self, self.n_features_in_) if named else None

    def _was_given(self, name: str) -> bool:
        """Whether the value of a parameter differs from its default."""
        return bool(getattr(self, name) != getattr(type(self)(), name))

    def _engine(self) -> Engine:
        """The engine of the parameter ``engine``, or another one if it is not available here."""
        return engine_at_hand(self.engine, self._run().threads)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _ready(self) -> Model | Blend:
        check_is_fitted(self)
        model: Model | Blend = self.model_
        return model

    @property
    def classes_(self) -> npt.NDArray[Any]:
        return self._ready().classes

    @property
    def class_count_(self) -> Index:
        return self._ready().best.class_count

    @property
    def start_share_(self) -> float:
        return self._ready().best.start_share

    @property
    def best_iter_(self) -> int:
        return self._ready().best.best_iter

    @property
    def n_iter_(self) -> int:
        return self._ready().best.n_attempts

    @property
    @one_blas_thread()
    def path_(self) -> npt.NDArray[Any]:
        return self._ready().best.history.table()

    def _checked(self, X: Any) -> Data:
        """X as a table that the fitted model accepts."""
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
        for metric in self.model_.best.history.metrics(self.metric_):
            with one_blas_thread():
                embedding = metric.transform(X)
            yield embedding

    def explain(self) -> Any:
        """Explain the model: its terms, its variables and the network of interactions.

        Returns
        -------
        metricboost.inspection.ModelExplanation
        """
        return explain_model(self._ready())

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        """Restore an estimator from the content of a model file.

        Parameters
        ----------
        saved : metricboost.storage.Saved

        Returns
        -------
        SDist or SDistClassifier
        """
        made = estimator_of(cls, saved.parameters)
        if not isinstance(saved.model, Model | Blend):
            raise ModelFileError(
                f"The model file is damaged: the file of a {cls.__name__} must hold a model."
            )
        reading = saved.model.best.reading
        if (made._readouts() is None) != (reading is None):
            wanted = "must" if reading is None else "must not"
            raise ModelFileError(
                f"The model file is damaged: the model of a {cls.__name__} {wanted} have a readout."
            )
        made.model_ = saved.model
        restore_features(made, saved)
        return made


def new_seed(random_state: Any) -> int:
    """A seed, drawn from the parameter ``random_state``."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_seed(checkpoint: Any, random_state: Any) -> None:
    """Raise an error for a checkpoint without a seed, because the fit could not be continued."""
    if checkpoint is not None and random_state is None:
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} was given, but random_state is None. checkpoint needs "
            "random_state to be a number: with None every fit has another seed, so an interrupted "
            "fit cannot be continued. Set random_state to a number."
        )
