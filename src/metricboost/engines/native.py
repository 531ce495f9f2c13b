"""The native engine: the same operations in C++ (``native/kernels.cpp``), the GIL released."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController

from .._typing import Float, Index, Rows
from . import _native  # type: ignore[attr-defined]
from .base import Engine, NeighborGraph, NeighborLists
from .sorting import nearest_by_sorting

#: Fewer queries are not worth putting the references into blocks.
FEW_QUERIES = 16
#: BLAS as SciPy has it, for the tiles of the neighbour search.
_SGEMM, _DGEMM = (cython_blas.__pyx_capi__[name] for name in ("sgemm", "dgemm"))


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

    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        if len(queries) < FEW_QUERIES or not len(references):
            return nearest_by_sorting(queries, references, k)
        k, n = min(k, len(references)), len(queries)
        classes = np.repeat([0, 1], [n, len(references)])
        lists = NeighborLists(np.array([[-1, 0], [-1, -1]], dtype=np.int32), (k,))
        rows, distances = self.nearest_by_class(np.vstack([queries, references]), classes, lists)
        return rows[:n] - np.int32(n), distances[:n]

    def nearest_by_class(
        self, z: Float, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        rows, distances = (
            np.empty((len(z), lists.width), dtype=np.int32),
            np.empty((len(z), lists.width)),
        )
        sizes = np.array(lists.sizes, dtype=np.int32)
        with _one_blas_thread():
            _native.nearest(
                z, classes.astype(np.int32), _contiguous(lists.slots), sizes, previous,
                _SGEMM, _DGEMM, self.threads, rows, distances,
            )  # fmt: skip
        return rows, distances

    def graph(self, same: Rows, other: Rows) -> NeighborGraph:
        return NativeGraph(same, other)


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Threads of our own share the tiles; BLAS must not start others inside them."""
    return _blas().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _contiguous(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array)


def _with_contiguous_rows(columns: Float) -> Float:
    """As it is where rows may lie further apart than their length; else a copy."""
    inside = columns.strides[1] == columns.itemsize or columns.shape[1] <= 1
    return columns if inside and columns.strides[0] >= 0 else columns.copy(order="C")
