"""The PyTorch engine, for a GPU. It also runs on the CPU, for tests."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._typing import Float, Index, Rows
from ..errors import DeviceMemoryError
from .base import Engine, NeighborLists, Table
from .sorting import searches
from .sweeps import StoredSweeps
from .torch_graph import EDGE_BYTES, TorchGraph
from .torch_search import as_rows, full_products, nearest
from .torch_table import WORK, TorchArrays, TorchTable

#: Advice in the error for too little memory, during a fit and for the rows of a fitted model.
LESS = "Lower n_neighbors or the number of rows or columns"
FEWER_AT_A_TIME = "Pass fewer rows at a time"


class TorchEngine(Engine):
    """An engine on a device of PyTorch.

    Parameters
    ----------
    threads : int, default=1
    device : str, default="auto"
        "cpu", "cuda" or "cuda:1", for example. "auto" is "cuda" if a GPU is available, else "cpu".
    dtype : torch.dtype, optional
        The precision of tables. By default float32 on a GPU and float64 on the CPU.
    memory : int, optional
        The number of bytes that the engine may use. By default the free memory of the device.
    """

    name = "torch"

    def __init__(
        self,
        threads: int = 1,
        device: str = "auto",
        dtype: torch.dtype | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__(threads)
        self.device = torch.device(_device(device))
        on_cpu = self.device.type == "cpu"
        self.dtype = dtype or (torch.float64 if on_cpu else torch.float32)
        self._memory = memory
        self.arrays: TorchArrays = TorchArrays(self.device)
        self._tables: weakref.WeakSet[TorchTable] = weakref.WeakSet()

    @property
    def signature(self) -> str:
        return f"{self.name} on {self.device.type} in {str(self.dtype)[6:]}"

    @contextmanager
    def working(self, n_rows: int) -> Iterator[None]:
        """Use full precision, and report the memory of a step if the device runs out of memory."""
        at_hand = 8 * WORK + 40 * n_rows * 8
        what = f"A step over {n_rows} rows"
        with full_products(self.device), self.memory_of(what, at_hand, surely=False):
            yield

    def table(self, Xt: Float, n_plain: int | None = None) -> TorchTable:
        table = TorchTable(self, Xt, n_plain)
        self._tables.add(table)
        return table

    def sweeps(self, table: Table) -> StoredSweeps:
        return StoredSweeps(table)

    def graph(self, same: Rows, other: Rows, place: Tensor | None = None) -> TorchGraph:
        width = same.shape[1] + other.shape[1]
        what = f"The graph of {len(same)} rows with {width} neighbours each"
        with self.memory_of(what, len(same) * width * EDGE_BYTES):
            return TorchGraph(self._sent(same).long(), self._sent(other).long(), self.dtype)

    def nearest(self, queries: Float, references: Float, k: int) -> tuple[Rows, Float]:
        k = min(k, len(references))
        if not k or not len(queries):
            return np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k))
        what = f"Finding neighbours of {len(queries)} rows among {len(references)}"
        with self.memory_of(what, queries.nbytes + references.nbytes, lower=FEWER_AT_A_TIME):
            rows, squared = nearest(self._sent(queries), self._sent(references), k)
            return as_rows(rows), squared.cpu().numpy()

    def _sent(self, rows: npt.NDArray[Any] | Tensor) -> Tensor:
        return rows if isinstance(rows, Tensor) else self.arrays.made(rows)

    def nearest_by_class(
        self, z: Float | Tensor, classes: Index, lists: NeighborLists, previous: Rows | None = None
    ) -> tuple[Rows, Float]:
        what = f"The neighbour search of {len(z)} rows in {z.shape[1]} columns"
        with self.memory_of(what, 3 * z.nbytes):
            known = None if previous is None else self._sent(previous).long()
            rows, squared = self._near(self._sent(z), classes, lists, known)
            return as_rows(rows), squared.cpu().numpy()

    def _near(
        self, place: Tensor, classes: Index, lists: NeighborLists, previous: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        rows = torch.full((len(place), lists.width), -1, dtype=torch.int64, device=self.device)
        squared = torch.full(rows.shape, torch.inf, dtype=torch.float64, device=self.device)
        for own, others, size, start in searches(classes, lists):
            itself = np.searchsorted(others, own) if own[0] in others else None
            k = min(size, len(others) - (itself is not None))
            if not k:
                continue
            own_rows, other_rows = (torch.from_numpy(i).to(self.device) for i in (own, others))
            part = slice(start, start + k)
            known = None
            if previous is not None:
                known = torch.searchsorted(other_rows, previous[own_rows, part])
            found, distances = nearest(
                place[own_rows], place[other_rows], k,
                None if itself is None else torch.from_numpy(itself).to(self.device), known,
            )  # fmt: skip
            rows[own_rows, part] = other_rows[found]
            squared[own_rows, part] = distances
        return rows, squared

    def free(self) -> float:
        """The number of bytes that may still be used, or infinity on the CPU."""
        if self._memory is not None:
            return self._memory - sum(table.nbytes for table in self._tables)
        if self.device.type != "cuda":
            return np.inf
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return float(torch.cuda.mem_get_info(self.device)[0] + held)

    def most_rows(self, n_columns: int) -> int | None:
        """The number of rows that fit into the free memory.

        The estimate includes the copies of the neighbour search and a graph with 40 neighbours per
        row.
        """
        free = self.free()
        if np.isinf(free):
            return None
        return int(free / (4 * self.dtype.itemsize * n_columns + 40 * EDGE_BYTES))

    def room(self, n_rows: int, n_columns: int) -> int:
        """The number of products that fit into half of the memory that the table leaves free."""
        each = max(n_rows * self.dtype.itemsize, 1)
        left = max(self.free() - n_columns * each, 0)
        return int(min(left / (2 * each), 2**31))

    @contextmanager
    def memory_of(
        self, what: str, needed: int, surely: bool = True, lower: str = LESS
    ) -> Iterator[None]:
        """A context that turns a lack of memory into an error with advice.

        Parameters
        ----------
        what : str
            The operation in the context, as the subject of the error message.
        needed : int
            The number of bytes that the operation needs.
        surely : bool, default=True
            Whether to raise the error before the operation starts if there is less memory. If
            False, the operation may need less memory than ``needed``, and is started.
        lower : str
            Advice on what to lower.
        """
        if surely and needed > self.free():
            raise DeviceMemoryError(self._too_little(what, needed, lower))
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise DeviceMemoryError(self._too_little(what, needed, lower)) from error

    def _too_little(self, what: str, needed: int, lower: str) -> str:
        free, size = self.free(), _size(needed, math.ceil)
        # ``needed`` is a lower bound. If it is free, temporary arrays used the rest of the memory.
        if needed > free:
            said = f"needs {size} on {self.device}, which has {_size(free, math.floor)} left"
        else:
            said = f"needs {size} and temporary arrays: {self.device} ran out of memory"
        return f'{what} {said}. {lower}, or use engine="native", which uses main memory only.'


def _size(n_bytes: float, whole: Callable[[float], int]) -> str:
    """A number of bytes as text.

    The memory needed is rounded up and the memory left is rounded down, so that the two texts in a
    message differ.
    """
    unit, name = (1e9, "GB") if n_bytes >= 1e9 else (1e6, "MB")
    return f"{whole(10 * n_bytes / unit) / 10:.1f} {name}"


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f'engine="torch:{name}" needs a GPU that PyTorch can use, but '
            'torch.cuda.is_available() is False. Use engine="torch" or "torch:cpu".'
        )
    return name
