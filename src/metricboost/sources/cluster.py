"""A table on a Dask cluster: reductions and samples are computed where the partitions are.

The client never has more than the summaries of partitions and the rows of a sample. Partitions are
computed again in every pass, unless the user keeps them on the workers (``X.persist()``). If a
worker is lost, Dask computes its partitions again.
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
from ..inputs.imputation import Imputation
from .base import Block, S, Source
from .memory import InMemory

#: The share of the client's free memory that rows may take.
SHARE_OF_MEMORY = 0.5
#: The most different labels of a partition that are looked at.
MOST_LABELS = 100_000

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """A partition: its rows, labels and weights, which may be values to compute."""

    X: Any
    y: Any
    weight: Any = None


@dataclass(frozen=True)
class Look:
    """What is known of a partition after the first pass."""

    n_rows: int
    labels: Array
    counts: Index
    weights: Float
    missing: npt.NDArray[np.bool_]
    infinite: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Failed:
    """An error of our own tasks. Any other error is one of the user's partitions."""

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
        Rows with a weight of every class.
    class_weight : ndarray
        What the weights of the rows of every class are multiplied by.
    read : callable
        From a partition to a table in memory; it refuses what is no number.
    """

    client: Client
    parts: Sequence[Part]
    sizes: Sequence[int]
    n_columns: int
    classes: Array
    counts: Index
    class_weight: Float
    read: Callable[[Any], Data]
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
            self._task(i, _reduced, columns, summarise, columns, least_rows) for i in self._full()
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

    def _full(self) -> list[int]:
        return [i for i, size in enumerate(self.sizes) if size]

    def _task(self, i: int, task: Callable[..., Any], columns: bool, *args: Any) -> Delayed:
        """A task on the rows of a partition, as a table in memory."""
        first = int(np.sum(self.sizes[:i], dtype=np.intp))
        part = self.parts[i]
        reading = _Reading(
            self.classes, self.class_weight, self.read if columns else None, self.n_columns,
            self.sizes[i], first, self.imputation,
        )  # fmt: skip
        X = part.X if columns else None
        return delayed(_guarded, pure=False, traverse=False)(
            task, reading, X, part.y, part.weight, *args
        )


@dataclass(frozen=True)
class _Reading:
    """How a partition becomes a table in memory."""

    classes: Array
    class_weight: Float
    read: Callable[[Any], Data] | None
    n_columns: int
    n_rows: int
    first: int
    imputation: Imputation | None

    def __call__(self, X: Any, y: Any, weight: Any) -> InMemory:
        # A label that is no class has only rows without a weight.
        labels = np.minimum(np.searchsorted(self.classes, natural(y)), len(self.classes) - 1)
        weights = self.class_weight[labels]
        if weight is not None:
            weights = weights * np.asarray(weight, dtype=np.float64)
        rows = np.flatnonzero(weights > 0)
        if self.read is None:
            table: Data = sparse.csr_matrix((self.n_rows, self.n_columns))
        else:
            table = self.read(X)
        every = len(rows) == self.n_rows
        return InMemory(
            table, labels[rows], weights[rows], None if every else rows, self.imputation, self.first
        )


def _guarded(task: Callable[..., Any], reading: _Reading, X: Any, y: Any, w: Any, *a: Any) -> Any:
    try:
        return task(reading(X, y, w), *a)
    except Exception as error:
        return Failed(error)


def _reduced(
    table: InMemory, summarise: Callable[[Block], S], columns: bool, least_rows: int
) -> S | None:
    return table.reduce(summarise, columns, least_rows) if len(table.labels) else None


def _taken(table: InMemory, numbers: Index) -> tuple[Data, Index, Float]:
    return table.take(numbers)


def natural(y: Any) -> Array:
    """Labels that came as Python objects as an array of their own type."""
    labels = np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind != "O":
        return labels
    own = np.array(labels.tolist())
    return own if own.ndim == 1 else labels


def results(client: Client, tasks: list[Delayed]) -> Iterator[Any]:
    """The results of tasks, one for each partition, in order; each is dropped once it was taken."""
    futures = client.compute(tasks)
    try:
        for number in range(len(futures)):
            try:
                found = futures[number].result()
            except Exception as error:
                raise RuntimeError(
                    f"Partition {number} of {len(futures)} could not be computed: "
                    f"{type(error).__name__}: {error}. Mend what makes X, y or sample_weight, and "
                    "fit again."
                ) from error
            futures[number].release()
            if isinstance(found, Failed):
                raise found.error
            yield found
    finally:
        client.cancel(futures)


def parts_of(X: Any, y: Any, weight: Any, client: Client) -> list[Part]:
    """The partitions of a table together with their labels and weights.

    Labels and weights are Dask collections with the same partitions, or in memory. Others are
    brought to the client, where each partition gets its part of them.
    """
    tables = np.ravel(X.to_delayed()).tolist()
    sizes = _known_sizes(X)
    given = []
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is None:
            given.append([None] * len(tables))
        elif is_dask_collection(values) and _aligned(X, values):
            given.append(np.ravel(values.to_delayed()).tolist())
        else:
            values = in_memory(values, client)
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
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    return None if np.isnan(sizes).any() else [int(size) for size in sizes]


def _aligned(X: Any, values: Any) -> bool:
    """Whether the partitions of labels or weights have the rows of those of X, as far as known."""
    one, other = _known_sizes(X), _known_sizes(values)
    if one is not None and other is not None:
        return one == other
    return bool(X.npartitions == values.npartitions)


def in_memory(values: Any, client: Client) -> Any:
    """Labels or weights on the client."""
    if isinstance(values, Future):
        values = values.result()
    if is_dask_collection(values):
        values = client.compute(values).result()
    return np.asarray(values)


def looked_at(
    client: Client, parts: Sequence[Part], read: Callable[[Any], Data], check: Callable[[Any], Any]
) -> list[Look]:
    """The first pass: rows, labels, and columns with missing or infinite values."""
    tasks = [
        delayed(_look, pure=False, traverse=False)(read, check, part.X, part.y, part.weight)
        for part in parts
    ]
    return list(results(client, tasks))


def _look(read: Callable[[Any], Data], check: Callable[[Any], Any], X: Any, y: Any, w: Any) -> Any:
    try:
        return _looked(read(X), natural(check(y)), w)
    except Exception as error:
        return Failed(error)


def _looked(X: Data, y: Array, w: Any) -> Look:
    if len(y) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)} in a partition.")
    weight = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    if weight.shape != (len(y),):
        raise ValueError(f"X has {len(y)} rows and sample_weight has {len(weight)}: one a row.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight has values that are negative or not finite.")
    labels, codes = np.unique(y, return_inverse=True)
    weighted = np.bincount(codes[weight > 0], minlength=len(labels))
    sums = np.bincount(codes, weight, minlength=len(labels))
    missing, infinite = (_anywhere(test, X) for test in (np.isnan, np.isinf))
    return Look(len(y), labels[:MOST_LABELS], weighted, sums, missing, infinite)


def _anywhere(test: Callable[[Any], Any], X: Data) -> npt.NDArray[np.bool_]:
    """The columns in which a test holds for any value; it does not for 0."""
    if is_sparse(X):
        found = np.zeros(X.shape[1], dtype=bool)
        found[X.indices[test(X.data)]] = True
        return found
    result: npt.NDArray[np.bool_] = test(X).any(axis=0)
    return result
