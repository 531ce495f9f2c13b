"""The signed neighbour graph on a device of PyTorch."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from .._typing import Float
from .base import Laplacian, NeighborGraph
from .torch_table import WORK

#: Memory per edge, in bytes, while the edges are stored at both of their ends.
EDGE_BYTES = 96


class TorchGraph(NeighborGraph):
    """The neighbour graph as a sparse matrix in which every edge is stored at both of its ends.

    Parameters
    ----------
    same, other : Tensor of shape (n, k)
    dtype : torch.dtype
        The precision of the sums over edges of a Laplacian.
    """

    def __init__(self, same: Tensor, other: Tensor, dtype: torch.dtype) -> None:
        n, device = len(same), same.device
        self.dtype = dtype
        self.ends = torch.cat([other, same], 1)
        k_other, k_same = other.shape[1], same.shape[1]
        self.signs = torch.cat(
            [
                torch.full((k_other,), 1 / k_other, dtype=torch.float64, device=device),
                torch.full((k_same,), -1 / k_same, dtype=torch.float64, device=device),
            ]
        )
        width = k_other + k_same
        row = torch.arange(n, device=device, dtype=torch.int32).repeat_interleave(width)
        end = self.ends.reshape(-1).to(torch.int32)
        start = torch.cat([row, end])
        order = start.argsort(stable=True)
        self._starts = torch.zeros(n + 1, dtype=torch.int32, device=device)
        self._starts[1:] = torch.bincount(start, minlength=n).cumsum(0)
        self._columns = torch.cat([end, row])[order]
        self._sources = torch.cat([row, row])[order]
        self._edge_signs = self.signs.repeat(2 * n)[order]

    def margins(self, z: Tensor) -> Tensor:
        total = torch.zeros(len(z), dtype=torch.float64, device=z.device)
        at_a_time = max(WORK // (8 * len(self.signs)), 1)
        for column in z.T.contiguous():
            for start in range(0, len(z), at_a_time):
                part = slice(start, start + at_a_time)
                gaps = column[self.ends[part]] - column[part, None]
                total[part] += gaps.square() @ self.signs
        return total

    def column_margins(self, phi: Tensor, dtype: Any, rows: Tensor | None = None) -> Tensor:
        ends = self.ends if rows is None else self.ends[rows]
        found = torch.empty((len(ends), phi.shape[1]), dtype=dtype, device=phi.device)
        at_a_time = max(WORK // ends.numel(), 1)
        for start in range(0, phi.shape[1], at_a_time):
            columns = phi.T[start : start + at_a_time].contiguous()
            own = columns if rows is None else columns[:, rows]
            gaps = columns[:, ends].double() - own[:, :, None].double()
            found[:, start : start + at_a_time] = (gaps.square() @ self.signs).T.to(dtype)
        return found

    def weighted(self, weight: Tensor) -> TorchLaplacian:
        return TorchLaplacian(self, weight)

    def edges(self, weight: Tensor) -> Edges:
        """The edges at both of their ends, times the weight of the row that they start from.

        Edges with weight 0 are left out.
        """
        values = self._edge_signs * weight[self._sources]
        kept = values != 0
        before = torch.nn.functional.pad(kept.cumsum(0, dtype=torch.int32), (1, 0))
        return Edges(before[self._starts], self._columns[kept], values[kept])


class Edges:
    """A sparse symmetric matrix M. Products sum over the edges of a row in a fixed order."""

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor) -> None:
        self._starts, self._columns = starts, columns
        self._values = {torch.float64: values, torch.float32: values.float()}

    def __matmul__(self, z: Tensor) -> Tensor:
        return embedding_bag(
            self._columns, z, self._starts, mode="sum", include_last_offset=True,
            per_sample_weights=self._values[z.dtype],
        )  # fmt: skip

    @cached_property
    def degree(self) -> Tensor:
        """The row sums of M, of shape (n, 1)."""
        shape = len(self._starts) - 1, 1
        return self @ torch.ones(shape, dtype=torch.float64, device=self._starts.device)


class TorchLaplacian(Laplacian):
    """The Laplacian of a graph with row weights."""

    def __init__(self, graph: TorchGraph, weight: Tensor) -> None:
        self._graph = graph
        self._weight = weight
        self._edges = graph.edges(weight)

    def __matmul__(self, z: Tensor) -> Tensor:
        z = z.to(self._graph.dtype)
        z = z - z.mean(0)
        return self._edges.degree.to(z.dtype) * z - self._edges @ z

    def form(self, phi: Tensor) -> Float:
        """``phi' diag(deg) phi - P - P'`` with ``P = phi' S phi``.

        P is computed from the edges of the rows with nonzero weight.
        """
        phi = phi.contiguous()
        center = phi.mean(0)
        if (center.abs() > 1).any():
            phi = phi - center
        rows = self._weight.nonzero()[:, 0]
        near, weight = self._sums_at(rows, phi), self._weight[rows]
        degree = self._edges.degree
        A = torch.zeros((phi.shape[1], phi.shape[1]), dtype=torch.float64, device=phi.device)
        at_a_time = max(WORK // max(phi.shape[1], 1), 1)
        for start in range(0, len(phi), at_a_time):
            part = slice(start, start + at_a_time)
            some = phi[part].double()
            A += some.T @ (degree[part] * some)
        for start in range(0, len(rows), at_a_time):
            part = slice(start, start + at_a_time)
            own = phi[rows[part]].double() * weight[part, None]
            P = own.T @ near[part].double()
            A -= P + P.T
        found: Float = A.cpu().numpy()
        return found

    def _sums_at(self, rows: Tensor, phi: Tensor) -> Tensor:
        """The given rows of ``S phi``, without the row weights."""
        ends = self._graph.ends[rows].contiguous()
        signs = self._graph.signs.to(phi.dtype).expand(ends.shape).contiguous()
        return embedding_bag(ends, phi, mode="sum", per_sample_weights=signs)

    def share_sums(self, z: Tensor) -> Float:
        z, s = z - z.mean(0), z.shape[1]
        sums = self._edges @ torch.cat([z, z.square()], 1)
        shares = sums[:, s:] - 2 * z * sums[:, :s] + z.square() * self._edges.degree
        deviations = (shares - shares.mean(0)).square().sum(0)
        found: Float = torch.stack([shares.sum(0), deviations], 1).cpu().numpy()
        return found
