"""The native engine: the same operations in C++ (``native/kernels.cpp``), the GIL released."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Rows
from . import _native  # type: ignore[attr-defined]
from .base import Engine, NeighborGraph


class NativeGraph(NeighborGraph):
    def margins(self, z: Float) -> Float:
        out = np.empty(len(z))
        _native.margins(_contiguous(z), self.same, self.other, out)
        return out

    def column_margins(self, phi: Float) -> Float:
        out = np.empty(phi.shape)
        _native.column_margins(_with_contiguous_rows(phi), self.same, self.other, out)
        return out

    def laplacian(self, z: Float, weight: Float) -> Float:
        out = np.empty(z.shape)
        _native.laplacian(_contiguous(z), _contiguous(weight), self.same, self.other, out)
        return out

    def edge_shares(self, z: Float, weight: Float) -> Float:
        out = np.empty(z.shape)
        _native.edge_shares(_contiguous(z), _contiguous(weight), self.same, self.other, out)
        return out


class NativeEngine(Engine):
    name = "native"

    def term_moments(self, Xt: Float, factors: Rows) -> Float:
        out = np.empty((len(factors), 2))
        _native.term_moments(Xt, _contiguous(factors), out)
        return out

    def term_columns(self, Xt: Float, factors: Rows, moments: Float) -> Float:
        out = np.empty((Xt.shape[1], len(factors)))
        _native.term_columns(Xt, _contiguous(factors), _contiguous(moments), out)
        return out

    def pull_back(self, columns: Float, y: Float) -> Float:
        out = np.empty((y.shape[1], columns.shape[1]))
        _native.pull_back(_with_contiguous_rows(columns), _contiguous(y), out)
        return out

    def smallest(self, distances: Float, k: int) -> Rows:
        out = np.empty((len(distances), k), dtype=np.int32)
        _native.smallest(_contiguous(distances), out)
        return out

    def paired_squared_distances(self, a: Float, b: Float, index: Rows) -> Float:
        out = np.empty(index.shape)
        _native.paired_squared_distances(_contiguous(a), _contiguous(b), _contiguous(index), out)
        return out

    def graph(self, same: Rows, other: Rows) -> NeighborGraph:
        return NativeGraph(same, other)


def _contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array)


def _with_contiguous_rows(columns: Float) -> Float:
    """As it is where rows may lie further apart than their length; else a copy."""
    inside = columns.strides[1] == columns.itemsize or columns.shape[1] <= 1
    return columns if inside and columns.strides[0] >= 0 else columns.copy(order="C")
