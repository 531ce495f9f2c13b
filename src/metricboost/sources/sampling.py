"""Samples of rows, drawn class by class.

Every row has a priority, a hash of the seed and of the number of the row. A sample has the rows
with the smallest priorities of every class. So the sample does not depend on where the rows live,
or on how the table is divided into blocks and partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from .base import Block, Source

Priorities = npt.NDArray[np.uint64]

#: A sample has at least this number of rows of every class, or all rows of a smaller class.
LEAST_OF_CLASS = 50


def priorities(numbers: Index, seed: int) -> Priorities:
    """The priorities of rows: uniform 64-bit numbers, by the finaliser of SplitMix64.

    Parameters
    ----------
    numbers : ndarray of int
        The numbers of the rows.
    seed : int
    """
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def quotas(counts: Index, most: int) -> Index:
    """The number of rows of every class in a sample.

    Classes are sampled in proportion. But every class gets at least an equal share of half of the
    sample, and at least ``LEAST_OF_CLASS`` rows, or all its rows if it has fewer. So a rare class
    keeps its rows.

    Parameters
    ----------
    counts : ndarray of int
        The number of rows of every class.
    most : int
        The most rows of the sample.
    """
    counts = np.asarray(counts, dtype=np.intp)
    if counts.sum() <= most:
        return counts
    least = np.minimum(counts, max(LEAST_OF_CLASS, most // (2 * len(counts))))
    if least.sum() > most:
        raise ValueError(f"A sample of {most} rows cannot have {LEAST_OF_CLASS} of every class.")
    open_ = counts > least
    result = least.copy()
    while open_.any():  # a class whose share is below its least number gets its least number
        room = most - result[~open_].sum()
        share = counts * (room / counts[open_].sum())
        short = open_ & (share < least)
        if not short.any():
            result[open_] = np.floor(share[open_]).astype(np.intp)
            break
        open_ &= ~short
    return result


def least_sample(counts: Index) -> int:
    """The size of the smallest sample that has enough rows of every class.

    Parameters
    ----------
    counts : ndarray of int
        The number of rows of every class.
    """
    return int(np.minimum(counts, LEAST_OF_CLASS).sum())


def draw(source: Source, most: int | None, seed: int) -> Index:
    """The numbers of the rows of a sample, in ascending order.

    Parameters
    ----------
    source : Source
    most : int or None
        The most rows of the sample; None for all rows.
    seed : int
    """
    counts = source.class_count
    sizes = counts if most is None else quotas(counts, most)
    # This share of a class has enough rows with near certainty: the bound is five deviations above
    # the expected number.
    share = (sizes + 5 * np.sqrt(sizes) + 5) / np.maximum(counts, 1)
    found = source.reduce(partial(_smallest, seed=seed, share=share), columns=False)
    return np.sort(np.concatenate([found.first(c, size) for c, size in enumerate(sizes)]))


@dataclass(frozen=True)
class _Drawn:
    """Row numbers with their priorities and classes."""

    numbers: Index
    priorities: Priorities
    labels: Index

    def __add__(self, other: _Drawn) -> _Drawn:
        return _Drawn(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.priorities, other.priorities]),
            np.concatenate([self.labels, other.labels]),
        )

    def first(self, c: int, size: int) -> Index:
        """The numbers of the ``size`` rows of class ``c`` with the smallest priorities."""
        own = np.flatnonzero(self.labels == c)
        order = np.argsort(self.priorities[own], kind="stable")
        return self.numbers[own[order[:size]]]


def _smallest(block: Block, seed: int, share: Float) -> _Drawn:
    """The rows of a block whose priority is among the smallest ``share`` of their class."""
    found = priorities(block.numbers, seed)
    kept = found * 2.0**-64 <= share[block.labels]
    return _Drawn(block.numbers[kept], found[kept], block.labels[kept])


def draw_among(
    rows: Index, labels: Index, most: int, seed: int, turn: float = 0.0, groups: Index | None = None
) -> Index:
    """The numbers of the rows of a sample of some rows, in ascending order.

    Parameters
    ----------
    rows : ndarray of int
        The numbers of the rows to draw from.
    labels : ndarray of int
        The numbers of their classes.
    most : int
        The most rows of the sample.
    seed : int
    turn : float, default=0.0
        Where in the random order of the rows the sample begins, from 0 to 1. Samples with the same
        seed and with turns that are far apart share as few rows as possible.
    groups : ndarray of int, default=None
        The group of every row. The sample then has rows of as many groups as possible.
    """
    if len(rows) <= most:
        return rows
    counts = np.bincount(labels)
    present = np.flatnonzero(counts)
    sizes = np.zeros(len(counts), dtype=np.intp)
    sizes[present] = quotas(counts[present], most)
    with np.errstate(over="ignore"):
        order = priorities(rows, seed) - np.uint64(int(turn * 2**64))
    found = []
    for c in present:
        own = np.flatnonzero(labels == c)
        keys = (order[own],) if groups is None else (order[own], _ranks(groups[own], order[own]))
        found.append(rows[own[np.lexsort(keys)[: sizes[c]]]])
    return np.sort(np.concatenate(found))


def _ranks(groups: Index, order: Priorities) -> Index:
    """The place of every row within its group."""
    by_group = np.lexsort((order, groups))
    ordered = groups[by_group]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    ranks = np.empty(len(groups), dtype=np.intp)
    ranks[by_group] = np.arange(len(groups)) - np.repeat(starts, lengths)
    return ranks


def corrected_weights(weight: Float, labels: Index, counts: Index) -> Float:
    """The weights of a sample, corrected for classes that have more than their share of it.

    Every class gets the weight that it has among the rows that the sample was drawn from. The
    weights sum to the number of rows of the sample.

    Parameters
    ----------
    weight, labels : ndarray
        The weights and the classes of the rows of the sample.
    counts : ndarray of int
        The number of rows of every class among the rows that the sample was drawn from.
    """
    own = np.maximum(np.bincount(labels, minlength=len(counts)), 1)
    corrected = weight * (counts / own)[labels]
    result: Float = corrected * (len(corrected) / corrected.sum())
    return result
