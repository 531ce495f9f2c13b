"""The NumPy engine: readable, in float64, and the reference for the tests of other engines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._typing import Float, Index, Rows
from .base import CONSTANT, NeighborLists, Table
from .host import HostEngine, HostGraph
from .sorting import lane_sums, lists_by_sorting, nearest_by_sorting
from .sweeps import StoredSweeps


class NumpyGraph(HostGraph):
    def __init__(self, same: Rows, other: Rows) -> None:
        super().__init__(same, other)
        n = len(self.same)
        k_same, k_other = self.same.shape[1], self.other.shape[1]
        columns = np.hstack([self.other, self.same]).ravel()
        values = np.tile(np.repeat([1 / k_other, -1 / k_same], [k_other, k_same]), n)
        starts = np.arange(n + 1) * (k_other + k_same)
        self._signed = sparse.csr_matrix((values, columns, starts), shape=(n, n))

    def margins(self, z: Float) -> Float:
        result: Float = _mean_squared(z, self.other) - _mean_squared(z, self.same)
        return result

    def column_margins(
        self, phi: Float, dtype: npt.DTypeLike = np.float64, rows: Index | None = None
    ) -> Float:
        # The rows of the graph sum to 0, so phi_i^2 cancels in the sum of (phi_i - phi_j)^2.
        # Centring does not change the result, and reduces rounding errors.
        phi = phi - phi.mean(axis=0)
        own, edges = (phi, self._signed) if rows is None else (phi[rows], self._signed[rows])
        result: Float = edges @ (phi * phi) - 2 * own * (edges @ phi)
        return result.astype(dtype, copy=False)

    def laplacian(self, z: Float, weight: Float) -> Float:
        z = z - z.mean(axis=0)  # does not change the result, and reduces rounding errors
        u = weight[:, None]
        transposed = self._signed.T
        degree = (transposed @ weight)[:, None]
        result: Float = degree * z - u * (self._signed @ z) - transposed @ (u * z)
        return result

    def half_laplacian(self, z: Float, weight: Float) -> Float:
        degree = (self._signed.T @ weight)[:, None]
        result: Float = degree / 2 * z - weight[:, None] * (self._signed @ z)
        return result

    def share_sums(self, z: Float, weight: Float) -> Float:
        edges = self._signed.tocoo()
        value = (weight[edges.row] * edges.data)[:, None] * (z[edges.row] - z[edges.col]) ** 2
        shares = np.zeros(z.shape)
        np.add.at(shares, edges.row, value)
        np.add.at(shares, edges.col, value)
        deviations = ((shares - shares.mean(axis=0)) ** 2).sum(axis=0)
        return np.stack([shares.sum(axis=0), deviations], axis=1)


class NumpyEngine(HostEngine):
    name = "numpy"

    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        raw = _products(Xt, factors)
        n = raw.shape[1]
        mean = lane_sums(raw) / n
        deviation = np.sqrt(lane_sums((raw - mean[:, None]) ** 2) / n)
        varies = deviation > CONSTANT * np.abs(raw).max(axis=1)
        return np.stack([mean, np.where(varies, deviation, np.inf)], axis=1)

    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        columns = _products(Xt, factors).T - moments[:, 0]
        return np.ascontiguousarray(columns * (1 / moments[:, 1]))

    def sweeps(self, table: Table) -> StoredSweeps:
        return StoredSweeps(table)

    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        return nearest_by_sorting(queries, references, k)

    def nearest_by_class(
        self, z: Float, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        return lists_by_sorting(z, classes, lists)

    def graph(self, same: Rows, other: Rows, place: Float | None = None) -> NumpyGraph:
        return NumpyGraph(same, other)


def _products(Xt: Float, factors: Rows) -> Float:
    """The raw products, one row per term. The factor p is padding and stands for 1."""
    p, n = Xt.shape
    rows = np.ones((len(factors), n))
    for factor in factors.T:
        real = factor < p
        rows[real] *= Xt[factor[real]]
    return rows


def _mean_squared(z: Float, rows: Rows) -> Float:
    total = np.zeros(len(z))
    for j in rows.T:
        total += ((z - z[j]) ** 2).sum(axis=1)
    result: Float = total / rows.shape[1]
    return result
