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


def engine() -> HostEngine:
    """As many threads as the worker has."""
    from distributed import get_worker

    try:
        threads = get_worker().state.nthreads
    except ValueError:  # not on a worker
        threads = 1
    made = get_engine("auto", threads)
    assert isinstance(made, HostEngine)
    return made


@dataclass(frozen=True)
class Shard:
    """Standardised columns of some rows, and their numbers in the whole table."""

    Xt: Float
    rows: Index

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
    shard: Shard, terms: Terms, vectors: Float, dtype: npt.DTypeLike = np.float64
) -> Numbers:
    """``Phi V`` at the shard's rows."""
    return (shard.columns(terms) @ vectors).astype(dtype, copy=False)


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


def whole(rows: list[Index], places: list[Numbers], n: int) -> Numbers:
    """All rows in their order."""
    out = np.empty((n, places[0].shape[1]))
    for own, place in zip(rows, places):
        out[own] = place
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
    """The edges of some rows that end in a shard: (start, end, weight)."""
    weight = edge_weights(lists)
    i, j = np.nonzero(owner[found] == shard)
    return own[i].astype(np.int32), found[i, j], weight[j]


@dataclass(frozen=True)
class Graph:
    """The edges at a shard's rows, from either end; columns are own rows, then the halo.

    ``own`` are those that start here, ``both`` all, without weights; ``sources`` says where in the
    columns each edge of ``both`` starts. ``halo[t]`` are local numbers of rows of shard t.
    """

    own: sparse.csr_matrix
    both: sparse.csr_matrix
    sources: Index
    halo: list[Index]

    @property
    def width(self) -> int:
        return self.own.shape[1]


def make_graph(
    shard: int, n_own: int, found: Rows, numbers: Index, incoming: list[Any], owner: Rows,
    local: Rows, lists: NeighborLists,
) -> Graph:  # fmt: skip
    """From the shard's own neighbours and the edges that end in it."""
    signs = edge_weights(lists)
    start_own = np.repeat(np.arange(n_own), lists.width)
    starts = np.concatenate([edges[0] for edges in incoming])
    ends = local[np.concatenate([edges[1] for edges in incoming])]
    needed = np.unique(np.concatenate([found.ravel(), starts]))
    elsewhere = needed[owner[needed] != shard]
    by_shard = np.argsort(owner[elsewhere], kind="stable")
    elsewhere = elsewhere[by_shard]
    n_shards = int(owner.max()) + 1
    halo = [local[elsewhere[owner[elsewhere] == t]].astype(np.intp) for t in range(n_shards)]
    place = np.zeros(len(owner), dtype=np.int32)
    place[numbers] = np.arange(n_own)
    place[elsewhere] = n_own + np.arange(len(elsewhere))
    shape = n_own, n_own + len(elsewhere)
    out_columns, weights = place[found.ravel()], np.tile(signs, n_own)
    own = sparse.csr_matrix((weights, (start_own, out_columns)), shape=shape)
    rows = np.concatenate([start_own, ends])
    columns = np.concatenate([out_columns, place[starts]])
    sources = np.concatenate([start_own, place[starts]])
    values = np.concatenate([weights, np.concatenate([edges[2] for edges in incoming])])
    order = np.lexsort((columns, rows))  # a fixed order, whatever the shards
    counts = np.bincount(rows, minlength=n_own)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    both = sparse.csr_matrix((values[order], columns[order], indptr), shape=shape)
    return Graph(own, both, sources[order], halo)


def halo_in(graph: Graph, shard: int) -> Rows:
    """The rows of another shard that a graph needs."""
    return graph.halo[shard].astype(np.int32)


def send(values: Numbers, needed: Rows) -> Numbers:
    """What another shard needs of this shard's rows."""
    return values[needed]


def received(own: Numbers, halo: list[Numbers]) -> Numbers:
    """A shard's rows, then the halo."""
    return np.concatenate([own, *halo])


def margins(graph: Graph, own: Numbers, *halo: Numbers) -> Float:
    """``m_i`` under the embedding: mean squared distance to the other class less to the own."""
    z = received(own, list(halo)).astype(np.float64, copy=False)
    total = np.zeros(len(own))
    if z.shape[1]:
        edges = graph.own.tocoo()
        squared = np.zeros(len(edges.row))
        for column in z.T:
            squared += (column[edges.row] - column[edges.col]) ** 2
        np.add.at(total, edges.row, edges.data * squared)
    return total


def column_margins(graph: Graph, at: Index, phi: Numbers, *halo: Numbers) -> Float:
    """The same for every column by itself, at some rows."""
    z = received(phi, list(halo)).astype(np.float64, copy=False)
    edges = graph.own[at]
    own = z[at]
    result: Float = edges @ (z * z) - 2 * own * (edges @ z)
    return result


# --- a step


def smallest(values: Float) -> float:
    return float(values.min())


def weights(m: Float, sample_weight: Float, least: float, bits: Numbers) -> Float:
    """``u`` of the rows, in the bag and out of it, n x 2."""
    in_bag = np.unpackbits(bits, count=len(m)).astype(bool)
    u = sample_weight * np.exp(least - m)
    return np.stack([np.where(in_bag, u, 0.0), np.where(in_bag, 0.0, u)], axis=1)


def weigh_edges(graph: Graph, own: Float, *halo: Float) -> tuple[Any, Any]:
    """The edges times the weights of their starts: of the bag, and of the rows left out."""
    u = received(own, list(halo))
    pair = []
    for column in u.T:
        values = graph.both.data * column[graph.sources]
        kept = values != 0
        starts = np.concatenate([[0], np.cumsum(kept)])[graph.both.indptr]
        edges = values[kept], graph.both.indices[kept], starts
        pair.append(sparse.csr_matrix(edges, graph.both.shape))
    return pair[0], pair[1]


def _laplacian(edges: Any, z: Numbers, n_own: int) -> Float:
    degree = np.asarray(edges.sum(axis=1))
    result: Float = degree * z[:n_own] - edges @ z
    return result


def pull_back(
    shard: Shard, edges: tuple[Any, Any], over: Terms, own: Numbers, *halo: Numbers
) -> Float:
    """The shard's part of ``Phi^T L z``."""
    z = received(own, list(halo)).astype(np.float64, copy=False)
    y = _laplacian(edges[0], z, len(own))
    return engine().pull_back(shard.Xt, over.factors, over.moments, y)


def panel(graph: Graph, u: Float, edges: tuple[Any, Any], own: Numbers, *halo: Numbers) -> Float:
    """The shard's part of ``Phi^T L Phi``: ``Phi' diag(deg) Phi - P - P'``.

    P is from the edges that start in the bag alone.
    """
    phi = received(own, list(halo))
    degree, start = np.asarray(edges[0].sum(axis=1)), graph.own.astype(phi.dtype)
    A = np.zeros((own.shape[1], own.shape[1]))
    for rows in slices_of(np.arange(len(own))):
        part = own[rows].astype(np.float64)
        A += part.T @ (degree[rows] * part)
    for rows in slices_of(np.flatnonzero(u[:, 0])):
        P = (own[rows] * u[rows, :1]).T @ (start[rows] @ phi).astype(np.float64)
        A -= P + P.T
    return A


def slices_of(rows: Index) -> Iterator[Index]:
    """Some rows at a time."""
    return iter(np.split(rows, range(BLOCK, len(rows), BLOCK)))


def shares(edges: tuple[Any, Any], own: Numbers, *halo: Numbers) -> Float:
    """Count, mean and squared deviations of the shares of the rows, s x 3."""
    z = received(own, list(halo)).astype(np.float64, copy=False)
    left_out, n = edges[1], len(own)
    degree = np.asarray(left_out.sum(axis=1))
    values = left_out @ (z * z) - 2 * z[:n] * (left_out @ z) + z[:n] ** 2 * degree
    mean = values.mean(axis=0)
    return np.stack([np.full(len(mean), n), mean, ((values - mean) ** 2).sum(axis=0)], axis=1)


def slopes(gain: Float, u: Float) -> tuple[float, float, bool]:
    first_order = u[:, 0] * gain
    return float(first_order.sum()), float(u[:, 0].sum()), bool((first_order < 0).any())


def balance(gain: Float, u: Float, w: float) -> Float:
    """Of the losing and the gaining side: the largest exponent, the sum, and its derivative."""
    first_order = u[:, 0] * gain
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
