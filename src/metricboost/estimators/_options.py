"""From validated data and parameters to what the mathematics takes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..boosting import BoostingOptions, LearningOptions
from ..boosting.start import Init
from ..metric import SparseMetric
from ._rows import Table
from ._validation import check_init, listed

#: Products are made until there are so many candidates, or twice as many as columns: a step's cost.
MOST_CANDIDATES = 4096


def learning_options(model: Any, table: Table) -> LearningOptions:
    """The parameters of an estimator, for this table."""
    n_columns = table.n_columns
    init = check_init(model.init, n_columns - table.n_indicators, model.max_degree)
    everything = model.max_features == "auto"
    return LearningOptions(
        boosting=_boosting_options(model),
        max_degree=int(model.max_degree),
        screen_pairs=model.screen_pairs,
        prune=model.prune,
        complexity_penalty=float(model.complexity_penalty),
        standardize=model.standardize,
        init=_over_table(init, table),
        clip=float(model.clip) if model.standardize and model.clip is not None else None,
        n_indicators=table.n_indicators,
        max_candidates=max(MOST_CANDIDATES, 2 * n_columns) if everything else None,
    )


def _over_table(init: Init, table: Table) -> Init:
    """A start over the input's columns as one over the table's, which has indicators besides."""
    if isinstance(init, np.ndarray):
        return np.pad(init, (0, table.n_indicators))
    return init if isinstance(init, str) else _metric_over_table(init, table)


def _metric_over_table(init: SparseMetric, table: Table) -> SparseMetric:
    """Its indicators may stand in other places here; one that is not here cannot be used."""
    n = init.n_features
    own = () if init.imputation is None else init.imputation.indicators
    here = () if table.imputation is None else table.imputation.indicators
    place = {n + i: n + here.index(column) for i, column in enumerate(own) if column in here}
    place.update({j: j for j in range(n)})
    lost = {own[j - n] for term in init.columns for j in term if j not in place}
    if lost:
        names = listed([init.feature_names[j] for j in sorted(lost)])
        raise ValueError(
            f'init uses whether {names} is missing: set missing="impute", with data in which '
            "values of it are missing."
        )
    center, scale = np.zeros(table.n_columns), np.ones(table.n_columns)
    for theirs, ours in place.items():
        center[ours], scale[ours] = init.center[theirs], init.scale[theirs]
    return SparseMetric(
        [tuple(sorted(place[j] for j in term)) for term in init.columns], init.components,
        center, scale, init.term_center, init.term_scale, diagonal=init.diagonal, clip=init.clip,
    )  # fmt: skip


def _boosting_options(model: Any) -> BoostingOptions:
    everything = model.max_features in ("auto", None)
    return BoostingOptions(
        max_iter=int(model.max_iter),
        n_neighbors=int(model.n_neighbors),
        n_nonzero=_int_or_float(model.n_nonzero),
        learning_rate=float(model.learning_rate),
        subsample=float(model.subsample),
        max_features=None if everything else _int_or_float(model.max_features),
        refresh_every=model.refresh_every,
        oob_gate=model.oob_gate,
        seed=int(check_random_state(model.random_state).randint(2**31 - 1)),
        multiclass=model.multiclass,
    )


def _int_or_float(value: Any) -> Any:
    """Integers of any kind as int (a number), other reals as float (a share)."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
