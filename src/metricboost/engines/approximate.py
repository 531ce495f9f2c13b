"""Approximate neighbours for many rows, by the inverted lists of faiss (the extra ``ann``).

Rows of a class are put into lists of near ones, and a row is compared with those of the lists
nearest to it alone. How many lists are looked at is decided by what is found: exact neighbours of a
sample of rows say which share of them each number of lists finds, and the smallest that finds
enough is taken. Where rows differ in few directions, or even many lists miss too much, as in
dozens of columns of noise, there is no answer: the exact search is as fast or faster, and has to
give it.

Lists are cheap to build, and every refresh has to build them anew; a graph to walk on (HNSW) takes
several times as long to build (``python -m benchmarks.neighbors``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from .base import Engine, NeighborLists
from .sorting import squared_distances

#: The share of its true neighbours that a sampled row must find on average, and the sampled rows.
RECALL, SAMPLE = 0.96, 512
#: Lists of a class are this many times the root of its rows, each with this many rows at least.
LISTS, LEAST_ROWS = 3.0, 40
#: Numbers of lists to look at, tried in turn, and the largest share of all lists: beyond, comparing
#: all rows is not much slower.
PROBES, MOST_PROBED = (2, 3, 4, 6, 8, 12, 16, 24, 32), 1 / 8
#: Directions are left out that add less than this share of the variance, as so many rows have it.
UNSEEN, TURNED_BY, SMALLEST = 1e-4, 8192, 1e-150
#: In fewer directions the exact search leaves nearly everything out, and is as fast.
MANY_DIRECTIONS = 10
#: Rows that look for their neighbours at a time.
BLOCK = 2**15

Search = Callable[[Index, int, int], tuple[Index, npt.NDArray[Any]]]


@lru_cache(maxsize=1)
def approximate_available() -> bool:
    return find_spec("faiss") is not None


def approximate_by_class(
    engine: Engine, z: Float, classes: Index, lists: NeighborLists, own: Index | None = None
) -> tuple[Rows, float] | None:
    """As ``Engine.nearest_by_class``, without distances, and the recall; None where exact is best.

    Of all rows, or of some, whose numbers are given.

    The recall is the share of a sample's neighbours, of all lists together, that are as near as
    the true ones.
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(engine.threads)
    try:
        turned = _turned(z)
        if turned.shape[1] < MANY_DIRECTIONS:
            return None
        search = _ListSearch(engine, z, turned, classes, lists)
        recall = search.tune()
        return None if recall < RECALL else (search.rows(own), recall)
    finally:
        faiss.omp_set_num_threads(before)


class _ListSearch:
    """Every class's lists, and the exact search for single rows."""

    def __init__(
        self,
        engine: Engine,
        z: Float,
        turned: npt.NDArray[np.float32],
        classes: Index,
        lists: NeighborLists,
    ) -> None:
        self._engine, self._z, self._classes, self._lists = engine, z, classes, lists
        self._members = [np.flatnonzero(classes == c) for c in range(len(lists.slots))]
        self._turned = turned
        self._indexes = [_inverted_lists(turned[rows]) for rows in self._members]

    def tune(self) -> float:
        """Look at as many lists as are needed; the recall on the sample."""
        sample = np.linspace(0, len(self._z) - 1, min(SAMPLE, len(self._z))).astype(np.intp)
        _, exact = self._lists_of(sample, self._exactly)
        recall, most = 0.0, max(index.nlist for index in self._indexes)
        for probes in PROBES:
            if probes > max(MOST_PROBED * most, PROBES[0]):
                break
            for index in self._indexes:
                index.nprobe = min(probes, index.nlist)
            recall = self._recall(sample, exact)
            if recall >= RECALL:
                break
        return recall

    def _recall(self, sample: Index, exact: Float) -> float:
        """Of all that are found, the share that is no farther than the farthest true neighbour."""
        rows, _ = self._lists_of(sample, self._roughly)
        found = squared_distances(self._z[sample], self._z, np.maximum(rows, 0))
        ends = np.cumsum(self._lists.sizes)
        near = [
            (rows[:, start:end] >= 0) & (found[:, start:end] <= bound * (1 + 1e-9))
            for start, end, bound in zip([0, *ends], ends, (exact[:, [e - 1]] for e in ends))
        ]
        return float(np.hstack(near).mean())

    def rows(self, own: Index | None) -> Rows:
        """The neighbours of all rows, or of some."""
        own = np.arange(len(self._z)) if own is None else own
        found = np.empty((len(own), self._lists.width), dtype=np.int32)
        for start in range(0, len(own), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] = self._lists_of(own[part], self._roughly)[0]
        short = np.flatnonzero((found < 0).any(axis=1))  # so few rows in the lists looked at
        if len(short):
            found[short] = self._lists_of(own[short], self._exactly)[0]
        return found

    def _lists_of(self, rows: Index, search: Search) -> tuple[Rows, Float]:
        """All lists of some rows, and their distances as the search has them."""
        found = np.full((len(rows), self._lists.width), -1, dtype=np.int32)
        distances = np.full(found.shape, np.inf)
        for own in np.unique(self._classes[rows]):
            here = np.flatnonzero(self._classes[rows] == own)
            end = 0
            for number, size in enumerate(self._lists.sizes):
                start, end = end, end + size
                among = np.flatnonzero(self._lists.slots[own] == number)
                near, far = self._merged(rows[here], among, size, search)
                found[here, start : start + near.shape[1]] = near
                distances[here, start : start + near.shape[1]] = far
        return found, distances

    def _merged(
        self, rows: Index, among: Index, size: int, search: Search
    ) -> tuple[Index, npt.NDArray[Any]]:
        """The nearest of several classes together."""
        parts = [self._of_class(rows, int(c), size, search) for c in among]
        if len(parts) == 1:
            return parts[0]
        near, far = (np.hstack(part) for part in zip(*parts))
        order = np.argsort(far, axis=1, kind="stable")[:, :size]
        return np.take_along_axis(near, order, 1), np.take_along_axis(far, order, 1)

    def _of_class(
        self, rows: Index, c: int, size: int, search: Search
    ) -> tuple[Index, npt.NDArray[Any]]:
        """The nearest of a class, nearest first; -1 where fewer were found."""
        members = self._members[c]
        own = bool(self._classes[rows[0]] == c)
        places, far = search(rows, c, min(size + own, len(members)))
        near = np.where(places >= 0, members[places], -1)
        if own:
            near, far = without_itself(near, far, rows)
        return near, np.where(near >= 0, far, np.inf)

    def _exactly(self, rows: Index, c: int, k: int) -> tuple[Index, npt.NDArray[Any]]:
        places, squared = self._engine.nearest(self._z[rows], self._z[self._members[c]], k)
        return places.astype(np.intp), squared

    def _roughly(self, rows: Index, c: int, k: int) -> tuple[Index, npt.NDArray[Any]]:
        squared, places = self._indexes[c].search(self._turned[rows], k)
        return places, squared


def without_itself(
    near: Index, far: npt.NDArray[Any], rows: Index
) -> tuple[Index, npt.NDArray[Any]]:
    """Neighbours without the row itself, or else without the farthest."""
    itself = near == rows[:, None]
    last = near.shape[1] - 1
    skipped = np.where(itself.any(axis=1), itself.argmax(axis=1), last)
    kept = np.arange(last) + (np.arange(last) >= skipped[:, None])
    return np.take_along_axis(near, kept, 1), np.take_along_axis(far, kept, 1)


def _turned(z: Float) -> npt.NDArray[np.float32]:
    """The rows in the directions in which they differ, of size 1, in float32."""
    sample = z[:: max(len(z) // TURNED_BY, 1)]
    center = sample.mean(axis=0)
    values, axes = np.linalg.eigh((sample - center).T @ (sample - center) / len(sample))
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    kept = 1 + int((np.cumsum(values)[:-1] < (1 - UNSEEN) * values.sum()).sum())
    scaled = axes[:, :kept] / max(float(np.sqrt(values.sum())), SMALLEST)
    turned = np.empty((len(z), kept), dtype=np.float32)
    for start in range(0, len(z), BLOCK):
        rows = slice(start, start + BLOCK)
        turned[rows] = (z[rows] - center) @ scaled
    return turned


def _inverted_lists(rows: npt.NDArray[np.float32]) -> Any:
    import faiss

    n, r = rows.shape
    n_lists = max(1, min(int(LISTS * np.sqrt(n)), n // LEAST_ROWS))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(r), r, n_lists)
    index.cp.niter, index.cp.min_points_per_centroid = 5, 1
    index.cp.max_points_per_centroid = 64  # to find their middles; no row is left out of them
    index.train(rows)
    index.add(rows)
    return index
