"""The native engine: C++ kernels (``native/``) with threads, which release the GIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas, cython_lapack

from .._threads import one_blas_thread
from .._typing import Float, Index, Rows
from . import _native  # type: ignore[attr-defined]
from .base import NeighborGraph, NeighborLists, Sweeps, Table, Terms
from .flats import Flats
from .host import HostEngine, HostGraph, HostTable
from .pairs import PRIOR_ROWS, Centred, Pairs, pair_scores
from .sweeps import KEPT_BYTES, MARGIN_ROWS, evenly_spaced

#: Operations with fewer multiply-adds use one thread, because a second thread would not pay off.
WORTH_SHARING = 2**20
#: In tables with fewer rows, all pairs of rows are compared.
MANY_ROWS = 2**12
#: A graph with at least this many rows stores rows that are near each other together. The rows do
#: not fit into the cache, so access in random order would be slow.
FAR_APART = 2**15
#: The neighbour search is guided by the rows rotated to their DIRECTIONS first principal
#: directions, which are computed from about TURNED_BY rows. Rows are not rotated if they have more
#: than MOST_TURNED columns, or if their squares would overflow or underflow (SMALLEST).
DIRECTIONS, TURNED_BY, MOST_TURNED, SMALLEST = 16, 4096, 512, 1e-100
#: float32 rules out most pairs of columns. If it leaves more than this share of the pairs, all
#: pairs are scored by matrix products, which is faster than pair by pair.
DENSE = 0.05
#: The BLAS routines of SciPy, for the tiles of the neighbour search.
_SGEMM, _DGEMM = (cython_blas.__pyx_capi__[name] for name in ("sgemm", "dgemm"))
#: The LAPACK routine of SciPy, for the largest eigenvalue of a small matrix.
_DSYEVR = cython_lapack.__pyx_capi__["dsyevr"]


class NativeGraph(HostGraph):
    def __init__(self, same: Rows, other: Rows, threads: int, place: Float | None) -> None:
        super().__init__(same, other)
        self._threads = threads
        self.kernels = _native.Graph(self.same, self.other, place)

    def _shared(self, width: int) -> int:
        """The number of threads for an operation on ``width`` columns."""
        return self._threads if (self.same.size + self.other.size) * width > WORTH_SHARING else 1

    def margins(self, z: Float) -> Float:
        out = np.empty(len(z))
        self.kernels.margins(_contiguous(z), self._shared(z.shape[1]), out)
        return out

    def column_margins(
        self, phi: Float, dtype: npt.DTypeLike = np.float64, rows: Index | None = None
    ) -> Float:
        rows = np.arange(len(phi)) if rows is None else rows
        out = np.empty((len(rows), phi.shape[1]), dtype=dtype)
        threads = self._shared(phi.shape[1])
        self.kernels.column_margins(_contiguous(phi), rows.astype(np.int32), threads, out)
        return out

    def laplacian(self, z: Float, weight: Float) -> Float:
        return self._over_edges(self.kernels.laplacian, z, weight)

    def half_laplacian(self, z: Float, weight: Float) -> Float:
        return self._over_edges(self.kernels.half_laplacian, z, weight)

    def share_sums(self, z: Float, weight: Float) -> Float:
        out = np.empty((z.shape[1], 2))
        threads = self._shared(z.shape[1])
        self.kernels.share_sums(_contiguous(z), _contiguous(weight), threads, out)
        return out

    def _over_edges(self, kernel: Callable[..., None], z: Float, weight: Float) -> Float:
        out = np.empty(z.shape)
        kernel(_contiguous(z), _contiguous(weight), self._shared(z.shape[1]), out)
        return out


class NativeSweeps(Sweeps):
    """Passes over the candidates, whose values and column margins are kept in float32."""

    def __init__(self, table: HostTable, threads: int) -> None:
        n, p = table.n_rows, table.n_columns
        rows = evenly_spaced(n, MARGIN_ROWS).astype(np.int32)
        room = max(8 * n * p, KEPT_BYTES) // (4 * (n + len(rows)))
        self._Xt, self._threads = table.Xt, threads
        self._rows, self._room = rows, room
        self._sweeps: Any = None
        self._graph: Any = None

    def use(self, graph: NeighborGraph) -> None:
        assert isinstance(graph, NativeGraph)
        self._graph = graph.kernels
        if self._sweeps is not None:
            self._sweeps.forget_margins()

    def diagonal(self, terms: Terms, weight: Float) -> Float:
        sweeps, out = self._of(terms), np.empty(len(terms))
        sweeps.diagonal(self._graph, _contiguous(weight), self._shared(len(terms)), out)
        return out

    def pulled_back(self, terms: Terms, y: Float) -> Float:
        sweeps, out = self._of(terms), np.empty((y.shape[1], len(terms)))
        sweeps.pull_back(_contiguous(y), self._shared(len(terms) * y.shape[1]), out)
        return out

    def _of(self, terms: Terms) -> Any:
        """The kernels, with the new terms appended."""
        if self._sweeps is None:
            degree = terms.factors.shape[1]
            self._sweeps = _native.Sweeps(self._Xt, self._rows, degree, self._room)
        known = self._sweeps.size
        if known < len(terms):
            new = terms[known:]
            factors, moments = _contiguous(new.factors), _contiguous(new.moments)
            self._sweeps.append(factors, moments, self._shared(len(new)))
        return self._sweeps

    def _shared(self, terms: int) -> int:
        """The number of threads for an operation on this number of terms."""
        return self._threads if self._Xt.shape[1] * terms > WORTH_SHARING else 1


class NativeEngine(HostEngine):
    name = "native"

    def _shared(self, Xt: Float, terms: int) -> int:
        """The number of threads for an operation on this number of terms."""
        return self.threads if Xt.shape[1] * terms > WORTH_SHARING else 1

    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        out = np.empty((len(factors), 2))
        threads = self._shared(Xt, len(factors))
        _native.term_moments(_contiguous(Xt), _contiguous(factors), threads, out)
        return out

    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        out = np.empty((Xt.shape[1], len(factors)))
        terms = _contiguous(Xt), _contiguous(factors), _contiguous(moments)
        _native.term_columns(*terms, self._shared(Xt, len(factors)), out)
        return out

    def sweeps(self, table: Table) -> NativeSweeps:
        assert isinstance(table, HostTable)
        return NativeSweeps(table, self.threads)

    def pairs_above(self, table: Centred, bar: float, n_pairs: int) -> Pairs:
        p, n = table.columns.shape
        if not (bar > 0 and n_pairs > 0):
            return super().pairs_above(table, bar, n_pairs)
        threads = self.threads if n * p**2 > WORTH_SHARING else 1
        ends, prior = np.cumsum(table.counts, dtype=np.int32), PRIOR_ROWS
        few = _native.pairs_above(
            table.columns, ends, bar, prior if len(ends) > 2 else 0.0, n_pairs, threads
        )
        if len(few) > max(DENSE * p**2, MANY_ROWS):
            return super().pairs_above(table, bar, n_pairs)
        a, b = few.T.astype(np.intp)
        return Pairs(a, b, pair_scores(table, a, b)).best(n_pairs, bar)

    def truncated_powers(self, A: Float, starts: Index, kappa: int) -> Index:
        supports = np.empty((len(starts), kappa), dtype=np.int32)
        _native.truncated_powers(_contiguous(A), starts.astype(np.int32), supports)
        return supports.astype(np.intp)

    def leading_eigenvectors(self, A: Float, supports: Sequence[Index]) -> tuple[Float, Float]:
        values, vectors = np.empty(len(supports)), np.empty((len(supports), len(A)))
        places = np.concatenate(supports).astype(np.int32)
        ends = np.cumsum([len(support) for support in supports], dtype=np.int32)
        _native.leading_eigenvectors(_contiguous(A), places, ends, _DSYEVR, values, vectors)
        return values, vectors

    def step_weight(self, weight: Float, gain: Float) -> float:
        return float(_native.step_weight(_contiguous(weight), _contiguous(gain)))

    def flat_distances(self, given: Flats, ridges: Float) -> Float:
        rows = given.rows.astype(np.int32, copy=False)
        out = np.empty((len(rows), len(ridges)))
        _native.flat_distances(
            _contiguous(given.queries), _contiguous(given.references), _contiguous(rows),
            _contiguous(given.weight), _contiguous(ridges), given.floor, self.threads, out,
        )  # fmt: skip
        return out

    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        shape = len(queries), min(k, len(references))
        rows, distances = np.empty(shape, dtype=np.int32), np.empty(shape)
        if not rows.size:
            return rows, distances
        both = _contiguous(queries), _contiguous(references)
        few = len(queries) * references.size < WORTH_SHARING
        with nullcontext() if few else one_blas_thread():
            threads = 1 if few else self.threads
            _native.nearest_of_queries(*both, _SGEMM, _DGEMM, threads, rows, distances)
        return rows, distances

    def nearest_by_class(
        self, z: Float, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        rows, distances = (
            np.empty((len(z), lists.width), dtype=np.int32),
            np.empty((len(z), lists.width)),
        )
        if previous is not None and previous.shape != rows.shape:
            raise ValueError(f"previous has the shape {previous.shape}, not {rows.shape}.")
        which = classes.astype(np.int32), _contiguous(lists.slots), np.array(lists.sizes, np.int32)
        blas_and_threads = _SGEMM, _DGEMM, self.threads if z.size * len(z) > WORTH_SHARING else 1
        with one_blas_thread():
            if len(z) < MANY_ROWS:
                _native.nearest_directly(z, *which, *blas_and_threads, rows, distances)
            else:
                out = *blas_and_threads, rows, distances
                _native.nearest(z, *_guide(z), *which, previous, *out)
        return rows, distances

    def graph(self, same: Rows, other: Rows, place: Float | None = None) -> NativeGraph:
        return NativeGraph(same, other, self.threads, place if len(same) >= FAR_APART else None)


def _guide(z: Float) -> tuple[Float, float]:
    """The rows in their first principal directions, and the rounding error of a coordinate.

    Bounding boxes of blocks of near rows are small in these directions, so that the search can skip
    more blocks.
    """
    n, r = z.shape
    if not 2 < r <= MOST_TURNED:
        return z, 0.0
    sample = z[:: max(n // TURNED_BY, 1)]
    sample = sample - sample.mean(axis=0)
    size = float(np.abs(sample).max())
    if not SMALLEST < size < 1 / SMALLEST:
        return z, 0.0
    sample /= size
    axes = np.linalg.eigh(sample.T @ sample)[1][:, : -DIRECTIONS - 1 : -1]
    length = np.sqrt(float(np.einsum("ij,ij->i", z, z).max()))
    return z @ axes, 4 * r * float(np.finfo(float).eps) * length


def _contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array)
