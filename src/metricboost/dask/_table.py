"""A table on the workers of a cluster: its partitions, where they are, and their rows' numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import futures_of
from scipy import sparse

from .._typing import Float, Index
from ..boosting.scaling import CONSTANT, Scaling, beyond, column_constants, inflated
from ..checkpoints import digest
from ..estimators._validation import complain_of_columns, numbers_of, refuse_large
from . import _shards
from ._rows import DaskRows, pooled
from ._tasks import Future, Tasks


@dataclass(frozen=True)
class Partitions:
    """Futures of arrays, and the numbers of their rows."""

    tasks: Tasks
    futures: list[Future]
    rows: list[Index]
    n_columns: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, client: Any, X: Any) -> Partitions:
        """Of a dask array or dataframe; where its partitions are computed, they stay."""
        if X.ndim != 2:
            raise ValueError(
                f"Expected a table of rows and columns, got {X.ndim} dimension(s): reshape it."
            )
        X = X.rechunk({1: -1}) if hasattr(X, "chunks") else X
        n_columns = int(X.shape[1]) if hasattr(X, "chunks") else len(X.columns)
        if not n_columns:
            raise ValueError("X has 0 columns: there is nothing to learn a distance from.")
        tasks = Tasks(client)
        try:
            return cls._computed(tasks, X, n_columns)
        except BaseException:
            tasks.close()
            raise

    @classmethod
    def _computed(cls, tasks: Tasks, X: Any, n_columns: int) -> Partitions:
        parts, homes = tasks.placed(np.ravel(X.to_delayed()).tolist(), bool(futures_of(X)))
        arrays = [tasks.submit(numbers_of, part, at=at) for part, at in zip(parts, homes)]
        kinds = tasks.results([tasks.submit(_kind, part, at=at) for part, at in zip(arrays, homes)])
        ends = np.cumsum([0, *(size for size, _ in kinds)])
        rows = [np.arange(a, b) for a, b in pairwise(ends)]
        full = [i for i, own in enumerate(rows) if len(own)]
        if ends[-1] < 2:
            raise ValueError(f"X has {ends[-1]} row(s), and a distance is between rows.")
        dtype = np.result_type(*(dtype for _, dtype in kinds))
        return cls(tasks, [arrays[i] for i in full], [rows[i] for i in full], n_columns, dtype)

    @property
    def n_rows(self) -> int:
        return sum(len(own) for own in self.rows)

    def by_worker(self) -> dict[str | None, list[int]]:
        """The numbers of the partitions that each worker has, in order of the first."""
        groups: dict[str | None, list[int]] = defaultdict(list)
        for number, home in enumerate(self.tasks.homes(self.futures)):
            groups[home].append(number)
        return groups

    def _each(self, task: Callable[..., Any]) -> list[Any]:
        """The results of a task for every partition, which runs where that lies."""
        homes = self.tasks.homes(self.futures)
        return self.tasks.results(
            [self.tasks.submit(task, part, at=at) for part, at in zip(self.futures, homes)]
        )

    def check(self, names: Sequence[str], standardize: bool, max_degree: int) -> None:
        """No missing or infinite values, and none that overflow."""
        parts = self._each(_not_numbers)
        complain_of_columns(
            *(np.flatnonzero(np.any(found, axis=0)) for found in zip(*parts)), names
        )
        if not standardize:
            largest = self._each(_largest)
            refuse_large(max(largest), max_degree)

    def scaling(self, kept: Index, standardize: bool, clip: float | None) -> Scaling:
        """As ``Scaling.of``: two passes, so that nothing overflows."""
        at = self._places(kept)
        ends = self._gathered(_ends, at)
        low, high = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
        size = np.maximum(np.abs(low), np.abs(high))
        safe = np.where(size > 0, size, 1.0)
        parts = np.stack(self._gathered(_unit_moments, at, safe))
        n, mean, spread = pooled(parts[:, 0], parts[:, 1], parts[:, 2])
        deviation = np.sqrt(spread / n)
        varies = (deviation > CONSTANT) & (high > low) & (deviation * safe >= np.finfo(float).tiny)
        if not standardize:
            return Scaling(np.zeros(len(mean)), np.ones(len(mean)), np.flatnonzero(varies))
        center, scale = mean * safe, np.where(varies, deviation * safe, 1.0)
        if clip is not None:
            unit = safe, mean, np.where(varies, deviation, 1.0)
            far = np.sum(self._gathered(_beyond, at, *unit, clip), axis=0)
            for j in np.flatnonzero(varies & inflated(far, len(kept))):
                column = self.columns(np.array([j]), kept)[:, [j]].toarray().astype(float)
                (center[j],), (scale[j],), _ = column_constants(column, clip)
        return Scaling(center, scale, np.flatnonzero(varies), clip)

    def digest(self) -> str:
        """Of the numbers and of how they are partitioned."""
        parts = self._each(digest)
        return digest([int(part, 16) % 2**63 for part in parts])

    def _gathered(self, task: Any, at: Sequence[Index], *args: Any) -> list[Any]:
        homes = self.tasks.homes(self.futures)
        futures = [
            self.tasks.submit(task, part, own, *args, at=home)
            for part, own, home in zip(self.futures, at, homes)
            if len(own)
        ]
        return self.tasks.results(futures)

    def shards(self, kept: Index, scaling: Scaling) -> DaskRows:
        """The rows of a fit: one shard for every worker that has some of them."""
        shards, numbers, homes = [], [], []
        for home, group in self.by_worker().items():
            rows = np.concatenate([self.rows[i] for i in group])
            places = np.flatnonzero(np.isin(rows, kept, assume_unique=True))
            if not len(places):
                continue
            own = np.searchsorted(kept, rows[places])
            parts = [self.futures[i] for i in group]
            shards.append(
                self.tasks.submit(_shards.make_shard, parts, own, places, scaling, at=home)
            )
            numbers.append(own)
            homes.append(home)
        sizes = len(scaling.kept), len(scaling.plain)
        centred = bool((scaling.center != 0).any())
        return DaskRows(self.tasks, shards, numbers, homes, *sizes, centred)

    def columns(self, used: Index, kept: Index) -> sparse.csr_matrix:
        """Some columns of some rows, here: the others are empty. In the table's own precision."""
        n, width, start = len(kept), len(used), 0
        values = np.empty((n, width), dtype=self.dtype)
        homes = self.tasks.homes(self.futures)
        for part, own, home in zip(self.futures, self._places(kept), homes):
            if len(own):  # one at a time: there is room for these columns once
                taken = self.tasks.submit(_taken, part, own, used, at=home).result()
                values[start : start + len(own)] = taken
                start += len(own)
        indices = np.tile(used.astype(np.int32), n)
        starts = np.arange(n + 1, dtype=np.int64 if n * width >= 2**31 else np.int32) * width
        return sparse.csr_matrix((values.ravel(), indices, starts), shape=(n, self.n_columns))

    def _places(self, kept: Index) -> list[Index]:
        """Where those rows are in every partition."""
        return [np.flatnonzero(np.isin(own, kept, assume_unique=True)) for own in self.rows]


def _kind(part: Any) -> tuple[int, np.dtype[Any]]:
    return len(part), part.dtype


def _not_numbers(part: Any) -> tuple[Any, Any]:
    """Columns with missing values, and with infinite ones."""
    return np.isnan(part).any(axis=0), np.isinf(part).any(axis=0)


def _largest(part: Any) -> float:
    return float(np.abs(part).max())


def _ends(part: Any, at: Index) -> tuple[Float, Float]:
    return part[at].min(axis=0).astype(float), part[at].max(axis=0).astype(float)


def _unit_moments(part: Any, at: Index, safe: Float) -> Float:
    unit = part[at] / safe
    mean = unit.mean(axis=0)
    return np.stack([np.full(len(mean), float(len(at))), mean, ((unit - mean) ** 2).sum(axis=0)])


def _beyond(part: Any, at: Index, safe: Float, mean: Float, deviation: Float, clip: float) -> Float:
    return beyond((part[at] / safe - mean) / deviation, clip)


def _taken(part: Any, rows: Index, columns: Index) -> Any:
    return part[np.ix_(rows, columns)]
