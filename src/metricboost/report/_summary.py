"""All numbers of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import dense
from .._typing import Data, Index
from ..engines import Engine
from ..inspection import ModelExplanation, explain_model
from ..model import Blend, Model
from ._classified import ClassifiedRows, classified
from ._quality import Quality, quality
from ._rows import rows_of_page
from ._stages import Stage, stages


@dataclass(frozen=True, eq=False)
class Summary:
    """All numbers of a report.

    Attributes
    ----------
    model : Model or Blend
    explanation : ModelExplanation
    rows : ClassifiedRows or None
        None if no rows were given, or if the model was saved without its training rows.
    quality : Quality or None
        For the given rows. None if their classes are unknown.
    out_of_fold : Quality or None
        For the training rows, by the predictions out of fold. None if the model has none.
    seen : float
        The share of the rows at distance zero from a training row.
    map : dict or None
        The rows as the map of the page needs them.
    stages : list of Stage
        The model after some of its steps. Empty if no step was accepted.
    """

    model: Model | Blend
    explanation: ModelExplanation
    rows: ClassifiedRows | None
    quality: Quality | None
    out_of_fold: Quality | None
    seen: float
    map: dict[str, Any] | None
    stages: list[Stage]


def summarised(
    model: Model | Blend, X: Data | None, y: Any, numbers: Index | None, engine: Engine | None
) -> Summary:
    """Compute all numbers of a report.

    Parameters
    ----------
    model, X, y, numbers, engine
        As in ``make_report``.
    """
    explanation = explain_model(model)
    if not model.best.has_rows:
        return Summary(model, explanation, None, None, None, 0.0, None, [])
    out_of_fold = _out_of_fold(model)
    if X is None:
        steps = stages(model.best)
        return Summary(model, explanation, None, None, out_of_fold, 0.0, None, steps)
    rows = classified(model, dense(X), y, numbers, engine)
    return Summary(
        model=model,
        explanation=explanation,
        rows=rows,
        quality=_quality(rows),
        out_of_fold=out_of_fold,
        seen=float(np.mean(rows.squared.min(axis=1) == 0)),
        map=rows_of_page(model.best, rows),
        stages=stages(model.best, rows, engine),
    )


def _quality(rows: ClassifiedRows) -> Quality | None:
    return None if rows.labels is None else quality(rows.labels, rows.probabilities, rows.predicted)


def _out_of_fold(model: Model | Blend) -> Quality | None:
    found = model.best.the_reading.out_of_fold
    if found is None:
        return None
    probabilities = found.probabilities
    return quality(found.labels, probabilities, probabilities.argmax(axis=1))
