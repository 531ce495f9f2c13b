"""The state of Algorithm 1: margins, weights and neighbours under the metric learned so far.

The state is written once, over the arrays of an engine. It holds all arrays with one number per
row. Its methods take terms, sparse vectors and step weights, and return numbers, and vectors and
matrices over terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..engines import Array, Laplacian, NeighborGraph, NeighborLists, Sweeps, Table, Terms
from .neighborhoods import Neighborhoods, neighborhoods

#: The embedding is rotated into fewer columns once it has this many times as many columns as the
#: metric has terms.
ROTATE_ABOVE = 1.5
#: Margins below LOWEST_MARGIN count as LOWEST_MARGIN in the loss, because ``exp(-margin)`` would
#: overflow.
LOWEST_MARGIN = -500.0


@dataclass(frozen=True)
class Weights:
    """The weights ``u = exp(-m)`` of one step.

    Attributes
    ----------
    in_bag : array of bool
        Whether a row is in the bag of the step.
    all : array
        The weights of all rows, divided by the largest exponential, which could overflow. A common
        factor of all weights changes no step.
    inside : array
        The weights of the rows in the bag, and zero for the other rows.
    bag : Laplacian
        The Laplacian L with the weights ``inside``. The matrix of the step is ``A = Phi' L Phi``.
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
        The gain ``xi' D_i xi`` of every row, which is the derivative of the margin of the row by
        the step weight.
    """

    along: Array
    gain: Array


class State:
    """Margins and neighbours of the rows under W.

    A new state has W = 0 and no neighbours.

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
        self.sweeps = table.engine.sweeps(table)
        self._parts = [self._arrays.empty((table.n_rows, 0), self._arrays.xp.float64)]
        self.near: Neighborhoods | None = None
        self.margins: Array
        self.graph: NeighborGraph

    # --- the embedding and the neighbours

    def embed(self, terms: Terms, matrix: Float) -> None:
        """Add ``M M'`` to W: the columns ``Phi M`` are appended to the embedding."""
        self._parts.append(self.table.along(terms, matrix))

    def embedding(self) -> Array:
        """The embedding of the rows. Its Euclidean distances are the distances under W."""
        if len(self._parts) > 1:
            self._parts = [self._arrays.xp.hstack(self._parts)]
        return self._parts[0]

    def rotate(self, n_terms: int) -> None:
        """Rotate the embedding into fewer columns if it has many more than W has terms."""
        if sum(part.shape[1] for part in self._parts) > ROTATE_ABOVE * n_terms:
            rows = self.embedding()
            values, vectors = np.linalg.eigh(self._arrays.host(rows.T @ rows))
            kept = values > values[-1] * len(values) * np.finfo(float).eps
            self._parts = [rows @ self._arrays.made(vectors[:, kept])]

    def refresh(self, lists: NeighborLists, n_terms: int) -> None:
        """Search for the neighbours under W, a metric of ``n_terms`` terms, and set the margins.

        If W is zero, the neighbours are those under the plain distance.
        """
        self.rotate(n_terms)
        rows = self.embedding()
        place = rows if rows.shape[1] else self.table.plain()
        near = neighborhoods(self.table.engine, place, self.labels, lists, self.near)
        self.use(near, place)

    def use(self, near: Neighborhoods, place: Array | None = None) -> None:
        """Use the given neighbours for the next steps, and set the margins.

        Parameters
        ----------
        near : Neighborhoods
        place : array, optional
            The positions of the rows, as in ``Engine.graph``.
        """
        self.near = near
        self.graph = self.table.engine.graph(near.same, near.other, place)
        self.margins = self.graph.margins(self.embedding())
        self.sweeps.use(self.graph)

    # --- a step

    def weights(self, in_bag: npt.NDArray[np.bool_]) -> Weights:
        """The weights of a step that learns from the rows in the bag."""
        xp, bag = self._arrays.xp, self._arrays.made(in_bag)
        weight = self._sample_weight * xp.exp(self.margins.min() - self.margins)
        inside = xp.where(bag, weight, 0.0)
        return Weights(bag, weight, inside, self.graph.weighted(inside))

    def share_sums(self, weights: Weights, terms: Terms, vectors: Float) -> Float:
        """The sums of the shares of the rows, with the weights of the out-of-bag rows.

        ``vectors`` has one direction over the terms in each column. See ``Laplacian.share_sums``.
        """
        left_out = self._arrays.xp.where(weights.in_bag, 0.0, weights.all)
        return self.graph.weighted(left_out).share_sums(self.table.along(terms, vectors))

    def sweeps_of_one_step(self) -> Sweeps:
        """Passes over terms whose values are not kept for later steps."""
        sweeps = self.table.engine.sweeps(self.table)
        sweeps.use(self.graph)
        return sweeps

    def diagonal(self, weights: Weights, terms: Terms, sweeps: Sweeps | None = None) -> Float:
        """The diagonal of A over the terms, rounded as in ``Sweeps``.

        The terms are all candidates, unless other sweeps are given.
        """
        return (sweeps or self.sweeps).diagonal(terms, weights.inside)

    def rows(
        self, weights: Weights, terms: Terms, chosen: Index, sweeps: Sweeps | None = None
    ) -> Float:
        """The rows of A at the chosen terms, over terms as in ``diagonal``."""
        image = weights.bag @ self.table.columns(terms[chosen])
        return (sweeps or self.sweeps).pulled_back(terms, image)

    def move(self, terms: Terms, xi: Float) -> Move:
        """The projections and gains of all rows for the direction ``xi`` over the terms."""
        along = self.table.along(terms, xi)
        return Move(along, self.graph.margins(along[:, None]))

    def step_weight(self, weights: Weights, move: Move) -> float:
        """The step weight that minimises the loss of the rows in the bag."""
        bag = weights.in_bag
        return self.table.engine.step_weight(weights.all[bag], move.gain[bag])

    def take(self, move: Move, w: float) -> None:
        """Add ``w xi xi'`` to W, and update the margins and the embedding."""
        self.margins = self.margins + w * move.gain
        self._parts.append((float(np.sqrt(w)) * move.along)[:, None])

    def take_known(self, terms: Terms, xi: Float, w: float, with_margins: bool) -> None:
        """Take a step of a known path.

        Margins need not be updated for steps before a refresh, which sets them anew.
        """
        if with_margins:
            self.take(self.move(terms, xi), w)
        else:
            self._parts.append((float(np.sqrt(w)) * self.table.along(terms, xi))[:, None])

    def loss(self) -> float:
        """The sum of the exponential loss over all rows."""
        xp = self._arrays.xp
        return float(self._sample_weight @ xp.exp(-xp.clip(self.margins, LOWEST_MARGIN, None)))
