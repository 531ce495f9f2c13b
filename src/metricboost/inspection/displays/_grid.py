"""A grid over one or two columns, all others at their medians."""

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


def feature_columns(metric: SparseMetric, features: Sequence[int | str] | None) -> list[int]:
    """The numbers of the variables."""
    if features is None:
        return _heaviest(metric)
    alone = isinstance(features, str | Real)
    columns = [_column(metric, feature) for feature in ([features] if alone else features)]
    if len(columns) not in (1, 2) or len(set(columns)) < len(columns):
        raise ValueError(f"features={features!r} must be two different variables, or one.")
    return columns


def _column(metric: SparseMetric, feature: Any) -> int:
    names, last = metric.feature_names, metric.n_features - 1
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        near = get_close_matches(feature, names, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {listed(names)}."
        raise ValueError(f"features has {feature!r}, which is no column: {advice}")
    whole = isinstance(feature, Integral) and not isinstance(feature, bool)
    if not whole or not 0 <= feature <= last:
        raise ValueError(f"features has {feature!r}: give names, or numbers from 0 to {last}.")
    return int(feature)


def _heaviest(metric: SparseMetric) -> list[int]:
    """The pair of variables that weighs most by itself, in terms of either and of both."""
    found = explain_model(metric)
    alone = dict.fromkeys(metric.feature_names, 0.0)
    alone.update({variable.name: variable.alone for variable in found.variables})
    links: dict[tuple[str, ...], float] = {(link.a, link.b): link.share for link in found.links}
    # Of the pairs that do not interact only that of the two heaviest alone can be best.
    links.setdefault(tuple(sorted(alone, key=lambda name: -alone[name])[:2]), 0.0)
    best = max(links, key=lambda pair: links[pair] + sum(alone[name] for name in pair))
    return [metric.feature_names.index(name) for name in best]


def value_range(column: Float, metric: SparseMetric, j: int, n_values: int) -> Float:
    """Evenly spaced values over those of the rows, and a little beyond."""
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
    """A row for each place of the grid, all other columns at their medians."""
    places = np.meshgrid(*values, indexing="ij")
    grid = np.repeat(_medians(table)[None], places[0].size, axis=0)
    for j, place in zip(columns, places):
        grid[:, j] = place.ravel()
    return grid, places[0].shape


def _medians(table: Float) -> Float:
    """NaN only where all is missing: that the model imputes, by the median of its training rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN slice")
        result: Float = np.nanmedian(table, axis=0)
    return result


def of_rows(method: Any, rows: Float) -> Float:
    with warnings.catch_warnings():  # these rows are ours: the columns are in order
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        result: Float = method(rows)
    return result
