"""The path: the model after some of its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import numpy as np

from .._typing import Float, Index
from ..engines import Engine
from ..model import Model
from ._classified import ClassifiedRows

#: The most steps at which the slider stops, and the most rows that are classified at each of them.
STOPS = 25
ROWS = 1000
#: Number of variables that are shown at a stop.
VARIABLES = 10
#: The errors along the path are left out if the product of the numbers of training rows, terms and
#: stops is larger than this.
MOST_WORK = 5 * 10**8


class Stage(TypedDict):
    """The model after a number of steps.

    ``error`` is the share of the given rows that the model classifies wrongly then, or None if
    there are no rows with known classes. ``shares`` are names of variables and their shares of the
    metric, in decreasing order.
    """

    step: int
    terms: int
    variables: int
    loss: float
    error: float | None
    shares: list[tuple[str, float]]


def stages(
    model: Model, rows: ClassifiedRows | None = None, engine: Engine | None = None
) -> list[Stage]:
    """The model at evenly spaced steps, before pruning. Empty if no step was accepted.

    Parameters
    ----------
    model : Model
        With its training rows.
    rows : ClassifiedRows, optional
        If their classes are known, every stage has the error on the first ROWS of them.
    engine : Engine, optional
    """
    longest = model.history.n_steps
    if not longest:
        return []
    stops = np.unique(np.linspace(1, longest, min(STOPS, longest)).round().astype(int))
    labelled = None
    if rows is not None and rows.labels is not None and _work(model) * len(stops) <= MOST_WORK:
        labelled = (rows.X[:ROWS], rows.labels[:ROWS])
    losses = model.history.losses()
    return [_stage(model, int(m), float(losses[m - 1]), labelled, engine) for m in stops]


def _work(model: Model) -> int:
    return len(model.rows) * max(len(model.metric.columns), 1)


def _stage(
    model: Model, m: int, loss: float, labelled: tuple[Float, Index] | None, engine: Engine | None
) -> Stage:
    metric = model.history.metric_after(m, model.metric)
    shares = metric.importances()
    order = np.argsort(-shares, kind="stable")[:VARIABLES]
    error = None
    if labelled is not None:
        X, labels = labelled
        predicted = model.labels_of(replace(model, metric=metric).log_odds(X, engine))
        error = float(np.mean(predicted != model.classes[labels]))
    return {
        "step": m,
        "terms": len(metric.columns),
        "variables": int((shares > 0).sum()),
        "loss": loss,
        "error": error,
        "shares": [(metric.feature_names[j], float(shares[j])) for j in order if shares[j] > 0],
    }
