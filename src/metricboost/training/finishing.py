"""Finishing: the model of the fits, for the chosen variant and readout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._blocks import dense, is_sparse
from .._typing import Float
from ..model import (
    FoldFit,
    History,
    Model,
    Path,
    Plain,
    Reading,
    SparseMetric,
    Term,
    TrainingRows,
)
from .choosing import Candidate
from .fits import CrossFit, Variant, order, variances
from .learn import Learned
from .pool import Pool


def finished(
    crossfit: CrossFit,
    pool: Pool,
    variant: Variant,
    classes: npt.NDArray[Any],
    names: Sequence[str] | None,
    most: int | None,
    starts_plain: bool,
) -> Model:
    """The model of a variant, without a readout.

    Parameters
    ----------
    crossfit : CrossFit
        The fits.
    pool : Pool
        The rows of the fits.
    variant : Variant
    classes : ndarray
    names : sequence of str or None
        The names of the columns of the input.
    most : int or None
        The largest number of variables of the metric.
    starts_plain : bool
        Whether boosting starts from the plain distance.
    """
    metric = crossfit.metric(variant, names, pool.imputation, most)
    best_iter = sum(fit.best_iter for fit in crossfit.fits)
    plain = not len(metric.components) or (starts_plain and not best_iter)
    return Model(
        metric=metric,
        classes=classes,
        class_count=pool.source.class_count,
        history=_history(crossfit, variant),
        start_share=1.0 if plain else variant.share,
        stability=_stability(crossfit, metric),
    )


def reading_of(candidate: Candidate, rows: TrainingRows, plain_score: float) -> Reading:
    """The reading of a candidate: its readout with calibration and scores, and training rows."""
    return Reading(
        candidate.readout, candidate.calibration, rows, 1.0 - candidate.error, candidate.gain,
        plain_score,
    )  # fmt: skip


def rows_of(pool: Pool, models: Sequence[Model]) -> TrainingRows:
    """A copy of the reference rows, with the columns that the models use.

    Because the rows are copied, later changes of X do not change the model.
    """
    used: set[int] = set()
    for model in models:
        used.update(j for term in (*model.metric.columns, *model.history.terms) for j in term)
        used.update(int(j) for j in model.history.plain.columns)
    columns = np.array(sorted(used), dtype=np.intp)
    rows = np.arange(len(pool.labels)) if pool.references is None else pool.references
    X = pool.X.tocsc()[:, columns] if is_sparse(pool.X) else pool.X[:, columns]
    values = dense(X if pool.references is None else X[rows])
    return TrainingRows(columns, values, pool.labels[rows], pool.weight[rows], pool.numbers[rows])


def _history(crossfit: CrossFit, variant: Variant) -> History:
    terms = sorted({term for fit in crossfit.fits for term in _on_path(fit)}, key=order)
    moments = crossfit.moments(terms)
    place = {term: i for i, term in enumerate(terms)}
    fits = []
    for fit, metric in zip(crossfit.fits, crossfit.fit_metrics(variant)):
        path = _renumbered(fit, place)
        of_all = replace(fit, scaling=crossfit.scaling, terms=terms, moments=moments)
        columns = np.array(sorted({j for term in metric.columns for j in term}), dtype=np.intp)
        fits.append(
            FoldFit(
                path, fit.best_iter, _spread(fit, fit.path, crossfit),
                _spread(of_all, path, crossfit), columns, metric.over_columns(columns),
            )
        )  # fmt: skip
    if variant.share == 0:
        return History(tuple(fits), terms, moments, 0.0, Plain(np.empty(0, dtype=np.intp)))
    plain = Plain(crossfit.scaling.plain, crossfit.scaling.plain_variance(crossfit.X))
    return History(tuple(fits), terms, moments, variant.share, plain)


def _on_path(fit: Learned) -> list[Term]:
    """The terms of the start metric and of all accepted steps."""
    supports = [fit.path.start.index, *(step.support for step in fit.path.steps)]
    return [fit.terms[t] for t in np.unique(np.concatenate(supports)).astype(np.intp)]


def _renumbered(fit: Learned, place: dict[Term, int]) -> Path:
    """The path of a fit, with the terms numbered as in ``place``."""
    number = np.array([place.get(term, -1) for term in fit.terms], dtype=np.intp)
    steps = []
    for step in fit.path.steps:
        own = number[step.support]
        by_number = np.argsort(own)
        steps.append(replace(step, support=own[by_number], xi=step.xi[by_number]))
    start = fit.path.start
    own = number[start.index]
    by_number = np.argsort(own)
    start = replace(start, index=own[by_number], matrix=start.matrix[by_number])
    return Path(start, steps, fit.path.n_attempts)


def _spread(fit: Learned, path: Path, crossfit: CrossFit) -> Float:
    """The total variance of the rows under the start metric, and under each step alone."""
    n_start = path.start.matrix.shape[1]
    if not n_start + len(path):
        return np.zeros(1)
    components = np.zeros((n_start + len(path), len(fit.terms)))
    components[:n_start, path.start.index] = path.start.matrix.T
    for row, step in zip(components[n_start:], path.steps):
        row[step.support] = np.sqrt(step.weight) * step.xi
    metric = SparseMetric(
        fit.terms, components, fit.scaling.center, fit.scaling.scale,
        fit.moments[:, 0], fit.moments[:, 1], clip=fit.scaling.clip,
    )  # fmt: skip
    along = variances(metric, crossfit.X)
    return np.concatenate([[along[:n_start].sum()], along[n_start:]])


def _stability(crossfit: CrossFit, metric: SparseMetric) -> Float:
    """The share of the fits that used each column or its indicator."""
    used = np.zeros((len(crossfit.fits), crossfit.X.shape[1]), dtype=bool)
    for row, fit in zip(used, crossfit.fits):
        if fit.best_iter:
            row[[column for t in fit.factor.index for column in fit.terms[t]]] = True
    indicators: Sequence[int] = () if metric.imputation is None else metric.imputation.indicators
    for extra, column in enumerate(indicators):
        used[:, column] |= used[:, metric.n_features + extra]
    result: Float = used[:, : metric.n_features].mean(axis=0)
    return result
