"""The total variance of the rows under metrics of one fit.

A metric is divided by its total variance. Many metrics of a fit are tried, which differ only in W.
Their total variances follow from the covariance of the terms, which is computed once.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from .._blocks import is_sparse
from .._typing import Data, Float
from ..model import Factor, SparseMetric
from .learn import Learned

#: The number of rows that are embedded, or whose terms are computed, at a time.
BLOCK_ROWS = 2**12
#: With more terms rows are embedded instead, because the covariance would be too large.
MOST_TERMS = 1500


class Spread:
    """The variances of the rows of a table under the metrics of one fit.

    Parameters
    ----------
    fit : Learned
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    """

    def __init__(self, fit: Learned, X: Data) -> None:
        self._fit = fit
        self._X = X
        self._covariance: Float | None = None
        self._plain: float | None = None
        self._totals: dict[int, tuple[Factor, float]] = {}
        self._lock = Lock()

    def total(self, factor: Factor) -> float:
        """The total variance under a metric over the terms of the fit."""
        if id(factor) not in self._totals:
            self._totals[id(factor)] = factor, float(self.along(factor).sum())
        return self._totals[id(factor)][1]

    def along(self, factor: Factor) -> Float:
        """The variance along each column of a factor."""
        if len(self._fit.terms) > MOST_TERMS:
            return variances(self._fit.metric(factor), self._X)
        among = self._of_terms()[np.ix_(factor.index, factor.index)]
        result: Float = np.einsum("tm,tm->m", factor.matrix, among @ factor.matrix)
        return np.maximum(result, 0.0, out=result)

    def plain(self) -> float:
        """The total variance under the plain distance."""
        with self._lock:
            if self._plain is None:
                self._plain = self._fit.scaling.plain_variance(self._X)
            return self._plain

    def _of_terms(self) -> Float:
        """The covariance of the standardised terms of the fit."""
        with self._lock:
            if self._covariance is None:
                every = Factor(np.arange(len(self._fit.terms)), np.empty((len(self._fit.terms), 0)))
                self._covariance = covariance(self._fit.metric(every), self._X)
            return self._covariance


class Spreads:
    """The ``Spread`` of each fit over one table. Variants in several threads share it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Learned, Spread]] = {}

    def of(self, fit: Learned, X: Data) -> Spread:
        """The spread of a fit. All calls have the same table."""
        return self._known.setdefault(id(fit), (fit, Spread(fit, X)))[1]


def covariance(metric: SparseMetric, X: Data) -> Float:
    """The covariance of the standardised terms of a metric, from blocks of rows."""
    X = X.tocsr() if is_sparse(X) else X
    counts, means = [], []
    within = np.zeros((len(metric.columns), len(metric.columns)))
    for start in range(0, X.shape[0], BLOCK_ROWS):
        features = metric.term_features(X[start : start + BLOCK_ROWS])
        counts.append(len(features))
        means.append(features.mean(axis=0))
        features -= means[-1]
        within += features.T @ features
    between = np.array(means) - np.average(means, axis=0, weights=counts)
    within += (between.T * counts) @ between
    within /= X.shape[0]
    return within


def variances(metric: SparseMetric, X: Data) -> Float:
    """The variance of each column of the embedding, from blocks of rows."""
    X = X.tocsr() if is_sparse(X) else X
    counts, means, squares = [], [], []
    for start in range(0, X.shape[0], BLOCK_ROWS):
        z = metric.embedded(X[start : start + BLOCK_ROWS])
        counts.append(len(z))
        means.append(z.mean(axis=0))
        squares.append(len(z) * z.var(axis=0))
    shift = np.average(means, axis=0, weights=counts)
    between = np.array(counts) @ (np.array(means) - shift) ** 2
    result: Float = (np.sum(squares, axis=0) + between) / int(X.shape[0])
    return result
