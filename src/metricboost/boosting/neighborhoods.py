"""Neighbourhoods: the k nearest rows of each class; the only place that fixes S+ and S-.

In training S+ is the row's own class and S- the other one, so that the margin
``m_i = y_i f(x_i)`` is mean d(i, other) - mean d(i, same). For an unseen row S+ is the positive
class (``classes_[1]``) and S- the negative one, so that ``f > 0`` predicts the positive class.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from ..engines import Engine
from .rounding import to_twelve_digits

#: Rows are searched in fixed blocks: results do not depend on memory or threads.
BLOCK = 512
#: Candidates kept beyond k and ranked again by exact distances: products of embeddings round,
#: so the order of near-equal distances is only settled by differences. Where more than these are
#: as near as the k-th, all that are are ranked.
SPARE = 8


@dataclass(frozen=True)
class Neighborhoods:
    """Row numbers of the nearest rows of the own class and of the other class."""

    same: Rows
    other: Rows


def affordable_neighbors(positive: npt.NDArray[np.bool_], k: int) -> tuple[int, int]:
    """(k within the own class, k in the other): a class may have fewer rows than k."""
    smallest = int(min(positive.sum(), (~positive).sum()))
    return min(k, smallest - 1), min(k, smallest)


def class_neighborhoods(
    engine: Engine, embedding: Float, positive: npt.NDArray[np.bool_], k: int
) -> Neighborhoods:
    """The nearest rows of each class for every training row; a row is never its own neighbour."""
    k_same, k_other = affordable_neighbors(positive, k)
    same = np.empty((len(embedding), k_same), dtype=np.int32)
    other = np.empty((len(embedding), k_other), dtype=np.int32)
    groups = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    for own, opposite in (groups, groups[::-1]):
        a, b = embedding[own], embedding[opposite]
        same[own] = own[nearest(engine, a, a, k_same, itself=np.arange(len(own)))[0]]
        other[own] = opposite[nearest(engine, a, b, k_other)[0]]
    return Neighborhoods(same, other)


def nearest(
    engine: Engine, queries: Float, references: Float, k: int, itself: Index | None = None
) -> tuple[Rows, Float]:
    """The k nearest references of every query, in order, and their squared distances.

    Exact; ties are broken by the reference's number. ``itself[i]`` is the reference that query i
    is, and is left out. Where there are fewer references, all of them.
    """
    k = min(k, len(references) - (itself is not None))
    center = references.mean(axis=0)
    q, r = np.ascontiguousarray(queries), np.ascontiguousarray(references)
    search = _Search(engine, r, r - center, k)
    rows = np.empty((len(q), k), dtype=np.int32)
    distances = np.empty((len(q), k))

    def fill(start: int) -> None:
        part = slice(start, start + BLOCK)
        omit = None if itself is None else itself[part]
        rows[part], distances[part] = search(q[part], q[part] - center, omit)

    _for_each(fill, range(0, len(q), BLOCK), engine.threads)
    return rows, distances


def _for_each(run: Callable[[int], None], starts: range, threads: int) -> None:
    """Blocks write apart from each other, so their order does not matter."""
    if threads == 1 or len(starts) < 2:
        for start in starts:
            run(start)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, starts))


class _Search:
    """Exact search: rough distances by a matrix product, those near the k-th again exactly."""

    def __init__(self, engine: Engine, references: Float, centred: Float, k: int) -> None:
        self._engine = engine
        self._references = references
        self._centred = centred
        self._norms = np.einsum("ij,ij->i", centred, centred)
        self._k = k

    def __call__(self, q: Float, centred: Float, omit: Index | None) -> tuple[Rows, Float]:
        rough = (-2 * centred) @ self._centred.T  # |q|^2 does not change the order along a row
        rough += self._norms
        available = len(self._references)
        if omit is not None:
            rough[np.arange(len(q)), omit] = np.inf
            available -= 1
        found = self._engine.smallest(rough, min(self._k + SPARE, available))
        rows, distances = self._ranked(q, np.sort(found, axis=1))
        if found.shape[1] < available:
            bar, doubtful = self._doubtful(rough, found, centred)
            for i in doubtful:
                near = np.flatnonzero(rough[i] <= bar[i]).astype(np.int32)
                rows[i], distances[i] = self._ranked(q[[i]], near[None, :])
        return rows, distances

    def _doubtful(self, rough: Float, found: Rows, centred: Float) -> tuple[Float, Index]:
        """How near the k-th may be, to rounding; queries whose last spare candidate is as near."""
        ends = np.take_along_axis(rough, found[:, [self._k - 1, -1]], 1)
        size = np.sqrt(np.einsum("ij,ij->i", centred, centred)) + np.sqrt(self._norms.max())
        # Twelve digits count as a tie, and the product has its own rounding on top.
        error = (2.0**-35 + 4 * (centred.shape[1] + 2) * np.finfo(float).eps) * size**2
        bar = ends[:, 0] + error
        return bar, np.flatnonzero(~(ends[:, 1] > bar))

    def _ranked(self, q: Float, candidates: Rows) -> tuple[Rows, Float]:
        """The k nearest of the candidates, which are in order of their numbers."""
        exact = self._engine.paired_squared_distances(q, self._references, candidates)
        order = np.argsort(to_twelve_digits(exact), axis=1, kind="stable")[:, : self._k]
        return np.take_along_axis(candidates, order, 1), np.take_along_axis(exact, order, 1)
