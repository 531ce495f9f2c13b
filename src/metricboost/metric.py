"""``SparseMetric``: the learned distance on its own; NumPy is all it needs.

A metric is a positive semi-definite matrix W over standardised terms (monomials of columns).
It is kept as a factor, ``W = components.T @ components``, so the distance between two rows is the
Euclidean distance between their embeddings ``phi(x) @ components.T``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._typing import Float


@dataclass(frozen=True)
class MetricTerm:
    """One term of a metric.

    Attributes
    ----------
    name : str
        Such as ``age*income^2``.
    columns : tuple of int
        Column numbers, with repetition: ``(0, 1, 1)``.
    weight : float
        The diagonal entry of W: the term's weight on the standardised scale.
    """

    name: str
    columns: tuple[int, ...]
    weight: float


class SparseMetric:
    """A sparse, low-rank, positive semi-definite metric on polynomial terms.

    Fitted estimators hold one as ``metric_``; it can be used, pickled and passed on without them.

    Parameters
    ----------
    columns : sequence of tuple of int
        The columns of every term, with repetition.
    components : ndarray of shape (rank, n_terms)
        A factor of W on the terms.
    center, scale : ndarray of shape (n_features,)
        Columns enter as ``(x - center) / scale``.
    term_center, term_scale : ndarray of shape (n_terms,)
        Terms enter as ``(product - term_center) / term_scale``.
    feature_names : sequence of str, optional
        Names of the columns; ``x0, x1, ...`` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> metric = SparseMetric([(0,), (0, 1)], np.diag([1.0, 2.0]), np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2), feature_names=["age", "income"])
    >>> [term.name for term in metric.terms]
    ['age*income', 'age']
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
    ) -> None:
        self.center = np.asarray(center, dtype=np.float64)
        self.scale = np.asarray(scale, dtype=np.float64)
        self.n_features = len(self.center)
        self.columns = [tuple(int(j) for j in term) for term in columns]
        self.components = np.asarray(components, dtype=np.float64)
        self.term_center = np.asarray(term_center, dtype=np.float64)
        self.term_scale = np.asarray(term_scale, dtype=np.float64)
        names = feature_names if feature_names is not None else _default_names(self.n_features)
        self.feature_names = [str(name) for name in names]
        self._check_parts()

    def _check_parts(self) -> None:
        n_terms = len(self.columns)
        shapes = {
            "components": (self.components.shape, (len(self.components), n_terms)),
            "scale": (self.scale.shape, (self.n_features,)),
            "term_center": (self.term_center.shape, (n_terms,)),
            "term_scale": (self.term_scale.shape, (n_terms,)),
            "feature_names": ((len(self.feature_names),), (self.n_features,)),
        }
        for name, (shape, expected) in shapes.items():
            if shape != expected:
                raise ValueError(f"{name} has shape {shape}, not {expected}.")
        for term in self.columns:
            if not term or min(term) < 0 or max(term) >= self.n_features:
                raise ValueError(
                    f"columns has the term {term}, but columns are 0 to {self.n_features - 1}."
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
        return len(self.components)

    @property
    def terms(self) -> list[MetricTerm]:
        """The terms with their names and weights, the heaviest first."""
        weights = (self.components**2).sum(axis=0)
        order = np.argsort(-weights, kind="stable")
        return [
            MetricTerm(self.name(self.columns[t]), self.columns[t], float(weights[t]))
            for t in order
        ]

    def name(self, term: tuple[int, ...]) -> str:
        """The name of a term, such as ``age*income^2`` for columns 0, 1 and 1."""
        powers = sorted(Counter(term).items())
        return "*".join(self.feature_names[j] + (f"^{e}" if e > 1 else "") for j, e in powers)

    def matrix(self) -> Float:
        """W over the terms, in the order of ``columns``."""
        result: Float = self.components.T @ self.components
        return result

    def term_features(self, X: npt.ArrayLike) -> Float:
        """The standardised terms as columns, for use in any other model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_terms)
        """
        X = self._checked(X)
        used = sorted({j for term in self.columns for j in term})
        place = {j: i for i, j in enumerate(used)}
        standard = (X[:, used] - self.center[used]) / self.scale[used]
        features = np.empty((len(X), len(self.columns)))
        for t, term in enumerate(self.columns):
            features[:, t] = np.prod(standard[:, [place[j] for j in term]], axis=1)
        result: Float = (features - self.term_center) / self.term_scale
        return result

    def _checked(self, X: Any) -> Float:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {X.shape}, but this metric was learned on {self.n_features} columns."
            )
        result: Float = X
        return result

    def transform(self, X: npt.ArrayLike) -> Float:
        """The embedding: Euclidean distances between its rows are distances under the metric."""
        result: Float = self.term_features(X) @ self.components.T
        return result

    def pair_distance(self, X: npt.ArrayLike, Y: npt.ArrayLike) -> Float:
        """The distance (not its square) between row i of X and row i of Y."""
        a, b = self.transform(X), self.transform(Y)
        if len(a) != len(b):
            raise ValueError(f"X has {len(a)} rows and Y has {len(b)}: pairs need as many of each.")
        result: Float = np.linalg.norm(a - b, axis=1)
        return result

    def pairwise_distance(self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None) -> Float:
        """The distances between all rows of X and all rows of Y (of X where Y is None)."""
        a = self.transform(X)
        b = a if Y is None else self.transform(Y)
        center = a.mean(axis=0) if len(a) else 0.0
        a, b = a - center, b - center
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
        distances: Float = np.sqrt(np.maximum(squared, 0.0))
        if Y is None:
            np.fill_diagonal(distances, 0.0)
        return distances

    def importances(self) -> Float:
        """Share of every column in the metric: sums to 1, exact zeros for what is unused.

        A term's weight (its diagonal entry of W) is shared equally among its distinct columns.
        """
        shares = np.zeros(self.n_features)
        for term, weight in zip(self.columns, (self.components**2).sum(axis=0)):
            distinct = sorted(set(term))
            shares[distinct] += weight / len(distinct)
        total = shares.sum()
        return shares / total if total > 0 else shares

    def interactions(self) -> list[MetricTerm]:
        """The terms of two or more distinct columns, the heaviest first."""
        return [term for term in self.terms if len(set(term.columns)) > 1]


def _default_names(n_features: int) -> list[str]:
    return [f"x{j}" for j in range(n_features)]
