"""``SDist``, ``SDistClassifier`` and ``SDistClassifierCV`` for tables on a Dask cluster.

Each class is the estimator for tables in memory, with a source on the cluster in ``fit`` and with
lazy results for Dask collections. A pickle or a copy of an estimator has no client, because a
client cannot leave its process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from dask.base import is_dask_collection
from distributed import Client, get_client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._typing import Data
from ..engines import Engine, engine_at_hand
from ..estimators import Given, declared, parameter, parameter_of
from ..estimators import SDist as LocalSDist
from ..estimators import SDistClassifier as LocalSDistClassifier
from ..estimators import SDistClassifierCV as LocalSDistClassifierCV
from ..model import Model
from ..report import Report
from ._given import given_on_cluster, refuse_other_tables
from ._partitions import accuracy, by_partitions, in_memory
from ._workers import thread_given_back, worker_threads


class OnDask:
    """What all three estimators share: ``fit`` and ``transform`` of Dask collections."""

    client: Client | None
    #: The class of the estimator for tables in memory.
    _local_class: ClassVar[type]

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
        refuse_other_tables(self, X)
        with thread_given_back():
            return super().fit(X, y, sample_weight)  # type: ignore[misc]

    def transform(self, X: Any) -> Any:
        """Embed rows: Euclidean distances between the results are distances under the metric.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank); of a dask collection a lazy one
        """
        if not is_dask_collection(X):
            return super().transform(X)  # type: ignore[misc]
        check_is_fitted(self)
        rank: int = self._n_features_out  # type: ignore[attr-defined]
        return by_partitions(self, "_embedded", X, np.float64, rank)

    def to_local(self) -> Any:
        """The estimator for tables in memory, with the same parameters and the same model.

        Returns
        -------
        metricboost.SDist, metricboost.SDistClassifier or metricboost.SDistClassifierCV
        """
        check_is_fitted(self)
        return with_fitted_attributes(without_client(self), self)

    def _checked(self, X: Any) -> Data:
        return super()._checked(in_memory(X))  # type: ignore[misc]

    def __sklearn_clone__(self) -> Any:
        """The same parameters and the same client, which cannot be copied."""
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        copied = {name: clone(given[name], safe=False) for name in given if name != "client"}
        return type(self)(**copied, client=self.client)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # type: ignore[dict-item]


class LearnsOnDask(OnDask):
    """A fit whose table stays on the workers: only samples and sums of it leave them."""

    engine: str

    def _given(self, X: Any, y: Any, sample_weight: Any) -> Given:
        return given_on_cluster(self, usable_client(self.client), X, y, sample_weight)  # type: ignore[arg-type]

    def _engine(self) -> Engine:
        """The engine of a fitted model; on a worker it has the threads of the worker."""
        threads = worker_threads()
        if threads is None:
            engine: Engine = super()._engine()  # type: ignore[misc]
            return engine
        return engine_at_hand(self.engine, threads)


class ClassifiesOnDask(OnDask):
    """Predictions for Dask collections."""

    def predict(self, X: Any) -> Any:
        """The predicted class of every row.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); of a dask collection a lazy one
        """
        if not is_dask_collection(X):
            return super().predict(X)  # type: ignore[misc]
        classes = self._ready().classes  # type: ignore[attr-defined]
        return by_partitions(self, "predict", X, classes.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, calibrated on rows out of fold.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); of a dask collection a lazy one
        """
        if not is_dask_collection(X):
            return super().predict_proba(X)  # type: ignore[misc]
        classes = self._ready().classes  # type: ignore[attr-defined]
        return by_partitions(self, "predict_proba", X, np.float64, len(classes))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the rows that are classified correctly, counted where the partitions are.

        Parameters
        ----------
        X : array-like or dask collection of shape (n_samples, n_features)
        y : array-like or dask collection of shape (n_samples,)
        sample_weight : array-like or dask collection of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        self._ready()  # type: ignore[attr-defined]
        return accuracy(self, usable_client(self.client), X, y, sample_weight)

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Report:
        """A self-contained page about the model and how it does on some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows in memory to show. Best are rows that the model has not seen.
        y : array-like of shape (n_samples,), optional
            Their classes.
        title : str, optional

        Returns
        -------
        metricboost.report.Report
            With ``html``, ``save`` and ``open``. A notebook shows it.
        """
        page: Report = super().report(X, in_memory(y), title)  # type: ignore[misc]
        return page


def usable_client(client: Client | None) -> Client:
    """The client that is given, or the current client; an error if a fit cannot use it."""
    if client is None:
        try:
            client = get_client()
        except ValueError as error:
            raise ValueError(
                "There is no cluster to fit on: pass client=distributed.Client(...), or make one "
                "before."
            ) from error
    if client.asynchronous:
        raise TypeError(
            "client is asynchronous, and a fit waits for its results: pass a Client without "
            "asynchronous=True."
        )
    return client


def without_client(estimator: Any) -> Any:
    """The estimator for tables in memory with the same parameters, not fitted."""
    if not isinstance(estimator, OnDask):
        return estimator
    given: Mapping[str, Any] = estimator.get_params(deep=False)  # type: ignore[attr-defined]
    kept = {name: without_client(value) for name, value in given.items() if name != "client"}
    return estimator._local_class(**kept)


def with_fitted_attributes(estimator: Any, fitted: Any) -> Any:
    """An estimator with the fitted attributes of another one with the same parameters."""
    parameters = fitted.get_params(deep=False)
    state = fitted.__getstate__()  # without what is made again
    attributes = {name: value for name, value in state.items() if name not in parameters}
    vars(estimator).update(attributes)
    return estimator


@declared
class SDist(LearnsOnDask, LocalSDist):
    """:class:`metricboost.SDist` for a table on a Dask cluster.

    Column constants, medians, the moments of products and a sample of rows are computed where the
    partitions are. The client learns from the sample. The partitions are read several times: call
    ``X.persist()`` before ``fit`` if they take long to compute and fit into the memory of the
    workers.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Model
        The fitted model. The other attributes are those of :class:`metricboost.SDist`.
    """

    _local_class = LocalSDist

    client: Client | None = parameter(
        None,
        "distributed.Client",
        [None, Client],
        """
        The cluster; the current client if None. Pickles do not contain the client.
        """,
        of_the_machine=True,
    )


@declared
class SDistClassifier(ClassifiesOnDask, LearnsOnDask, LocalSDistClassifier):
    """:class:`metricboost.SDistClassifier` for a table on a Dask cluster.

    ``fit`` is that of :class:`metricboost.dask.SDist`. Predictions of Dask collections are lazy.
    They are made where the partitions are.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Model
        The fitted model. The other attributes are those of :class:`metricboost.SDistClassifier`.
    """

    _local_class = LocalSDistClassifier

    client: Client | None = parameter_of(SDist, "client")


@declared
class SDistClassifierCV(ClassifiesOnDask, LocalSDistClassifierCV):
    """:class:`metricboost.SDistClassifierCV` for a table on a Dask cluster.

    All configurations learn from the same sample of rows. ``cv`` is a number of folds or a
    splitter, because the folds divide the sample.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Blend
        The models whose log odds are averaged, the best one first. The other attributes are those
        of :class:`metricboost.SDistClassifierCV`.
    """

    _local_class = LocalSDistClassifierCV

    client: Client | None = parameter_of(SDist, "client")

    def _base(self) -> LocalSDistClassifier:
        base = LocalSDistClassifier() if self.estimator is None else clone(self.estimator)
        local: LocalSDistClassifier = without_client(base)
        return local

    def _given(self, base: LocalSDistClassifier, X: Any, y: Any, sample_weight: Any) -> Given:
        return given_on_cluster(base, usable_client(self.client), X, y, sample_weight)

    def _classifier(self, model: Model, parameters: Mapping[str, Any]) -> LocalSDistClassifier:
        made = SDistClassifier(**parameters, client=self.client)
        fitted: LocalSDistClassifier = with_fitted_attributes(
            made, super()._classifier(model, parameters)
        )
        return fitted
