"""Exact nearest neighbours with PyTorch: tiles of products, and only what may be near is kept.

Rows are put into blocks of near ones, by halving along the widest of their principal directions.
The nearest blocks of a block of queries give every query a bound on how far its k-th neighbour can
be; so do neighbours known from an earlier search. Blocks farther away than that are left out, and
of the others, tile by tile, only references within the bound are kept, by products that may be
rough as long as their rounding is allowed for. What is kept is measured again from differences in
float64. Never more than a tile of distances, and
one order on every engine: by the distance to twelve digits, then by number.
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

#: Rows of a block of references. Queries are in small blocks, each with its own near references,
#: and so many of these are searched together. A first bound is from so many blocks of references.
BLOCK, QUERIES, TOGETHER, FIRST_BLOCKS = 1024, 512, 32, 4
#: Numbers of a tile of distances, on a GPU and elsewhere; and bytes of a GPU for each of them.
TILE, TILE_SHARE = {"cuda": 2**30, "cpu": 2**24}, 64
#: Distances of a tile that are looked at together first.
GROUP = 64
#: Principal directions that blocks are made and kept apart by, found from so many rows; a table of
#: more columns is not turned.
DIRECTIONS, TURNED_BY, MOST_TURNED = 16, 2**14, 1024
#: Rounding of float32 and of float16. Products in half precision, on these devices, decide what is
#: near where they blur distances by no more than such a share of the bounds; numbers beyond its
#: range are none of it.
FLOAT, HALF, HALF_SHARE, HALF_RANGE, HALF_ON = 2.0**-24, 2.0**-11, 0.2, 64.0, ("cuda",)
#: Where more than this many times k were found, rough distances leave out most before exact ones.
MANY_FOUND = 8
#: Numbers of the differences that are formed at a time.
MEASURED = 2**27


def nearest(
    queries: Tensor,
    references: Tensor,
    k: int,
    itself: Tensor | None = None,
    known: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The k nearest references of every query, in order, and their squared distances in float64.

    ``itself[i]``, the query's own reference, is left out; ``known[i]`` are some k references,
    which only make it faster. There must be k references at least.
    """
    with full_products(queries.device):
        return _Search(references, k)(queries, itself, known)


def _halved(guide: Tensor, block: int) -> tuple[Tensor, int]:
    """The rows' order, halves by the widest direction again and again, and the blocks' size."""
    n = len(guide)
    levels = math.ceil(math.log2(max(n / block, 1)))
    order = torch.arange(n, device=guide.device)
    size = math.ceil(n / 2**levels)
    padded = size * 2**levels
    for level in range(levels):
        # Padded with copies of a row, which stay at the end.
        whole = torch.cat([order, order[-1:].expand(padded - n)]) if padded > n else order
        parts = guide[whole].view(2**level, -1, guide.shape[1])
        widest = (parts.amax(1) - parts.amin(1)).argmax(1)
        key = parts.gather(2, widest[:, None, None].expand(-1, parts.shape[1], 1))[..., 0]
        key.view(-1)[n:] = math.inf
        within = key.argsort(dim=1, stable=True)
        order = whole.view(2**level, -1).gather(1, within).reshape(-1)[:n]
    return order, max(size, 1)


class _References:
    """Blocks of near rows, each filled up to a multiple of ``GROUP`` with rows that are none.

    ``wide`` has a row ``[r, |r|^2]``, centred and scaled so that all lie within a ball of radius 1.
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
        # Where no row is: number -1, and farther than any bound.
        self.numbers = torch.full((len(self.low) * self.size,), -1, device=rows.device)
        self.numbers[place] = at
        shape = len(self.numbers), rows.shape[1] + 1
        self.wide = torch.zeros(shape, dtype=torch.float32, device=rows.device)
        self.wide[:, -1] = math.inf
        scaled = torch.cat([centred * self.scale, norms * self.scale**2], 1)
        self.wide[place] = scaled.float()

    def distances(self, low: Tensor, high: Tensor) -> Tensor:
        """Of all blocks from some boxes: no pair of rows is nearer."""
        gap = torch.maximum(self.low - high[:, None], low[:, None] - self.high)
        return torch.clamp(gap, min=0).square().sum(2) * self.scale**2

    def around(self, middle: Tensor, chosen: Tensor, half: bool) -> tuple[Tensor, Tensor]:
        """Some blocks' rows as ``[r, |r|^2, 1]`` for r from a point, and their numbers."""
        wide = self.wide.view(len(self.low), self.size, -1)[chosen].view(-1, self.wide.shape[1])
        r = wide.shape[1] - 1
        columns = math.ceil((r + 2) / 8) * 8  # tensor cores want eights
        moved = torch.zeros((len(wide), columns), dtype=wide.dtype, device=wide.device)
        moved[:, :r] = wide[:, :r] - middle
        norms = moved[:, :r].square().sum(1)
        moved[:, r] = torch.where(wide[:, r] < math.inf, norms, math.inf)
        moved[:, r + 1] = 1.0
        numbers = self.numbers.view(-1, self.size)[chosen].view(-1)
        return moved.half() if half else moved, numbers


class _Search:
    """Rough distances are products ``[-2q, 1, |q|^2 - b] [r, |r|^2, 1]``: negative within b.

    Both from the middle of the queries, so that little is lost where products are rough.
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
        """Of some blocks of queries, of a given size but for the last."""
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
        # From a middle far away all distances lose digits.
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
        """A distance in float32 differs by less than this share of the sizes' squared sum.

        Twelve digits count as a tie.
        """
        r = int(self._references.rows.shape[1])
        return 4 * (r + 4) * FLOAT + 2.0**-35

    def _half_is_enough(self, moved: Tensor, bound: Tensor) -> tuple[bool, Tensor]:
        """Whether half precision blurs little, and by how much distances near the bounds."""
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
        """The k-th distance among the references of the nearest blocks, for each block of queries.

        Of the blocks around the same place: as many as have k rows and one more.
        """
        references = self._references
        k = self._k + (skipped is not None)  # a query's own may be among them
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
        """(query, row, rough distance less bound) of all references within the bounds."""
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
        """Those that may be among the k nearest, as their rough distances say."""
        query, row, rough = _sorted_by(query, row, rough)
        kth = rough[_starts(query, len(slack)) + self._k - 1] + 2 * slack
        kept = rough <= kth[query]
        return query[kept], row[kept]

    def _ranked(self, queries: Tensor, query: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        """The k nearest: by twelve digits of exact distances, then by number."""
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
    """The same bits whatever precision, or threads of the CPU, the process has chosen."""
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
    """By query, then by distance; those that are equal stay in their order."""
    order = (distance if rounded is None else rounded).argsort(stable=True)
    order = order[query[order].argsort(stable=True)]
    return query[order], row[order], distance[order]


def _corners(rows: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Of the boxes around runs of rows."""
    low = -_largest(-rows, size)
    return low, _largest(rows, size)


def _largest(values: Tensor, size: int) -> Tensor:
    """The largest of every run of so many, of which the last may be shorter."""
    whole = len(values) // size * size
    runs = values[:whole].view(-1, size, *values.shape[1:]).amax(1)
    return torch.cat([runs, values[whole:].amax(0, keepdim=True)]) if len(values) > whole else runs


def _starts(query: Tensor, n: int) -> Tensor:
    """Where each query's part of a sorted list begins."""
    return torch.searchsorted(query, torch.arange(n, device=query.device))


def _axes(centred: Tensor) -> Tensor:
    """The directions in which the rows lie farthest apart; columns as they are where too many."""
    r = centred.shape[1]
    if r > MOST_TURNED:
        return torch.eye(r, DIRECTIONS, dtype=centred.dtype, device=centred.device)
    sample = centred[:: max(len(centred) // TURNED_BY, 1)]
    size = sample.abs().max()
    sample = sample / torch.where(size > 0, size, 1)
    vectors: Tensor = torch.linalg.eigh(sample.T.double() @ sample.double())[1]
    return vectors[:, -DIRECTIONS:].to(centred.dtype)


def _squared(queries: Tensor, references: Tensor, rows: Tensor) -> Tensor:
    """``|q_i - r_rows[i, j]|^2`` in float64, from differences."""
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
    """As ``_rounding.to_twelve_digits``; for numbers that are not negative."""
    bits = values.view(torch.int64)
    bits = bits + (2 ** (DROPPED - 1) - 1) + ((bits >> DROPPED) & 1)
    rounded: Tensor = (bits & ~(2**DROPPED - 1)).view(torch.float64)
    return rounded


def as_rows(rows: Tensor) -> Rows:
    found: Rows = rows.to(torch.int32).cpu().numpy()
    return found
