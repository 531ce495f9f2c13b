"""The average of several metrics, and the mixture of a metric with the plain distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._rounding import to_twelve_digits
from .._typing import Float, Index
from .metric import SparseMetric
from .path import Factor
from .products import Term


@dataclass(frozen=True, eq=False)
class Plain:
    """The plain distance, which gives the same weight to all scaled columns.

    Attributes
    ----------
    columns : ndarray of int
    variance : float or None
        The summed variance of the scaled columns over the rows; None if the metric has no share of
        the plain distance.
    """

    columns: Index
    variance: float | None = None


class Constants(Protocol):
    """The means and deviations of all columns, and the value at which scaled values are clipped."""

    @property
    def center(self) -> Float: ...

    @property
    def scale(self) -> Float: ...

    @property
    def clip(self) -> float | None: ...


def averaged(parts: Sequence[tuple[Factor, float]]) -> tuple[Index, Float]:
    """The average of several metrics, each divided by its total variance.

    A sum of positive semi-definite matrices is positive semi-definite, so the average is a metric.

    Parameters
    ----------
    parts : sequence of (Factor, float)
        The factor and the total variance of each metric.

    Returns
    -------
    index : ndarray of int
        The terms of the average.
    matrix : ndarray
        A factor of the average on these terms.
    """
    if not parts:
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    index = np.unique(np.concatenate([factor.index for factor, _ in parts]))
    blocks = []
    for factor, variance in parts:
        block = np.zeros((len(index), factor.matrix.shape[1]))
        unit = factor.matrix / np.sqrt(variance) if variance > 0 else factor.matrix
        block[np.searchsorted(index, factor.index)] = unit / np.sqrt(len(parts))
        blocks.append(block)
    whole = Factor(index, np.hstack(blocks))
    if len(parts) > 1:
        whole = whole.reduced()
    return whole.index, whole.matrix


def assembled(
    terms: Sequence[Term],
    matrix: Float,
    moments: Float,
    variance: float,
    share: float,
    plain: Plain,
    constants: Constants,
) -> SparseMetric:
    """The metric ``(1 - share) W + share I``, where W and I are divided by their total variance.

    Parameters
    ----------
    terms : sequence of tuple of int
    matrix : ndarray of shape (n_terms, rank)
        A factor of W.
    moments : ndarray of shape (n_terms, 2)
        Means and deviations of the terms.
    variance : float
        The total variance of the rows under W.
    share : float
        The share of the plain distance. If there are no terms, a share of 1 is used instead.
    plain : Plain
    constants : Constants
        The constants of the columns.
    """
    if not len(terms):
        share = 1.0
    own = list(terms) if share < 1 else []
    unit = matrix / np.sqrt(variance) if variance > 0 else matrix
    components = np.sqrt(1 - share) * unit.T if share < 1 else np.empty((0, 0))
    moments = moments if share < 1 else np.empty((0, 2))
    diagonal = np.zeros(len(own))
    if share > 0:
        alone = [term[0] if len(term) == 1 else -1 for term in own]
        columns: list[Term] = list(zip(np.setdiff1d(plain.columns, alone).tolist()))
        diagonal = np.concatenate([np.isin(alone, plain.columns), np.ones(len(columns))])
        diagonal *= share / plain.variance if plain.variance else 1.0
        components = np.hstack([components, np.zeros((len(components), len(columns)))])
        moments = np.vstack([moments, np.tile([0.0, 1.0], (len(columns), 1))])
        own += columns
    return SparseMetric(
        own, components, constants.center, constants.scale, moments[:, 0], moments[:, 1],
        diagonal=diagonal, clip=constants.clip,
    )  # fmt: skip


def ordered_by_weight(metric: SparseMetric) -> SparseMetric:
    """The same metric with its terms in descending order of weight.

    Weights are compared to twelve digits, because the last digits depend on the machine. Terms of
    equal weight keep their order.

    Parameters
    ----------
    metric : SparseMetric
    """
    weights = to_twelve_digits(metric.weights)
    order = np.argsort(-weights, kind="stable")
    return metric.replaced(
        columns=[metric.columns[t] for t in order], components=metric.components[:, order],
        term_center=metric.term_center[order], term_scale=metric.term_scale[order],
        diagonal=metric.diagonal[order],
    )  # fmt: skip
