"""``SparseMetric``: the learned distance. The class works without an estimator.

A metric is a positive semi-definite matrix W over standardised terms (monomials of columns). W is
stored as a factor and a diagonal: ``W = components.T @ components + diag(diagonal)``. The embedding
of a row with the standardised terms phi consists of ``phi @ components.T``, and of
``phi_t * sqrt(diagonal_t)`` for each term t with a nonzero diagonal. The distance between two rows
is the Euclidean distance between their embeddings. W itself is computed only in ``matrix``, so a
plain distance on many columns needs no matrix of that size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._blocks import is_sparse, row_blocks
from .._typing import Data, Float, Index
from ..inputs.imputation import Imputation, indicator_name
from .products import Products, as_terms, misplaced

#: Rows are embedded in blocks of about BLOCK_NUMBERS numbers (rows times terms), which fit into the
#: cache of a core, but of at least LEAST_ROWS rows.
BLOCK_NUMBERS, LEAST_ROWS = 2**16, 64


@dataclass(frozen=True)
class MetricTerm:
    """One term of a metric.

    Attributes
    ----------
    name : str
        The name of the term, such as ``age*income^2``.
    columns : tuple of int
        The numbers of its columns, with repetition, such as ``(0, 1, 1)``. In a metric with an
        imputation, numbers from ``n_features`` refer to indicators.
    weight : float
        The weight of the standardised term: its diagonal entry of W.
    stability : float or None
        The share of the fits that use the term; None if the metric is not the average of fits.
    """

    name: str
    columns: tuple[int, ...]
    weight: float
    stability: float | None = None


class SparseMetric:
    """A sparse, low-rank, positive semi-definite metric on polynomial terms.

    The metric of a fitted estimator is its attribute ``metric_``. A metric can be used and pickled
    without the estimator.

    Parameters
    ----------
    columns : sequence of tuple of int
        The columns of each term, with repetition.
    components : ndarray of shape (n_components, n_terms)
        A factor of W on the terms. The number of components may be 0.
    center, scale : ndarray of shape (n_features,)
        The constants of the columns, which are scaled to ``(x - center) / scale``. With an
        imputation there is one constant for each column of the extended table, that is, for the
        columns of the input and then for the indicators.
    term_center, term_scale : ndarray of shape (n_terms,)
        The constants of the terms. A term is the product of its scaled columns, and is
        standardised to ``(product - term_center) / term_scale``.
    feature_names : sequence of str, optional
        The names of the columns of the input; ``x0, x1, ...`` by default. The indicator of ``age``
        has the name ``missing(age)``.
    diagonal : ndarray of shape (n_terms,), optional
        The diagonal that is added to ``components.T @ components``. Its values must be finite and
        not negative. Zeros by default.
    imputation : Imputation, optional
        How missing values are replaced. Without an imputation, distances to a row with NaN are NaN.
    gamma : float, optional
        The default width of ``kernel``, see ``median_gamma``.
    clip : float, optional
        Scaled values are clipped to ``[-clip, clip]``. By default values are not clipped.
    stability : ndarray of shape (n_terms,), optional
        The share of the fits that use each term.

    Attributes
    ----------
    n_features : int
        The number of columns of the input, without indicators.

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
        self.columns = as_terms(columns)
        self.components = np.ascontiguousarray(components, dtype=np.float64)
        self.term_center = np.asarray(term_center, dtype=np.float64)
        self.term_scale = np.asarray(term_scale, dtype=np.float64)
        names = feature_names if feature_names is not None else _default_names(self.n_features)
        self.feature_names = list(map(str, names))
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
                raise ValueError(f"{name} has shape {shape}, but must have shape {expected}.")

    def _check_values(self) -> None:
        last = len(self.center) - 1
        bad_terms = misplaced(self.columns, last)
        if bad_terms:
            raise ValueError(
                f"columns has the term {bad_terms[0]}, but a term must have at least one column, "
                f"and column numbers must be from 0 to {last}."
            )
        bad = ~(np.isfinite(self.diagonal) & (self.diagonal >= 0))
        if bad.any():
            raise ValueError(
                f"diagonal has the value {self.diagonal[bad][0]}, but its values must be finite "
                "and not negative."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without what was computed for embeddings, so that using a metric changes no pickle."""
        computed = "_products", "_parts", "factored"
        return {name: value for name, value in vars(self).items() if name not in computed}

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

    @property
    def weights(self) -> Float:
        """The weight of each term: the diagonal of W."""
        result: Float = (self.components**2).sum(axis=0) + self.diagonal
        return result

    @property
    def terms(self) -> list[MetricTerm]:
        """The terms with their names and weights.

        The order of the terms is the same in ``columns``, :meth:`matrix` and :meth:`term_features`.
        In the metric of a fitted estimator the heaviest term comes first.
        """
        weights = self.weights
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
        """The matrix W over the terms, in the order of ``columns``."""
        result: Float = self.components.T @ self.components
        result.flat[:: len(self.columns) + 1] += self.diagonal
        return result

    def get_feature_names_out(self) -> npt.NDArray[Any]:
        """The names of the columns of :meth:`term_features`.

        Returns
        -------
        ndarray of str objects of shape (n_terms,)
        """
        return np.array([self.name(term) for term in self.columns], dtype=object)

    def term_features(self, X: npt.ArrayLike) -> Float:
        """The standardised terms as columns, for use in other models.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_terms)
            Column i is the term ``terms[i]``, whose name is ``get_feature_names_out()[i]``.
        """
        return self.features(self._checked(X))

    def features(self, X: Data, rows: Index | None = None) -> Float:
        """The standardised terms of a table that is not checked again.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            A table of float32 or float64.
        rows : ndarray of int, optional
            The numbers of the rows; all rows by default.

        Returns
        -------
        ndarray of shape (n_rows, n_terms)
        """
        features = np.empty((X.shape[0] if rows is None else len(rows), len(self.columns)))
        for part, block in self._standardised(X, rows):
            features[part] = block.T
        return features

    @cached_property
    def factored(self) -> tuple[SparseMetric, Index, Float]:
        """The metric without its diagonal, its terms, and the root of the share of each term."""
        kept = np.flatnonzero(self.components.any(axis=0))
        own = self.without_diagonal()
        return own, kept, np.sqrt(own.weights / own.weights.sum())

    def weighted_features(self, X: Data, rows: Index | None = None) -> Float:
        """The standardised terms of ``components``, each times the root of its share of the weight.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            A table of float32 or float64, which is not checked again.
        rows : ndarray of int, optional
            The numbers of the rows; all rows by default.
        """
        own, _, roots = self.factored
        features = own.features(X, rows)
        features *= roots
        return features

    def _standardised(self, X: Data, rows: Index | None = None) -> Iterator[tuple[slice, Float]]:
        """The standardised terms of blocks of rows, transposed, with the slices of the rows."""
        products, center, scale = (
            self._products,
            self.term_center[:, None],
            self.term_scale[:, None],
        )
        columns = products.columns
        constants = self.center[columns, None], self.scale[columns, None], self.clip
        size = max(BLOCK_NUMBERS // max(len(self.columns), 1), LEAST_ROWS)
        for part, block in self._column_blocks(X, rows, size):
            features = products.of(block, *constants)
            features -= center
            features /= scale
            yield part, features

    def _column_blocks(
        self, X: Data, rows: Index | None, size: int
    ) -> Iterator[tuple[slice, Float]]:
        """Copies of blocks of ``size`` rows with the columns of the terms, transposed."""
        columns = self._products.columns
        if self.imputation is None:
            for part, block in row_blocks(X, rows, size * X.shape[1], columns):
                yield part, block.T.copy()  # the block may be a view of X
        else:
            for part, block in row_blocks(X, rows, size * X.shape[1]):
                extended = self.imputation.apply(block)
                yield part, np.take(extended, columns, axis=1).T.copy()

    @cached_property
    def _products(self) -> Products:
        return Products(self.columns)

    @cached_property
    def _parts(self) -> tuple[Index | slice, Float, Index, Float]:
        """The terms of the components, and the terms with a diagonal.

        The result has the terms that any component uses, the components on these terms
        (transposed), the terms with a nonzero diagonal, and the roots of their diagonal. A term
        with a diagonal only, such as a column of the plain distance, needs no matrix product.
        """
        weighted = np.flatnonzero(self.diagonal)
        used = self.components.any(axis=0) | (self.diagonal == 0)
        factored = slice(None) if used.all() else np.flatnonzero(used)
        components = np.ascontiguousarray(self.components.T[factored])
        return factored, components, weighted, np.sqrt(self.diagonal[weighted])[:, None]

    def _checked(self, X: Any) -> Data:
        """X as a table of float32 or float64 with the number of columns of the metric."""
        if not is_sparse(X):
            X = np.asarray(X)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {X.shape}, but the metric was learned from a table with "
                f"{self.n_features} columns."
            )
        return X

    def transform(self, X: npt.ArrayLike) -> Float:
        """Embed rows. Euclidean distances between embedded rows are distances under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        return self.embedded(self._checked(X))

    def embedded(self, X: Data, rows: Index | None = None) -> Float:
        """The embedding of a table that is not checked again, computed in blocks of rows.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            A table of float32 or float64.
        rows : ndarray of int, optional
            The numbers of the rows to embed; all rows by default.

        Returns
        -------
        ndarray of shape (n_rows, rank)
        """
        factored, components, weighted, root = self._parts
        n_factored = len(self.components)
        n = X.shape[0] if rows is None else len(rows)
        result = np.empty((n, n_factored + len(weighted)))
        for part, features in self._standardised(X, rows):
            np.matmul(features[factored].T, components, out=result[part, :n_factored])
            if len(weighted):
                np.multiply(features[weighted], root, out=result[part, n_factored:].T)
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
            raise ValueError(
                f"X has {len(a)} rows, but Y has {len(b)} rows. pair_distance compares row i of X "
                "with row i of Y: pass tables with the same number of rows, or use "
                "pairwise_distance."
            )
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
            By default ``gamma`` of the metric. The metric of a fitted estimator has a ``gamma``.

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
                "This metric has no default for gamma. Pass kernel(X, Y, gamma=...), or use the "
                "metric_ of a fitted estimator."
            )
        result: Float = np.exp(-gamma * self._squared(X, Y))
        return result

    def median_gamma(self, X: npt.ArrayLike, max_rows: int = 500) -> float:
        """The value of gamma by the median rule: 1 / (median squared distance between rows of X).

        Pairs at distance zero are left out. If all distances are zero, the result is 1.0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        max_rows : int, default=500
            If X has more rows, this number of evenly spaced rows is used.

        Examples
        --------
        >>> from metricboost import SparseMetric
        >>> metric = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0])
        >>> metric.median_gamma([[0.0], [2.0], [2.0]])
        0.25
        """
        if max_rows < 2:
            raise ValueError(f"max_rows={max_rows}, but must be at least 2: a pair has two rows.")
        table, rows = self._checked(X), None
        if table.shape[0] > max_rows:
            rows = np.linspace(0, table.shape[0] - 1, max_rows).round().astype(np.intp)
        return _median_gamma(self.embedded(table, rows))

    def importances(self) -> Float:
        """The share of each column in the metric.

        The weight of a term (its diagonal entry of W) is divided equally among its distinct
        columns. The share of an indicator is added to the column that the indicator describes. The
        shares sum to 1. Columns that the metric does not use have the share 0.
        """
        term, column = self._products.distinct_columns()
        portion = self.weights / np.bincount(term, minlength=len(self.columns))
        extended = np.zeros(len(self.center))
        np.add.at(extended, column, portion[term])
        shares = extended[: self.n_features]
        shares[list(self._indicators)] += extended[self.n_features :]
        total = shares.sum()
        return shares / total if total > 0 else shares

    def replaced(self, **changes: Any) -> SparseMetric:
        """A copy of the metric, with other values for some parameters of the constructor."""
        own = {
            "columns": self.columns, "components": self.components, "center": self.center,
            "scale": self.scale, "term_center": self.term_center, "term_scale": self.term_scale,
            "feature_names": self.feature_names, "diagonal": self.diagonal,
            "imputation": self.imputation, "gamma": self.gamma, "clip": self.clip,
            "stability": self.stability,
        }  # fmt: skip
        return SparseMetric(**{**own, **changes})

    def without_diagonal(self) -> SparseMetric:
        """The metric ``W = components.T @ components`` alone, over the terms that it uses."""
        used = np.flatnonzero(self.components.any(axis=0))
        return self.replaced(
            columns=[self.columns[t] for t in used], components=self.components[:, used],
            term_center=self.term_center[used], term_scale=self.term_scale[used],
            diagonal=None, stability=None,
        )  # fmt: skip

    def without_imputation(self) -> SparseMetric:
        """The same metric for tables that are already imputed and extended by the indicators."""
        if self.imputation is None:
            return self
        names = self.imputation.names(self.feature_names)
        return self.replaced(feature_names=names, imputation=None)

    def over_columns(self, columns: Index) -> SparseMetric:
        """The same metric for imputed tables that have only some columns of the extended table.

        Parameters
        ----------
        columns : ndarray of int
            The numbers of these columns, in increasing order. All columns of the terms must be
            among them.
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
        """The terms with two or more distinct columns, the heaviest first."""
        found = [term for term in self.terms if len(set(term.columns)) > 1]
        return sorted(found, key=lambda term: -term.weight)


def _default_names(n_features: int) -> list[str]:
    return [f"x{j}" for j in range(n_features)]


def _checked_gamma(gamma: float) -> float:
    if not (np.isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma={gamma}, but gamma must be finite and greater than 0.")
    return float(gamma)


def _squared_distances(a: Float, b: Float | None = None) -> Float:
    """The squared distances between the rows of a and the rows of b.

    Without b, the distances are those between the rows of a. The matrix is then symmetric, and its
    diagonal is exactly zero.
    """
    # Centring reduces the rounding errors of small distances between rows far from the origin.
    center = a.mean(axis=0) if len(a) else 0.0
    a = a - center
    other = a if b is None else b - center
    squared = _squared_norms(a)[:, None] + _squared_norms(other) - 2 * (a @ other.T)
    if b is None:
        np.fill_diagonal(squared, 0.0)
    result: Float = np.maximum(squared, 0.0)
    return result


def _squared_norms(a: Float) -> Float:
    result: Float = np.einsum("ij,ij->i", a, a)  # unlike (a**2).sum(axis=1), without a copy of a
    return result


def _median_gamma(embedding: Float) -> float:
    rows, others = np.triu_indices(len(embedding), 1)
    if not len(rows):
        return 1.0
    squared = _squared_distances(embedding)[rows, others]
    # By rounding, equal rows may have a small positive distance. Such distances are left out.
    rounding = (8 + embedding.shape[1]) * np.finfo(np.float64).eps
    norms = _squared_norms(embedding - embedding.mean(axis=0))
    noise = rounding * (norms[rows] + norms[others])
    apart = squared[squared > noise + rounding**2 * _squared_norms(embedding).max()]
    return float(1 / np.median(apart)) if len(apart) else 1.0


def _checked_clip(clip: float) -> float:
    if not clip > 0:
        raise ValueError(f"clip={clip}, but clip must be greater than 0.")
    return float(clip)
