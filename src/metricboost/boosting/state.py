"""The state of Algorithm 1: margins, weights and neighbours under the metric learned so far.

It is written once, over the arrays of an engine. Everything with one number for every row lives
here; terms, sparse vectors and step weights come in, and numbers, vectors and matrices over terms
go out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..engines import Array, Laplacian, NeighborGraph, NeighborLists, Table, Terms
from .diagonal import ColumnMargins
from .line_search import Line
from .neighborhoods import Neighborhoods, neighborhoods

#: The embedding is rotated into fewer columns once it has this many times as many columns as the
#: metric has terms.
ROTATE_ABOVE = 1.5
#: A margin below minus this counts as this in the loss, because its exponential would overflow.
LOWEST_MARGIN = -500.0


@dataclass(frozen=True)
class Weights:
    """The weights ``u = exp(-m)`` of one step.

    Attributes
    ----------
    in_bag : array of bool
    all : array
        The weights of all rows, up to a common factor. The factor changes no step, and without it
        the exponential could overflow.
    inside : array
        The weights of the rows in the bag; zero for the other rows.
    bag : Laplacian
        With the weights ``inside``: ``A = Phi' L Phi`` is the matrix of the step.
    """

    in_bag: Array
    all: Array
    inside: Array
    bag: Laplacian


@dataclass(frozen=True)
class Move:
    """The direction of a step.

    Attributes
    ----------
    along : array of shape (n,)
        The projection ``Phi xi`` of every row.
    gain : array of shape (n,)
        The gain ``xi' D_i xi`` of every row: how fast its margin grows with the step weight.
    """

    along: Array
    gain: Array


class State:
    """Margins and neighbours of the rows under W. It starts from W = 0, without neighbours.

    Parameters
    ----------
    table : Table
    labels : ndarray of int
    sample_weight : ndarray
    """

    def __init__(self, table: Table, labels: Index, sample_weight: Float) -> None:
        self.table = table
        self.labels = labels
        self._arrays = table.engine.arrays
        self._sample_weight = self._arrays.made(sample_weight)
        self._parts = [self._arrays.empty((table.n_rows, 0), self._arrays.xp.float64)]
        self.near: Neighborhoods | None = None
        self.margins: Array
        self.graph: NeighborGraph
        self.column_margins: ColumnMargins

    # --- where the rows lie

    def embed(self, terms: Terms, matrix: Float) -> None:
        """``W + M M'``: the columns ``Phi M`` join the embedding."""
        self._parts.append(self.table.along(terms, matrix))

    def embedding(self) -> Array:
        """The rows under W: Euclidean distances between them are distances under W."""
        if len(self._parts) > 1:
            self._parts = [self._arrays.xp.hstack(self._parts)]
        return self._parts[0]

    def rotate(self, n_terms: int) -> None:
        """Put the embedding into fewer columns if it has many more than W has terms."""
        if sum(part.shape[1] for part in self._parts) > ROTATE_ABOVE * n_terms:
            rows = self.embedding()
            values, vectors = np.linalg.eigh(self._arrays.host(rows.T @ rows))
            kept = values > values[-1] * len(values) * np.finfo(float).eps
            self._parts = [rows @ self._arrays.made(vectors[:, kept])]

    def refresh(self, lists: NeighborLists, n_terms: int) -> None:
        """Search for the neighbours under W, a metric of ``n_terms`` terms, and set the margins.

        The neighbours are plain ones if W is zero.
        """
        self.rotate(n_terms)
        rows = self.embedding()
        place = rows if rows.shape[1] else self.table.plain()
        near = neighborhoods(self.table.engine, place, self.labels, lists, self.near)
        self.use(near, place)

    def use(self, near: Neighborhoods, place: Array | None = None) -> None:
        """Take neighbours for the steps to come, and set the margins.

        Parameters
        ----------
        near : Neighborhoods
        place : array, optional
            Where the rows lie, as for ``Engine.graph``.
        """
        self.near = near
        self.graph = self.table.engine.graph(near.same, near.other, place)
        self.margins = self.graph.margins(self.embedding())
        self.column_margins = ColumnMargins(self.table, self.graph)

    # --- a step

    def weights(self, in_bag: npt.NDArray[np.bool_]) -> Weights:
        """The weights of a step that learns from a bag of rows."""
        xp, bag = self._arrays.xp, self._arrays.made(in_bag)
        weight = self._sample_weight * xp.exp(self.margins.min() - self.margins)
        inside = xp.where(bag, weight, 0.0)
        return Weights(bag, weight, inside, self.graph.weighted(inside))

    def left_out(self, weights: Weights) -> Laplacian:
        """The Laplacian with the weights of the rows out of the bag."""
        return self.graph.weighted(self._arrays.xp.where(weights.in_bag, 0.0, weights.all))

    def diagonal(self, weights: Weights, terms: Terms) -> Float:
        """The diagonal of A over all candidates; an estimate if there are many rows."""
        return self.column_margins.weighted(terms, weights.inside)

    def move(self, terms: Terms, xi: Float) -> Move:
        """The direction ``xi`` over some terms."""
        along = self.table.along(terms, xi)
        return Move(along, self.graph.margins(along[:, None]))

    def line(self, weights: Weights, move: Move) -> Line:
        """The loss of the bag along a direction."""
        bag = weights.in_bag
        return Line(self._arrays.xp, weights.all[bag], move.gain[bag])

    def take(self, move: Move, w: float) -> None:
        """``W + w xi xi'``: the margins and the embedding follow."""
        self.margins = self.margins + w * move.gain
        self._parts.append((float(np.sqrt(w)) * move.along)[:, None])

    def take_known(self, terms: Terms, xi: Float, w: float, with_margins: bool) -> None:
        """Take a step that is known. Its margins are left out if a refresh is to come."""
        if with_margins:
            self.take(self.move(terms, xi), w)
        else:
            self._parts.append((float(np.sqrt(w)) * self.table.along(terms, xi))[:, None])

    def loss(self) -> float:
        """The summed exponential loss."""
        xp = self._arrays.xp
        return float(self._sample_weight @ xp.exp(-xp.clip(self.margins, LOWEST_MARGIN, None)))
