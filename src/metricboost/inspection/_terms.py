"""What a metric has learned: its terms, its variables and the network of their interactions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._typing import Float
from ..metric import SparseMetric

KINDS = ("variable", "power", "interaction", "missing")


@dataclass(frozen=True)
class TermShare:
    """A term of the metric.

    Attributes
    ----------
    name : str
        Such as ``age*income``.
    variables : tuple of str
        The distinct columns it is made of.
    kind : {"variable", "power", "interaction", "missing"}
        A column by itself, a power of one, a product of several, or whether a value was missing.
    share : float
        Of the metric's total weight.
    stability : float or None
        The share of the averaged fits that use it.
    """

    name: str
    variables: tuple[str, ...]
    kind: str
    share: float
    stability: float | None


@dataclass(frozen=True)
class VariableShare:
    """A column of the table.

    Attributes
    ----------
    name : str
    share : float
        Of the metric's total weight; the shares of all columns sum to 1.
    alone : float
        The part of it from the column and its powers.
    together : float
        The part of it from products with other columns.
    stability : float or None
        The share of the averaged fits that use the column.
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
    """What a model has learned, as data; made by :func:`explain_model` and ``model.explain()``.

    Attributes
    ----------
    terms : list of TermShare
        The heaviest first.
    variables : list of VariableShare
        The columns that the metric uses, the heaviest first.
    links : list of Link
        The network of interactions, the heaviest first.
    shares : dict
        The share of the metric's weight in terms of each kind.
    start_share : float or None
        The share of the plain distance on all columns, where the metric has one.

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
        """The "terms", "variables" or "links" as a DataFrame."""
        if what not in ("terms", "variables", "links"):
            raise ValueError(f"what={what!r} must be 'terms', 'variables' or 'links'.")
        import pandas as pd

        return pd.DataFrame([vars(item) for item in getattr(self, what)])


def explain_model(model: Any) -> ModelExplanation:
    """What a metric or a fitted estimator has learned.

    Parameters
    ----------
    model : SparseMetric, SDist, SDistClassifier, SDistClassifierCV, or one of the baselines

    Returns
    -------
    ModelExplanation
    """
    metric = model if isinstance(model, SparseMetric) else model.metric_
    stability = getattr(model, "stability_", None)
    best = getattr(model, "best_estimator_", model)
    terms = _terms(metric)
    shares = {kind: sum(term.share for term in terms if term.kind == kind) for kind in KINDS}
    return ModelExplanation(
        terms, _variables(metric, stability), _links(metric), shares,
        getattr(best, "start_share_", None),
    )  # fmt: skip


def _terms(metric: SparseMetric) -> list[TermShare]:
    heaviest_first = sorted(metric.terms, key=lambda term: -term.weight)
    total = sum(term.weight for term in heaviest_first) or 1.0
    return [
        TermShare(
            term.name,
            tuple(_own_names(metric, term.columns)),
            _kind(metric, term.columns),
            term.weight / total,
            term.stability,
        )
        for term in heaviest_first
        if term.weight > 0
    ]


def _kind(metric: SparseMetric, columns: tuple[int, ...]) -> str:
    if len(set(columns)) > 1:
        return "interaction"
    if columns[0] >= metric.n_features:
        return "missing"
    return "power" if len(columns) > 1 else "variable"


def _own_names(metric: SparseMetric, columns: tuple[int, ...]) -> list[str]:
    """The names of a term's columns; an indicator counts as the column it tells about."""
    return [metric.feature_names[j] for j in sorted({_own(metric, j) for j in columns})]


def _own(metric: SparseMetric, column: int) -> int:
    if column < metric.n_features:
        return column
    assert metric.imputation is not None
    return metric.imputation.indicators[column - metric.n_features]


def _variables(metric: SparseMetric, stability: Float | None) -> list[VariableShare]:
    alone, together = np.zeros(metric.n_features), np.zeros(metric.n_features)
    for term in metric.terms:
        distinct = sorted(set(term.columns))
        target = together if len(distinct) > 1 else alone
        for column in distinct:
            target[_own(metric, column)] += term.weight / len(distinct)
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
        columns = sorted({_own(metric, j) for j in term.columns})
        pairs = list(combinations(columns, 2))
        for pair in pairs:
            weights[pair] += term.weight / len(pairs)
    links = [
        Link(metric.feature_names[a], metric.feature_names[b], weight / (total or 1.0))
        for (a, b), weight in weights.items()
        if weight > 0
    ]
    return sorted(links, key=lambda link: (-link.share, link.a, link.b))
