"""The neighbour search of the NumPy engine.

All distances of a block of queries are computed approximately by a matrix product and sorted. The
nearest references, and all references with a distance close to the k-th distance, are then ranked
by exact distances. As in every engine, neighbours are ordered by their distance rounded to twelve
digits, and then by their number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._rounding import to_twelve_digits
from .._typing import Float, Index, Rows
from .base import NeighborLists

#: Number of queries in a block.
BLOCK = 512
#: With fewer queries than this, other searches would not pay off.
FEW_QUERIES = 16
#: The k + SPARE references with the smallest approximate distances are ranked by exact distances.
#: Matrix products have rounding errors, so only exact distances decide between nearly equal
#: distances. If more references may be as near as the k-th, all of these are ranked.
SPARE = 8
#: Subnormal numbers have few digits. Squared distances that differ by less than this count as
#: equal.
COARSE = 2.0**-1055


def nearest_by_sorting(
    queries: Float, references: Float, k: int, itself: Index | None = None
) -> tuple[Rows, Float]:
    """The k nearest references of every query, or all references if there are fewer than k.

    ``itself[i]``, if given, is a reference that is not a neighbour of query i: the query itself.
    """
    return Search(references).nearest(queries, k, itself)


def lists_by_sorting(z: Float, classes: Index, lists: NeighborLists) -> tuple[Rows, Float]:
    """The neighbours in all lists of all rows, one list after the other."""
    rows = np.full((len(z), lists.width), -1, dtype=np.int32)
    distances = np.full(rows.shape, np.inf)
    for own, others, size, start in searches(classes, lists):
        itself = np.searchsorted(others, own) if own[0] in others else None
        found, squared = nearest_by_sorting(z[own], z[others], size, itself)
        part = np.ix_(own, np.arange(start, start + found.shape[1]))
        rows[part], distances[part] = others[found], squared
    return rows, distances


def searches(classes: Index, lists: NeighborLists) -> Iterator[tuple[Index, Index, int, int]]:
    """The searches for all classes and lists.

    Yields the rows of a class (the queries), the rows of a list (the references), the size of the
    list, and the first column of the list in the result.
    """
    starts = np.cumsum([0, *lists.sizes])
    for a, slots in enumerate(lists.slots):
        own = np.flatnonzero(classes == a)
        for number, size in enumerate(lists.sizes):
            others = np.flatnonzero((slots == number)[classes])
            if len(own) and len(others):
                yield own, others, int(size), int(starts[number])


class Search:
    """Exact search among some references. What does not depend on the queries is computed once."""

    def __init__(self, references: Float) -> None:
        self._references = references
        self._center = references.mean(axis=0) if len(references) else 0.0
        self._centred = references - self._center
        self._norms = np.einsum("ij,ij->i", self._centred, self._centred)
        self._largest = np.sqrt(self._norms.max(initial=0.0))

    def nearest(self, queries: Float, k: int, itself: Index | None = None) -> tuple[Rows, Float]:
        """As ``nearest_by_sorting``."""
        k = min(k, len(self._references) - (itself is not None))
        rows, distances = np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k))
        for start in range(0, len(queries) if k else 0, BLOCK):
            part = slice(start, start + BLOCK)
            omit = None if itself is None else itself[part]
            rows[part], distances[part] = self._of_block(queries[part], k, omit)
        return rows, distances

    def _of_block(self, queries: Float, k: int, omit: Index | None) -> tuple[Rows, Float]:
        centred = queries - self._center
        # |q|^2 is left out of the approximate distances: it does not change the order in a row.
        rough = (-2 * centred) @ self._centred.T
        rough += self._norms
        available = len(self._references)
        if omit is not None:
            rough[np.arange(len(rough)), omit] = np.inf
            available -= 1
        size = min(k + SPARE, available)
        found = np.argpartition(rough, size - 1, axis=1)[:, :size].astype(np.int32)
        found.sort(axis=1)
        rows, distances = self._ranked(queries, found, k)
        if size < available:
            bar, doubtful = self._doubtful(np.take_along_axis(rough, found, 1), centred, k)
            for i in doubtful:
                near = np.flatnonzero(rough[i] <= bar[i]).astype(np.int32)
                rows[i], distances[i] = self._ranked(queries[[i]], near[None, :], k)
        return rows, distances

    def _doubtful(self, rough: Float, centred: Float, k: int) -> tuple[Float, Index]:
        """An upper bound on the k-th distance of each query, and the queries to search again.

        ``rough`` has the approximate distances of the candidates of each query.

        A query is searched again if its last spare candidate is within the bound, because further
        references may be within the bound too.
        """
        ends = np.sort(rough, axis=1)[:, [k - 1, -1]]
        size = np.sqrt(np.einsum("ij,ij->i", centred, centred)) + self._largest
        # Distances that agree to twelve digits are ties. The rounding error of the product is
        # added.
        error = (2.0**-35 + 4 * (centred.shape[1] + 2) * np.finfo(float).eps) * size**2
        bar = ends[:, 0] + error + COARSE
        return bar, np.flatnonzero(~(ends[:, 1] > bar))

    def _ranked(self, queries: Float, candidates: Rows, k: int) -> tuple[Rows, Float]:
        """The k nearest of the candidates, which are sorted by number."""
        exact = squared_distances(queries, self._references, candidates)
        order = np.argsort(to_twelve_digits(exact), axis=1, kind="stable")[:, :k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(exact, order, 1)


def squared_distances(a: Float, b: Float, index: Rows) -> Float:
    """``|a_i - b_index[i, j]|^2``, computed from differences to avoid cancellation."""
    if index.shape[1] > len(a):
        return np.stack([lane_sums((row - b[j]) ** 2) for row, j in zip(a, index)])
    return np.stack([lane_sums((a - b[j]) ** 2) for j in index.T], axis=1)


def lane_sums(rows: Float) -> Float:
    """Row sums in eight interleaved parts.

    The native kernels use the same order of additions, so that the results agree bit for bit.
    """
    q, n = rows.shape
    padded = np.zeros((q, max(-(-n // 8), 1) * 8))
    padded[:, :n] = rows
    part = np.cumsum(padded.reshape(q, -1, 8), axis=1)[:, -1]
    pairs = part[:, ::2] + part[:, 1::2]
    fours = pairs[:, ::2] + pairs[:, 1::2]
    result: Float = fours[:, 0] + fours[:, 1]
    return result
