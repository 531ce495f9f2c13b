"""The rows of a fit in the memory of this process, for the engines whose kernels take arrays."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index, Rows
from .base import HostEngine, NeighborGraph, NeighborLists
from .rows import Line, Terms, TrainingRows
from .search import Neighborhoods, neighborhoods

#: Margins of columns are computed for this many candidates at a time: for more where rows are few,
#: for fewer where they are many.
BLOCK, FEW_NUMBERS, MANY_NUMBERS = 64, 2**18, 2**23
#: They are kept up to this size, or that of the table.
KEPT_BYTES = 2**27
#: Of so many rows, evenly spaced, where there are more, and in float32 for large tables.
MARGIN_ROWS, DOUBLE_MARGINS = 2**14, 2**23
#: Larger tables are swept in float32: a sweep takes as long as reading the table does, and seven
#: digits choose among terms. All else is computed from float64.
DOUBLE_SWEEPS = 2**23


class HostRows(TrainingRows):
    def __init__(self, engine: HostEngine, Xt: Float, n_plain: int | None = None) -> None:
        self.engine = engine
        self.Xt = np.ascontiguousarray(Xt)
        self.n_columns, self.n_rows = Xt.shape
        self.n_plain = self.n_columns if n_plain is None else n_plain

    # --- the table

    def term_moments(self, factors: Rows) -> Float:
        return self.engine.term_moments(self.Xt, factors)

    def columns(self, terms: Terms) -> Float:
        """The standardised columns of some terms, n x q."""
        return self.engine.term_columns(self.Xt, terms.factors, terms.moments)

    @cached_property
    def _swept(self) -> npt.NDArray[Any]:
        """The table as sweeps over all of it read it."""
        return self.Xt if self.Xt.size <= DOUBLE_SWEEPS else self.Xt.astype(np.float32)

    # --- where the rows lie

    def begin(self, labels: Index, sample_weight: Float) -> None:
        self.labels, self._sample_weight = labels, sample_weight
        self._embedding = [np.empty((self.n_rows, 0))]
        self._near: Neighborhoods | None = None

    def embed(self, terms: Terms, matrix: Float) -> None:
        self._embedding.append(self.columns(terms) @ matrix)

    def embedding(self) -> Float:
        """The rows under W: Euclidean distances between them are distances under W."""
        if len(self._embedding) > 1:
            self._embedding = [np.ascontiguousarray(np.hstack(self._embedding))]
        return self._embedding[0]

    def _rank(self) -> int:
        return sum(part.shape[1] for part in self._embedding)

    def _gram(self) -> Float:
        together = self.embedding()
        return together.T @ together

    def _turn(self, vectors: Float) -> None:
        self._embedding = [np.ascontiguousarray(self.embedding() @ vectors)]

    def _find_neighbors(self, lists: NeighborLists) -> None:
        rows = self.embedding()
        place = rows if rows.shape[1] else self.Xt[: self.n_plain].T
        near = neighborhoods(self.engine, place, self.labels, lists, self._near)
        self.use(near, place)
        self.margins = self.graph.margins(rows)

    def use(self, near: Neighborhoods, place: Float | None = None) -> None:
        """The neighbours of the steps to come."""
        self._near = near
        self.graph: NeighborGraph = self.engine.graph(near.same, near.other, place)
        self._kept = _ColumnMargins(self)

    # --- a step

    def weigh(self, in_bag: npt.NDArray[np.bool_]) -> None:
        self._in_bag = in_bag
        self.weights = self._sample_weight * np.exp(self.margins.min() - self.margins)
        self.inside = np.where(in_bag, self.weights, 0.0)

    def matrix(self, terms: Terms) -> Float:
        """O(n q (q + k)); columns taken as given are centred for it."""
        phi = self.columns(terms)
        center = phi.mean(axis=0)
        if (np.abs(center) > 1).any():
            phi -= center
        A = phi.T @ self.graph.half_laplacian(phi, self.inside)
        return A + A.T

    @property
    def rough_diagonal(self) -> bool:
        return self._kept.sample is not None

    def diagonal(self, terms: Terms) -> Float:
        return self._kept.weighted(terms, self.inside)

    def image(self, terms: Terms, vectors: Float, over: Terms) -> Float:
        y = self.graph.laplacian(self.columns(terms) @ vectors, self.inside)
        return self.engine.pull_back(self._swept, over.factors, over.moments, y)

    def share_sums(self, terms: Terms, vectors: Float) -> Float:
        outside = np.where(self._in_bag, 0.0, self.weights)
        return self.graph.share_sums(self.columns(terms) @ vectors, outside)

    def line(self, terms: Terms, xi: Float) -> Line:
        self._along = self.columns(terms) @ xi
        self._gain = self.graph.margins(self._along[:, None])
        return HostLine(self.weights[self._in_bag], self._gain[self._in_bag])

    def take(self, w: float) -> None:
        self.margins = self.margins + w * self._gain
        self._embedding.append((np.sqrt(w) * self._along)[:, None])

    def follow(self, terms: Terms, xi: Float, w: float, margins: bool) -> None:
        self._along = self.columns(terms) @ xi
        if margins:
            self._gain = self.graph.margins(self._along[:, None])
            self.margins = self.margins + w * self._gain
        self._embedding.append((np.sqrt(w) * self._along)[:, None])

    def loss(self) -> float:
        return float(self._sample_weight @ np.exp(np.minimum(-self.margins, 500.0)))


class HostLine(Line):
    def __init__(self, weight: Float, gain: Float) -> None:
        first_order = weight * gain
        self.slope, self.total = float(first_order.sum()), float(weight.sum())
        up, down = first_order > 0, first_order < 0
        self.one_sided = not down.any()
        if self.slope > 0:
            self._up = np.log(first_order[up]), gain[up]
            self._down = np.log(-first_order[down]), gain[down]

    def imbalance(self, w: float) -> tuple[float, float]:
        value, slope = _log_sum(w, *self._down)
        value_up, slope_up = _log_sum(w, *self._up)
        return value - value_up, slope - slope_up


def _log_sum(w: float, log_weight: Float, gain: Float) -> tuple[float, float]:
    """``log sum exp(log_weight - w gain)`` and its derivative in w."""
    exponent = log_weight - w * gain
    top = float(exponent.max())
    terms = np.exp(exponent - top)
    total = float(terms.sum())
    return top + float(np.log(total)), -float(terms @ gain) / total


class _ColumnMargins:
    """The diagonals of all D_i, for the diagonal of A.

    ``A_cc = sum_i u_i (D_i)_cc``, and ``(D_i)_cc``, the margin in one column, is fixed between two
    refreshes: it is computed once for the candidates there is room for. Of many rows a sample
    gives the diagonal: it says where the power method starts, and no more.
    """

    def __init__(self, rows: HostRows) -> None:
        n, p = rows.n_rows, rows.n_columns
        self._rows = rows
        self.sample = None if n <= MARGIN_ROWS else sampled_rows(n)
        dtype = np.float64 if n * p <= DOUBLE_MARGINS and n <= MARGIN_ROWS else np.float32
        n_margins = min(n, MARGIN_ROWS)
        bytes_each = n_margins * np.dtype(dtype).itemsize
        self._kept = KeptColumns(n_margins, max(8 * n * p, KEPT_BYTES) // bytes_each, dtype)
        self._block = max(min(BLOCK, MANY_NUMBERS // n), FEW_NUMBERS // n, 8)

    def weighted(self, terms: Terms, weight: Float) -> Float:
        """Their sums over rows, for all candidates."""
        weight = weight if self.sample is None else weight[self.sample]
        kept = self._kept
        kept.reserve(len(terms))
        while kept.size < len(terms) and kept.room_left:
            kept.add(self._of(terms, kept.size, min(self._block, kept.room_left)))
        parts = [kept.columns.T @ weight.astype(kept.dtype, copy=False)]
        for start in range(kept.size, len(terms), self._block):
            parts.append(self._of(terms, start, self._block).T @ weight)
        return np.concatenate(parts).astype(np.float64, copy=False)

    def _of(self, terms: Terms, start: int, size: int) -> Float:
        """Column margins of some candidates after others."""
        columns = self._rows.columns(terms[start : start + size])
        return self._rows.graph.column_margins(columns, self._kept.dtype, self.sample)


def sampled_rows(n: int) -> Index:
    return np.linspace(0, n - 1, MARGIN_ROWS).astype(np.intp)


class KeptColumns:
    """Columns appended until there is no more room; those beyond it are not kept."""

    def __init__(self, n_rows: int, room: int, dtype: npt.DTypeLike = np.float64) -> None:
        self._buffer = np.empty((n_rows, 0), dtype=dtype)
        self._room = room
        self.size = 0

    @property
    def columns(self) -> Float:
        return self._buffer[:, : self.size]

    @property
    def room_left(self) -> int:
        return self._room - self.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._buffer.dtype

    def reserve(self, size: int) -> None:
        """Room for so many at once, where it is known that they will come; a few more will."""
        size = min(size, self._room)
        if size > self._buffer.shape[1]:
            wider = min(size + size // 8, self._room)
            grown = np.empty((len(self._buffer), wider), dtype=self.dtype)
            grown[:, : self.size] = self.columns
            self._buffer = grown

    def add(self, columns: Float) -> None:
        size = min(self.size + columns.shape[1], self._room)
        if size > self._buffer.shape[1]:
            self.reserve(2 * size)
        self._buffer[:, self.size : size] = columns[:, : size - self.size]
        self.size = size
