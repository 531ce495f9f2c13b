"""Terms: monomials of columns, the candidates in their canonical order, and their scaling.

A term is a sorted tuple of column numbers, ``(3,)`` for a column, ``(3, 3, 7)`` for
``x3^2 * x7``. Candidates are columns first, then screened pairs, then products of two selected
terms in order of creation; panels are drawn from that order by index, and a term's column is
computed only when it is needed. A product is standardised with its training mean and deviation
(the paper's footnote on SECOM); one that does not vary is dropped for good.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from .._typing import Float, Index, Rows
from ..engines import Engine

Term = tuple[int, ...]

#: Products are made this many at a time, so memory stays O(n p).
BLOCK = 256


class Candidates:
    """The candidate terms, in order, over the standardised columns ``X``.

    The engine computes columns; this object remembers which terms there are, their means and
    their deviations.
    """

    def __init__(self, X: Float, engine: Engine, max_degree: int) -> None:
        self.X = X
        self.engine = engine
        self.max_degree = max_degree
        self.n_columns = X.shape[1]
        self.terms: list[Term] = [(j,) for j in range(self.n_columns)]
        self._seen: set[Term] = set(self.terms)
        self._factors = [self._padded(self.terms)]
        self._mean = [np.zeros(self.n_columns)]
        self._scale = [np.ones(self.n_columns)]

    def __len__(self) -> int:
        return len(self.terms)

    def _padded(self, terms: Sequence[Term]) -> Rows:
        rows = [t + (self.n_columns,) * (self.max_degree - len(t)) for t in terms]
        return np.array(rows, dtype=np.int32).reshape(len(terms), self.max_degree)

    @property
    def factors(self) -> Rows:
        self._factors = [np.concatenate(self._factors)]
        return self._factors[0]

    @property
    def mean(self) -> Float:
        self._mean = [np.concatenate(self._mean)]
        return self._mean[0]

    @property
    def scale(self) -> Float:
        self._scale = [np.concatenate(self._scale)]
        return self._scale[0]

    def add(self, terms: Iterable[Term]) -> None:
        """Append the terms that are new, within the degree cap and not constant."""
        fresh = [t for t in dict.fromkeys(terms) if len(t) <= self.max_degree]
        fresh = [t for t in fresh if t not in self._seen]
        self._seen.update(fresh)
        for start in range(0, len(fresh), BLOCK):
            self._add_block(fresh[start : start + BLOCK])

    def _add_block(self, terms: list[Term]) -> None:
        factors = self._padded(terms)
        raw = self.engine.term_columns(self.X, factors, np.zeros(len(terms)), np.ones(len(terms)))
        mean = raw.mean(axis=0)
        scale = np.sqrt(((raw - mean) ** 2).mean(axis=0))
        varies = np.flatnonzero(scale > 1e-10 * np.abs(raw).max(axis=0, initial=0.0))
        self.terms += [terms[t] for t in varies]
        self._factors.append(factors[varies])
        self._mean.append(mean[varies])
        self._scale.append(scale[varies])

    def expand(self, new: Sequence[int], selected: Sequence[int]) -> None:
        """The paper's S (x) A: products of the newly selected with all selected terms."""
        if self.max_degree == 1:
            return
        pairs = ((self.terms[a], self.terms[s]) for a in new for s in selected)
        self.add(tuple(sorted(a + s)) for a, s in pairs)

    def columns(self, index: Index) -> Float:
        """The standardised columns of some candidates, n x len(index)."""
        if len(index) and index.max() < self.n_columns:
            return self.X[:, index]
        return self.engine.term_columns(
            self.X, self.factors[index], self.mean[index], self.scale[index]
        )

    def pull_back(self, y: Float) -> Float:
        """``Phi^T y`` over all candidates, for columns of ``y`` that sum to zero.

        Because they sum to zero, the means of the products need not be subtracted.
        """
        base = self.X.T @ y
        if len(self) == self.n_columns:
            return base
        products = self.engine.pull_back(self.X, self.factors[self.n_columns :], y)
        return np.concatenate([base, products / self.scale[self.n_columns :, None]])


def term_name(term: Term, names: Sequence[str]) -> str:
    """``age*income^2`` for the term ``(0, 1, 1)`` over columns ``age`` and ``income``."""
    powers = Counter(term)
    return "*".join(names[j] + (f"^{e}" if e > 1 else "") for j, e in sorted(powers.items()))
