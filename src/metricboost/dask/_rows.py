"""The rows of a fit on the workers of a Dask cluster, as the boosting loop asks for them.

The client sends terms and sparse vectors and gets back sums. What has one number a row stays with
the shards: of it only what neighbours need travels, from worker to worker (the halo). Every value
on a worker is the result of a task on results of tasks, so what a lost worker held is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from ..engines.base import CONSTANT, NeighborLists
from ..engines.rows import Line, Terms, TrainingRows
from . import _shards
from ._samples import Diagonal, sampled
from ._tasks import Future, Tasks

#: Of more rows the plain neighbours, before anything is learned, are among so many of them.
PLAIN_ROWS, PLAIN_SAMPLE = 2**15, 2**13
#: Of more rows the diagonal, which says where the power method starts, is of a sample.
MARGIN_ROWS = 2**14
#: Of more rows, the projections of power iterations and of the gate travel in float32.
NARROW_ROWS = 2**15


class DaskRows(TrainingRows):
    """Over shards, futures on workers; ``numbers`` are the rows of each shard, in its order.

    All that is about a shard is done at its home, the worker that has it.
    """

    def __init__(
        self, tasks: Tasks, shards: Sequence[Future], numbers: Sequence[Index],
        homes: Sequence[str | None], n_columns: int, n_plain: int, centred: bool,
    ) -> None:  # fmt: skip
        self._tasks, self.shards, self.numbers = tasks, list(shards), list(numbers)
        self.homes = list(homes)
        self.n_columns, self.n_plain = n_columns, n_plain
        self.n_rows = sum(len(rows) for rows in numbers)
        #: Bytes that travelled between workers, by what for; and the attempts that they were for.
        self.exchanged: dict[str, int] = {}
        self.attempts = 0
        #: Rows that live elsewhere, over all shards: what travels of every value a row.
        self.halo_rows = 0
        self._rows_of = self.each(_shards.given, list(self.numbers))
        self._say_who_owns_what()
        self.narrow = np.float32 if self.n_rows >= NARROW_ROWS else np.float64
        # Columns taken as given are centred on their way: far from zero, sums would cancel.
        means = np.zeros(n_columns) if centred else self._column_means()
        self._means = np.append(means, 0.0)

    def _say_who_owns_what(self) -> None:
        owner = np.empty(self.n_rows, dtype=np.int16)
        local = np.empty(self.n_rows, dtype=np.int32)
        for shard, rows in enumerate(self.numbers):
            owner[rows] = shard
            local[rows] = np.arange(len(rows))
        self._owner, self._local = self._everywhere(owner), self._everywhere(local)

    # --- tasks

    def submit(self, task: Callable[..., Any], *args: Any, shard: int) -> Future:
        """A task at the home of a shard."""
        return self._tasks.submit(task, *args, at=self.homes[shard])

    def each(self, task: Callable[..., Any], *args: Any) -> list[Future]:
        """A task for every shard; lists of as many things as shards give each its own."""
        each = [arg if isinstance(arg, list) else [arg] * len(self.shards) for arg in args]
        return [self.submit(task, *own, shard=s) for s, own in enumerate(zip(*each))]

    def results(self, futures: list[Future]) -> list[Any]:
        return self._tasks.results(futures)

    def _everywhere(self, values: npt.NDArray[Any]) -> list[Future]:
        """Something that the client knows, at every home.

        A task too, for what is scattered can be lost; the client sends it once, to one of them.
        """
        first = self.submit(_shards.given, values, shard=0)
        self.add("row numbers", values.nbytes * (len(self.shards) - 1))
        return self.each(_shards.given, first)

    def _find_homes(self) -> None:
        """Again: what was lost has been made anew elsewhere."""
        found = self._tasks.homes(self.shards)
        self.homes = [now or before for now, before in zip(found, self.homes)]

    def add(self, what: str, n_bytes: int) -> None:
        self.exchanged[what] = self.exchanged.get(what, 0) + int(n_bytes)

    def _halo(self, what: str, values: list[Future], row_bytes: int) -> list[list[Future]]:
        """What every shard needs of the others, of one value a row."""
        self.add(what, self.halo_rows * row_bytes)
        return [
            [
                values[t]
                if needed is None
                else self.submit(_shards.send, values[t], needed, shard=t)
                for t, needed in halo.items()
            ]
            for halo in self._halos
        ]

    def _across(
        self, what: str, task: Callable[..., Any], values: list[Future], row_bytes: int, *args: Any
    ) -> list[Future]:
        """A task for every shard on its own values and those of the halo."""
        halos = self._halo(what, values, row_bytes)
        each = [arg if isinstance(arg, list) else [arg] * len(self.shards) for arg in args]
        return [
            self.submit(task, *own, values[s], *halos[s], shard=s)
            for s, own in enumerate(zip(*each) if each else [()] * len(self.shards))
        ]

    # --- the table

    def term_moments(self, factors: Rows) -> Float:
        parts = np.stack(self.results(self.each(_shards.moments, self.shards, factors)))
        n, mean, spread = pooled(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2])
        deviation = np.sqrt(spread / n)
        varies = deviation > CONSTANT * parts[:, :, 3].max(axis=0)
        return np.stack([mean, np.where(varies, deviation, np.inf)], axis=1)

    def _column_means(self) -> Float:
        columns = np.arange(self.n_columns, dtype=np.int32)[:, None]
        return self.term_moments(columns)[:, 0]

    def shift(self, terms: Terms, vectors: Float) -> Float:
        """What projections are moved by: products are centred as they are."""
        alone = (terms.factors < self.n_columns).sum(axis=1) == 1
        shift: Float = (self._means[terms.factors[:, 0]] * alone) @ vectors
        return shift

    def two_valued(self) -> npt.NDArray[np.bool_]:
        parts = np.stack(self.results(self.each(_shards.extremes, self.shards)))
        low, high = parts[:, 0].min(axis=0), parts[:, 1].max(axis=0)
        others = self.results(self.each(_shards.others_than, self.shards, low, high))
        return ~np.any(others, axis=0)

    # --- where the rows lie

    def begin(self, labels: Index, sample_weight: Float) -> None:
        self._labels = self._everywhere(labels.astype(np.int16))
        self._codes = labels
        self._sample_weight = self.each(
            _shards.given, [sample_weight[rows] for rows in self.numbers]
        )
        self._embedding: list[list[Future]] = [[] for _ in self.shards]
        self._widths: list[int] = []

    def embed(self, terms: Terms, matrix: Float) -> None:
        if matrix.size:
            self._append(self.each(_shards.project, self.shards, terms, matrix), matrix.shape[1])

    def _append(self, columns: list[Future], width: int) -> None:
        for own, column in zip(self._embedding, columns):
            own.append(column)
        self._widths.append(width)

    def _places(self) -> list[Future]:
        """The embedding of every shard, in one piece."""
        if len(self._widths) > 1:
            together = self.each(_shards.together, self._embedding)
            self._embedding = [[z] for z in together]
            self._widths = [sum(self._widths)]
        return [own[0] for own in self._embedding]

    def _rank(self) -> int:
        return sum(self._widths)

    def _gram(self) -> Float:
        total: Float = np.sum(self.results(self.each(_shards.gram, self._places())), axis=0)
        return total

    def _turn(self, vectors: Float) -> None:
        turned = self.each(_shards.turned, self._places(), vectors)
        self._embedding, self._widths = [[z] for z in turned], [vectors.shape[1]]

    def _find_neighbors(self, lists: NeighborLists, approximate: bool) -> float:
        self._find_homes()
        places = self._all_places() if self._rank() else None
        found = self._searched(places, lists, approximate) if places else self._plain(lists)
        rows = self.each(_first, found)
        recalls = self.results(self.each(_second, found))
        self._connect(rows, lists)
        self._margins = (
            self.each(_shards.margins_among, places, rows, self._rows_of, lists)
            if places
            else self.each(np.zeros, [len(own) for own in self.numbers])
        )
        self._diagonal = Diagonal(self, rows, lists)
        return float(np.average(recalls, weights=[len(rows) for rows in self.numbers]))

    def _all_places(self) -> list[Future]:
        """The embedding of all rows, at every home.

        Results of their own travel, and go when all have come: of what stays at home there are no
        copies elsewhere, which might outlive it.
        """
        sent = self.each(_shards.given, self._places())
        self.add("search", 8 * self._rank() * self.n_rows * (len(self.shards) - 1))
        return self.each(_shards.whole, [sent] * len(self.shards), self._owner, self._local)

    def _searched(
        self, places: list[Future], lists: NeighborLists, approximate: bool
    ) -> list[Future]:
        return self.each(_shards.search, places, self._rows_of, self._labels, lists, approximate)

    def _plain(self, lists: NeighborLists) -> list[Future]:
        """In all columns: among all rows, or a sample of many, which goes to every worker."""
        sample = (
            sampled(self._codes, PLAIN_SAMPLE, max(lists.sizes) + 1)
            if self.n_rows > PLAIN_ROWS
            else None
        )
        references = self.each(_shards.plain_rows, self.shards, self.n_plain, sample)
        n_references = self.n_rows if sample is None else len(sample)
        n, row_bytes = len(self.shards), 8 * (self.n_plain + 1)
        self.add("first search", n_references * row_bytes * (n - 1))
        return self.each(
            _shards.search_plain, self.shards, self.n_plain, [references] * n, self._labels, lists
        )

    def _connect(self, found: list[Future], lists: NeighborLists) -> None:
        """Every edge also goes to the shard that it ends in."""
        shards = list(range(len(self.shards)))
        leaving = [
            self.each(_shards.ends_in, found, self._rows_of, self._owner, t, lists) for t in shards
        ]
        self._graphs = self.each(
            _shards.make_graph, shards, found, self._rows_of, leaving, self._owner, self._local,
            lists,
        )  # fmt: skip
        sizes, entering = zip(*self.results(self.each(_shards.halo_sizes, self._graphs)))
        self.halo_rows = int(np.sum(sizes))
        self.add("edges", sum(entering) * _shards.EDGE_BYTES)
        self._halos = [
            {t: self._picked(s, t, size) for t, size in enumerate(own) if size}
            for s, own in enumerate(sizes)
        ]

    def _picked(self, shard: int, other: int, size: int) -> Future | None:
        """The rows that a shard needs of another; None for all."""
        if size == len(self.numbers[other]):
            return None
        self.add("edges", 4 * size)
        return self.submit(_shards.halo_in, self._graphs[shard], other, shard=shard)

    # --- a step

    def weigh(self, in_bag: npt.NDArray[np.bool_]) -> None:
        self.attempts += 1
        least = min(self.results(self.each(_shards.smallest, self._margins)))
        bits = [np.packbits(in_bag[rows]) for rows in self.numbers]
        self._weights = self.each(_shards.weights, self._margins, self._sample_weight, least, bits)
        self._all_weights = self._across("weights", _shards.received, self._weights, 8)
        self._edges = self.each(_shards.weigh_edges, self._graphs, self._all_weights, True)

    def _projected(self, terms: Terms, vectors: Float, dtype: npt.DTypeLike) -> list[Future]:
        shift = self.shift(terms, vectors)
        return self.each(_shards.project, self.shards, terms, vectors, dtype, shift)

    def _width(self, vectors: Float) -> int:
        return vectors.shape[1] * np.dtype(self.narrow).itemsize

    def matrix(self, terms: Terms) -> Float:
        every = np.eye(len(terms))
        phi = self._projected(terms, every, np.float64)  # it gives xi, and the step its weight
        parts = self._across("panel", _shards.panel, phi, 8 * len(terms), self._edges)
        A: Float = np.sum(self.results(parts), axis=0)
        return (A + A.T) / 2

    @property
    def rough_diagonal(self) -> bool:
        return self.n_rows > MARGIN_ROWS

    def diagonal(self, terms: Terms) -> Float:
        return self._diagonal.of(self, terms, self._weights)

    def image(self, terms: Terms, vectors: Float, over: Terms) -> Float:
        z = self._projected(terms, vectors, self.narrow)
        parts = self._across(
            "power iterations", _shards.pull_back, z, self._width(vectors), self.shards,
            self._edges, over,
        )  # fmt: skip
        total: Float = np.sum(self.results(parts), axis=0)
        return total

    def share_sums(self, terms: Terms, vectors: Float) -> Float:
        left_out = self.each(_shards.weigh_edges, self._graphs, self._all_weights, False)
        z = self._projected(terms, vectors, self.narrow)
        shares = self._across("gate", _shards.shares, z, self._width(vectors), left_out)
        parts = np.stack(self.results(shares))
        n, mean, spread = pooled(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2])
        return np.stack([n * mean, spread], axis=1)

    def line(self, terms: Terms, xi: Float) -> Line:
        self._direction = self._projected(terms, xi[:, None], np.float64)
        self._gain = self._across("line", _shards.margins, self._direction, 8, self._graphs)
        return _DaskLine(self, self._gain, self._weights)

    def take(self, w: float) -> None:
        self._margins = self.each(_shards.step, self._margins, self._gain, w)
        self._append(self.each(_shards.scaled, self._direction, float(np.sqrt(w))), 1)

    def follow(self, terms: Terms, xi: Float, w: float, margins: bool) -> None:
        self._direction = self._projected(terms, xi[:, None], np.float64)
        if margins:
            gain = self._across("steps again", _shards.margins, self._direction, 8, self._graphs)
            self._margins = self.each(_shards.step, self._margins, gain, w)
        self._append(self.each(_shards.scaled, self._direction, float(np.sqrt(w))), 1)

    def loss(self) -> float:
        return float(sum(self.results(self.each(_shards.loss, self._margins, self._sample_weight))))


class _DaskLine(Line):
    def __init__(self, rows: DaskRows, gain: list[Future], weights: list[Future]) -> None:
        self._rows, self._gain, self._weights = rows, gain, weights
        parts = rows.results(rows.each(_shards.slopes, gain, weights))
        self.slope, self.total = sum(part[0] for part in parts), sum(part[1] for part in parts)
        self.one_sided = not any(part[2] for part in parts)

    def imbalance(self, w: float) -> tuple[float, float]:
        parts = np.stack(
            self._rows.results(self._rows.each(_shards.balance, self._gain, self._weights, w))
        )
        top = parts[:, :, 0].max(axis=0)
        share = np.exp(parts[:, :, 0] - top)
        total, weighted = ((share * parts[:, :, i]).sum(axis=0) for i in (1, 2))
        value, slope = top + np.log(total), -weighted / total
        return float(value[0] - value[1]), float(slope[0] - slope[1])


def pooled(counts: Float, means: Float, deviations: Float) -> tuple[Float, Float, Float]:
    """Count, mean and squared deviations of parts put together."""
    n = counts.sum(axis=0)
    mean = (counts * means).sum(axis=0) / n
    return n, mean, (deviations + counts * (means - mean) ** 2).sum(axis=0)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
