"""The metric from which boosting starts: validation, and conversion to the columns of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Float
from ..boosting.start import Init
from ..inputs import listed
from ..model import SparseMetric
from .pool import Pool


def init_over_table(init: Any, parameters: Mapping[str, Any], pool: Pool) -> Init:
    """Validate ``init`` (a name, metric or matrix), and convert it to the columns of the pool."""
    if isinstance(init, str):
        return init
    n_features = pool.n_columns - pool.n_indicators
    if isinstance(init, SparseMetric):
        _check_metric(init, n_features, parameters["max_degree"])
        return _metric_over_table(init, pool)
    return np.pad(_checked_matrix(init, n_features), (0, pool.n_indicators))


def _check_metric(init: SparseMetric, n_features: int, max_degree: int) -> None:
    if init.n_features != n_features:
        raise ValueError(
            f"init has {init.n_features} columns, but X has {n_features}: use a metric that was "
            "learned on the same columns."
        )
    degree = max((len(term) for term in init.columns), default=0)
    if degree > max_degree:
        raise ValueError(
            f"init has a term of degree {degree}, but max_degree={max_degree}: set max_degree to "
            f"at least {degree}."
        )


def _checked_matrix(given: Any, n_features: int) -> Float:
    try:
        init = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be a matrix of numbers: {error}.") from error
    if init.shape != (n_features, n_features) or not np.isfinite(init).all():
        raise ValueError(
            f"init must be a finite matrix over the {n_features} columns, got shape {init.shape}."
        )
    values = np.linalg.eigvalsh(init)
    if not np.allclose(init, init.T) or values[0] < -1e-8 * max(values[-1], 0.0):
        raise ValueError("init must be symmetric and positive semi-definite.")
    return init


def _metric_over_table(init: SparseMetric, pool: Pool) -> SparseMetric:
    """The metric over the columns of the pool, where indicators may have other column numbers.

    Raises an error if the metric uses an indicator that the pool does not have.
    """
    n = init.n_features
    own = () if init.imputation is None else init.imputation.indicators
    here = () if pool.imputation is None else pool.imputation.indicators
    place = {n + i: n + here.index(column) for i, column in enumerate(own) if column in here}
    place.update({j: j for j in range(n)})
    lost = {own[j - n] for term in init.columns for j in term if j not in place}
    if lost:
        names = listed([init.feature_names[j] for j in sorted(lost)])
        raise ValueError(
            f'init uses the indicator whether {names} is missing: set missing="impute", and fit '
            "to a table in which values of this column are missing."
        )
    center, scale = np.zeros(pool.n_columns), np.ones(pool.n_columns)
    for theirs, ours in place.items():
        center[ours], scale[ours] = init.center[theirs], init.scale[theirs]
    return SparseMetric(
        [tuple(sorted(place[j] for j in term)) for term in init.columns], init.components,
        center, scale, init.term_center, init.term_scale, diagonal=init.diagonal, clip=init.clip,
    )  # fmt: skip
