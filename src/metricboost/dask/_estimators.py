"""``SDist``, ``SDistClassifier`` and ``SDistClassifierCV`` for tables on a Dask cluster."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, Future, get_client, get_worker, rejoin, secede
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from .. import SDist as LocalSDist
from .. import SDistClassifier as LocalSDistClassifier
from .. import SDistClassifierCV as LocalSDistClassifierCV
from ..estimators._rows import Table
from ..estimators._validation import (
    check_classes,
    check_labels,
    column_names,
    complain_of_columns,
    numbers_of,
    present_labels,
    refuse_impossible,
)
from ..sources.cluster import Look, OnCluster, looked_at, parts_of, results


@contextmanager
def _thread_given_back() -> Iterator[None]:
    """For a fit inside a task: tasks of the fit may need the thread that the task has."""
    try:
        secede()
    except (ValueError, KeyError):  # there is no task, or it has given its thread back before
        yield
        return
    try:
        yield
    finally:
        rejoin()


class _Lazy:
    """What works on Dask collections partition by partition, and the client."""

    client: Any

    def _client(self) -> Client:
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from a dask array or dataframe.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
        y : array-like or dask collection of shape (n_samples,)
        sample_weight : array-like or dask collection of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        _refuse_no_table(self, X)
        with _thread_given_back():
            return super().fit(X, y, sample_weight)  # type: ignore[misc]

    def to_local(self: Any) -> Any:
        """The plain model, with nothing of the cluster in it."""
        check_is_fitted(self)
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "client"}
        local = self._local_class(**parameters)
        local.__dict__.update({k: v for k, v in self.__dict__.items() if k != "client"})
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

    def __sklearn_clone__(self: Any) -> Any:
        """The same parameters and the same client, which cannot be copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        copied = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copied, client=client)

    def __getstate__(self: Any) -> dict[str, Any]:
        """Without the client."""
        return {**super().__getstate__(), "client": None}  # type: ignore[misc]


class _LazyClassifier(_Lazy):
    """Predictions of Dask collections."""

    def predict(self, X: Any) -> Any:
        """The predicted class of every row; of a dask collection lazily."""
        if is_dask_collection(X):
            return self._by_partitions(X, "predict", True)
        return super().predict(X)  # type: ignore[misc]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes; of a dask collection lazily."""
        if is_dask_collection(X):
            return self._by_partitions(X, "predict_proba", False)
        return super().predict_proba(X)  # type: ignore[misc]

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are classified correctly, counted where the partitions are."""
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        client, model = self._client(), delayed(self.to_local(), pure=False, traverse=False)
        X = X.rechunk({1: -1}) if hasattr(X, "chunks") else X
        parts = parts_of(X, y, sample_weight, client)
        tasks = [delayed(_hits, pure=False)(model, part.X, part.y, part.weight) for part in parts]
        right, total = np.sum(list(results(client, tasks)), axis=0)
        return float(right / total)

    def _log_odds(self, X: Any) -> Any:
        return super()._log_odds(_in_memory(X))  # type: ignore[misc]

    def explain(self, X: Any = None, n_neighbors: int = 3) -> Any:
        """What was learned or, for given rows, why they are classified as they are."""
        return super().explain(_in_memory(X), n_neighbors)  # type: ignore[misc]

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Any:
        """A self-contained page about the model and how it does on some rows."""
        return super().report(_in_memory(X), _in_memory(y), title)  # type: ignore[misc]


def _hits(model: Any, X: Any, y: Any, weight: Any) -> tuple[float, float]:
    """The weight of the rows that are classified correctly, and of all rows."""
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    if not X.shape[0]:
        return 0.0, 0.0
    right = _as_here(model).predict(X) == np.ravel(np.asarray(y))
    return float(weight[right].sum()), float(weight.sum())


class _Distributed(_Lazy):
    """A fit whose table stays on the workers: only samples and summaries of it leave them."""

    def _prepared(self: Any, X: Any, y: Any, sample_weight: Any) -> Table:
        client = self._client()
        present_labels(self, y)
        X = X.rechunk({1: -1}) if hasattr(X, "chunks") else X
        self._set_features(X)
        parts = parts_of(X, y, sample_weight, client)
        impute = self.missing == "impute"
        looks = looked_at(client, parts, numbers_of, partial(present_labels, self))
        self._check_looks(looks, impute)
        classes, counts, weights = _classes_of(self, looks)
        n_rows = int(counts.sum())
        of_class = _class_weights(self.class_weight, classes, counts)
        of_class = of_class * (n_rows / float(of_class @ weights))
        kept = of_class > 0
        remark = "" if kept.all() else " among the rows whose weight is not 0"
        self.classes_, _ = check_classes(
            self, np.repeat(classes[kept], counts[kept].clip(0, 2)), remark
        )
        if not kept.all():
            raise ValueError(
                "class_weight gives a class the weight 0: with Dask, leave its rows out of X first."
            )
        sizes = [look.n_rows for look in looks]
        source = OnCluster(
            client, parts, sizes, self.n_features_in_, classes, counts, of_class, numbers_of
        )
        return self._table(source, None)

    def _check_looks(self: Any, looks: list[Look], impute: bool) -> None:
        n_rows = sum(look.n_rows for look in looks)
        if n_rows < 2:
            raise ValueError(f"X has {n_rows} row(s), and a distance is between rows.")
        names = column_names(self, self.n_features_in_)
        missing, infinite = (
            np.flatnonzero(np.any([getattr(look, kind) for look in looks], axis=0))
            for kind in ("missing", "infinite")
        )
        complain_of_columns([] if impute else missing, infinite, names)

    def _set_features(self: Any, X: Any) -> None:
        if X.ndim != 2:
            raise ValueError(
                f"Expected a table of rows and columns, got {X.ndim} dimension(s): reshape it."
            )
        self.n_features_in_ = int(X.shape[1]) if hasattr(X, "chunks") else len(X.columns)
        if not self.n_features_in_:
            raise ValueError("X has 0 columns: there is nothing to learn a distance from.")
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns"):
            twice = X.columns[X.columns.duplicated()]
            if len(twice):
                raise ValueError(f"Column {twice[0]!r} stands twice in X: rename one of them.")
            _check_feature_names(self, X._meta, reset=True)

    def _embedded(self: Any, X: Any) -> Any:
        return super()._embedded(_in_memory(X))  # type: ignore[misc]

    def staged_transform(self: Any, X: Any) -> Any:
        """The embedding after each accepted step of the fits, before pruning."""
        return super().staged_transform(_in_memory(X))  # type: ignore[misc]


def _classes_of(estimator: Any, looks: list[Look]) -> tuple[Any, Any, Any]:
    """The classes, and for each the rows with a weight and the sum of their weights."""
    given = np.concatenate([look.labels for look in looks])
    check_labels(estimator, given)
    classes, codes = np.unique(given, return_inverse=True)
    counts = np.bincount(codes, np.concatenate([look.counts for look in looks])).astype(np.intp)
    weights = np.bincount(codes, np.concatenate([look.weights for look in looks]))
    if not counts.sum():
        raise ValueError("All sample weights are zero: no row is left to learn from.")
    present = counts > 0
    return classes[present], counts[present], weights[present]


def _class_weights(class_weight: Any, classes: Any, counts: Any) -> Any:
    """The weight of every class; "balanced" as in scikit-learn."""
    if class_weight is None:
        return np.ones(len(classes))
    refuse_impossible(class_weight)
    if class_weight == "balanced":
        return counts.sum() / (len(classes) * counts)
    return compute_sample_weight(class_weight, classes)


def _refuse_no_table(estimator: Any, X: Any) -> None:
    taken = f"metricboost.dask takes dask arrays and dataframes, not {type(X).__name__}: "
    if isinstance(X, (Delayed, Future)):
        raise TypeError(f"{taken}make one with dask.array.from_delayed.")
    if not (is_dask_collection(X) and hasattr(X, "ndim")):
        name = type(estimator).__name__
        raise TypeError(f"{taken}metricboost.{name} is for tables in memory.")


@dataclass(frozen=True)
class _Method:
    """A method of a model, for partitions. A partition without rows gives an empty result."""

    model: Any
    name: str
    nothing: Any

    def __call__(self, part: Any) -> Any:
        if not part.shape[0]:  # a sparse block has no len
            return self.nothing
        return getattr(_as_here(self.model), self.name)(part)


def worker_threads() -> int | None:
    """The threads of the worker that runs this; None if no worker does."""
    try:
        return int(get_worker().state.nthreads)
    except ValueError:
        return None


def _as_here(model: Any) -> Any:
    """The model, with as many threads as the worker has if a worker runs this."""
    allowed = worker_threads()
    if allowed is None:
        return model
    model = copy(model)  # other tasks of the worker may share the model
    model.n_jobs = allowed
    if hasattr(model, "_readout"):
        model._readout = model._readout.with_engine(model._engine())
    if hasattr(model, "estimators_"):
        model.estimators_ = [_as_here(part) for part in model.estimators_]
        model.best_estimator_ = model.estimators_[0]
    return model


def _in_memory(X: Any) -> Any:
    """X, which is no dask collection: the whole collection would come to the client."""
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

    def __init__(self: Any, *args: Any, client: Client | None = None, **parameters: Any) -> None:
        local.__init__(self, *args, **parameters)
        self.client = client

    parameters = [*signature.parameters.values(), client]
    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


class SDist(_Distributed, LocalSDist):
    """``metricboost.SDist`` for a table on a Dask cluster.

    Column constants, medians, the moments of products and a sample of rows are computed where the
    partitions are. The client learns from the sample. Partitions are read several times: call
    ``X.persist()`` before if they take long to compute and fit into the memory of the workers.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client if None. Pickles do not contain the client.

    All other parameters are those of ``metricboost.SDist``.
    """

    _local_class = LocalSDist
    __init__ = _with_client(LocalSDist)


class SDistClassifier(_LazyClassifier, _Distributed, LocalSDistClassifier):
    """``metricboost.SDistClassifier`` for a table on a Dask cluster.

    As :class:`metricboost.dask.SDist`. Predictions of Dask collections are lazy, and are made
    where the partitions are.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client if None. Pickles do not contain the client.

    All other parameters are those of ``metricboost.SDistClassifier``.
    """

    _local_class = LocalSDistClassifier
    __init__ = _with_client(LocalSDistClassifier)


class SDistClassifierCV(_LazyClassifier, LocalSDistClassifierCV):
    """``metricboost.SDistClassifierCV`` for a table on a Dask cluster.

    All configurations learn from the same sample of rows.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster; the current client if None. Pickles do not contain the client.

    All other parameters are those of ``metricboost.SDistClassifierCV``. ``cv`` is a number of
    folds or a splitter.
    """

    _local_class = LocalSDistClassifierCV
    __init__ = _with_client(LocalSDistClassifierCV)

    def _base(self: Any) -> SDistClassifier:
        given = {} if self.estimator is None else self.estimator.get_params(deep=False)
        return SDistClassifier(**{**given, "client": self._client()})

    def to_local(self: Any) -> Any:
        """The plain model, with nothing of the cluster in it."""
        local = super().to_local()
        if hasattr(self, "estimators_"):
            local.estimators_ = [part.to_local() for part in self.estimators_]
            local.best_estimator_ = local.estimators_[0]
        return local
