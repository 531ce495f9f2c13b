"""What workers do: every function is a task, and gives the same for the same arguments.

A shard is what one worker holds of a fit: the rows of its partitions. Rows have the numbers that
they have in the whole table; a shard's own are first in its graph, and those that live elsewhere
(the halo) come after them, shard by shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._typing import Float, Index, Rows
from ..boosting.scaling import Scaling
from ..engines import HostEngine, NeighborLists, get_engine
from ..engines.approximate import approximate_by_class
from ..engines.rows import Terms
from ..engines.search import exact_of_rows

Numbers = npt.NDArray[Any]
#: Rows that a product of a panel takes at a time.
BLOCK = 2**14
#: Of a shard of which another needs more than this share, it gets all rows: that is one task less
#: for every pair of shards and every exchange, of which a scheduler has to know.
MUCH = 0.3
#: An edge that goes to another shard: the numbers of two rows, and whether their classes differ.
EDGE_BYTES = 9


def worker_threads() -> int | None:
    """Of the worker that runs this; None where none does."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:
        return None


def engine() -> HostEngine:
    """As many threads as the worker has."""
    made = get_engine("auto", worker_threads() or 1)
    assert isinstance(made, HostEngine)
    return made


def _bytes(*arrays: Any) -> int:
    """What a worker holds for them: tasks run where most of what they need is, by size."""
    return sum(int(array.nbytes) for array in arrays)


def _sparse_bytes(matrix: Any) -> int:
    return _bytes(matrix.data, matrix.indices, matrix.indptr)


@dataclass(frozen=True)
class Shard:
    """Standardised columns of some rows, and their numbers in the whole table."""

    Xt: Float
    rows: Index

    def __sizeof__(self) -> int:
        return _bytes(self.Xt, self.rows)

    def columns(self, terms: Terms) -> Float:
        return engine().term_columns(self.Xt, terms.factors, terms.moments)


def make_shard(parts: list[Numbers], rows: Index, kept: Index, scaling: Scaling) -> Shard:
    """From a worker's partitions, whose rows are ``rows``; of a fold, ``kept`` places of them."""
    X = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    return Shard(scaling.transposed(X, kept), rows)


# --- the table


def moments(shard: Shard, factors: Rows) -> Float:
    """Count, mean, sum of squared deviations and largest value of every term, q x 4."""
    parts = []
    for factor in factors:
        real = factor[factor < len(shard.Xt)]
        column = shard.Xt[real].prod(axis=0)
        mean = column.mean()
        parts.append((len(column), mean, ((column - mean) ** 2).sum(), np.abs(column).max()))
    return np.array(parts, dtype=float).reshape(len(factors), 4)


def extremes(shard: Shard) -> Float:
    """Smallest and largest value of every column."""
    return np.stack([shard.Xt.min(axis=1), shard.Xt.max(axis=1)])


def others_than(shard: Shard, low: Float, high: Float) -> npt.NDArray[np.bool_]:
    """Columns with a value that is neither."""
    Xt = shard.Xt
    found: npt.NDArray[np.bool_] = ((Xt != low[:, None]) & (Xt != high[:, None])).any(axis=1)
    return found


# --- neighbours


def project(
    shard: Shard,
    terms: Terms,
    vectors: Float,
    dtype: npt.DTypeLike = np.float64,
    shift: float | Float = 0.0,
) -> Numbers:
    """``Phi V`` at the shard's rows, less a shift."""
    return (shard.columns(terms) @ vectors - shift).astype(dtype, copy=False)


def given(value: Any) -> Any:
    """Something the client knows, as a task: so it can be made anew."""
    return value


def plain_rows(shard: Shard, n_plain: int, sample: Index | None) -> tuple[Index, Float]:
    """Rows in all columns: those of a sample, or all."""
    at = slice(None) if sample is None else np.flatnonzero(np.isin(shard.rows, sample))
    return shard.rows[at], np.ascontiguousarray(shard.Xt[:n_plain, at].T)


def together(columns: list[Numbers]) -> Numbers:
    return np.ascontiguousarray(np.hstack(columns))


def turned(z: Numbers, vectors: Float) -> Numbers:
    return np.ascontiguousarray(z @ vectors)


def gram(z: Numbers) -> Float:
    return z.T @ z


def whole(places: list[Numbers], owner: Rows, local: Rows) -> Numbers:
    """All rows in their order."""
    out = np.empty((len(owner), places[0].shape[1]))
    for shard, place in enumerate(places):
        rows = np.flatnonzero(owner == shard)
        out[rows] = place[local[rows]]
    return out


def search(
    place: Numbers, own: Index, labels: Index, lists: NeighborLists, approximate: bool
) -> tuple[Rows, float]:
    """The neighbours of a shard's rows among all, and the recall."""
    found = approximate_by_class(engine(), place, labels, lists, own) if approximate else None
    return (exact_of_rows(engine(), place, labels, lists, own), 1.0) if found is None else found


def search_plain(
    shard: Shard,
    n_plain: int,
    references: list[tuple[Index, Float]],
    labels: Index,
    lists: NeighborLists,
) -> tuple[Rows, float]:
    """The neighbours of a shard's rows in all columns, among the references."""
    numbers = np.concatenate([rows for rows, _ in references])
    order = np.argsort(numbers)
    numbers, place = numbers[order], np.concatenate([z for _, z in references])[order]
    z = np.ascontiguousarray(shard.Xt[:n_plain].T)
    found = exact_of_rows(engine(), place, labels, lists, shard.rows, z, numbers)
    return found, 1.0


def edge_weights(lists: NeighborLists) -> Float:
    """Of a row's edges: -1/k to its own class, and 1/k to the others."""
    k_same = lists.sizes[0]
    k_other = lists.width - k_same
    return np.repeat([-1 / k_same, 1 / k_other], [k_same, k_other])


def ends_in(found: Rows, own: Index, owner: Rows, shard: int, lists: NeighborLists) -> Any:
    """The edges of some rows that end in a shard: (start, end, to another class)."""
    i, j = np.nonzero(owner[found] == shard)
    return own[i].astype(np.int32), found[i, j], j >= lists.sizes[0]


@dataclass(frozen=True)
class Graph:
    """The edges at a shard's rows; columns are its own rows, then the halo.

    Those that start here, a row's ``own`` list with the ``weight`` of each of its places; and those
    that end here, ``incoming``, with the weights of their starts left out. ``halo[t]`` are local
    numbers of rows of shard t.
    """

    own: Rows
    weight: Float
    incoming: sparse.csr_matrix
    halo: list[Rows]

    def __sizeof__(self) -> int:
        return _bytes(self.own, *self.halo) + _sparse_bytes(self.incoming)


def make_graph(
    shard: int, found: Rows, numbers: Index, incoming: list[Any], owner: Rows, local: Rows,
    lists: NeighborLists,
) -> Graph:  # fmt: skip
    """From the shard's own neighbours and the edges that end in it."""
    starts, ends, apart = (np.concatenate(parts) for parts in zip(*incoming))
    weight = edge_weights(lists)
    weights = np.where(apart, weight[-1], weight[0])
    needed = np.zeros(len(owner), dtype=bool)
    needed[found], needed[starts], needed[numbers] = True, True, False
    place, n_local, halo = np.empty(len(owner), dtype=np.int32), len(numbers), []
    place[numbers] = np.arange(n_local)
    for t in range(int(owner.max()) + 1):
        theirs = np.flatnonzero(owner == t)
        chosen = theirs[needed[theirs]]
        if t != shard and len(chosen) > MUCH * len(theirs):
            chosen = theirs  # then nothing has to be picked out of what that shard has
        place[chosen] = n_local + np.arange(len(chosen))
        n_local += len(chosen)
        halo.append(local[chosen])
    shape = len(numbers), n_local
    ending = sparse.csr_matrix((weights, (local[ends], place[starts])), shape=shape)
    return Graph(place[found], weight, ending, halo)


def halo_sizes(graph: Graph) -> tuple[list[int], int]:
    """Rows of the halo, shard by shard, and edges that come from there."""
    entering = np.count_nonzero(graph.incoming.indices >= len(graph.own))
    return [len(rows) for rows in graph.halo], int(entering)


def halo_in(graph: Graph, shard: int) -> Rows:
    """The rows of another shard that a graph needs."""
    return graph.halo[shard]


def send(values: Numbers, needed: Rows) -> Numbers:
    """What another shard needs of this shard's rows."""
    return values[needed]


def received(own: Numbers, *halo: Numbers) -> Float:
    """A shard's rows, then the halo."""
    return np.concatenate([own, *halo], dtype=np.float64)


def margins(graph: Graph, own: Numbers, *halo: Numbers) -> Float:
    """``m_i`` under the embedding: mean squared distance to the other class less to the own."""
    z = received(own, *halo)
    return _margins_of(graph.own, graph.weight, z, slice(len(own)))


def margins_among(place: Numbers, found: Rows, own: Index, lists: NeighborLists) -> Float:
    """``m_i`` of a shard's rows, where the embedding of all rows is at hand."""
    return _margins_of(found, edge_weights(lists), place, own)


def _margins_of(near: Rows, weight: Float, z: Float, own: Index | slice) -> Float:
    total = np.zeros(len(near))
    for column in z.T:
        column = np.ascontiguousarray(column)
        total += (column[own][:, None] - column[near]) ** 2 @ weight
    return total


def taken(found: Rows, rows: Index) -> Rows:
    return found[rows]


def some_rows(shard: Shard, rows: Index) -> Shard:
    return Shard(np.ascontiguousarray(shard.Xt[:, rows]), shard.rows[rows])


def column_margins(edges: tuple[Rows, Rows, Float], parts: list[Numbers]) -> Float:
    """The margins in every column by itself, of some rows with their neighbours."""
    own, near, weight = edges
    phi = np.concatenate(parts, dtype=np.float64)
    n, width = near.shape
    starts = np.arange(n + 1) * width
    S = sparse.csr_matrix((np.tile(weight, n), near.ravel(), starts), (n, len(phi)))
    result: Float = S @ (phi * phi) - 2 * phi[own] * (S @ phi)
    return result


# --- a step


def smallest(values: Float) -> float:
    return float(values.min())


def weights(m: Float, sample_weight: Float, least: float, bits: Numbers) -> Float:
    """``u`` of the rows: as it is in the bag, and less than zero out of it."""
    in_bag = np.unpackbits(bits, count=len(m)).astype(bool)
    u = sample_weight * np.exp(least - m)
    return np.where(in_bag, u, -u)


def in_bag(u: Float) -> Float:
    return np.maximum(u, 0.0)


def weights_at(u: Float, rows: Index) -> Float:
    return in_bag(u[rows])


@dataclass(frozen=True)
class Edges:
    """The edges of the rows with a weight, times the weights of their starts.

    ``leaving`` are those that start at ``rows``, in this order; ``incoming`` is over all own rows,
    and ``degree`` its row sums: those of a row's own edges are zero.
    """

    rows: Index
    leaving: sparse.csr_matrix
    incoming: sparse.csr_matrix
    degree: Float

    def __sizeof__(self) -> int:
        parts = _sparse_bytes(self.leaving), _sparse_bytes(self.incoming)
        return _bytes(self.rows, self.degree) + sum(parts)

    def times(self, z: Numbers) -> Float:
        """``(S + S^T) z`` at the own rows."""
        result: Float = self.incoming @ z
        result[self.rows] += self.leaving @ z
        return result


def weigh_edges(graph: Graph, u: Float, of_bag: bool) -> Edges:
    """Of the bag, or of the rows left out."""
    u = in_bag(u if of_bag else -u)
    rows = np.flatnonzero(u[: len(graph.own)])
    values = (u[rows, None] * graph.weight).ravel()
    starts = np.arange(len(rows) + 1) * graph.own.shape[1]
    ending = graph.incoming
    leaving = sparse.csr_matrix((values, graph.own[rows].ravel(), starts), (len(rows), len(u)))
    weight = u[ending.indices]
    kept = np.flatnonzero(weight)
    starts = np.searchsorted(kept, ending.indptr)
    weighted = ending.data[kept] * weight[kept], ending.indices[kept], starts
    incoming = sparse.csr_matrix(weighted, ending.shape)
    return Edges(rows, leaving, incoming, np.asarray(incoming.sum(axis=1)))


def pull_back(shard: Shard, edges: Edges, over: Terms, own: Numbers, *halo: Numbers) -> Float:
    """The shard's part of ``Phi^T L z``."""
    z = received(own, *halo)
    y = edges.degree * z[: len(own)] - edges.times(z)
    return engine().pull_back(shard.Xt, over.factors, over.moments, y)


def panel(edges: Edges, own: Numbers, *halo: Numbers) -> Float:
    """The shard's part of ``Phi^T L Phi``: ``Phi' diag(deg) Phi - P - P'``.

    P is from the edges that start in the bag alone.
    """
    phi = received(own, *halo)
    A = np.zeros((own.shape[1], own.shape[1]))
    for part in slices(len(own)):
        A += own[part].T @ (edges.degree[part] * own[part])
    for part in slices(len(edges.rows)):
        P = own[edges.rows[part]].T @ (edges.leaving[part] @ phi)
        A -= P + P.T
    return A


def slices(n: int) -> Iterator[slice]:
    """Some rows at a time."""
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))


def shares(edges: Edges, own: Numbers, *halo: Numbers) -> Float:
    """Count, mean and squared deviations of the shares of the rows, s x 3."""
    z = received(own, *halo)
    n = len(own)
    values = edges.times(z * z) - 2 * z[:n] * edges.times(z) + z[:n] ** 2 * edges.degree
    mean = values.mean(axis=0)
    return np.stack([np.full(len(mean), n), mean, ((values - mean) ** 2).sum(axis=0)], axis=1)


def slopes(gain: Float, u: Float) -> tuple[float, float, bool]:
    first_order = in_bag(u) * gain
    return float(first_order.sum()), float(in_bag(u).sum()), bool((first_order < 0).any())


def balance(gain: Float, u: Float, w: float) -> Float:
    """Of the losing and the gaining side: the largest exponent, the sum, and its derivative."""
    first_order = in_bag(u) * gain
    out = np.array([[-np.inf, 0.0, 0.0], [-np.inf, 0.0, 0.0]])
    for side, members in enumerate((first_order < 0, first_order > 0)):
        if members.any():
            exponent = np.log(np.abs(first_order[members])) - w * gain[members]
            top = exponent.max()
            terms = np.exp(exponent - top)
            out[side] = top, terms.sum(), terms @ gain[members]
    return out


def step(values: Float, gain: Float, w: float) -> Float:
    return values + w * gain


def scaled(z: Float, factor: float) -> Float:
    return factor * z


def loss(m: Float, sample_weight: Float) -> float:
    return float(sample_weight @ np.exp(np.minimum(-m, 500.0)))
