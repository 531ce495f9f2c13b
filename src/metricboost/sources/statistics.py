"""What is computed from all rows of a table: column constants, medians, moments of products.

Every summary is computed block by block and added up (:meth:`Source.reduce`), so that no more than
a few blocks are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._typing import Float, Index
from ..inputs.imputation import Imputation
from .base import Block, Source
from .sampling import priorities

#: Values further out than this many deviations count as lying there while sums are computed, so
#: that their squares do not overflow.
FARTHEST = 1e100
#: Bins of every column's histogram for its median, and the most bins of all columns together.
MEDIAN_BINS = 1024
ALL_BINS = 2**22


class _Sums:
    """Fields that are added up."""

    def __add__(self, other: Self) -> Self:
        own = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **own)  # type: ignore[type-var]


@dataclass(frozen=True)
class ColumnSums:
    """Sums of columns in units of ``center`` and ``scale``, and their range.

    ``marks`` are the sums of the last columns, the indicators, by class.
    """

    n: int
    total: Float
    squares: Float
    low: Float
    high: Float
    marks: Float

    def __add__(self, other: ColumnSums) -> ColumnSums:
        return ColumnSums(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.marks + other.marks,
        )

    @property
    def mean(self) -> Float:
        result: Float = self.total / self.n
        return result

    @property
    def deviation(self) -> Float:
        result: Float = np.sqrt(np.maximum(self.squares / self.n - self.mean**2, 0.0))
        return result


def column_sums(source: Source, center: Float, scale: Float, n_indicators: int = 0) -> ColumnSums:
    """The sums of all columns; ``center`` and ``scale`` are rough ones, from a sample."""
    size = len(source.class_count), n_indicators
    return source.reduce(partial(_column_sums, center=center, scale=scale, marks=size))


def _column_sums(block: Block, center: Float, scale: Float, marks: tuple[int, int]) -> ColumnSums:
    values = _in_units(block.X, center, scale)
    n_classes, n_marks = marks
    by_class = np.eye(n_classes)[block.labels].T @ block.X[:, block.X.shape[1] - n_marks :]
    return ColumnSums(
        len(values), values.sum(axis=0), np.einsum("ij,ij->j", values, values),
        block.X.min(axis=0), block.X.max(axis=0), by_class,
    )  # fmt: skip


def _in_units(X: Float, center: Float, scale: Float) -> Float:
    values = X - center
    values /= scale
    return np.clip(values, -FARTHEST, FARTHEST, out=values)


@dataclass(frozen=True)
class _Known(_Sums):
    """Of every column: the number of its values that are not missing, their sum and squares."""

    count: Float
    total: Float
    squares: Float
    missing: Float


@dataclass(frozen=True)
class _Histogram(_Sums):
    """Of every column and bin: the number of values and their sum."""

    count: Float
    total: Float


def imputation_of(source: Source, center: Float, scale: Float) -> Imputation:
    """Medians of all rows, and which columns have missing values.

    A median lies within one standard deviation of the mean. So a histogram of that range has it in
    one of its bins, and the mean of the values in this bin is the median to a thousandth of a
    deviation: exactly, if the column has one value there.
    """
    known = source.reduce(partial(_known, center=center, scale=scale))
    n = np.maximum(known.count, 1)
    mean = known.total / n
    spread = np.sqrt(np.maximum(known.squares / n - mean**2, 0.0)) * (1 + 1e-6) + 1e-12
    bins = max(min(MEDIAN_BINS, ALL_BINS // max(len(center), 1)), 16)
    low = mean - spread
    histogram = source.reduce(
        partial(_histogram, center=center, scale=scale, low=low, width=2 * spread / bins, bins=bins)
    )
    cumulated = np.cumsum(histogram.count, axis=1)
    middle = [_bin_mean(histogram, cumulated, place) for place in _middles(known.count)]
    median = np.where(known.count > 0, (0.5 * middle[0] + 0.5 * middle[1]) * scale + center, 0.0)
    return Imputation(median, tuple(int(j) for j in np.flatnonzero(known.missing > 0)))


def _middles(count: Float) -> tuple[Float, Float]:
    """The places of the lower and the upper middle value, counted from 1."""
    return (np.maximum(count - 1, 0) // 2) + 1, (count // 2) + 1


def _bin_mean(histogram: _Histogram, cumulated: Float, place: Float) -> Float:
    """The mean of the values in the bin of the value at a place, for every column."""
    bins = np.minimum((cumulated < place[:, None]).sum(axis=1), cumulated.shape[1] - 1)
    column = np.arange(len(bins))
    result: Float = histogram.total[column, bins] / np.maximum(histogram.count[column, bins], 1)
    return result


def _known(block: Block, center: Float, scale: Float) -> _Known:
    values = _in_units(block.X, center, scale)
    there = np.isfinite(values)
    values[~there] = 0.0
    count = there.sum(axis=0).astype(np.float64)
    return _Known(count, values.sum(axis=0), (values**2).sum(axis=0), len(values) - count)


def _histogram(
    block: Block, center: Float, scale: Float, low: Float, width: Float, bins: int
) -> _Histogram:
    """The first bin and the last have what lies beyond the range."""
    values = _in_units(block.X, center, scale)
    rows, columns = np.nonzero(np.isfinite(values))
    values = values[rows, columns]
    place = np.floor((values - low[columns]) / width[columns]) + 1
    place = np.clip(place, 0, bins + 1).astype(np.intp) + columns * (bins + 2)
    shape = len(center), bins + 2
    count = np.bincount(place, minlength=shape[0] * shape[1]).astype(np.float64)
    total = np.bincount(place, values, minlength=shape[0] * shape[1])
    return _Histogram(count.reshape(shape), total.reshape(shape))


@dataclass(frozen=True)
class PairSums(_Sums):
    """Of every class: its rows, the sums of its columns, of products of two, of their squares.

    Columns are scaled and clipped, and less ``centers``, about the mean of the class.
    """

    count: Float
    total: Float
    products: Float
    squares: Float

    def __sub__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.count - other.count, self.total - other.total,
            self.products - other.products, self.squares - other.squares,
        )  # fmt: skip

    def moments(self, classes: Index, columns: Index) -> tuple[Float, Float]:
        """Class by class the means of the products, and the squares of their standard errors.

        The columns are centred within their class.
        """
        means, errors = [], []
        inside = np.ix_(columns, columns)
        for c in classes:
            n = max(self.count[c], 1.0)
            mean = self.products[c][inside] / n
            spread = np.maximum(self.squares[c][inside] / n - mean**2, 0.0)
            first = self.total[c][columns] / n
            means.append(mean - np.outer(first, first))
            errors.append(spread / max(n - 1, 1.0))
        return np.stack(means), np.stack(errors)


@dataclass(frozen=True)
class PairSummary:
    """Computes :class:`PairSums` of blocks.

    Parameters
    ----------
    prepare : callable
        From the raw values of a block to scaled and clipped columns.
    centers : ndarray of shape (n_classes, n_columns)
    seed, share : int, float
        Only rows whose priority is among the smallest ``share`` are used.
    """

    prepare: Callable[[Float], Float]
    centers: Float
    seed: int = 0
    share: float = 1.0

    def __call__(self, block: Block) -> PairSums:
        X, labels = block.X, block.labels
        if self.share < 1:
            kept = priorities(block.numbers, self.seed) * 2.0**-64 <= self.share
            X, labels = X[kept], labels[kept]
        X = self.prepare(X)
        n_classes, p = self.centers.shape
        count, total = np.zeros(n_classes), np.zeros((n_classes, p))
        products, squares = np.zeros((2, n_classes, p, p))
        for c in np.unique(labels):
            own = X[labels == c] - self.centers[c]
            count[c], total[c] = len(own), own.sum(axis=0)
            products[c] = own.T @ own
            own *= own
            squares[c] = own.T @ own
        return PairSums(count, total, products, squares)


@dataclass(frozen=True)
class _TermSums(_Sums):
    n: int
    total: Float
    squares: Float


def term_moments(
    source: Source,
    prepare: Callable[[Float], Float],
    terms: Sequence[tuple[int, ...]],
    sample: Float,
) -> Float:
    """Mean and deviation of products of the prepared columns, a row for each term.

    The sums are of deviations from the means of a ``sample`` of rows, so that they keep their
    digits if a product lies far from zero.
    """
    summarise = partial(_term_sums, prepare=prepare, terms=terms)
    zero = np.zeros(len(terms))
    few = summarise(Block(np.arange(len(sample)), np.zeros(0, dtype=np.intp), sample), near=zero)
    near = few.total / few.n
    sums: Any = source.reduce(partial(summarise, near=near))
    shift = sums.total / sums.n
    deviation = np.sqrt(np.maximum(sums.squares / sums.n - shift**2, 0.0))
    return np.stack([near + shift, deviation], axis=1)


def _term_sums(
    block: Block,
    prepare: Callable[[Float], Float],
    terms: Sequence[tuple[int, ...]],
    near: Float,
) -> _TermSums:
    X = prepare(block.X).T
    total, squares = np.zeros((2, len(terms)))
    for t, term in enumerate(terms):
        product = X[term[0]].copy()
        for column in term[1:]:
            product *= X[column]
        product -= near[t]
        total[t], squares[t] = product.sum(), product @ product
    return _TermSums(len(block.X), total, squares)
