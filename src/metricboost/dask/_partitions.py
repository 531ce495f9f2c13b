"""Methods of a fitted estimator on the partitions of a Dask collection."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from dask.base import is_dask_collection
from dask.delayed import delayed
from distributed import Client

from ..sources.cluster import parts_of, results
from ._given import check_columns, is_array, refuse_other_dimensions, whole_rows


@dataclass(frozen=True)
class OfPartition:
    """A method of an estimator, as a function of a partition.

    Attributes
    ----------
    estimator : SDist or SDistClassifierCV
        Without a client.
    method : str
    nothing : ndarray
        The result for a partition without rows.
    """

    estimator: Any
    method: str
    nothing: npt.NDArray[Any]

    def __call__(self, part: Any) -> npt.NDArray[Any]:
        if not part.shape[0]:  # a sparse matrix has no len
            return self.nothing
        result: npt.NDArray[Any] = getattr(self.estimator, self.method)(part)
        return result


def by_partitions(
    estimator: Any, method: str, X: Any, dtype: npt.DTypeLike, width: int | None = None
) -> Any:
    """The results of a method for the rows of a Dask collection, as a lazy collection.

    Parameters
    ----------
    estimator : SDist or SDistClassifierCV
        A fitted estimator. The results are those of the estimator as it is now, also if it is
        fitted again before they are computed.
    method : str
        The name of a method that takes rows in memory.
    X : dask array or dataframe
    dtype : dtype
        The type of the results.
    width : int, optional
        The number of columns of the results; None for one value a row.

    Returns
    -------
    dask array, or what ``map_partitions`` makes of a dataframe
    """
    refuse_other_dimensions(X)
    check_columns(estimator, X, reset=False)
    nothing = np.empty((0,) if width is None else (0, width), dtype=dtype)
    of_partition = OfPartition(copy(estimator), method, nothing)
    if not is_array(X):
        return X.map_partitions(of_partition, meta=nothing)
    X = whole_rows(X)
    if width is None:
        return X.map_blocks(of_partition, drop_axis=1, dtype=nothing.dtype, meta=nothing)
    chunks = X.chunks[0], (width,)
    return X.map_blocks(of_partition, chunks=chunks, dtype=nothing.dtype, meta=nothing)


def accuracy(estimator: Any, client: Client, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of the rows that are classified correctly, counted where the partitions are.

    Parameters
    ----------
    estimator : SDistClassifier or SDistClassifierCV
        A fitted estimator.
    client : distributed.Client
    X : dask array or dataframe
    y : array-like or dask collection
    sample_weight : array-like or dask collection, or None

    Returns
    -------
    float
    """
    parts = parts_of(whole_rows(X), y, sample_weight, client)
    classifier = delayed(copy(estimator), pure=False, traverse=False)
    tasks = [delayed(_hits, pure=False)(classifier, part.X, part.y, part.weight) for part in parts]
    right, total = np.sum(list(results(client, tasks)), axis=0)
    return float(right / total)


def _hits(classifier: Any, X: Any, y: Any, weight: Any) -> tuple[float, float]:
    """The weight of the rows that are classified correctly, and the weight of all rows."""
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    if not X.shape[0]:
        return 0.0, 0.0
    right = classifier.predict(X) == np.ravel(np.asarray(y))
    return float(weight[right].sum()), float(weight.sum())


def in_memory(X: Any) -> Any:
    """X, if it is not a Dask collection, whose rows would all come to the client."""
    if is_dask_collection(X):
        raise TypeError(
            "This method takes tables in memory: call X.compute() first, or use transform, predict "
            "or predict_proba, which take dask collections."
        )
    return X
