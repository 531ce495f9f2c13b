"""What grows with the accepted steps: where the rows lie under W, and what is selected."""

from __future__ import annotations

import numpy as np

from .._typing import Float, Index
from .path import Factor
from .terms import Candidates

#: Columns are rotated into fewer once there are this many times as many as their rank can be.
ROTATE_ABOVE = 1.5


class Embedding:
    """The training rows under W: Euclidean distances between its rows are distances under W.

    A step adds one column, ``sqrt(w) Phi xi``, so W itself is never needed while boosting.
    """

    def __init__(self, candidates: Candidates, start: Factor) -> None:
        self._columns = [candidates.columns(start.index) @ start.matrix] if len(start.index) else []
        self._n_rows = candidates.n_rows

    def __len__(self) -> int:
        return sum(block.shape[1] for block in self._columns)

    def append(self, column: Float) -> None:
        self._columns.append(column[:, None])

    def columns(self, n_terms: int) -> Float:
        """All columns; where they are many more than W has terms, as many as its rank."""
        if not self._columns:
            return np.empty((self._n_rows, 0))
        together = np.ascontiguousarray(np.hstack(self._columns))
        if together.shape[1] > ROTATE_ABOVE * n_terms:
            together = _rotated(together)
        self._columns = [together]
        return together


def _rotated(columns: Float) -> Float:
    """The same distances in as many columns as the rank: an eigenbasis of the columns' Gram."""
    values, vectors = np.linalg.eigh(columns.T @ columns)
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    return np.ascontiguousarray(columns @ vectors[:, kept])


class Selected:
    """The terms selected so far, in the order of their first selection."""

    def __init__(self, start: Index) -> None:
        self._terms = dict.fromkeys(int(t) for t in start)

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, support: Index) -> list[int]:
        """Add the terms of a step; all selected terms, those among them."""
        self._terms.update(dict.fromkeys(int(t) for t in support))
        return list(self._terms)
