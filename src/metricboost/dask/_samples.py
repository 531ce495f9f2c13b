"""What is computed from a sample of the rows: where there are many, it says where to start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Float, Index
from ..engines.base import NeighborLists
from ..engines.rows import Terms
from . import _shards

if TYPE_CHECKING:
    from ._rows import DaskRows

Future = Any
#: Rows, evenly spaced, that give a rough diagonal.
SAMPLED_ROWS = 2**11
#: Candidates whose margins are computed at a time.
BLOCK = 64


def sampled(labels: Index, n_rows: int, least: int) -> Index:
    """Rows of every class, as many of each where it has as many, evenly spaced."""
    members = [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
    each = max(n_rows // len(members), least)
    chosen = [
        m if len(m) <= each else m[np.linspace(0, len(m) - 1, each).astype(np.intp)]
        for m in members
    ]
    return np.sort(np.concatenate(chosen))


class Diagonal:
    """The diagonal of A, from the margins in every candidate's column by itself.

    Those of the rows, or of a sample of them, come together with their neighbours at the home of
    the shard that has most of these: of a candidate once between two refreshes. ``rows`` are given
    anew each time: they hold this, and would not go before a cycle is found.
    """

    def __init__(self, rows: DaskRows, found: list[Future], lists: NeighborLists) -> None:
        self._at = [_sample_of(rows, numbers) for numbers in rows.numbers]
        near = np.concatenate(rows.results(rows.each(_shards.taken, found, self._at)))
        own = np.concatenate([numbers[at] for numbers, at in zip(rows.numbers, self._at)])
        together = np.union1d(own, near)
        held = [np.flatnonzero(np.isin(numbers, together)) for numbers in rows.numbers]
        self._shards = rows.each(_shards.some_rows, rows.shards, held)
        known = np.concatenate([numbers[at] for numbers, at in zip(rows.numbers, held)])
        order = np.argsort(known)
        places = [order[np.searchsorted(known[order], given)] for given in (own, near)]
        self._home = int(np.argmax([len(at) for at in held]))
        edges = *places, _shards.edge_weights(lists)
        self._edges = rows.submit(_shards.given, edges, shard=self._home)
        self._travels = len(known) - len(held[self._home])
        self._margins: list[Future] = []
        self._size = 0

    def of(self, rows: DaskRows, terms: Terms, weights: list[Future]) -> Float:
        """Over all candidates, for the bag's weights."""
        self._add(rows, terms)
        u = rows.each(_shards.weights_at, weights, self._at)
        rows.add("weights", 8 * sum(len(at) for s, at in enumerate(self._at) if s != self._home))
        total: Float = rows.submit(_weighted, self._margins, u, shard=self._home).result()
        return total

    def _add(self, rows: DaskRows, terms: Terms) -> None:
        for start in range(self._size, len(terms), BLOCK):
            part = terms[start : start + BLOCK]
            every = np.eye(len(part))
            shift = rows.shift(part, every)
            phi = rows.each(_shards.project, self._shards, part, every, rows.narrow, shift)
            rows.add("diagonal", self._travels * len(part) * np.dtype(rows.narrow).itemsize)
            self._margins.append(
                rows.submit(_shards.column_margins, self._edges, phi, shard=self._home)
            )
        self._size = max(self._size, len(terms))


def _sample_of(rows: DaskRows, numbers: Index) -> Index:
    """Places of a shard's rows that give the diagonal."""
    if not rows.rough_diagonal:
        return np.arange(len(numbers))
    chosen = np.linspace(0, rows.n_rows - 1, SAMPLED_ROWS).astype(np.intp)
    return np.flatnonzero(np.isin(numbers, chosen))


def _weighted(margins: list[Float], u: list[Float]) -> Float:
    weight = np.concatenate(u)
    return np.concatenate([weight @ block for block in margins])
