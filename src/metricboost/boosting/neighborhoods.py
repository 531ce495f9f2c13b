"""Neighbourhoods: the k nearest rows of each class; the only place that fixes S+ and S-.

In training S+ is the row's own class and S- the other one, so that the margin
``m_i = y_i f(x_i)`` is mean d(i, other) - mean d(i, same). For an unseen row S+ is the positive
class (``classes_[1]``) and S- the negative one, so that ``f > 0`` predicts the positive class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from ..engines import Engine

#: Rows are searched in fixed blocks: results do not depend on memory or threads.
BLOCK = 512
#: Candidates kept beyond k and ranked again by exact distances: products of embeddings round,
#: so the order of near-equal distances is only settled by differences.
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
    q, r = np.ascontiguousarray(queries - center), np.ascontiguousarray(references - center)
    norms = np.einsum("ij,ij->i", r, r)
    rows = np.empty((len(q), k), dtype=np.int32)
    distances = np.empty((len(q), k))
    for start in range(0, len(q), BLOCK):
        part = slice(start, start + BLOCK)
        omit = None if itself is None else itself[part]
        rows[part], distances[part] = _nearest_block(engine, q[part], r, norms, k, omit)
    return rows, distances


def _nearest_block(
    engine: Engine, q: Float, r: Float, norms: Float, k: int, omit: Index | None
) -> tuple[Rows, Float]:
    rough = (-2 * q) @ r.T  # |q|^2 is the same along a row and does not change the order
    rough += norms
    available = len(r)
    if omit is not None:
        rough[np.arange(len(q)), omit] = np.inf
        available -= 1
    found = np.sort(engine.smallest(rough, min(k + SPARE, available)), axis=1)
    exact = engine.paired_squared_distances(q, r, found)
    order = np.argsort(exact, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, order, 1), np.take_along_axis(exact, order, 1)
