"""A grid over one or two variables; all other variables are held at their medians."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..._typing import Float
from ...inputs import listed
from ...model import SparseMetric
from .._terms import explain_model


def feature_columns(
    metric: SparseMetric, features: Sequence[int | str] | int | str | None
) -> list[int]:
    """The column numbers of one or two variables.

    Parameters
    ----------
    metric : SparseMetric
    features : sequence of int or str, or None
        As in ``SurfaceDisplay.from_estimator``.
    """
    if features is None:
        return _heaviest(metric)
    several = [features] if isinstance(features, str | int | Real) else features
    columns = [_column(metric, feature) for feature in several]
    if len(columns) not in (1, 2) or len(set(columns)) < len(columns):
        raise ValueError(f"features={features!r} must be one variable or two different variables.")
    return columns


def _column(metric: SparseMetric, feature: Any) -> int:
    names, last = metric.feature_names, metric.n_features - 1
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        near = get_close_matches(feature, names, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"the columns are {listed(names)}."
        raise ValueError(f"features has {feature!r}, which is not a column: {advice}")
    whole = isinstance(feature, Integral) and not isinstance(feature, bool)
    if not whole or not 0 <= feature <= last:
        raise ValueError(f"features has {feature!r}: give names, or numbers from 0 to {last}.")
    return int(feature)


def _heaviest(metric: SparseMetric) -> list[int]:
    """The two variables with the largest weight in the terms that have no other variable."""
    found = explain_model(metric)
    alone = dict.fromkeys(metric.feature_names, 0.0)
    alone.update({variable.name: variable.alone for variable in found.variables})
    links: dict[tuple[str, ...], float] = {(link.a, link.b): link.share for link in found.links}
    # Among the pairs that do not interact, the best one has the two largest weights alone.
    links.setdefault(tuple(sorted(alone, key=lambda name: -alone[name])[:2]), 0.0)
    best = max(links, key=lambda pair: links[pair] + sum(alone[name] for name in pair))
    return [metric.feature_names.index(name) for name in best]


def value_range(column: Float, metric: SparseMetric, j: int, n_values: int) -> Float:
    """Evenly spaced values over the range of a column, with a small margin at both ends.

    Parameters
    ----------
    column : ndarray
        The values of the rows. NaN is left out.
    metric : SparseMetric
    j : int
        The number of the column.
    n_values : int
    """
    known = column[~np.isnan(column)]
    if not len(known):
        raise ValueError(
            f"X has no value in column {metric.feature_names[j]!r}: give other features or rows."
        )
    low, high = known.min(), known.max()
    margin = 0.04 * (high - low) or metric.scale[j]
    return np.linspace(low - margin, high + margin, n_values)


def value_grid(
    table: Float, columns: list[int], values: list[Float]
) -> tuple[Float, tuple[int, ...]]:
    """One row for each point of the grid. The other columns have their medians.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_features)
    columns : list of int
        The columns of the grid.
    values : list of ndarray
        The values of each of these columns.

    Returns
    -------
    rows : ndarray of shape (n_points, n_features)
    shape : tuple of int
        The shape of the grid.
    """
    places = np.meshgrid(*values, indexing="ij")
    grid = np.repeat(_medians(table)[None], places[0].size, axis=0)
    for j, place in zip(columns, places):
        grid[:, j] = place.ravel()
    return grid, places[0].shape


def _medians(table: Float) -> Float:
    """The median of every column. A column without values has NaN, which the model imputes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN slice")
        result: Float = np.nanmedian(table, axis=0)
    return result
