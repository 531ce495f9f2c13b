"""The rows of a fit on a device of PyTorch.

The table lies there in the engine's precision, a row a column; graph, margins, weights and gains
in float64, which costs little beside reading the table. What has one number a row never leaves,
but for the bag, which comes as bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from .._typing import Float, Index, Rows
from .base import CONSTANT, NeighborLists
from .host import MARGIN_ROWS, sampled_rows
from .rows import Line, Terms, TrainingRows
from .search import repeated
from .torch_search import as_rows, full_products

if TYPE_CHECKING:
    from .torch_engine import TorchEngine

#: Numbers that are worked on at a time where there is a choice.
WORK = 2**27
#: What an edge takes while it is put at both its ends.
EDGE_BYTES = 96
#: Room is kept for as many products as there are columns, or so many.
LEAST_ROOM = 64


Method = TypeVar("Method", bound=Callable[..., Any])


def _bounded(method: Method) -> Method:
    """In full precision; and what a step needs beside table and graph may not be there either."""

    @wraps(method)
    def bounded(self: TorchRows, *args: Any) -> Any:
        at_hand = 8 * WORK + 40 * self.n_rows * 8
        with (
            full_products(self._device),
            self.engine.memory_of(f"A step over {self.n_rows} rows", at_hand, surely=False),
        ):
            return method(self, *args)

    return cast(Method, bounded)


class TorchRows(TrainingRows):
    def __init__(self, engine: TorchEngine, Xt: Float, n_plain: int | None = None) -> None:
        self.engine = engine
        self.n_columns, self.n_rows = Xt.shape
        self.n_plain = self.n_columns if n_plain is None else n_plain
        self._device = engine.device
        with engine.memory_of(
            f"The table of {self.n_rows} x {self.n_columns}", self._table_bytes()
        ):
            self._phi = _Phi(self, Xt)

    @property
    def Xt(self) -> Tensor:
        """The columns themselves, a row each."""
        return self._phi.columns[: self.n_columns]

    @property
    def nbytes(self) -> int:
        """What the table and the room for products take."""
        return self._phi.nbytes

    def _table_bytes(self) -> int:
        return self.n_rows * self.n_columns * int(self.engine.dtype.itemsize)

    def at_a_time(self) -> int:
        """Columns of all rows that are worked on at a time."""
        return max(WORK // max(self.n_rows, 1), 1)

    # --- the table

    @_bounded
    def term_moments(self, factors: Rows) -> Float:
        parts = [
            factors[s : s + self.at_a_time()] for s in range(0, len(factors), self.at_a_time())
        ]
        return np.vstack([self._moments(part) for part in parts]) if parts else np.empty((0, 2))

    def _moments(self, factors: Rows) -> Float:
        raw = self.raw(factors).double()
        mean = raw.mean(1)
        deviation = (raw - mean[:, None]).square().mean(1).sqrt()
        varies = deviation > CONSTANT * raw.abs().amax(1)
        deviation = torch.where(varies, deviation, torch.inf)
        return _host(torch.stack([mean, deviation], 1))

    def raw(self, factors: Rows) -> Tensor:
        """Products of columns, q x n; a factor of ``n_columns`` stands for 1."""
        index = self._sent(factors, torch.int64)
        rows = self.Xt[index[:, 0]]
        for factor in index.T[1:]:
            real = factor < self.n_columns
            rows[real] *= self.Xt[factor[real]]
        return rows

    def _sent(self, array: npt.ArrayLike, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array)).to(self._device, dtype)

    def _along(self, terms: Terms, vectors: Float) -> Tensor:
        """``Phi V``, n x s."""
        columns = self._phi.of(terms)
        return (columns.T @ self._sent(vectors, columns.dtype)).double()

    # --- where the rows lie

    @_bounded
    def begin(self, labels: Index, sample_weight: Float) -> None:
        self._labels = labels
        self._sample_weight = self._sent(sample_weight)
        self._embedding: list[Tensor] = []
        self._near: Tensor | None = None

    @_bounded
    def embed(self, terms: Terms, matrix: Float) -> None:
        if matrix.size:
            self._embedding.append(self._along(terms, matrix))

    def embedding(self) -> Tensor:
        if not self._embedding:
            return torch.empty((self.n_rows, 0), dtype=torch.float64, device=self._device)
        if len(self._embedding) > 1:
            self._embedding = [torch.cat(self._embedding, 1)]
        return self._embedding[0]

    def _rank(self) -> int:
        return sum(part.shape[1] for part in self._embedding)

    @_bounded
    def _gram(self) -> Float:
        together = self.embedding()
        return _host(together.T @ together)

    @_bounded
    def _turn(self, vectors: Float) -> None:
        self._embedding = [self.embedding() @ self._sent(vectors)]

    @_bounded
    def _find_neighbors(self, lists: NeighborLists) -> None:
        rows = self.embedding()
        place = rows if rows.shape[1] else self.Xt[: self.n_plain].T.contiguous()
        what = f"The neighbour search of {self.n_rows} rows in {place.shape[1]} columns"
        with self.engine.memory_of(what, 3 * place.nbytes):
            self._near = self.engine.near(place, self._labels, lists, self._near)[0]
        del place
        k_same = lists.sizes[0]
        what = f"The graph of {self.n_rows} rows with {lists.width} neighbours each"
        with self.engine.memory_of(what, self.n_rows * lists.width * EDGE_BYTES):
            near = self._near
            if bool((near < 0).any()):  # a class with fewer rows than neighbours
                near = self._sent(repeated(as_rows(near), lists), torch.int64)
            self.graph = _Graph(near[:, :k_same], near[:, k_same:])
        self._margins = self.graph.margins(rows)
        self._column_margins = torch.empty(
            (0, min(self.n_rows, MARGIN_ROWS)), dtype=self.engine.dtype, device=self._device
        )

    # --- a step

    @_bounded
    def weigh(self, in_bag: npt.NDArray[np.bool_]) -> None:
        bits = self._sent(np.packbits(in_bag), torch.uint8)
        shifts = torch.arange(7, -1, -1, device=self._device, dtype=torch.uint8)
        self._in_bag = ((bits[:, None] >> shifts) & 1).view(-1)[: self.n_rows].bool()
        self._weights = self._sample_weight * torch.exp(self._margins.min() - self._margins)
        self._inside = torch.where(self._in_bag, self._weights, 0.0)
        self._edges = self.graph.weighted(self._inside)
        self._bag = self._in_bag.nonzero()[:, 0]
        self._own_edges: _OwnEdges | None = None

    @_bounded
    def matrix(self, terms: Terms) -> Float:
        """``Phi' diag(deg) Phi - P - P'``, P from the edges of the bag alone."""
        phi = self._phi.of(terms).T.contiguous()
        center = phi.mean(0)
        if (center.abs() > 1).any():
            phi -= center
        near = self._bag_edges().sums(phi)
        A = torch.zeros((len(terms), len(terms)), dtype=torch.float64, device=self._device)
        at_a_time = max(WORK // max(len(terms), 1), 1)
        bag, u, degree = self._bag, self._inside[self._bag], self._edges.degree()
        for start in range(0, self.n_rows, at_a_time):
            some = phi[start : start + at_a_time].double()
            A += some.T @ (degree[start : start + at_a_time] * some)
        for start in range(0, len(bag), at_a_time):
            part = slice(start, start + at_a_time)
            own = phi[bag[part]].double() * u[part, None]
            P = own.T @ near[part].double()
            A -= P + P.T
        return _host(A)

    def _bag_edges(self) -> _OwnEdges:
        if self._own_edges is None:
            self._own_edges = self.graph.of_rows(self._bag)
        return self._own_edges

    @property
    def rough_diagonal(self) -> bool:
        return self.n_rows > MARGIN_ROWS

    @_bounded
    def diagonal(self, terms: Terms) -> Float:
        self._keep_margins(terms)
        inside = self._inside[self._sample()] if self.rough_diagonal else self._inside
        kept = self._column_margins
        return _host(kept @ inside.to(kept.dtype))

    def _sample(self) -> Tensor:
        return self._sent(sampled_rows(self.n_rows), torch.int64)

    def _keep_margins(self, terms: Terms) -> None:
        """The margins of every column by itself, of a sample of many rows: once a refresh."""
        known, parts = len(self._column_margins), [self._column_margins]
        sample = self._sample() if self.rough_diagonal else None
        width = self.graph.width * self._column_margins.shape[1]
        at_a_time = max(WORK // max(width, self.n_rows), 1)
        for start in range(known, len(terms), at_a_time):
            columns = self._phi.of(terms[start : start + at_a_time])
            parts.append(self.graph.column_margins(columns, sample).to(self.engine.dtype))
        if len(parts) > 1:
            self._column_margins = torch.cat(parts)

    @_bounded
    def image(self, terms: Terms, vectors: Float, over: Terms) -> Float:
        y = self._edges.laplacian(self._along(terms, vectors).to(self.engine.dtype))
        return _host(self._phi.pulled_back(over, y).T)

    @_bounded
    def share_sums(self, terms: Terms, vectors: Float) -> Float:
        outside = torch.where(self._in_bag, 0.0, self._weights)
        shares = self.graph.weighted(outside).shares(self._along(terms, vectors))
        deviations = (shares - shares.mean(0)).square().sum(0)
        return _host(torch.stack([shares.sum(0), deviations], 1))

    @_bounded
    def line(self, terms: Terms, xi: Float) -> Line:
        self._direction = self._along(terms, xi[:, None])
        self._gain = self.graph.margins(self._direction)
        return _TorchLine(self._weights[self._in_bag], self._gain[self._in_bag])

    @_bounded
    def take(self, w: float) -> None:
        self._margins = self._margins + w * self._gain
        self._embedding.append(np.sqrt(w) * self._direction)

    @_bounded
    def follow(self, terms: Terms, xi: Float, w: float, margins: bool) -> None:
        self._direction = self._along(terms, xi[:, None])
        if margins:
            self._gain = self.graph.margins(self._direction)
            self._margins = self._margins + w * self._gain
        self._embedding.append(np.sqrt(w) * self._direction)

    @_bounded
    def loss(self) -> float:
        return float(self._sample_weight @ torch.exp(torch.clamp(-self._margins, max=500.0)))


class _TorchLine(Line):
    def __init__(self, weight: Tensor, gain: Tensor) -> None:
        first_order = weight * gain
        sums = torch.stack([first_order.sum(), weight.sum(), first_order.min()]).tolist()
        self.slope, self.total, self.one_sided = sums[0], sums[1], sums[2] >= 0
        if self.slope > 0 and not self.one_sided:
            up, down = first_order > 0, first_order < 0
            self._sides = [(first_order[s].abs().log(), gain[s]) for s in (down, up)]

    def imbalance(self, w: float) -> tuple[float, float]:
        with full_products(self._sides[0][1].device):
            values = [_log_sum(w, *side) for side in self._sides]
            value, slope, value_up, slope_up = torch.stack([*values[0], *values[1]]).tolist()
        return value - value_up, slope - slope_up


def _log_sum(w: float, log_weight: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """``log sum exp(log_weight - w gain)`` and its derivative in w."""
    exponent = log_weight - w * gain
    top = exponent.max()
    terms = torch.exp(exponent - top)
    total = terms.sum()
    return top + total.log(), -(terms @ gain) / total


class _Phi:
    """Columns of the candidates, a row each, in their order: as many as there is room for."""

    def __init__(self, rows: TorchRows, Xt: Float) -> None:
        # A circle would keep the table on the device until garbage is collected.
        self._rows: TorchRows = weakref.proxy(rows)
        self._size = len(Xt)
        room = min(max(len(Xt), LEAST_ROOM), rows.engine.room(rows))
        shape = len(Xt) + room, rows.n_rows
        self._buffer = torch.empty(shape, dtype=rows.engine.dtype, device=rows.engine.device)
        for start in range(0, len(Xt), rows.at_a_time()):
            part = slice(start, min(start + rows.at_a_time(), len(Xt)))
            self._buffer[part] = torch.from_numpy(np.ascontiguousarray(Xt[part]))

    @property
    def nbytes(self) -> int:
        return int(self._buffer.nbytes)

    @property
    def columns(self) -> Tensor:
        return self._buffer[: self._size]

    def of(self, terms: Terms) -> Tensor:
        """The standardised columns of some terms, q x n."""
        kept = torch.as_tensor(np.minimum(terms.index, self._size - 1)).to(self._buffer.device)
        columns = self._buffer[kept]
        rest = np.flatnonzero(terms.index >= self._size)
        if len(rest):
            columns[torch.as_tensor(rest).to(columns.device)] = self._made(terms[rest])
        return columns

    def _made(self, terms: Terms) -> Tensor:
        """Products, standardised; those that do not vary are zero."""
        rows = self._rows.raw(terms.factors)
        moments = torch.as_tensor(terms.moments).to(rows.device, rows.dtype)
        return (rows - moments[:, :1]) * (1 / moments[:, 1:])

    def pulled_back(self, terms: Terms, y: Tensor) -> Tensor:
        """``Phi^T y``, q x s; over all candidates their columns are read where they lie."""
        if terms.index[-1] != len(terms) - 1:
            return torch.cat([_times(self.of(part), y) for part in self._blocks(terms)])
        self._keep(terms)
        beyond = [_times(self._made(part), y) for part in self._blocks(terms[self._size :])]
        return torch.cat([_times(self.columns, y), *beyond])

    def _keep(self, terms: Terms) -> None:
        """The candidates that are new, as far as there is room."""
        for part in self._blocks(terms[self._size : len(self._buffer)]):
            self._buffer[self._size : self._size + len(part)] = self._made(part)
            self._size += len(part)

    def _blocks(self, terms: Terms) -> list[Terms]:
        at_a_time = self._rows.at_a_time()
        return [terms[s : s + at_a_time] for s in range(0, len(terms), at_a_time)]


def _times(columns: Tensor, y: Tensor) -> Tensor:
    """``columns @ y`` for few columns y: with them from the left it takes a third of the time."""
    return (y.T.contiguous() @ columns.T).T


def _host(tensor: Tensor) -> Float:
    array: Float = tensor.double().cpu().numpy()
    return array


class _Graph:
    """The signed neighbour graph, and every edge at both of its ends, as a sparse matrix."""

    def __init__(self, same: Tensor, other: Tensor) -> None:
        n, device = len(same), same.device
        self._ends = torch.cat([other, same], 1)
        k_other, k_same = other.shape[1], same.shape[1]
        self.width = k_other + k_same
        self._signs = torch.cat(
            [
                torch.full((k_other,), 1 / k_other, dtype=torch.float64, device=device),
                torch.full((k_same,), -1 / k_same, dtype=torch.float64, device=device),
            ]
        )
        row = torch.arange(n, device=device, dtype=torch.int32).repeat_interleave(self.width)
        end = self._ends.reshape(-1).to(torch.int32)
        start = torch.cat([row, end])
        order = start.argsort(stable=True)
        self._starts = torch.zeros(n + 1, dtype=torch.int32, device=device)
        self._starts[1:] = torch.bincount(start, minlength=n).cumsum(0)
        self._columns = torch.cat([end, row])[order]
        self._sources = torch.cat([row, row])[order]
        self._edge_signs = self._signs.repeat(2 * n)[order]

    def margins(self, z: Tensor) -> Tensor:
        """Mean squared distance to other minus to same, column after column of z."""
        total = torch.zeros(len(z), dtype=torch.float64, device=z.device)
        at_a_time = max(WORK // (8 * self.width), 1)
        for column in z.T.contiguous():
            for start in range(0, len(z), at_a_time):
                part = slice(start, start + at_a_time)
                gaps = column[self._ends[part]] - column[part, None]
                total[part] += gaps.square() @ self._signs
        return total

    def column_margins(self, columns: Tensor, rows: Tensor | None) -> Tensor:
        """The same for every column (q x n) by itself, for all rows or some: q x rows."""
        ends, own = (self._ends, columns) if rows is None else (self._ends[rows], columns[:, rows])
        gaps = columns[:, ends].double() - own[:, :, None].double()
        return gaps.square() @ self._signs

    def of_rows(self, rows: Tensor) -> _OwnEdges:
        return _OwnEdges(self._ends[rows], self._signs)

    def weighted(self, weight: Tensor) -> _Edges:
        """Every edge at both its ends, times the weight of the row that it starts from.

        Those without a weight, half of them, are left out.
        """
        values = self._edge_signs * weight[self._sources]
        kept = values != 0
        before = torch.nn.functional.pad(kept.cumsum(0, dtype=torch.int32), (1, 0))
        return _Edges(before[self._starts], self._columns[kept], values[kept])


class _OwnEdges:
    """The edges of some rows, of each as many."""

    def __init__(self, ends: Tensor, signs: Tensor) -> None:
        self._ends, self._signs = ends.contiguous(), signs

    def sums(self, phi: Tensor) -> Tensor:
        """``S phi`` at these rows."""
        values = self._signs.to(phi.dtype).expand(self._ends.shape).contiguous()
        return embedding_bag(self._ends, phi, mode="sum", per_sample_weights=values)


class _Edges:
    """A sparse symmetric matrix M: a row's sums over the edges at it, in a fixed order."""

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor) -> None:
        self._starts, self._columns = starts, columns
        self._values = {torch.float64: values, torch.float32: values.float()}
        self._degree: Tensor | None = None

    def __matmul__(self, z: Tensor) -> Tensor:
        return embedding_bag(
            self._columns, z, self._starts, mode="sum", include_last_offset=True,
            per_sample_weights=self._values[z.dtype],
        )  # fmt: skip

    def degree(self) -> Tensor:
        """The sums of the rows of M, n x 1."""
        if self._degree is None:
            shape = len(self._starts) - 1, 1
            self._degree = self @ torch.ones(shape, dtype=torch.float64, device=self._starts.device)
        return self._degree

    def laplacian(self, z: Tensor) -> Tensor:
        """``L z = deg z - M z``."""
        z = z - z.mean(0)
        return self.degree().to(z.dtype) * z - self @ z

    def shares(self, z: Tensor) -> Tensor:
        """What the edges at each row, from either end, add to ``z' L z`` for each column z."""
        z, s = z - z.mean(0), z.shape[1]
        sums = self @ torch.cat([z, z.square()], 1)
        return sums[:, s:] - 2 * z * sums[:, :s] + z.square() * self.degree()
