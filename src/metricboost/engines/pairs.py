"""Pairs of columns whose products differ in mean between the classes, in float64.

With two classes the score of a pair is the difference of the means of its products, divided by the
standard error. With K > 2 classes the score is the root of ``chi2 = sum_c (m_c - m)^2 / e_c``,
where m_c is the mean in class c, e_c the square of its standard error and m the mean of the m_c
weighted by 1 / e_c. For K = 2 this is the studentised difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._blocks import slices
from .._rounding import to_twelve_digits
from .._typing import Float, Index

#: Columns in a tile of the pair matrix for two classes. With more classes a tile has fewer columns,
#: so that the tiles stay in the cache.
TILE = 256
#: A product whose variance is at most this share of its mean square does not vary: the variance is
#: a rounding error.
CONSTANT = 1e-13
#: With more than two classes, the variance in each class is shrunk towards the common variance, as
#: if the common variance had been observed on this many additional rows. The variance of ten rows
#: is sometimes far too small, and without shrinkage the largest of p(p+1)/2 scores is due to such a
#: variance: ten classes of ten rows with 100 noise columns gave three false pairs per table without
#: shrinkage and none with shrinkage.
PRIOR_ROWS = 10


@dataclass(frozen=True)
class Centred:
    """The columns of a table, centred within each class.

    Attributes
    ----------
    columns : ndarray of shape (n_columns, n_rows)
        The rows of a class are adjacent.
    counts : list of int
        The number of rows of each class.
    """

    columns: Float
    counts: list[int]

    @classmethod
    def of(cls, columns: Float, groups: list[Index]) -> Centred:
        """The columns of a transposed table, with the rows of each class in ``groups``."""
        centred = cls(columns[:, np.concatenate(groups)], [len(group) for group in groups])
        for own in centred.of_classes():
            own -= own.mean(axis=1)[:, None]
        return centred

    def of_classes(self) -> Iterator[Float]:
        """The part of the columns that each class has."""
        end = 0
        for count in self.counts:
            end += count
            yield self.columns[:, end - count : end]


@dataclass(frozen=True)
class Pairs:
    """Pairs of columns ``(a[i], b[i])`` with ``a[i] <= b[i]``, and their scores."""

    a: Index
    b: Index
    scores: Float

    def best(self, n_pairs: int, bar: float = -np.inf) -> Pairs:
        """At most ``n_pairs`` pairs with a score above ``bar``, with the best pair first.

        Pairs whose scores agree to twelve digits are in the order of their columns.
        """
        order = np.lexsort((self.b, self.a, -to_twelve_digits(self.scores)))[:n_pairs]
        order = order[self.scores[order] > bar]
        return Pairs(self.a[order], self.b[order], self.scores[order])


def joined(parts: list[Pairs]) -> Pairs:
    fields = zip(*((part.a, part.b, part.scores) for part in parts))
    return Pairs(*(np.concatenate(field) for field in fields))


def pairs_above(table: Centred, bar: float, n_pairs: int, threads: int = 1) -> Pairs:
    """The ``n_pairs`` best pairs with a score above ``bar``, with the best pair first."""
    p, tile = len(table.columns), max(2 * TILE // len(table.counts), 1)
    of_rows = partial(_of_rows, table, bar=bar, n_pairs=n_pairs, tile=tile)
    starts = range(0, p, tile)
    if threads == 1 or len(starts) == 1:
        return joined([of_rows(start) for start in starts]).best(n_pairs)
    with ThreadPoolExecutor(threads) as pool:
        return joined(list(pool.map(of_rows, starts))).best(n_pairs)


def pair_scores(table: Centred, a: Index, b: Index) -> Float:
    """The scores of the pairs ``(a[i], b[i])``."""
    scores = np.empty(len(a))
    for part in slices(len(a), table.columns.shape[1]):
        products = [own[a[part]] * own[b[part]] for own in table.of_classes()]
        means = np.stack([product.mean(axis=1) for product in products])
        errors = np.stack([product.var(axis=1) / free(product.shape[1]) for product in products])
        scores[part] = known_separation(means, errors, table.counts)
    return scores


def known_separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """The scores, with 0 for products that do not vary.

    ``means`` and ``errors`` (squared standard errors) have the classes as their first axis.
    """
    score = separation(means, errors, counts)
    score[errors.sum(axis=0) <= 1e-20] = 0.0
    return score


def separation(means: Float, errors: Float, counts: list[int]) -> Float:
    """The scores: the root of chi2, which is |t| for two classes."""
    if len(means) == 2:
        variance = np.maximum(errors[0] + errors[1], np.finfo(float).tiny)
        result: Float = np.abs(means[0] - means[1]) / np.sqrt(variance)
        return result
    precision = 1 / np.maximum(_shrunk(errors, counts), 1e-100)
    centre = (precision * means).sum(axis=0) / precision.sum(axis=0)
    result = np.sqrt((precision * (means - centre) ** 2).sum(axis=0))
    return result


def free(n: int) -> int:
    """The degrees of freedom of a variance."""
    return max(n - 1, 1)


def _shrunk(errors: Float, counts: list[int]) -> Float:
    """The squared errors, with the variance in each class shrunk towards the common variance."""
    n = np.array(counts, dtype=float).reshape(-1, *[1] * (errors.ndim - 1))
    variance, weight = n * errors, np.maximum(n - 1, 1)
    common = (weight * variance).sum(axis=0) / weight.sum()
    result: Float = (weight * variance + PRIOR_ROWS * common) / (weight + PRIOR_ROWS) / n
    return result


def _of_rows(table: Centred, start: int, bar: float, n_pairs: int, tile: int) -> Pairs:
    """Pairs of the columns of the tile row at ``start`` with these and all later columns."""
    rows, found = slice(start, start + tile), []
    for first in range(start, len(table.columns), tile):
        score = _tile_scores(table, rows, slice(first, first + tile))
        a, b = np.nonzero(score > bar)
        upper = a + start <= b + first
        a, b = a[upper], b[upper]
        found.append(Pairs(a + start, b + first, score[a, b]))
    return joined(found).best(n_pairs)


def _tile_scores(table: Centred, rows: slice, cols: slice) -> Float:
    """The scores of all pairs of a tile."""
    means, errors = [], []
    for own in table.of_classes():
        left, right, n = own[rows], own[cols].T, own.shape[1]
        mean, square = left @ right / n, (left * left) @ (right * right) / n
        spread = square - mean * mean
        spread[spread <= CONSTANT * square] = 0.0
        means.append(mean)
        errors.append(spread / free(n))
    return known_separation(np.stack(means), np.stack(errors), table.counts)
