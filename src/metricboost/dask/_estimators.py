"""``SDist`` and ``SDistClassifier`` for tables on a Dask cluster."""

from __future__ import annotations

import inspect
import sys
from copy import copy
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from dask.base import compute, is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future, get_client
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .. import SDist as LocalSDist
from .. import SDistClassifier as LocalSDistClassifier
from .._threads import one_blas_thread
from .._typing import Index
from ..boosting.learn import Learned, LearningOptions, pruned
from ..boosting.start import start_scaling
from ..checkpoints import checkpoints_in
from ..engines import Engine, get_engine
from ..estimators._options import Table
from ..estimators._progress import ProgressLine
from ..estimators._validation import (
    check_classes,
    check_labels,
    check_weights,
    column_names,
)
from ..estimators._workers import threads
from ..selection.crossfit import (
    READOUT_FOLDS,
    CrossFit,
    Fold,
    affordable_folds,
    fold_options,
    fold_weights,
    split_rows,
)
from ._learn import learn_distributed
from ._shards import worker_threads
from ._table import Partitions
from ._tasks import thread_given_back

#: What travels in every step; the rest does so at refreshes.
OF_A_STEP = ("weights", "power iterations", "panel", "gate", "line")
#: What ``exchanged_`` has beside bytes.
COUNTS = ("halo rows", "attempts")


@dataclass(frozen=True)
class _Elsewhere:
    """Stands for a table that is not here."""

    shape: tuple[int, int]


class _Distributed:
    """A fit whose rows stay on the workers; all that follows it is as for any table.

    Of the table the client sees the labels and, once the metrics are learned, the columns that
    they use.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the metric from a dask array or dataframe."""
        self._refuse_no_table(X)
        self._partitions: Partitions | None = None
        try:
            with thread_given_back():
                return super().fit(X, y, sample_weight)  # type: ignore[misc]
        finally:
            if self._partitions is not None:
                self._partitions.tasks.close()
            self._partitions = None  # the workers need not keep the table

    def _prepared(self: Any, X: Any, y: Any, sample_weight: Any) -> Table:
        self._refuse_what_needs_all_columns()
        client = self._client()
        y, sample_weight = (_here(given, client) for given in (y, sample_weight))
        y = check_labels(self, y)
        self._partitions = Partitions.of(client, X)
        self._set_features(X)
        n = self._partitions.n_rows
        if len(y) != n:
            raise ValueError(f"X has {n} rows and y has {len(y)}: y needs one label a row.")
        names = column_names(self, self.n_features_in_)
        self._partitions.check(names, self.standardize, self.max_degree)
        check_classes(self, y)
        rows, weight = check_weights(sample_weight, self.class_weight, y[:, None], y)
        remark = " among the rows with a weight" if len(rows) < n else ""
        self.classes_, labels = check_classes(self, y[rows], remark)
        self.class_count_ = np.bincount(labels)
        self._training_rows = rows
        shape = len(rows), self._partitions.n_columns
        return Table(_Elsewhere(shape), labels, weight, None, rows, n, y)

    def _refuse_no_table(self, X: Any) -> None:
        taken = f"metricboost.dask takes dask arrays and dataframes, not {type(X).__name__}: "
        if isinstance(X, (Delayed, Future)):
            raise TypeError(f"{taken}make one with dask.array.from_delayed.")
        if not (is_dask_collection(X) and hasattr(X, "ndim")):
            name = type(self).__name__
            raise TypeError(f"{taken}metricboost.{name} is for tables in memory.")

    def _refuse_what_needs_all_columns(self: Any) -> None:
        if self.start_share not in ("auto", 0, 0.0):
            raise ValueError("start_share needs all columns of all rows: it must be 0 with Dask.")
        if self.missing != "error":
            raise ValueError('missing="impute" is not available with Dask: impute first.')

    def _set_features(self: Any, X: Any) -> None:
        self.n_features_in_ = self._partitions.n_columns
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns"):
            twice = X.columns[X.columns.duplicated()]
            if len(twice):
                raise ValueError(f"Column {twice[0]!r} stands twice in X: rename one of them.")
            _check_feature_names(self, X._meta, reset=True)

    def _cross_fit(self: Any, table: Table, options: LearningOptions) -> CrossFit:
        smallest = int(np.bincount(table.labels).min())
        n_folds = affordable_folds(table.labels, self.n_averaged)
        engine = get_engine(self.engine, threads(self.n_jobs), self.device)
        line = ProgressLine(options.boosting.max_iter) if self.verbose else None
        seed, everything = options.boosting.seed, np.arange(len(table.labels))
        split = split_rows(table.labels, n_folds, seed) if n_folds > 1 else []
        if split and all(self._varies(table.rows[kept], options) for kept, _ in split):
            each = [(kept, fold_options(options, j)) for j, (kept, _) in enumerate(split)]
        else:
            split = split_rows(table.labels, min(READOUT_FOLDS, smallest), seed)
            each = [(everything, options)]
        fits: list[Learned] = []
        self.exchanged_ = []
        with checkpoints_in(self.checkpoint, self._partitions.digest) as kept_in:
            for j, (kept, own) in enumerate(each):
                learned, exchanged = learn_distributed(
                    self._partitions, table.labels[kept], fold_weights(table.weight, kept), own,
                    table.rows[kept], None if line is None else line.fold(j, len(each)), kept_in,
                )  # fmt: skip
                fits.append(learned)
                self.exchanged_.append(exchanged)
        if line is not None:
            line.close([fit.path for fit in fits])
            self._say_what_travelled()
        return self._with_columns(table, options, fits, split, engine)

    def _varies(self: Any, kept: Index, options: LearningOptions) -> bool:
        """Whether anything does in some rows."""
        scaling = self._partitions.scaling(kept, options.standardize, options.clip)
        return len(scaling.kept) > 0

    def _say_what_travelled(self: Any) -> None:
        for number, exchanged in enumerate(self.exchanged_, 1):
            known = (*OF_A_STEP, *COUNTS)
            rest = sum(n for name, n in exchanged.items() if name not in known)
            sys.stderr.write(
                f"fit {number}: {bytes_of_a_step(exchanged) / 1e6:.2f} MB between workers a step, "
                f"{rest / 1e6:.2f} MB for neighbours; {exchanged['halo rows']} rows in halos\n"
            )

    def _with_columns(
        self: Any,
        table: Table,
        options: LearningOptions,
        fits: list[Learned],
        split: list[tuple[Index, Index]],
        engine: Engine,
    ) -> CrossFit:
        """The fits over the columns that they use: these come here, and no others.

        A fit that learned nothing is the plain distance, which uses all.
        """
        used = np.unique([j for fit in fits for term in fit.terms for j in term])
        X = self._partitions.columns(used.astype(np.intp), table.rows)
        if len(fits) == 1 and fits[0].best_iter and options.prune is not None:
            with one_blas_thread():
                fits = [pruned(fits[0], X, None, table.labels, engine, options.prune)]
        scaling = start_scaling(
            self._partitions.scaling(table.rows, options.standardize, options.clip), options.init
        )
        folds = [Fold(fits[j % len(fits)], kept, out) for j, (kept, out) in enumerate(split)]
        n_classes = int(table.labels.max()) + 1
        return CrossFit(
            X, table.labels, table.weight, n_classes, engine, folds, scaling, len(fits) == 1
        )

    def _client(self: Any) -> Client:
        client = self.client
        if client is None:
            try:
                client = get_client()
            except ValueError as error:
                raise ValueError(
                    "There is no cluster to fit on: pass client=distributed.Client(...), or make "
                    "one before."
                ) from error
        if not isinstance(client, Client):
            raise TypeError(f"client is a {type(client).__name__}: pass a distributed.Client.")
        if client.asynchronous:
            raise TypeError(
                "client is asynchronous, and a fit waits for its results: pass a Client without "
                "asynchronous=True."
            )
        return client

    def to_local(self: Any) -> Any:
        """The plain model, with nothing of the cluster in it."""
        check_is_fitted(self)
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "client"}
        local = self._local_class(**parameters)
        local.__dict__.update(
            {k: v for k, v in self.__dict__.items() if k not in ("client", "_partitions")}
        )
        return local

    def _by_partitions(self: Any, X: Any, method: str, one_column: bool) -> Any:
        """A method of the plain model on every partition of a dask collection, lazily."""
        if X.ndim != 2:
            raise ValueError(f"Expected rows and columns, got {X.ndim} dimension(s): reshape it.")
        model = self.to_local()
        if hasattr(model, "set_output"):
            model.set_output(transform="default")  # a partition is an array
        if not hasattr(X, "chunks"):
            like = np.asarray(getattr(model, method)(_one_row(self, X)))
            return X.map_partitions(_Method(model, method, like[:0]), meta=like[:0])
        X = X.rechunk({1: -1})
        like = np.asarray(getattr(model, method)(np.zeros((1, X.shape[1]))))
        run = _Method(model, method, like[:0])
        if one_column:
            return X.map_blocks(run, drop_axis=1, dtype=like.dtype, meta=like[:0])
        chunks = X.chunks[0], (like.shape[1],)
        return X.map_blocks(run, chunks=chunks, dtype=like.dtype, meta=like[:0])

    def transform(self: Any, X: Any) -> Any:
        """Embed rows; of a dask collection lazily, partition by partition."""
        if is_dask_collection(X):
            return self._by_partitions(X, "transform", False)
        return super().transform(X)  # type: ignore[misc]

    def _embedded(self: Any, X: Any) -> Any:
        return super()._embedded(_in_memory(X))  # type: ignore[misc]

    def staged_transform(self: Any, X: Any) -> Any:
        """The embedding after each accepted step of the fits, before pruning."""
        return super().staged_transform(_in_memory(X))  # type: ignore[misc]

    def __sklearn_clone__(self: Any) -> Any:
        """The same parameters and the same client, which cannot be copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        copied = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copied, client=client)

    def __getstate__(self: Any) -> dict[str, Any]:
        """Without the client and what is on its workers."""
        state = dict(super().__getstate__())  # type: ignore[misc]
        state["client"] = None
        state.pop("_partitions", None)
        return state


@dataclass(frozen=True)
class _Method:
    """Of a model, on partitions; those without rows give what is of none."""

    model: Any
    name: str
    nothing: Any

    def __call__(self, part: Any) -> Any:
        if not part.shape[0]:  # a sparse block has no len
            return self.nothing
        return getattr(_as_here(self.model), self.name)(part)


def _as_here(model: Any) -> Any:
    """The model, with as many threads as the worker has where this is one."""
    allowed = worker_threads()
    if allowed is None:
        return model
    model = copy(model)  # other tasks of the worker may share it
    model.n_jobs = allowed
    if hasattr(model, "_readout"):
        model._readout = model._readout.with_engine(model._engine())
    return model


def bytes_of_a_step(exchanged: dict[str, int]) -> float:
    """Between workers, over the attempts of this run: those of a checkpoint sent nothing."""
    return sum(exchanged.get(name, 0) for name in OF_A_STEP) / max(exchanged["attempts"], 1)


def _here(given: Any, client: Client) -> Any:
    """Labels or weights, in memory."""
    if given is None or isinstance(given, Number):
        return given
    if isinstance(given, Future):
        return np.asarray(given.result())
    return np.asarray(compute(given, scheduler=client)[0])


def _in_memory(X: Any) -> Any:
    """X, which is no dask collection: it would come to the client as a whole, unasked."""
    if is_dask_collection(X):
        raise TypeError(
            "This method takes tables in memory: call X.compute() first, or use transform, predict "
            "or predict_proba, which take dask collections."
        )
    return X


def _one_row(model: Any, X: Any) -> Any:
    """A row with the columns of a dataframe, which must be those of the fit."""
    _check_feature_names(model, X._meta, reset=False)
    return X._meta.reindex([0]).astype(float).fillna(0.0)


def _with_client(local: type) -> Any:
    """The parameters of the plain estimator, and the client."""
    signature = inspect.signature(local.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
    start_share = signature.parameters["start_share"].replace(default=0.0)
    parameters = [
        start_share if name == "start_share" else parameter
        for name, parameter in signature.parameters.items()
    ]

    def __init__(self: Any, *args: Any, client: Client | None = None, **parameters: Any) -> None:
        local.__init__(self, *args, **{"start_share": 0.0, **parameters})
        self.client = client

    __init__.__signature__ = signature.replace(parameters=[*parameters, client])  # type: ignore[attr-defined]
    return __init__


class SDist(_Distributed, LocalSDist):
    """``metricboost.SDist`` for a table on a Dask cluster.

    Partitions stay on their workers, each of which has one shard of the rows. In every step
    projections of the rows that neighbours on other workers need travel, never rows of the table;
    at a refresh the embedding does. The client sees the labels and, at the end, the columns
    that the metrics use. A worker that is lost costs what it held, which is computed anew.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client where it is None. It is not kept in pickles.
    start_share : 0.0
        No share of the plain metric: it would need all columns.

    All other parameters are those of ``metricboost.SDist``; ``missing`` must be "error".

    Attributes
    ----------
    exchanged_ : list of dict
        For every fit the bytes that travelled between workers, by what for, and the rows in halos;
        and the attempts of this run, without those of a checkpoint.

    All others are those of ``metricboost.SDist``.
    """

    _local_class = LocalSDist
    __init__ = _with_client(LocalSDist)


class SDistClassifier(_Distributed, LocalSDistClassifier):
    """``metricboost.SDistClassifier`` for a table on a Dask cluster.

    As ``metricboost.dask.SDist``; the readout is chosen by the embedded rows, and classifies by
    them, so they come to the client. Predictions for dask collections are lazy.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client where it is None. It is not kept in pickles.
    start_share : 0.0
        No share of the plain metric: it would need all columns.

    All other parameters are those of ``metricboost.SDistClassifier``.
    """

    _local_class = LocalSDistClassifier
    __init__ = _with_client(LocalSDistClassifier)

    def predict(self, X: Any) -> Any:
        """The predicted class of every row; of a dask collection lazily."""
        return (
            self._by_partitions(X, "predict", True) if is_dask_collection(X) else super().predict(X)
        )

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; of a dask collection lazily."""
        if is_dask_collection(X):
            return self._by_partitions(X, "predict_proba", False)
        return super().predict_proba(X)

    def explain(self, X: Any = None, n_neighbors: int = 3) -> Any:
        """What was learned or, for given rows, why they are classified as they are."""
        return super().explain(_in_memory(X), n_neighbors)

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Any:
        """A self-contained page about the model and how it does on some rows."""
        return super().report(_in_memory(X), _in_memory(y), title)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are classified correctly."""
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        client = self._client()
        y, sample_weight = (_here(given, client) for given in (y, sample_weight))
        predicted = _here(self.predict(X), client)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
