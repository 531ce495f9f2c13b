"""Candidate terms: products of columns, in a canonical order, with their scaling constants.

A term is a sorted tuple of column numbers: ``(3,)`` is a column, and ``(3, 3, 7)`` is
``x3^2 * x7``. The candidates are the columns, followed by the screened pairs, followed by products
of two selected terms in the order of their creation. Panels are drawn as indices into this order.
The values of a term are computed only when they are needed. A product is standardised with its
training mean and deviation (footnote of the paper on SECOM). A product that does not vary is never
selected.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

import numpy as np

from .._typing import Float, Index, Rows
from ..engines import Table, Terms
from ..model import Term
from .levels import Levels
from .storage import GrowingRows

#: Moments are computed for this many terms at a time.
BLOCK = 256


class Candidates:
    """The candidate terms, in order, over the standardised columns of a table.

    The mean and the deviation of a term are computed when they are first needed, and stored. The
    deviation of a term that does not vary is infinite, so that its standardised column is zero and
    the term is never selected.

    Parameters
    ----------
    table : Table
    max_degree : int
        The largest number of factors of a term.
    most : int, optional
        The largest number of candidates. No products are added beyond this number.
    levels : Levels, optional
        The columns with two values. Their redundant products do not become candidates.
    """

    def __init__(
        self,
        table: Table,
        max_degree: int,
        most: int | None = None,
        levels: Levels | None = None,
    ) -> None:
        self.table = table
        self._levels = levels
        self.most = sys.maxsize if most is None else most
        self.max_degree = max_degree
        self.n_columns = table.n_columns
        self._factors = GrowingRows(max_degree, np.int32)
        self._moments = GrowingRows(2, np.float64)
        self._seen: dict[Hashable, int] = {}
        columns = np.full((self.n_columns, max_degree), self.n_columns, dtype=np.int32)
        columns[:, 0] = np.arange(self.n_columns)
        self._append(columns)
        self._moments.rows[:] = 0.0, 1.0
        self._n_known = len(self)  # the moments of the first _n_known candidates are known
        two_valued = np.zeros(self.n_columns, bool) if levels is None else levels.two_valued
        # The padding index may occur several times in a term. It does not refer to a column.
        self._two_values = np.append(two_valued, False)

    def __len__(self) -> int:
        return len(self._factors)

    @property
    def factors(self) -> Rows:
        """Column numbers of every term, sorted, padded with ``n_columns``."""
        return self._factors.rows

    def term(self, index: int) -> Term:
        return tuple(int(j) for j in self.factors[index] if j < self.n_columns)

    def number(self, term: Term) -> int:
        """The index of a term in the order of the candidates."""
        return self._seen[self._keys(self._padded([term]))[0]]

    def add(self, terms: Iterable[Term]) -> None:
        """Append the terms that are new and have at most ``max_degree`` factors."""
        self._append(self._padded([t for t in terms if len(t) <= self.max_degree]))

    def add_useful(self, terms: Iterable[Term]) -> None:
        """Append the new terms that are not linear functions of their columns."""
        self._append(self._useful(self._padded(list(terms))))

    def _padded(self, terms: Sequence[Term]) -> Rows:
        rows = [sorted(t) + [self.n_columns] * (self.max_degree - len(t)) for t in terms]
        return np.array(rows, dtype=np.int32).reshape(len(rows), self.max_degree)

    def expand(self, new: Sequence[int], selected: Sequence[int]) -> None:
        """Append products of newly selected with all selected terms (S (x) A in the paper)."""
        if self.max_degree == 1 or len(self) >= self.most:
            return
        a, s = self.factors[list(new)], self.factors[list(selected)]
        degree_a, degree_s = (a < self.n_columns).sum(axis=1), (s < self.n_columns).sum(axis=1)
        i, j = np.nonzero(degree_a[:, None] + degree_s <= self.max_degree)
        both = np.concatenate([a[i], s[j]], axis=1)
        both.sort(axis=1)  # the padding is larger than any column number
        self._append(self._useful(both[:, : self.max_degree]), self.most)

    def _useful(self, factors: Rows) -> Rows:
        """Drop terms with a power, or a redundant product, of columns with two values."""
        repeated = factors[:, 1:] == factors[:, :-1]
        useless = (repeated & self._two_values[factors[:, 1:]]).any(axis=1)
        if self._levels is not None:
            for i, j in combinations(range(factors.shape[1]), 2):
                a, b = factors[:, i], factors[:, j]
                both = np.flatnonzero(self._two_values[a] & self._two_values[b] & (a < b))
                useless[both] |= self._levels.linear(a[both], b[both])
        kept: Rows = factors[~useless]
        return kept

    def _append(self, factors: Rows, most: int = sys.maxsize) -> None:
        """Append the new terms in their order, up to ``most`` candidates."""
        fresh: list[int] = []
        number = len(self)
        for i, key in enumerate(self._keys(factors)):
            if number >= most:
                break
            if key not in self._seen:
                self._seen[key] = number
                number += 1
                fresh.append(i)
        self._factors.extend(factors[fresh])
        self._moments.extend(np.full((len(fresh), 2), np.nan))

    def _keys(self, factors: Rows) -> list[Hashable]:
        """One hashable key per term: an integer if it fits into 64 bits, otherwise bytes."""
        base = self.n_columns + 1
        if base**self.max_degree < 2**63:
            powers = base ** np.arange(self.max_degree, dtype=np.int64)
            keys: list[Hashable] = (factors @ powers).tolist()
            return keys
        return [row.tobytes() for row in np.ascontiguousarray(factors)]

    def moments(self, index: Index) -> Float:
        """Training mean and deviation of the terms ``index``, computed if they are not known."""
        moments = self._moments.rows
        unknown = index[np.isnan(moments[index, 0])]
        for start in range(0, len(unknown), BLOCK):
            part = unknown[start : start + BLOCK]
            moments[part] = self.table.term_moments(self.factors[part])
        result: Float = moments[index]
        return result

    def fix_moments(self, index: Index, moments: Float) -> None:
        """Set the mean and deviation of the products ``index`` to those of a start metric."""
        if (index < self.n_columns).any():
            raise ValueError("fix_moments takes products; columns are already standardised.")
        self._moments.rows[index] = moments

    def every(self) -> Terms:
        """All candidates as ``Terms``."""
        return self.terms(np.arange(len(self)))

    def terms(self, index: Index) -> Terms:
        """The candidates ``index`` as ``Terms``. If these are all candidates, nothing is copied."""
        if len(index) < len(self):
            return Terms(index, self.factors[index], self.moments(index))
        if self._n_known < len(self):
            self.moments(np.arange(self._n_known, len(self)))
            self._n_known = len(self)
        return Terms(index, self.factors, self._moments.rows)
