"""The table of a fit on a device of PyTorch.

The transposed table is stored on the device in the precision of the engine. The rows after the
columns hold products of columns, as far as there is memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._typing import Float, Rows
from .base import CONSTANT, Arrays, Table, Terms
from .torch_search import full_products

if TYPE_CHECKING:
    from .torch_engine import TorchEngine

#: Numbers that are processed at a time by operations on blocks.
WORK = 2**27
#: A table stores as many products as it has columns, and at least this many, if there is memory.
LEAST_ROOM = 64


class TorchArrays(Arrays):
    """Tensors on a device."""

    xp = torch

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def made(self, values: npt.ArrayLike) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(values)).to(self.device)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def host(self, array: Tensor) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = array.cpu().numpy()
        return found


class TorchTable(Table):
    """The columns and the stored products, and the kernels on them."""

    def __init__(self, engine: TorchEngine, Xt: Float, n_plain: int | None = None) -> None:
        self.engine: TorchEngine = engine
        self.n_columns, self.n_rows = Xt.shape
        self.n_plain = self.n_columns if n_plain is None else n_plain
        self._dtype = engine.dtype
        self._size = self.n_columns
        n_bytes = self.n_rows * self.n_columns * self._dtype.itemsize
        with engine.memory_of(f"The table of {self.n_rows} x {self.n_columns}", n_bytes):
            room = min(max(self.n_columns, LEAST_ROOM), engine.room(self.n_rows, self.n_columns))
            shape = self.n_columns + room, self.n_rows
            self._buffer = engine.arrays.empty(shape, self._dtype)
            for start in range(0, self.n_columns, self._at_a_time()):
                part = slice(start, min(start + self._at_a_time(), self.n_columns))
                self._buffer[part] = torch.from_numpy(np.ascontiguousarray(Xt[part]))

    @property
    def nbytes(self) -> int:
        """Memory of the columns and of the stored products, in bytes."""
        return int(self._buffer.nbytes)

    def _at_a_time(self) -> int:
        """The number of columns that are processed at a time."""
        return max(WORK // max(self.n_rows, 1), 1)

    def term_moments(self, factors: Rows) -> Float:
        starts = range(0, len(factors), self._at_a_time())
        with full_products(self.engine.device):
            parts = [self._moments(factors[s : s + self._at_a_time()]) for s in starts]
        return np.vstack(parts) if parts else np.empty((0, 2))

    def _moments(self, factors: Rows) -> Float:
        raw = self._raw(factors).double()
        mean = raw.mean(1)
        deviation = (raw - mean[:, None]).square().mean(1).sqrt()
        varies = deviation > CONSTANT * raw.abs().amax(1)
        deviation = torch.where(varies, deviation, torch.inf)
        return self.engine.arrays.host(torch.stack([mean, deviation], 1))

    def _raw(self, factors: Rows) -> Tensor:
        """The raw products, of shape (n_terms, n_rows). Padding stands for a column of ones."""
        index = self.engine.arrays.made(factors).long()
        table = self._buffer[: self.n_columns]
        rows = table[index[:, 0]]
        for factor in index.T[1:]:
            real = factor < self.n_columns
            rows[real] *= table[factor[real]]
        return rows

    def plain(self) -> Tensor:
        return self._buffer[: self.n_plain].T.contiguous()

    def columns(self, terms: Terms) -> Tensor:
        return self._rows_of(terms).T

    def along(self, terms: Terms, vectors: Float) -> Tensor:
        sent = self.engine.arrays.made(vectors).to(self._dtype)
        return (self._rows_of(terms).T @ sent).double()

    def _rows_of(self, terms: Terms) -> Tensor:
        """The standardised values of the terms, of shape (n_terms, n_rows).

        Stored terms are copied, and other terms are computed.
        """
        device = self._buffer.device
        kept = torch.as_tensor(np.minimum(terms.index, self._size - 1)).to(device)
        rows = self._buffer[kept]
        rest = np.flatnonzero(terms.index >= self._size)
        if len(rest):
            rows[torch.as_tensor(rest).to(device)] = self._computed(terms[rest])
        return rows

    def _computed(self, terms: Terms) -> Tensor:
        """The standardised products, which are zero for terms that do not vary."""
        rows = self._raw(terms.factors)
        moments = torch.as_tensor(terms.moments).to(rows.device, rows.dtype)
        return (rows - moments[:, :1]) * (1 / moments[:, 1:])

    def pulled_back(self, terms: Terms, y: Tensor) -> Float:
        y = y.to(self._dtype)
        if terms.index[-1] != len(terms) - 1:  # not all candidates
            parts = [_times(self._rows_of(part), y) for part in self._blocks(terms)]
        else:
            self._keep(terms)
            beyond = self._blocks(terms[self._size :])
            kept = _times(self._buffer[: self._size], y)
            parts = [kept, *(_times(self._computed(part), y) for part in beyond)]
        found: Float = self.engine.arrays.host(torch.cat(parts).T.double())
        return found

    def _keep(self, terms: Terms) -> None:
        """Store the values of new candidates, as far as there is room."""
        for part in self._blocks(terms[self._size : len(self._buffer)]):
            self._buffer[self._size : self._size + len(part)] = self._computed(part)
            self._size += len(part)

    def _blocks(self, terms: Terms) -> list[Terms]:
        starts = range(0, len(terms), self._at_a_time())
        return [terms[s : s + self._at_a_time()] for s in starts]


def _times(columns: Tensor, y: Tensor) -> Tensor:
    """``columns @ y`` for a ``y`` with few columns.

    The transposed product takes a third of the time.
    """
    return (y.T.contiguous() @ columns.T).T
