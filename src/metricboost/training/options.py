"""The options of a fit: what the mathematics takes, made from the parameters of an estimator."""

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

#: With ``max_features="auto"`` products are made until there are this many candidates, or twice as
#: many as columns. The number bounds the cost of a step.
MOST_CANDIDATES = 4096


@dataclass(frozen=True)
class LearningOptions:
    """Everything a fit needs beside the data.

    Fields with the name of a parameter have its value. ``clip`` is None without standardisation;
    ``n_indicators`` counts the last columns of the table, which say where values were missing;
    ``max_candidates`` bounds the candidates, or is None.
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
        Those of the estimator, by name.
    pool : Pool
    seed : int
        For bags and panels.
    """
    given = {name: _plain(value) for name, value in parameters.items()}
    automatic = given["max_features"] == "auto"
    given["max_features"] = None if automatic else given["max_features"]
    given["clip"] = given["clip"] if given["standardize"] else None
    return LearningOptions(
        boosting=BoostingOptions(**_named(BoostingOptions, given), seed=seed),
        **{**_named(LearningOptions, given), "init": init_over_table(given["init"], given, pool)},
        n_indicators=pool.n_indicators,
        max_candidates=max(MOST_CANDIDATES, 2 * pool.n_columns) if automatic else None,
    )


def _named(options: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are fields of the options."""
    return {field.name: given[field.name] for field in fields(options) if field.name in given}


def _plain(value: Any) -> Any:
    """Integers of any type as int, other real numbers as float, booleans as bool."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
