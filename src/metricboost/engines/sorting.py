"""The oracle's neighbour search: rough distances by a matrix product, those near the k-th again.

It sorts all distances of a block of rows. The order is that of every engine: by the distance to
twelve digits, then by number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._rounding import to_twelve_digits
from .._typing import Float, Index, Rows
from .base import NeighborLists

#: Rows are searched in fixed blocks.
BLOCK = 512
#: Candidates kept beyond k and ranked again by exact distances: products of embeddings round,
#: so the order of near-equal distances is only settled by differences. Where more than these are
#: as near as the k-th, all that are are ranked.
SPARE = 8
#: Subnormal squares have few digits: those that differ by less are equal to twelve.
COARSE = 2.0**-1055


def nearest_by_sorting(
    queries: Float, references: Float, k: int, itself: Index | None = None
) -> tuple[Rows, Float]:
    """The k nearest references of every query; ``itself[i]``, the query's own, is left out.

    Where there are fewer references, all of them.
    """
    k = min(k, len(references) - (itself is not None))
    rows, distances = np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k))
    if k == 0:
        return rows, distances
    search = _Search(references, k)
    for start in range(0, len(queries), BLOCK):
        part = slice(start, start + BLOCK)
        rows[part], distances[part] = search(
            queries[part], None if itself is None else itself[part]
        )
    return rows, distances


def lists_by_sorting(z: Float, classes: Index, lists: NeighborLists) -> tuple[Rows, Float]:
    """All lists of all rows, list after list."""
    rows = np.full((len(z), lists.width), -1, dtype=np.int32)
    distances = np.full(rows.shape, np.inf)
    for own, others, size, start in searches(classes, lists):
        itself = np.searchsorted(others, own) if own[0] in others else None
        found, squared = nearest_by_sorting(z[own], z[others], size, itself)
        part = np.ix_(own, np.arange(start, start + found.shape[1]))
        rows[part], distances[part] = others[found], squared
    return rows, distances


def searches(classes: Index, lists: NeighborLists) -> Iterator[tuple[Index, Index, int, int]]:
    """Of every class and list: the rows, those sought among, how many, and where they go."""
    starts = np.cumsum([0, *lists.sizes])
    for a, slots in enumerate(lists.slots):
        own = np.flatnonzero(classes == a)
        for number, size in enumerate(lists.sizes):
            others = np.flatnonzero((slots == number)[classes])
            if len(own) and len(others):
                yield own, others, int(size), int(starts[number])


class _Search:
    """Exact search among some rows."""

    def __init__(self, references: Float, k: int) -> None:
        self._references = references
        self._center = references.mean(axis=0)
        self._centred = references - self._center
        self._norms = np.einsum("ij,ij->i", self._centred, self._centred)
        self._k = k

    def __call__(self, queries: Float, omit: Index | None) -> tuple[Rows, Float]:
        centred = queries - self._center
        rough = (-2 * centred) @ self._centred.T  # |q|^2 does not change the order along a row
        rough += self._norms
        available = len(self._references)
        if omit is not None:
            rough[np.arange(len(rough)), omit] = np.inf
            available -= 1
        size = min(self._k + SPARE, available)
        found = np.argsort(rough, axis=1, kind="stable")[:, :size].astype(np.int32)
        rows, distances = self._ranked(queries, np.sort(found, axis=1))
        if size < available:
            bar, doubtful = self._doubtful(rough, found, centred)
            for i in doubtful:
                near = np.flatnonzero(rough[i] <= bar[i]).astype(np.int32)
                rows[i], distances[i] = self._ranked(queries[[i]], near[None, :])
        return rows, distances

    def _doubtful(self, rough: Float, found: Rows, centred: Float) -> tuple[Float, Index]:
        """How near the k-th may be, to rounding; queries whose last spare candidate is as near."""
        ends = np.take_along_axis(rough, found[:, [self._k - 1, -1]], 1)
        size = np.sqrt(np.einsum("ij,ij->i", centred, centred)) + np.sqrt(self._norms.max())
        # Twelve digits count as a tie, and the product has its own rounding on top.
        error = (2.0**-35 + 4 * (centred.shape[1] + 2) * np.finfo(float).eps) * size**2
        bar = ends[:, 0] + error + COARSE
        return bar, np.flatnonzero(~(ends[:, 1] > bar))

    def _ranked(self, queries: Float, candidates: Rows) -> tuple[Rows, Float]:
        """The k nearest of the candidates, which are in order of their numbers."""
        exact = squared_distances(queries, self._references, candidates)
        order = np.argsort(to_twelve_digits(exact), axis=1, kind="stable")[:, : self._k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(exact, order, 1)


def squared_distances(a: Float, b: Float, index: Rows) -> Float:
    """``|a_i - b_index[i, j]|^2``, from differences, so without cancellation."""
    if index.shape[1] > len(a):
        return np.stack([lane_sums((row - b[j]) ** 2) for row, j in zip(a, index)])
    return np.stack([lane_sums((a - b[j]) ** 2) for j in index.T], axis=1)


def lane_sums(rows: Float) -> Float:
    """Row sums in eight interleaved parts, as the native kernels add them: the same bits."""
    q, n = rows.shape
    padded = np.zeros((q, max(-(-n // 8), 1) * 8))
    padded[:, :n] = rows
    part = np.cumsum(padded.reshape(q, -1, 8), axis=1)[:, -1]
    pairs = part[:, ::2] + part[:, 1::2]
    fours = pairs[:, ::2] + pairs[:, 1::2]
    result: Float = fours[:, 0] + fours[:, 1]
    return result
