"""A table on a Dask cluster: reductions and samples are computed where the partitions are.

The client gets only the summaries of the partitions and the rows of a sample. Every pass computes
the partitions again, unless the user keeps them on the workers (``X.persist()``). If a worker is
lost, Dask computes its partitions again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from scipy import sparse

from .._blocks import is_sparse
from .._typing import Data, Float, Index
from ..inputs import Imputation, numbers_of, refuse_missing_labels
from .base import Block, S, Source
from .memory import InMemory

#: The share of the free memory of the client that the rows of a sample may take.
SHARE_OF_MEMORY = 0.5
#: The most different labels that the first pass returns of a partition.
MOST_LABELS = 100_000

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """A partition: its rows, their labels and their weights, which may be Dask values.

    Attributes
    ----------
    X, y : object
    weight : object
        None if no weights were given.
    """

    X: Any
    y: Any
    weight: Any = None


@dataclass(frozen=True)
class Look:
    """What the first pass finds in a partition.

    Attributes
    ----------
    n_rows : int
    labels : ndarray
        The different labels.
    counts, weights : ndarray
        For every label, the number of rows with a weight and the sum of the weights.
    missing, infinite : ndarray of bool
        For every column, whether it has missing or infinite values.
    """

    n_rows: int
    labels: Array
    counts: Index
    weights: Float
    missing: npt.NDArray[np.bool_]
    infinite: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Failed:
    """An error in a task of this module. All other errors come from the partitions of the user."""

    error: Exception


@dataclass(frozen=True)
class OnCluster(Source):
    """The rows of a Dask collection that have a weight.

    Parameters
    ----------
    client : distributed.Client
    parts : list of Part
    sizes : list of int
        The number of rows of every partition.
    n_columns : int
    classes : ndarray
    counts : ndarray of int
        The number of rows with a weight of every class.
    class_weight : ndarray
        The factor of the weights of the rows of every class.
    imputation : Imputation, default=None
        How missing values are filled; None if they are not.
    """

    client: Client
    parts: Sequence[Part]
    sizes: Sequence[int]
    n_columns: int
    classes: Array
    counts: Index
    class_weight: Float
    imputation: Imputation | None = None

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        extra = 0 if self.imputation is None else len(self.imputation.indicators)
        return int(self.counts.sum()), self.n_columns + extra

    @property
    def class_count(self) -> Index:  # type: ignore[override]
        return self.counts

    def imputed(self, imputation: Imputation) -> OnCluster:
        return replace(self, imputation=imputation)

    def reduce(
        self, summarise: Callable[[Block], S], columns: bool = True, least_rows: int = 1
    ) -> S:
        total: S | None = None
        tasks = (
            self._task(i, _reduced, columns, summarise, columns, least_rows)
            for i in self._with_rows()
        )
        for found in results(self.client, list(tasks)):
            if found is not None:
                total = found if total is None else total + found
        assert total is not None
        return total

    def take(self, numbers: Index) -> tuple[Data, Index, Float]:
        size = len(numbers) * self.shape[1] * 8
        free = int(psutil.virtual_memory().available)
        if size > SHARE_OF_MEMORY * free:
            raise ValueError(
                f"{len(numbers)} rows of {self.shape[1]} columns take {size / 1e9:.1f} GB, and "
                f"{free / 1e9:.1f} GB are free on the client: set max_rows and max_references to "
                'numbers, or to "auto".'
            )
        ends = np.searchsorted(numbers, np.cumsum([0, *self.sizes]))
        own = [(i, numbers[a:b]) for i, (a, b) in enumerate(pairwise(ends)) if b > a]
        parts = list(results(self.client, [self._task(i, _taken, True, rows) for i, rows in own]))
        X, labels, weight = zip(*parts)
        whole = sparse.vstack(X, format="csr") if is_sparse(X[0]) else np.concatenate(X)
        return whole, np.concatenate(labels), np.concatenate(weight)

    def _with_rows(self) -> list[int]:
        """The numbers of the partitions that have rows."""
        return [i for i, size in enumerate(self.sizes) if size]

    def _task(self, i: int, task: Callable[..., Any], columns: bool, *args: Any) -> Delayed:
        """A task on a partition, which the task gets as a table in memory.

        Without columns the task does not need the values of the partition.
        """
        first = int(np.sum(self.sizes[:i], dtype=np.intp))
        part = self.parts[i]
        shape = self.sizes[i], self.n_columns
        reading = _Reading(self.classes, self.class_weight, shape, first, self.imputation)
        X = part.X if columns else None
        return delayed(_guarded, pure=False, traverse=False)(
            task, reading, X, part.y, part.weight, *args
        )


@dataclass(frozen=True)
class _Reading:
    """Makes a table in memory of a partition. ``first`` is the number of its first row."""

    classes: Array
    class_weight: Float
    shape: tuple[int, int]
    first: int
    imputation: Imputation | None

    def __call__(self, X: Any, y: Any, weight: Any) -> InMemory:
        # All rows with a label that is not a class have the weight 0, so any class will do.
        labels = np.minimum(np.searchsorted(self.classes, natural(y)), len(self.classes) - 1)
        weights = self.class_weight[labels]
        if weight is not None:
            weights = weights * np.asarray(weight, dtype=np.float64)
        rows = np.flatnonzero(weights > 0)
        table: Data = sparse.csr_matrix(self.shape) if X is None else numbers_of(X)
        weighted = None if len(rows) == len(weights) else rows
        return InMemory(table, labels[rows], weights[rows], weighted, self.imputation, self.first)


def _guarded(
    task: Callable[..., Any], reading: _Reading, X: Any, y: Any, weight: Any, *args: Any
) -> Any:
    try:
        return task(reading(X, y, weight), *args)
    except Exception as error:
        return Failed(error)


def _reduced(
    table: InMemory, summarise: Callable[[Block], S], columns: bool, least_rows: int
) -> S | None:
    return table.reduce(summarise, columns, least_rows) if len(table.labels) else None


def _taken(table: InMemory, numbers: Index) -> tuple[Data, Index, Float]:
    return table.take(numbers)


def natural(y: Any) -> Array:
    """Labels as an array; if they are Python objects, as an array of the type of the objects."""
    labels = np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind != "O":
        return labels
    own = np.array(labels.tolist())
    return own if own.ndim == 1 else labels


def results(client: Client, tasks: list[Delayed]) -> Iterator[Any]:
    """The results of tasks, in order. The cluster drops each result once the client has it.

    Parameters
    ----------
    client : distributed.Client
    tasks : list of Delayed
        One for each partition.
    """
    futures = client.compute(tasks)
    try:
        for number in range(len(futures)):
            try:
                found = futures[number].result()
            except Exception as error:
                raise RuntimeError(
                    f"Partition {number} of {len(futures)} could not be computed: "
                    f"{type(error).__name__}: {error}. Correct the code that computes X, y or "
                    "sample_weight, and call again."
                ) from error
            futures[number].release()
            if isinstance(found, Failed):
                raise found.error
            yield found
    finally:
        client.cancel(futures)


def parts_of(X: Any, y: Any, weight: Any, client: Client) -> list[Part]:
    """The partitions of a table together with their labels and weights.

    Labels and weights with the partitions of the table stay on the workers. All others are brought
    to the client, which sends every partition its part of them.

    Parameters
    ----------
    X : dask array or dataframe
    y : array-like, future or dask collection
    weight : array-like, future or dask collection, or None
    client : distributed.Client
    """
    tables = np.ravel(X.to_delayed()).tolist()
    sizes = _known_sizes(X)
    given: list[list[Any]] = []
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is None:
            given.append([None] * len(tables))
        elif is_dask_collection(values) and _aligned(X, values):
            given.append(np.ravel(values.to_delayed()).tolist())
        else:
            values = _on_client(values, client)
            if sizes is None:
                tasks = [delayed(_n_rows, pure=False)(table) for table in tables]
                sizes = list(results(client, tasks))
            if len(values) != sum(sizes):
                raise ValueError(
                    f"X has {sum(sizes)} rows and {name} has {len(values)}: {name} needs one "
                    "value a row."
                )
            ends = np.cumsum([0, *sizes])
            given.append([values[a:b] for a, b in pairwise(ends)])
    return [Part(*part) for part in zip(tables, *given)]


def _n_rows(part: Any) -> int:
    return int(part.shape[0])


def _known_sizes(X: Any) -> list[int] | None:
    """The numbers of rows of the partitions; None if Dask does not know them."""
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    return None if np.isnan(sizes).any() else [int(size) for size in sizes]


def _aligned(X: Any, values: Any) -> bool:
    """Whether labels or weights have the partitions of X, as far as Dask knows."""
    one, other = _known_sizes(X), _known_sizes(values)
    if one is not None and other is not None:
        return one == other
    return bool(X.npartitions == values.npartitions)


def _on_client(values: Any, client: Client) -> Array:
    """Labels or weights in the memory of the client."""
    if isinstance(values, Future):
        values = values.result()
    if is_dask_collection(values):
        values = client.compute(values).result()
    return np.asarray(values)


def looked_at(client: Client, parts: Sequence[Part]) -> list[Look]:
    """The first pass: rows, labels, and columns with missing or infinite values.

    Parameters
    ----------
    client : distributed.Client
    parts : list of Part
    """
    look = delayed(_look, pure=False, traverse=False)
    return list(results(client, [look(part.X, part.y, part.weight) for part in parts]))


def _look(X: Any, y: Any, weight: Any) -> Look | Failed:
    try:
        table = numbers_of(X)
        refuse_missing_labels(y)
        return _looked(table, natural(y), weight)
    except Exception as error:
        return Failed(error)


def _looked(X: Data, y: Array, given: Any) -> Look:
    if len(y) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)} in a partition.")
    weight = np.ones(len(y)) if given is None else np.asarray(given, dtype=np.float64)
    if weight.shape != (len(y),):
        raise ValueError(
            f"X has {len(y)} rows and sample_weight has {weight.size} values in a partition: every "
            "row needs one."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight has values that are negative or not finite.")
    labels, codes = np.unique(y, return_inverse=True)
    weighted = np.bincount(codes[weight > 0], minlength=len(labels))
    sums = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
    missing, infinite = (_anywhere(test, X) for test in (np.isnan, np.isinf))
    return Look(len(y), labels[:MOST_LABELS], weighted, sums, missing, infinite)


def _anywhere(test: Callable[[Any], Any], X: Data) -> npt.NDArray[np.bool_]:
    """The columns in which a test holds for any value. The test must not hold for 0."""
    if is_sparse(X):
        found = np.zeros(X.shape[1], dtype=bool)
        found[X.indices[test(X.data)]] = True
        return found
    result: npt.NDArray[np.bool_] = test(X).any(axis=0)
    return result
