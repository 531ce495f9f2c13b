"""Column constants, medians and moments of products, computed from all rows of a table.

:meth:`Source.reduce` computes a summary of every block and adds the summaries up, so that only a
few blocks are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._typing import Float, Index
from ..inputs import Imputation
from .base import Block, Source
from .sampling import priorities

#: Sums are computed of values in units of rough deviations. Values beyond this bound are moved to
#: it, so that their squares do not overflow.
FARTHEST = 1e100
#: The bins of the histogram of a column, and the most bins of all columns together.
MEDIAN_BINS = 1024
ALL_BINS = 2**22


class _Sums:
    """A summary whose fields are all added up."""

    def __add__(self, other: Self) -> Self:
        own = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **own)  # type: ignore[type-var]


@dataclass(frozen=True)
class ColumnSums:
    """Sums over rows, for every column.

    Attributes
    ----------
    n : int
        The number of rows.
    total, squares : ndarray of shape (n_columns,)
        The sums of the values and of their squares, in the units of :func:`column_sums`.
    low, high : ndarray of shape (n_columns,)
        The smallest and the largest value.
    marks : ndarray of shape (n_classes, n_indicators)
        The sums of the last columns, the indicators of missing values, in every class.
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
        """The means of the columns, in the units of the sums."""
        result: Float = self.total / self.n
        return result

    @property
    def deviation(self) -> Float:
        """The standard deviations of the columns, in the units of the sums."""
        result: Float = np.sqrt(np.maximum(self.squares / self.n - self.mean**2, 0.0))
        return result


def column_sums(source: Source, center: Float, scale: Float, n_indicators: int = 0) -> ColumnSums:
    """The sums of all columns.

    Parameters
    ----------
    source : Source
    center, scale : ndarray of shape (n_columns,)
        Rough means and deviations, from a sample. The sums are of ``(X - center) / scale``, so that
        they keep their digits.
    n_indicators : int, default=0
        The number of the last columns that are indicators of missing values.
    """
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
    """For every column: the number of known values, their sum and the sum of their squares."""

    count: Float
    total: Float
    squares: Float
    missing: Float


@dataclass(frozen=True)
class _Histogram(_Sums):
    """For every column and bin: the number of values and their sum."""

    count: Float
    total: Float


def imputation_of(source: Source, center: Float, scale: Float) -> Imputation:
    """The medians of all rows, and the columns that have missing values.

    The median of a column lies within one standard deviation of its mean. So one bin of a histogram
    of that range has the median. The mean of the values in this bin differs from the median by two
    thousandths of a deviation at most. It is the median if all values in the bin are equal.

    Parameters
    ----------
    source : Source
    center, scale : ndarray of shape (n_columns,)
        Rough means and deviations of the known values, from a sample.
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
    """The places of the lower and the upper middle value of every column, counted from 1."""
    return (np.maximum(count - 1, 0) // 2) + 1, (count // 2) + 1


def _bin_mean(histogram: _Histogram, cumulated: Float, place: Float) -> Float:
    """For every column, the mean of the values in the bin that has the value at a place."""
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
    """The histogram of a block. The first and the last bin have the values beyond the range."""
    values = _in_units(block.X, center, scale)
    rows, columns = np.nonzero(np.isfinite(values))
    values = values[rows, columns]
    place = np.floor((values - low[columns]) / width[columns]) + 1
    place = np.clip(place, 0, bins + 1).astype(np.intp) + columns * (bins + 2)
    shape = len(center), bins + 2
    count = np.bincount(place, minlength=shape[0] * shape[1]).astype(np.float64)
    total = np.bincount(place, values, minlength=shape[0] * shape[1]).astype(np.float64)
    return _Histogram(count.reshape(shape), total.reshape(shape))


@dataclass(frozen=True)
class PairSums(_Sums):
    """Sums of columns and of products of two columns, in every class.

    The columns are scaled, clipped and centred: :attr:`PairSummary.centers`, which are about the
    means of the class, are subtracted.

    Attributes
    ----------
    count : ndarray of shape (n_classes,)
        The number of rows.
    total : ndarray of shape (n_classes, n_columns)
        The sums of the columns.
    products, squares : ndarray of shape (n_classes, n_columns, n_columns)
        The sums of the products and of their squares.
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
        """The means of the products in some classes, and the squares of their standard errors.

        The columns are centred within their class.

        Parameters
        ----------
        classes : ndarray of int
            The numbers of the classes.
        columns : ndarray of int
            The columns whose products are wanted.

        Returns
        -------
        means, errors : ndarray of shape (len(classes), len(columns), len(columns))
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
    """A function that computes the :class:`PairSums` of a block.

    Parameters
    ----------
    prepare : callable
        Makes scaled and clipped columns of the values of a block.
    centers : ndarray of shape (n_classes, n_columns)
        Rough means of the prepared columns in every class.
    seed : int, default=0
        The seed of the priorities of the rows.
    share : float, default=1.0
        Only this share of the rows is used, those with the smallest priorities.
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
    """The mean and the deviation of products of columns over all rows.

    The sums are of deviations from the means of a sample of rows, so that they keep their digits if
    a product lies far from zero.

    Parameters
    ----------
    source : Source
    prepare : callable
        Makes scaled and clipped columns of the values of a block.
    terms : sequence of tuple of int
        The columns of every product.
    sample : ndarray of shape (n_rows, n_columns)
        Some rows.

    Returns
    -------
    ndarray of shape (n_terms, 2)
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
