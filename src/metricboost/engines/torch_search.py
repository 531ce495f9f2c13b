"""Exact nearest neighbours with PyTorch.

Rows are divided into blocks of rows that are near each other, by halving along the widest of their
principal directions. The nearest blocks of references give an upper bound on the distance of the
k-th neighbour of each query. Neighbours known from an earlier search also give a bound. Blocks of
references beyond the bounds are skipped. Approximate distances to the references of the other
blocks are computed by matrix products, one tile at a time, and references within the bound, with an
allowance for rounding, are kept. The distances to the kept references are computed again from
differences in float64. At most one tile of distances is in memory at a time.

The neighbours have the same order as in every engine: by their distance rounded to twelve digits,
and then by their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from .._rounding import DROPPED
from .._typing import Rows
from .torch_threads import one_torch_thread

#: A block of references has BLOCK rows, and a block of queries has QUERIES rows. TOGETHER blocks of
#: queries are searched at once. The first bound of a block of queries is computed from at least
#: FIRST_BLOCKS blocks of references.
BLOCK, QUERIES, TOGETHER, FIRST_BLOCKS = 1024, 512, 32, 4
#: Numbers in a tile of distances, on a GPU and on the CPU. On a GPU a tile has at most one number
#: per TILE_SHARE bytes of memory.
TILE, TILE_SHARE = {"cuda": 2**30, "cpu": 2**24}, 64
#: Distances of a tile that are first compared with the bound as one group, by their minimum.
GROUP = 64
#: Blocks and their bounding boxes use the first DIRECTIONS principal directions, which are computed
#: from about TURNED_BY rows. Tables with more than MOST_TURNED columns are not rotated.
DIRECTIONS, TURNED_BY, MOST_TURNED = 16, 2**14, 1024
#: Relative rounding errors of float32 (FLOAT) and float16 (HALF). On the devices HALF_ON, products
#: are computed in float16 if their error is less than the share HALF_SHARE of the bounds for most
#: queries, and if all lengths are below HALF_RANGE, so that squares do not overflow.
FLOAT, HALF, HALF_SHARE, HALF_RANGE, HALF_ON = 2.0**-24, 2.0**-11, 0.2, 64.0, ("cuda",)
#: If more than MANY_FOUND times k references per query were kept, most of them are dropped by their
#: approximate distances before exact distances are computed.
MANY_FOUND = 8
#: Numbers of differences that are computed at a time.
MEASURED = 2**27


def nearest(
    queries: Tensor,
    references: Tensor,
    k: int,
    itself: Tensor | None = None,
    known: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The k nearest references of every query, in order, and their squared distances in float64.

    There must be at least k references. ``itself[i]``, if given, is a reference that is not a
    neighbour of query i: the query itself. ``known[i]``, if given, are any k references. They make
    the search faster if they are near, and do not change the result.
    """
    with full_products(queries.device):
        return _Search(references, k)(queries, itself, known)


def _halved(guide: Tensor, block: int) -> tuple[Tensor, int]:
    """Divide rows into blocks by repeated halving along the widest direction.

    Returns the order of the rows, block after block, and the size of a block.
    """
    n = len(guide)
    levels = math.ceil(math.log2(max(n / block, 1)))
    order = torch.arange(n, device=guide.device)
    size = math.ceil(n / 2**levels)
    padded = size * 2**levels
    for level in range(levels):
        # The padding has copies of the last row, and stays at the end.
        whole = torch.cat([order, order[-1:].expand(padded - n)]) if padded > n else order
        parts = guide[whole].view(2**level, -1, guide.shape[1])
        widest = (parts.amax(1) - parts.amin(1)).argmax(1)
        key = parts.gather(2, widest[:, None, None].expand(-1, parts.shape[1], 1))[..., 0]
        key.view(-1)[n:] = math.inf
        within = key.argsort(dim=1, stable=True)
        order = whole.view(2**level, -1).gather(1, within).reshape(-1)[:n]
    return order, max(size, 1)


class _References:
    """The references, in blocks of near rows. Blocks are padded to a multiple of ``GROUP`` rows.

    A row of ``wide`` is ``[r, |r|^2]`` for a reference r, centred and scaled so that all references
    are within a ball of radius 1.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.center = rows.mean(0)
        centred = rows - self.center
        self.axes = _axes(centred)
        guide = centred @ self.axes
        order, size = _halved(guide, BLOCK)
        self.low, self.high = _corners(guide[order], size)
        norms = centred.square().sum(1, keepdim=True)
        largest = float(norms.max().sqrt())
        self.scale = 1 / largest if largest > 0 else 1.0
        self.size = math.ceil(size / GROUP) * GROUP
        at = torch.arange(len(order), device=rows.device)
        place = torch.empty_like(order)
        place[order] = at // size * self.size + at % size
        # Padding rows have the number -1 and an infinite distance.
        self.numbers = torch.full((len(self.low) * self.size,), -1, device=rows.device)
        self.numbers[place] = at
        shape = len(self.numbers), rows.shape[1] + 1
        self.wide = torch.zeros(shape, dtype=torch.float32, device=rows.device)
        self.wide[:, -1] = math.inf
        scaled = torch.cat([centred * self.scale, norms * self.scale**2], 1)
        self.wide[place] = scaled.float()

    def distances(self, low: Tensor, high: Tensor) -> Tensor:
        """Lower bounds on the squared distances between rows in given boxes and in each block.

        The boxes have the corners ``low`` and ``high``.
        """
        gap = torch.maximum(self.low - high[:, None], low[:, None] - self.high)
        return torch.clamp(gap, min=0).square().sum(2) * self.scale**2

    def around(self, middle: Tensor, chosen: Tensor, half: bool) -> tuple[Tensor, Tensor]:
        """The rows ``[r, |r|^2, 1]`` of the chosen blocks, with r relative to ``middle``.

        Returns the rows and their numbers.
        """
        wide = self.wide.view(len(self.low), self.size, -1)[chosen].view(-1, self.wide.shape[1])
        r = wide.shape[1] - 1
        columns = math.ceil((r + 2) / 8) * 8  # tensor cores need a multiple of 8
        moved = torch.zeros((len(wide), columns), dtype=wide.dtype, device=wide.device)
        moved[:, :r] = wide[:, :r] - middle
        norms = moved[:, :r].square().sum(1)
        moved[:, r] = torch.where(wide[:, r] < math.inf, norms, math.inf)
        moved[:, r + 1] = 1.0
        numbers = self.numbers.view(-1, self.size)[chosen].view(-1)
        return moved.half() if half else moved, numbers


class _Search:
    """Search for the k nearest references.

    An approximate distance is the product ``[-2q, 1, |q|^2 - b] [r, |r|^2, 1]`` for a query q and a
    reference r. The product is the squared distance minus the bound b of the query, so it is
    negative within the bound. Queries and references are taken relative to the middle of the
    queries, which keeps the rounding errors of the products small.
    """

    def __init__(self, references: Tensor, k: int) -> None:
        self._k = k
        self._references = _References(references)

    def __call__(
        self, queries: Tensor, itself: Tensor | None, known: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        n = len(queries)
        rows = torch.empty((n, self._k), dtype=torch.int64, device=queries.device)
        distances = torch.empty((n, self._k), dtype=torch.float64, device=queries.device)
        guide = (queries - self._references.center) @ self._references.axes
        order, size = _halved(guide, QUERIES)
        for own in torch.split(order, size * TOGETHER):
            skipped = None if itself is None else itself[own]
            before = None if known is None else known[own]
            rows[own], distances[own] = self._of_blocks(
                queries[own], guide[own], size, skipped, before
            )
        return rows, distances

    def _of_blocks(
        self,
        queries: Tensor,
        guide: Tensor,
        size: int,
        skipped: Tensor | None,
        known: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The neighbours of some blocks of queries.

        The blocks have ``size`` queries. The last block may have fewer.
        """
        references = self._references
        centred = (queries - references.center) * references.scale
        norms = centred.square().sum(1)
        slack = self._rounding() * (norms.sqrt() + 1).square()
        low, high = _corners(guide, size)
        bound = self._first_bound(centred.float(), size, skipped, low, high) + norms + slack
        if known is not None:
            bound = torch.minimum(bound, self._known_bound(queries, known))
        middle = centred.mean(0)
        half, blur = self._half_is_enough(centred - middle, bound)
        # Distances are computed relative to the middle of the queries, which may be far from a
        # single query. The largest rounding error of all queries is therefore allowed for.
        slack = slack.max() + blur if half else slack.max().expand_as(slack)
        bound = bound + slack
        near = references.distances(low, high) <= _largest(bound, size)[:, None] * (1 + 1e-6)
        chosen = near.any(0).nonzero()[:, 0]
        query, row, rough = self._within(centred, middle, bound, chosen, half)
        if skipped is not None:
            others = row != skipped[query]
            query, row, rough = query[others], row[others], rough[others]
        if len(query) > MANY_FOUND * self._k * len(queries):
            query, row = self._nearly_near(query, row, rough, slack)
        return self._ranked(queries, query, row)

    def _rounding(self) -> float:
        """The error of a squared distance in float32, relative to ``(|q| + |r|)^2``.

        It includes the difference of two distances that are equal to twelve digits.
        """
        r = int(self._references.rows.shape[1])
        return 4 * (r + 4) * FLOAT + 2.0**-35

    def _half_is_enough(self, moved: Tensor, bound: Tensor) -> tuple[bool, Tensor]:
        """Whether float16 is precise enough, and the error of distances near the bounds."""
        length = moved.square().sum(1).sqrt()
        blur = 4 * HALF * (2 * length + bound.sqrt()).square()
        if moved.device.type not in HALF_ON:
            return False, blur
        little = (blur < HALF_SHARE * bound).double().mean()
        said = torch.stack([little, length.max().double(), bound.max().double()]).tolist()
        return bool(said[0] > 0.9 and max(said[1:]) < HALF_RANGE), blur

    def _first_bound(
        self, centred: Tensor, size: int, skipped: Tensor | None, low: Tensor, high: Tensor
    ) -> Tensor:
        """The k-th distance of every query among the references of the nearest blocks.

        The number of blocks is such that they have at least k references.
        """
        references = self._references
        k = self._k + (skipped is not None)  # the query itself may be among the references
        n_blocks = max(FIRST_BLOCKS, math.ceil(2 * k / references.size) + 1)
        if len(references.low) <= n_blocks and len(references.rows) < k:
            return torch.full_like(centred[:, 0], math.inf)
        middle, middles = low + high, references.low + references.high
        away = (middle[:, None] - middles).square().sum(2)
        chosen = away.argsort(dim=1, stable=True)[:, :n_blocks]
        padding = len(low) * size - len(centred)
        wide = torch.nn.functional.pad(-2 * centred, (0, 1), value=1.0)
        wide = torch.nn.functional.pad(wide, (0, 0, 0, padding))
        rows = references.wide.view(len(references.low), references.size, -1)[chosen]
        rough = wide.view(len(low), size, -1) @ rows.flatten(1, 2).transpose(1, 2)
        return rough.kthvalue(k, dim=2).values.view(-1)[: len(centred)]

    def _known_bound(self, queries: Tensor, known: Tensor) -> Tensor:
        references = self._references
        farthest = _squared(queries, references.rows, known).amax(1) * references.scale**2
        return farthest.to(queries.dtype)

    def _within(
        self, centred: Tensor, middle: Tensor, bound: Tensor, chosen: Tensor, half: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The references within the bounds.

        Returns three tensors with one entry per pair: the query, the reference, and the approximate
        distance minus the bound.
        """
        moved = centred - middle
        ends = torch.stack([torch.ones_like(bound), moved.square().sum(1) - bound], 1)
        wide = torch.cat([-2 * moved, ends], 1).float()
        per_tile = max(_tile(wide.device) // (self._references.size * len(wide)), 1)
        parts = []
        for blocks in torch.split(chosen, per_tile):
            rows, numbers = self._references.around(middle.float(), blocks, half)
            own = torch.nn.functional.pad(wide, (0, rows.shape[1] - wide.shape[1])).to(rows.dtype)
            tile = (own @ rows.T).view(len(wide), GROUP, -1)
            query, group = (tile.amin(1) <= 0).nonzero(as_tuple=True)
            found = tile[query, :, group]
            hit, lane = (found <= 0).nonzero(as_tuple=True)
            place = lane * tile.shape[2] + group[hit]
            parts.append((query[hit], numbers[place], found[hit, lane].float()))
        query, row, rough = (torch.cat(part) for part in zip(*parts))
        there = row >= 0
        return query[there], row[there], rough[there]

    def _nearly_near(
        self, query: Tensor, row: Tensor, rough: Tensor, slack: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The pairs that may be among the k nearest, by their approximate distances."""
        query, row, rough = _sorted_by(query, row, rough)
        kth = rough[_starts(query, len(slack)) + self._k - 1] + 2 * slack
        kept = rough <= kth[query]
        return query[kept], row[kept]

    def _ranked(self, queries: Tensor, query: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        """The k nearest references, by exact distances rounded to twelve digits, then by number."""
        by_number = row.argsort(stable=True)
        query, row = query[by_number], row[by_number]
        exact = _pair_distances(queries, query, self._references.rows, row)
        query, row, exact = _sorted_by(query, row, exact, rounded=to_twelve_digits(exact))
        first = _starts(query, len(queries))[:, None] + torch.arange(self._k, device=row.device)
        return row[first], exact[first]


def _tile(device: torch.device) -> int:
    if device.type != "cuda":
        return TILE["cpu"]
    has = int(torch.cuda.get_device_properties(device).total_memory)
    return min(TILE["cuda"], has // TILE_SHARE)


@contextmanager
def full_products(device: torch.device) -> Iterator[None]:
    """A context with full precision, and with one thread on the CPU.

    Results then do not depend on the precision and the number of threads that the process uses.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    alone = one_torch_thread if device.type == "cpu" else nullcontext()
    try:
        with alone, torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _sorted_by(
    query: Tensor, row: Tensor, distance: Tensor, rounded: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Sort pairs by query, then by distance (``rounded`` if given). The sort is stable."""
    order = (distance if rounded is None else rounded).argsort(stable=True)
    order = order[query[order].argsort(stable=True)]
    return query[order], row[order], distance[order]


def _corners(rows: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The corners of the bounding boxes of consecutive blocks of ``size`` rows."""
    low = -_largest(-rows, size)
    return low, _largest(rows, size)


def _largest(values: Tensor, size: int) -> Tensor:
    """The maximum of each block of ``size`` values. The last block may be shorter."""
    whole = len(values) // size * size
    runs = values[:whole].view(-1, size, *values.shape[1:]).amax(1)
    return torch.cat([runs, values[whole:].amax(0, keepdim=True)]) if len(values) > whole else runs


def _starts(query: Tensor, n: int) -> Tensor:
    """The first place of each query in a list sorted by query."""
    return torch.searchsorted(query, torch.arange(n, device=query.device))


def _axes(centred: Tensor) -> Tensor:
    """The first principal directions, or the first columns if there are too many columns."""
    r = centred.shape[1]
    if r > MOST_TURNED:
        return torch.eye(r, DIRECTIONS, dtype=centred.dtype, device=centred.device)
    sample = centred[:: max(len(centred) // TURNED_BY, 1)]
    size = sample.abs().max()
    sample = sample / torch.where(size > 0, size, 1)
    vectors: Tensor = torch.linalg.eigh(sample.T.double() @ sample.double())[1]
    return vectors[:, -DIRECTIONS:].to(centred.dtype)


def _squared(queries: Tensor, references: Tensor, rows: Tensor) -> Tensor:
    """``|q_i - r_rows[i, j]|^2`` in float64, computed from differences."""
    n, k = rows.shape
    query = torch.arange(n, device=rows.device).repeat_interleave(k)
    return _pair_distances(queries, query, references, rows.reshape(-1)).view(n, k)


def _pair_distances(queries: Tensor, query: Tensor, references: Tensor, row: Tensor) -> Tensor:
    per_part = max(MEASURED // max(queries.shape[1], 1), 1)
    parts = [
        (queries[q].double() - references[r].double()).square().sum(1)
        for q, r in zip(torch.split(query, per_part), torch.split(row, per_part))
    ]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.float64, device=query.device)


def to_twelve_digits(values: Tensor) -> Tensor:
    """As ``_rounding.to_twelve_digits``, for nonnegative numbers."""
    bits = values.view(torch.int64)
    bits = bits + (2 ** (DROPPED - 1) - 1) + ((bits >> DROPPED) & 1)
    rounded: Tensor = (bits & ~(2**DROPPED - 1)).view(torch.float64)
    return rounded


def as_rows(rows: Tensor) -> Rows:
    found: Rows = rows.to(torch.int32).cpu().numpy()
    return found
