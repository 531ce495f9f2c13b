"""What a metric has learned: its terms, its variables and the network of their interactions.

A *share* is always a share of the metric's total weight: the sum of the diagonal of W. The
*stability* of a term or a variable is the share of the averaged fits that use it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._typing import Float
from ..model import Blend, Model, SparseMetric

KINDS = ("variable", "power", "interaction", "missing")


@dataclass(frozen=True)
class TermShare:
    """A term of the metric.

    Attributes
    ----------
    name : str
        Such as ``age*income``.
    variables : tuple of str
        The distinct columns of the term.
    kind : {"variable", "power", "interaction", "missing"}
        A single column, a power of one column, a product of several columns, or an indicator of
        missing values.
    share : float
        The term's share of the metric's weight.
    stability : float or None
        The share of the averaged fits that use the term. None if it is unknown.
    coefficients : tuple of float or None
        With the linear readout: what one standard deviation of the term adds to the log odds of
        each class, relative to the mean of all classes. None with other readouts.
    """

    name: str
    variables: tuple[str, ...]
    kind: str
    share: float
    stability: float | None
    coefficients: tuple[float, ...] | None = None


@dataclass(frozen=True)
class VariableShare:
    """A column of the table.

    Attributes
    ----------
    name : str
    share : float
        The column's share of the metric's weight. The shares of all columns sum to 1.
    alone : float
        The part of the share from the column itself and its powers.
    together : float
        The part of the share from products with other columns.
    stability : float or None
        The share of the averaged fits that use the column. None if it is unknown.
    """

    name: str
    share: float
    alone: float
    together: float
    stability: float | None


@dataclass(frozen=True)
class Link:
    """Two columns that interact, and the share of the metric's weight in terms with both."""

    a: str
    b: str
    share: float


@dataclass(frozen=True)
class ModelExplanation:
    """What a model has learned, as data. :func:`explain_model` and ``model.explain()`` make it.

    Attributes
    ----------
    terms : list of TermShare
        In order of decreasing share.
    variables : list of VariableShare
        The columns that the metric uses, in order of decreasing share.
    links : list of Link
        The network of interactions, in order of decreasing share.
    shares : dict
        The share of the metric's weight in the terms of each kind.
    start_share : float or None
        The share of the plain distance on all columns. None if it is unknown.

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=400, n_features=30, informative=2, random_state=0)
    >>> explanation = SDistClassifier(random_state=0).fit(X, y).explain()
    >>> explanation.terms[0].name, explanation.terms[0].kind
    ('x18*x29', 'interaction')
    >>> explanation.shares["interaction"] > 0.9
    True
    """

    terms: list[TermShare]
    variables: list[VariableShare]
    links: list[Link]
    shares: dict[str, float]
    start_share: float | None = None

    def to_pandas(self, what: str = "terms") -> Any:
        """One of the lists as a DataFrame.

        Parameters
        ----------
        what : {"terms", "variables", "links"}, default="terms"

        Returns
        -------
        pandas.DataFrame
            One row for every item of the list, one column for every attribute of the items.
        """
        if what not in ("terms", "variables", "links"):
            raise ValueError(f"what={what!r} must be 'terms', 'variables' or 'links'.")
        import pandas as pd

        return pd.DataFrame([vars(item) for item in getattr(self, what)])


def explain_model(model: Model | Blend | SparseMetric) -> ModelExplanation:
    """What a model has learned.

    Parameters
    ----------
    model : Model, Blend or SparseMetric
        ``model_`` or ``metric_`` of a fitted estimator. Of a blend, its best model is explained.
        A metric alone knows neither the stability of columns nor the share of the plain distance.

    Returns
    -------
    ModelExplanation
    """
    if isinstance(model, SparseMetric):
        return _explanation(model)
    refuse_other_objects(model)
    best = model.best
    return _explanation(best.metric, best.stability, best.start_share, best.coefficients)


def refuse_other_objects(model: object) -> None:
    """Refuse an object that is no model, such as an estimator."""
    if not isinstance(model, Model | Blend):
        raise TypeError(
            f"model is a {type(model).__name__}, but must be a metricboost.model.Model or Blend: "
            "give model_ of a fitted estimator."
        )


def _explanation(
    metric: SparseMetric,
    stability: Float | None = None,
    start_share: float | None = None,
    coefficients: Float | None = None,
) -> ModelExplanation:
    terms = _terms(metric, coefficients)
    shares = {kind: sum(term.share for term in terms if term.kind == kind) for kind in KINDS}
    return ModelExplanation(
        terms, _variables(metric, stability), _links(metric), shares, start_share
    )


def _terms(metric: SparseMetric, coefficients: Float | None) -> list[TermShare]:
    heaviest_first = sorted(enumerate(metric.terms), key=lambda pair: -pair[1].weight)
    total = sum(term.weight for term in metric.terms) or 1.0
    return [
        TermShare(
            term.name,
            tuple(metric.feature_names[j] for j in table_columns(metric, term.columns)),
            _kind(metric, term.columns),
            term.weight / total,
            term.stability,
            None if coefficients is None else tuple(coefficients[t].tolist()),
        )
        for t, term in heaviest_first
        if term.weight > 0
    ]


def _kind(metric: SparseMetric, columns: tuple[int, ...]) -> str:
    if len(set(columns)) > 1:
        return "interaction"
    if columns[0] >= metric.n_features:
        return "missing"
    return "power" if len(columns) > 1 else "variable"


def table_columns(metric: SparseMetric, columns: tuple[int, ...]) -> list[int]:
    """The distinct columns of the table behind a term: an indicator belongs to its column."""
    return sorted({_table_column(metric, j) for j in columns})


def _table_column(metric: SparseMetric, j: int) -> int:
    if j < metric.n_features:
        return j
    assert metric.imputation is not None
    return metric.imputation.indicators[j - metric.n_features]


def _variables(metric: SparseMetric, stability: Float | None) -> list[VariableShare]:
    alone, together = np.zeros(metric.n_features), np.zeros(metric.n_features)
    for term in metric.terms:
        distinct = sorted(set(term.columns))
        target = together if len(distinct) > 1 else alone
        for j in distinct:
            target[_table_column(metric, j)] += term.weight / len(distinct)
    total = (alone + together).sum() or 1.0
    shares = (alone + together) / total
    return [
        VariableShare(
            metric.feature_names[j],
            float(shares[j]),
            float(alone[j] / total),
            float(together[j] / total),
            None if stability is None else float(stability[j]),
        )
        for j in np.argsort(-shares, kind="stable")
        if shares[j] > 0
    ]


def _links(metric: SparseMetric) -> list[Link]:
    weights: dict[tuple[int, int], float] = defaultdict(float)
    total = 0.0
    for term in metric.terms:
        total += term.weight
        pairs = list(combinations(table_columns(metric, term.columns), 2))
        for pair in pairs:
            weights[pair] += term.weight / len(pairs)
    links = [
        Link(metric.feature_names[a], metric.feature_names[b], weight / (total or 1.0))
        for (a, b), weight in weights.items()
        if weight > 0
    ]
    return sorted(links, key=lambda link: (-link.share, link.a, link.b))
