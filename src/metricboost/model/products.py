"""Terms: products of columns, and their values for blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from .._typing import Float, Index

#: A product of columns: their numbers in increasing order, with repetition.
Term = tuple[int, ...]


def as_terms(columns: Sequence[Iterable[int]]) -> list[Term]:
    """Terms as tuples of Python integers. Tuples of integers are not copied."""
    terms = list(map(tuple, columns))
    if {int}.issuperset(map(type, chain.from_iterable(terms))):
        return terms
    return [tuple(map(int, term)) for term in terms]


def misplaced(terms: Sequence[Term], last: int) -> list[Term]:
    """The terms without a column, and those with a column number that is not from 0 to ``last``."""
    degrees, factors = _flat(terms)
    wrong = (factors < 0) | (factors > last)
    number = np.repeat(np.arange(len(terms)), degrees)
    bad = np.union1d(np.flatnonzero(degrees == 0), number[wrong])
    return [terms[t] for t in bad]


class Products:
    """The products of scaled columns for a list of terms.

    Parameters
    ----------
    terms : sequence of tuple of int

    Attributes
    ----------
    columns : ndarray of int
        The distinct columns of the terms, in increasing order.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self._degrees, factors = _flat(terms)
        self.columns, places = np.unique(factors, return_inverse=True)
        first = np.cumsum(self._degrees) - self._degrees
        self._first = places[first]
        self._places = places
        #: For every further factor: the terms that have it, and its place among the columns.
        self._further: list[tuple[Index, Index]] = []
        for i in range(1, self._degrees.max(initial=1)):
            longer = np.flatnonzero(self._degrees > i)
            self._further.append((longer, places[first[longer] + i]))

    def of(self, block: Float, center: Float, scale: Float, clip: float | None) -> Float:
        """The products for a block of rows.

        The block is changed in place: its columns are scaled to ``(x - center) / scale`` and
        clipped.

        Parameters
        ----------
        block : ndarray of shape (n_columns, n_rows)
            The distinct columns of the terms.
        center, scale : ndarray of shape (n_columns, 1)
        clip : float or None

        Returns
        -------
        ndarray of shape (n_terms, n_rows)
        """
        block -= center
        block /= scale
        if clip is not None:
            np.clip(block, -clip, clip, out=block)
        products: Float = block[self._first]
        for terms, places in self._further:
            products[terms] *= block[places]
        return products

    def distinct_columns(self) -> tuple[Index, Index]:
        """All pairs of a term and one of its distinct columns, as two arrays, ordered by term."""
        number = np.repeat(np.arange(len(self._degrees)), self._degrees)
        n_columns = max(len(self.columns), 1)
        pairs = np.unique(number * n_columns + self._places)
        return pairs // n_columns, self.columns[pairs % n_columns]


def _flat(terms: Sequence[Term]) -> tuple[Index, Index]:
    """The degrees of the terms, and the columns of all terms in one array."""
    degrees = np.fromiter(map(len, terms), dtype=np.intp, count=len(terms))
    factors = np.fromiter(chain.from_iterable(terms), dtype=np.intp, count=int(degrees.sum()))
    return degrees, factors
