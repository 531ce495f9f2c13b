"""Neighbourhoods: the k nearest rows of each class; the only place that fixes S+ and S-.

In training S+ is the row's own class and S- the other one, so that the margin
``m_i = y_i f(x_i)`` is mean d(i, other) - mean d(i, same). For an unseen row S+ is the positive
class (``classes_[1]``) and S- the negative one, so that ``f > 0`` predicts the positive class.

With K > 2 classes there is still one metric and one margin a row, and S- is one of the paper's two
proposals (for K = 2 both are the above):

- "common", its similar and dissimilar points: the k nearest rows of all other classes together.
- "coded", its coded loss: the k nearest rows of each other class, all with equal weight. The label
  becomes the vector y with 1 for the own class and -1/(K-1) for the others, and the loss is
  ``exp(-y'f / K)`` with ``f_c = (mean of d_l over l other than c) - d_c``, d_l the mean squared
  distance to the k nearest rows of class l. The f_c sum to zero, so that ``y'f / K`` is
  ``f_own / (K-1)``. The margin here is ``f_own``: f is linear in W, so a metric W here has the
  margins, weights and loss of ``(K-1) W`` there. From zero every step finds the same direction and
  a weight smaller by the factor K-1: **the metric learned is the paper's coded one divided by
  K-1**, which changes no neighbour. A start metric here is (K-1) times it there, and the trace of
  the root is smaller by sqrt(K-1), so a penalty lambda_C here is lambda_C / sqrt(K-1) there.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._typing import Float, Index, Rows
from ..engines import Engine
from .classes import members
from .rounding import to_twelve_digits

Multiclass = Literal["common", "coded"]

#: Rows are searched in fixed blocks: results do not depend on memory or threads.
BLOCK = 512
#: Candidates kept beyond k and ranked again by exact distances: products of embeddings round,
#: so the order of near-equal distances is only settled by differences. Where more than these are
#: as near as the k-th, all that are are ranked.
SPARE = 8


@dataclass(frozen=True)
class Neighborhoods:
    """Row numbers of the nearest rows of the own class and of the other classes.

    Where they are coded, ``other`` has k rows of each other class, class after class.
    """

    same: Rows
    other: Rows


def affordable_neighbors(
    labels: Index, k: int, multiclass: Multiclass = "common"
) -> tuple[int, int]:
    """(k within the own class, k across): a class may have fewer rows than k.

    Across means all other classes together, or each of them where they are coded.
    """
    counts = np.bincount(labels)
    smallest = int(counts.min())
    across = smallest if multiclass == "coded" else len(labels) - int(counts.max())
    return min(k, smallest - 1), min(k, across)


def class_neighborhoods(
    engine: Engine, embedding: Float, labels: Index, k: int, multiclass: Multiclass = "common"
) -> Neighborhoods:
    """The nearest rows of each class for every training row; a row is never its own neighbour."""
    k_same, k_other = affordable_neighbors(labels, k, multiclass)
    search = _of_each_class if multiclass == "coded" else _of_the_rest
    return Neighborhoods(
        nearest_of_the_same(engine, embedding, labels, k_same),
        search(engine, embedding, labels, k_other),
    )


def nearest_of_the_same(engine: Engine, embedding: Float, labels: Index, k: int) -> Rows:
    """The k nearest rows of the own class."""
    same = np.empty((len(labels), k), dtype=np.int32)
    for own in members(labels):
        rows = embedding[own]
        same[own] = own[nearest(engine, rows, rows, k, itself=np.arange(len(own)))[0]]
    return same


def _of_the_rest(engine: Engine, embedding: Float, labels: Index, k: int) -> Rows:
    """The k nearest of all rows of other classes: one search a class, against its complement."""
    other = np.empty((len(labels), k), dtype=np.int32)
    for c, own in enumerate(members(labels)):
        rest = np.flatnonzero(labels != c)
        other[own] = rest[nearest(engine, embedding[own], embedding[rest], k)[0]]
    return other


def _of_each_class(engine: Engine, embedding: Float, labels: Index, k: int) -> Rows:
    """The k nearest of each other class: one search a class, by all rows that are not of it."""
    groups = members(labels)
    other = np.empty((len(labels), len(groups) - 1, k), dtype=np.int32)
    for c, group in enumerate(groups):
        rest = np.flatnonzero(labels != c)
        place = c - (labels[rest] < c)  # a row has no place for its own class
        other[rest, place] = group[nearest(engine, embedding[rest], embedding[group], k)[0]]
    return other.reshape(len(labels), -1)


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
