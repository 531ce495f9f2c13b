"""The options of a fit, derived from the parameters of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from ..boosting.loop import BoostingOptions
from ..boosting.start import Init
from .pool import Pool
from .starting import init_over_table

#: With ``max_features="auto"`` products are added until there are this many candidates, or twice as
#: many candidates as columns, whichever is larger. The limit bounds the cost of a step.
MOST_CANDIDATES = 4096
#: With ``max_features="auto"``, fewer than FEW_ROWS rows, and a number of columns within COLUMNS,
#: each step sees a random panel of the square root of the candidates. The fits then differ more,
#: and their average has less noise. With more columns, the panels of a fit would miss most columns.
FEW_ROWS, COLUMNS = 150, (20, 1000)


@dataclass(frozen=True)
class LearningOptions:
    """All options of a fit.

    Fields with the name of a parameter have the value of the parameter. ``clip`` is None without
    standardisation. ``n_indicators`` is the number of indicators, which are the last columns of the
    table. ``max_candidates`` is the largest number of candidates; None sets no limit.
    """

    boosting: BoostingOptions
    max_degree: int
    screen_pairs: int | Literal["auto"]
    prune: int | Literal["auto"] | None
    complexity_penalty: float
    standardize: bool
    init: Init
    clip: float | None = None
    n_indicators: int = 0
    max_candidates: int | None = None


def learning_options(parameters: Mapping[str, Any], pool: Pool, seed: int) -> LearningOptions:
    """The options for a table.

    Parameters
    ----------
    parameters : mapping
        The parameters of the estimator, by name.
    pool : Pool
    seed : int
        The seed of folds, bags and panels.
    """
    given = {name: _plain(value) for name, value in parameters.items()}
    automatic = given["max_features"] == "auto"
    if automatic:
        small = len(pool.labels) < FEW_ROWS and COLUMNS[0] <= pool.n_columns <= COLUMNS[1]
        given["max_features"] = "sqrt" if small else None
    given["clip"] = given["clip"] if given["standardize"] else None
    return LearningOptions(
        boosting=BoostingOptions(**_named(BoostingOptions, given), seed=seed),
        **{**_named(LearningOptions, given), "init": init_over_table(given["init"], given, pool)},
        n_indicators=pool.n_indicators,
        max_candidates=max(MOST_CANDIDATES, 2 * pool.n_columns) if automatic else None,
    )


def _named(options: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have the name of a field of ``options``."""
    return {field.name: given[field.name] for field in fields(options) if field.name in given}


def _plain(value: Any) -> Any:
    """Convert booleans to bool, integers of any type to int, and other real numbers to float."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
