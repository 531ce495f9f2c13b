"""``SparseMetric``: the learned distance on its own; NumPy is all it needs.

A metric is a positive semi-definite matrix W over standardised terms (monomials of columns).
It is kept as a factor and a diagonal, ``W = components.T @ components + diag(diagonal)``, so the
distance between two rows is the Euclidean distance between their embeddings: ``phi @ components.T``
beside the columns ``phi_t * sqrt(diagonal_t)`` of the terms that have a diagonal. W itself is only
formed where it is asked for: a weight for each of many columns costs no more than the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._blocks import PIECE, is_sparse, row_blocks
from .._typing import Data, Float, Index
from ..inputs.imputation import Imputation, indicator_name

#: A product of columns: their numbers in increasing order, with repetition.
Term = tuple[int, ...]
#: Numbers of the terms of rows that are embedded at a time, and the least number of such rows.
TERM_NUMBERS, LEAST_ROWS = 2**20, 12_500


@dataclass(frozen=True)
class MetricTerm:
    """One term of a metric.

    Attributes
    ----------
    name : str
        Such as ``age*income^2``.
    columns : tuple of int
        Column numbers, with repetition: ``(0, 1, 1)``. In a metric with an imputation they are
        those of the extended table: numbers from ``n_features`` on are indicators.
    weight : float
        The diagonal entry of W: the term's weight on the standardised scale.
    stability : float or None
        The share of the fits behind the metric that use the term, where it was learned by several.
    """

    name: str
    columns: tuple[int, ...]
    weight: float
    stability: float | None = None


class SparseMetric:
    """A sparse, low-rank, positive semi-definite metric on polynomial terms.

    Fitted estimators hold one as ``metric_``; it can be used, pickled and passed on without them.

    Parameters
    ----------
    columns : sequence of tuple of int
        The columns of every term, with repetition.
    components : ndarray of shape (n_components, n_terms)
        A factor of W on the terms; it may have no rows.
    center, scale : ndarray of shape (n_features,)
        Columns enter as ``(x - center) / scale``. With an imputation, one for each column of the
        extended table: those of the input, then the indicators.
    term_center, term_scale : ndarray of shape (n_terms,)
        Terms enter as ``(product - term_center) / term_scale``.
    feature_names : sequence of str, optional
        Names of the input's columns; ``x0, x1, ...`` by default. The indicator of ``age`` is
        called ``missing(age)``.
    diagonal : ndarray of shape (n_terms,), optional
        What W has on its diagonal beyond ``components.T @ components``: finite and not negative,
        zeros by default.
    imputation : Imputation, optional
        How missing values are filled. Without it NaN in a table is NaN in its distances.
    gamma : float, optional
        The width of ``kernel`` that suits the training rows, see ``median_gamma``.
    clip : float, optional
        Scaled columns end at ``-clip`` and ``clip``: what lies further out counts as lying there.
    stability : ndarray of shape (n_terms,), optional
        The share of the fits behind the metric that use each term.

    Attributes
    ----------
    n_features : int
        The number of columns of the input, indicators not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> metric = SparseMetric([(0,), (0, 1)], np.diag([1.0, 2.0]), np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2), feature_names=["age", "income"])
    >>> [term.name for term in metric.terms]
    ['age', 'age*income']
    >>> metric.matrix()
    array([[1., 0.],
           [0., 4.]])
    >>> metric.pair_distance([[1.0, 0.0]], [[0.0, 0.0]])
    array([1.])
    """

    def __init__(
        self,
        columns: Sequence[Sequence[int]],
        components: npt.ArrayLike,
        center: npt.ArrayLike,
        scale: npt.ArrayLike,
        term_center: npt.ArrayLike,
        term_scale: npt.ArrayLike,
        feature_names: Sequence[str] | None = None,
        diagonal: npt.ArrayLike | None = None,
        imputation: Imputation | None = None,
        gamma: float | None = None,
        clip: float | None = None,
        stability: npt.ArrayLike | None = None,
    ) -> None:
        self.center = np.asarray(center, dtype=np.float64)
        self.scale = np.asarray(scale, dtype=np.float64)
        self.imputation = imputation
        self.n_features = len(self.center if imputation is None else imputation.fill)
        self.columns = [tuple(int(j) for j in term) for term in columns]
        self.components = np.ascontiguousarray(components, dtype=np.float64)
        self.term_center = np.asarray(term_center, dtype=np.float64)
        self.term_scale = np.asarray(term_scale, dtype=np.float64)
        names = feature_names if feature_names is not None else _default_names(self.n_features)
        self.feature_names = [str(name) for name in names]
        zeros = np.zeros(len(self.columns))
        self.diagonal = zeros if diagonal is None else np.asarray(diagonal, dtype=np.float64)
        self.gamma = None if gamma is None else _checked_gamma(gamma)
        self.clip = None if clip is None else _checked_clip(clip)
        self.stability = None if stability is None else np.asarray(stability, dtype=np.float64)
        self._check_parts()
        self._check_values()

    @property
    def _indicators(self) -> tuple[int, ...]:
        return () if self.imputation is None else self.imputation.indicators

    def _check_parts(self) -> None:
        n_terms, n_columns = len(self.columns), self.n_features + len(self._indicators)
        shapes = {
            "components": (self.components.shape, (len(self.components), n_terms)),
            "center": (self.center.shape, (n_columns,)),
            "scale": (self.scale.shape, (n_columns,)),
            "term_center": (self.term_center.shape, (n_terms,)),
            "term_scale": (self.term_scale.shape, (n_terms,)),
            "feature_names": ((len(self.feature_names),), (self.n_features,)),
            "diagonal": (self.diagonal.shape, (n_terms,)),
            "stability": (
                (n_terms,) if self.stability is None else self.stability.shape,
                (n_terms,),
            ),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise ValueError(f"{name} has shape {shape}, not {expected}.")

    def _check_values(self) -> None:
        last = len(self.center) - 1
        for term in self.columns:
            if not term or min(term) < 0 or max(term) > last:
                raise ValueError(f"columns has the term {term}, but columns are 0 to {last}.")
        bad = ~(np.isfinite(self.diagonal) & (self.diagonal >= 0))
        if bad.any():
            raise ValueError(
                f"diagonal has the value {self.diagonal[bad][0]}: a distance needs values that "
                "are finite and not negative."
            )

    def __repr__(self) -> str:
        used = int((self.importances() > 0).sum())
        return (
            f"SparseMetric(rank={self.rank}, n_terms={len(self.columns)}, "
            f"variables={used} of {self.n_features})"
        )

    @property
    def rank(self) -> int:
        """The number of dimensions of the embedding."""
        return len(self.components) + int(np.count_nonzero(self.diagonal))

    def _weights(self) -> Float:
        """The diagonal of W."""
        result: Float = (self.components**2).sum(axis=0) + self.diagonal
        return result

    @property
    def terms(self) -> list[MetricTerm]:
        """The terms with their names and weights.

        They have the order of ``columns``, of :meth:`matrix` and of :meth:`term_features`. The
        metric of a fitted estimator has its heaviest term first.
        """
        weights = self._weights()
        return [
            MetricTerm(
                self.name(term),
                term,
                float(weights[t]),
                None if self.stability is None else float(self.stability[t]),
            )
            for t, term in enumerate(self.columns)
        ]

    def name(self, term: tuple[int, ...]) -> str:
        """The name of a term, such as ``age*income^2`` for columns 0, 1 and 1.

        Parameters
        ----------
        term : tuple of int
            The columns of the term, with repetition.
        """
        powers = sorted(Counter(term).items())
        return "*".join(self._column_name(j) + (f"^{e}" if e > 1 else "") for j, e in powers)

    def _column_name(self, j: int) -> str:
        if j < self.n_features:
            return self.feature_names[j]
        return indicator_name(self.feature_names[self._indicators[j - self.n_features]])

    def matrix(self) -> Float:
        """W over the terms, in the order of ``columns``."""
        result: Float = self.components.T @ self.components
        result.flat[:: len(self.columns) + 1] += self.diagonal
        return result

    def get_feature_names_out(self) -> npt.NDArray[Any]:
        """The names of the columns of :meth:`term_features`, in their order.

        Returns
        -------
        ndarray of str objects of shape (n_terms,)
        """
        return np.array([self.name(term) for term in self.columns], dtype=object)

    def term_features(self, X: npt.ArrayLike) -> Float:
        """The standardised terms as columns, for use in any other model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_terms)
            Column i is the term ``terms[i]``, whose name is ``get_feature_names_out()[i]``.
        """
        table = self._checked(X)
        features = np.empty((table.shape[0], len(self.columns)))
        for part, block in row_blocks(table):
            features[part] = self._block_features(block)
        return features

    def _block_features(self, block: Float) -> Float:
        """The standardised terms of some rows."""
        features = self._products(self._extended(block))
        features -= self.term_center
        features /= self.term_scale
        return features

    def _extended(self, block: Float) -> Float:
        """Some rows, imputed, with the indicators of the metric's imputation."""
        return block if self.imputation is None else self.imputation.apply(block)

    def _products(self, X: Float) -> Float:
        """The products of standardised columns: factor by factor, for all terms at once."""
        degrees, first, factors = self._factors
        products = self._standardised(X, factors[first])
        for i in range(1, degrees.max(initial=1)):
            longer = np.flatnonzero(degrees > i)
            products[:, longer] *= self._standardised(X, factors[first[longer] + i])
        return products

    @cached_property
    def _factors(self) -> tuple[Index, Index, Index]:
        """Of every term its degree and where it begins in the columns of all terms."""
        degrees = np.array([len(term) for term in self.columns], dtype=np.intp)
        factors = np.array([j for term in self.columns for j in term], dtype=np.intp)
        return degrees, np.cumsum(degrees) - degrees, factors

    def _standardised(self, X: Float, columns: Index) -> Float:
        # In place, and in C order as from take: with thousands of columns copies are the cost.
        standard: Float = np.take(X, columns, axis=1)
        standard -= self.center[columns]
        standard /= self.scale[columns]
        if self.clip is not None:
            np.clip(standard, -self.clip, self.clip, out=standard)
        return standard

    def _checked(self, X: Any) -> Data:
        """X as a table of the right width; numbers of other types become float64."""
        if not is_sparse(X):
            X = np.asarray(X)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {X.shape}, but this metric was learned on {self.n_features} columns."
            )
        return X

    def transform(self, X: npt.ArrayLike) -> Float:
        """The embedding: Euclidean distances between its rows are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        return self.embedded(self._checked(X))

    def embedded(self, X: Data, rows: Index | None = None) -> Float:
        """The embedding of a checked table, block by block.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            A table of float32 or float64.
        rows : ndarray of int, optional
            Embed these rows only.

        Returns
        -------
        ndarray of shape (n_rows, rank)
        """
        n = X.shape[0] if rows is None else len(rows)
        weighted = np.flatnonzero(self.diagonal)
        n_factored = len(self.components)
        result = np.empty((n, n_factored + len(weighted)))
        # A few copies of the terms' columns are made: so many rows at a time that they are small.
        most = max(LEAST_ROWS, TERM_NUMBERS // max(len(self.columns), 1))
        for part, block in row_blocks(X, rows, min(PIECE, most * X.shape[1])):
            features = self._block_features(block)
            np.matmul(features, self.components.T, out=result[part, :n_factored])
            if len(weighted):
                alone = np.take(features, weighted, axis=1)
                alone *= np.sqrt(self.diagonal[weighted])
                result[part, n_factored:] = alone
        return result

    def pair_distance(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Float:
        """The distance (not its square) between row i of X and row i of Y.

        Parameters
        ----------
        X, Y : array-like of shape (n_pairs, n_features)

        Returns
        -------
        ndarray of shape (n_pairs,)
        """
        a, b = self.transform(X), self.transform(Y)
        if len(a) != len(b):
            raise ValueError(f"X has {len(a)} rows and Y has {len(b)}: pairs need as many of each.")
        result: Float = np.linalg.norm(a - b, axis=1)
        return result

    def pairwise_distance(self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None) -> Float:
        """The distances between all rows of X and all rows of Y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        Y : array-like of shape (n_others, n_features), optional
            X by default.

        Returns
        -------
        ndarray of shape (n_samples, n_others)
        """
        distances: Float = np.sqrt(self._squared(X, Y))
        return distances

    def _squared(self, X: npt.ArrayLike, Y: npt.ArrayLike | None) -> Float:
        a = self.transform(X)
        return _squared_distances(a, None if Y is None else self.transform(Y))

    def kernel(
        self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None, gamma: float | None = None
    ) -> Float:
        """The Gaussian kernel of the metric, ``exp(-gamma * squared distance)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        Y : array-like of shape (n_others, n_features), optional
            X by default.
        gamma : float, optional
            The metric's own ``gamma`` by default, which one from a fitted estimator has.

        Returns
        -------
        ndarray of shape (n_samples, n_others)

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.svm import SVC
        >>> from metricboost import SparseMetric
        >>> metric = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0], gamma=0.5)
        >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
        >>> metric.kernel(X[:1], X[:3]).round(3)
        array([[1.   , 0.607, 0.   ]])
        >>> SVC(kernel=metric.kernel).fit(X, [0, 0, 1, 1]).predict([[0.5], [4.5]])
        array([0, 1])
        """
        gamma = self.gamma if gamma is None else _checked_gamma(gamma)
        if gamma is None:
            raise ValueError(
                "This metric has no gamma of its own: give one, kernel(X, Y, gamma=...), or use "
                "the metric_ of a fitted estimator."
            )
        result: Float = np.exp(-gamma * self._squared(X, Y))
        return result

    def median_gamma(self, X: npt.ArrayLike, max_rows: int = 2000) -> float:
        """The median rule: 1 / the median squared distance between rows of X.

        Pairs at distance zero are left out; with no others the answer is 1.0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        max_rows : int, default=2000
            Of more rows, this many evenly spaced ones are used.

        Examples
        --------
        >>> from metricboost import SparseMetric
        >>> metric = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0])
        >>> metric.median_gamma([[0.0], [2.0], [2.0]])
        0.25
        """
        if max_rows < 2:
            raise ValueError(f"max_rows={max_rows}, but a distance needs at least 2 rows.")
        table, rows = self._checked(X), None
        if table.shape[0] > max_rows:
            rows = np.linspace(0, table.shape[0] - 1, max_rows).round().astype(np.intp)
        return _median_gamma(self.embedded(table, rows))

    def importances(self) -> Float:
        """Share of every column in the metric: sums to 1, exact zeros for what is unused.

        A term's weight (its diagonal entry of W) is shared equally among its distinct columns;
        what an indicator gets goes to the column it belongs to.
        """
        extended = np.zeros(len(self.center))
        for term, weight in zip(self.columns, self._weights()):
            distinct = sorted(set(term))
            extended[distinct] += weight / len(distinct)
        shares = extended[: self.n_features]
        shares[list(self._indicators)] += extended[self.n_features :]
        total = shares.sum()
        return shares / total if total > 0 else shares

    def replaced(self, **changes: Any) -> SparseMetric:
        """A copy with other values of some parameters of the constructor."""
        own = {
            "columns": self.columns, "components": self.components, "center": self.center,
            "scale": self.scale, "term_center": self.term_center, "term_scale": self.term_scale,
            "feature_names": self.feature_names, "diagonal": self.diagonal,
            "imputation": self.imputation, "gamma": self.gamma, "clip": self.clip,
            "stability": self.stability,
        }  # fmt: skip
        return SparseMetric(**{**own, **changes})

    def without_imputation(self) -> SparseMetric:
        """The same metric for rows that are imputed already: those of the extended table."""
        if self.imputation is None:
            return self
        names = self.imputation.names(self.feature_names)
        return self.replaced(feature_names=names, imputation=None)

    def over_columns(self, columns: Index) -> SparseMetric:
        """The same metric for imputed tables that have only some columns of the extended table.

        Parameters
        ----------
        columns : ndarray of int
            Their numbers in increasing order. All columns of all terms must be among them.
        """
        whole = self.without_imputation()
        place = {int(j): i for i, j in enumerate(columns)}
        return whole.replaced(
            columns=[tuple(place[j] for j in term) for term in self.columns],
            center=self.center[columns],
            scale=self.scale[columns],
            feature_names=[whole.feature_names[j] for j in columns],
        )

    def interactions(self) -> list[MetricTerm]:
        """The terms of two or more distinct columns, the heaviest first."""
        found = [term for term in self.terms if len(set(term.columns)) > 1]
        return sorted(found, key=lambda term: -term.weight)


def _default_names(n_features: int) -> list[str]:
    return [f"x{j}" for j in range(n_features)]


def _checked_gamma(gamma: float) -> float:
    if not (np.isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma={gamma}, but a kernel needs one that is finite and above 0.")
    return float(gamma)


def _squared_distances(a: Float, b: Float | None = None) -> Float:
    """Between the rows of a and b; where b is None, of a: then symmetric, with zeros at i, i."""
    center = a.mean(axis=0) if len(a) else 0.0  # small distances far from the origin keep digits
    a = a - center
    other = a if b is None else b - center
    squared = _squared_norms(a)[:, None] + _squared_norms(other) - 2 * (a @ other.T)
    if b is None:
        np.fill_diagonal(squared, 0.0)
    result: Float = np.maximum(squared, 0.0)
    return result


def _squared_norms(a: Float) -> Float:
    result: Float = np.einsum("ij,ij->i", a, a)  # no copy of what may have 10,000 columns
    return result


def _median_gamma(embedding: Float) -> float:
    rows, others = np.triu_indices(len(embedding), 1)
    if not len(rows):
        return 1.0
    squared = _squared_distances(embedding)[rows, others]
    # Equal rows come out at what rounding leaves of their norms, and that is not a distance.
    rounding = (8 + embedding.shape[1]) * np.finfo(np.float64).eps
    norms = _squared_norms(embedding - embedding.mean(axis=0))
    noise = rounding * (norms[rows] + norms[others])
    apart = squared[squared > noise + rounding**2 * _squared_norms(embedding).max()]
    return float(1 / np.median(apart)) if len(apart) else 1.0


def _checked_clip(clip: float) -> float:
    if not clip > 0:
        raise ValueError(f"clip={clip} must be positive.")
    return float(clip)
