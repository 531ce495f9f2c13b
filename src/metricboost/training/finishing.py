"""Finishing: the model of the fits, for the chosen variant and readout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._blocks import dense, is_sparse
from .._typing import Float, Index
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
from .fits import CrossFit, Variant, order
from .learn import Learned
from .pool import Pool
from .spreads import variances


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


def reading_of(
    candidate: Candidate, rows: TrainingRows, plain_score: float, effective_rows: float
) -> Reading:
    """The reading of a candidate: its readout with calibration and scores, and training rows."""
    return Reading(
        candidate.readout, candidate.calibration, rows, 1.0 - candidate.error, candidate.gain,
        plain_score, effective_rows,
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
        number = np.array([place.get(term, -1) for term in fit.terms], dtype=np.intp)
        columns = np.array(sorted({j for term in metric.columns for j in term}), dtype=np.intp)
        path, spreads = _renumbered(fit.path, number), _spreads(crossfit, fit, number, moments)
        inside = metric.over_columns(columns)
        fits.append(FoldFit(path, fit.best_iter, *spreads, columns, inside))
    if variant.share == 0:
        return History(tuple(fits), terms, moments, 0.0, Plain(np.empty(0, dtype=np.intp)))
    plain = Plain(crossfit.scaling.plain, crossfit.scaling.plain_variance(crossfit.X))
    return History(tuple(fits), terms, moments, variant.share, plain)


def _on_path(fit: Learned) -> list[Term]:
    """The terms of the start metric and of all accepted steps."""
    supports = [fit.path.start.index, *(step.support for step in fit.path.steps)]
    return [fit.terms[t] for t in np.unique(np.concatenate(supports)).astype(np.intp)]


def _renumbered(path: Path, number: Index) -> Path:
    """The path with other numbers for its terms: ``number[t]`` instead of t."""
    steps = []
    for step in path.steps:
        own = number[step.support]
        by_number = np.argsort(own)
        steps.append(replace(step, support=own[by_number], xi=step.xi[by_number]))
    own = number[path.start.index]
    by_number = np.argsort(own)
    start = replace(path.start, index=own[by_number], matrix=path.start.matrix[by_number])
    return Path(start, steps, path.n_attempts)


def _spreads(
    crossfit: CrossFit, fit: Learned, number: Index, moments: Float
) -> tuple[Float, Float]:
    """The total variance of the rows under the start metric, and under each step alone.

    The columns and terms are standardised with the rows of the fit, and with all rows. Both are
    returned.
    """
    factor, n_start = fit.path.separate(len(fit.path)), fit.path.start.matrix.shape[1]
    if not factor.matrix.size:
        return np.zeros(1), np.zeros(1)
    own = crossfit.spreads.of(fit, crossfit.X).along(factor)
    own_metric = fit.metric(factor)
    of_all = replace(fit, scaling=crossfit.scaling, moments=moments[number]).metric(factor)
    same = all(
        np.array_equal(getattr(own_metric, name), getattr(of_all, name))
        for name in ("center", "scale", "term_center", "term_scale")
    )
    whole = own if same else variances(of_all, crossfit.X)
    first, second = (np.append(v[:n_start].sum(), v[n_start:]) for v in (own, whole))
    return first, second


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
