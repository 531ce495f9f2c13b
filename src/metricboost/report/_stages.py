"""The path: what the model was after each of some steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float
from ..training.fits import Variant

#: Steps that the slider stops at, at most, and rows that are classified at each.
STOPS = 25
ROWS = 1000
#: Variables shown at a stop.
VARIABLES = 10
#: Rows times terms times stops: beyond, errors along the path are left out.
MOST_WORK = 5 * 10**8


def stages(model: Any, X: Any, y: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """Terms, variables, loss and the error on some labelled rows, at evenly spaced steps.

    Stages are those before pruning, as ``staged_predict`` has them.
    """
    longest = max(len(fit.path) for fit in model._crossfit.fits)
    if not longest:
        return []
    stops = np.unique(np.linspace(1, longest, min(STOPS, longest)).round().astype(int))
    n_rows = min(len(y), ROWS)
    width = model._crossfit.X.shape[0] * max(len(model.metric_.columns), 1)
    with_errors = width * len(stops) <= MOST_WORK
    queries, y = (X[:n_rows], y[:n_rows]) if with_errors else (X[:0], y[:0])
    losses = _losses(model)
    return [_stage(model, int(m), queries, y, losses[m - 1]) for m in stops]


def _stage(model: Any, m: int, X: Any, y: npt.NDArray[Any], loss: float) -> dict[str, Any]:
    variant = Variant(model._variant.share, steps=m)
    metric = model._crossfit.metric(variant, model.metric_.feature_names, model.metric_.imputation)
    shares = metric.importances()
    order = np.argsort(-shares, kind="stable")[:VARIABLES]
    error = None
    if len(y):
        readout = model._made_readout(metric.without_imputation())
        evidence = readout(metric.transform(X))
        labels = model._labels(model._candidate.calibration.log_odds(evidence))
        error = float(np.mean(labels != y))
    return {
        "step": m,
        "terms": len(metric.columns),
        "variables": int((shares > 0).sum()),
        "loss": loss,
        "error": error,
        "shares": [[metric.feature_names[j], float(shares[j])] for j in order if shares[j] > 0],
    }


def _losses(model: Any) -> Float:
    """The mean over the fits of the loss a row has after each step; fits that ended stay there."""
    paths = [fit.path for fit in model._crossfit.fits if len(fit.path)]
    longest = max(len(path) for path in paths)
    losses = [[step.loss for step in path.steps] for path in paths]
    padded = [line + line[-1:] * (longest - len(line)) for line in losses]
    result: Float = np.mean(padded, axis=0)
    return result
