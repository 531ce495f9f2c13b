"""From validated data and parameters to what the mathematics takes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils import check_random_state

from .._typing import Float, Index
from ..boosting import BoostingOptions, LearningOptions
from ..imputation import Imputation
from ._validation import check_init

#: Products are made until there are so many candidates, or twice as many as columns: a step's cost.
MOST_CANDIDATES = 4096


@dataclass(frozen=True)
class Table:
    """Data as the boosting rooms take it; ``X`` is imputed already.

    Of the ``n_rows`` that were given these are the ``rows`` that have a weight.
    """

    X: Float
    labels: Index
    weight: Float
    imputation: Imputation | None
    rows: Index
    n_rows: int


def learning_options(model: Any, table: Table) -> LearningOptions:
    """The parameters of an estimator, for this table."""
    n_columns = table.X.shape[1]
    everything = model.max_features == "auto"
    return LearningOptions(
        boosting=_boosting_options(model),
        max_degree=int(model.max_degree),
        screen_pairs=model.screen_pairs,
        prune=model.prune,
        complexity_penalty=float(model.complexity_penalty),
        standardize=model.standardize,
        init=check_init(model.init, n_columns, model.max_degree),
        clip=model.clip if model.standardize else None,
        n_indicators=len(table.imputation.indicators) if table.imputation else 0,
        max_candidates=max(MOST_CANDIDATES, 2 * n_columns) if everything else None,
    )


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
