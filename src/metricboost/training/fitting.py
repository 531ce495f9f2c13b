"""The whole fit of an estimator, from the pool of rows to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..model import Blend, Model, OutOfFold
from ..model.readouts import Readout, readouts
from .choosing import (
    Candidate,
    Choice,
    candidates,
    chosen,
    effective_rows,
    plain_score,
    variants,
    with_share,
)
from .finishing import finished, reading_of, rows_of
from .fits import CrossFit, Variant
from .folds import cross_fit
from .limits import refuse_far_rows
from .options import LearningOptions
from .pool import Pool
from .progress import ProgressLine
from .run import Run


@dataclass(frozen=True)
class Choices:
    """The parameters that determine which variants and readouts are candidates.

    Attributes
    ----------
    n_averaged, prune, start_share
        As in the estimators.
    readouts : list of Readout or None
        The readouts to choose from. None is for a model that only embeds.
    """

    n_averaged: int
    prune: int | Literal["auto"] | None
    start_share: float | str
    readouts: list[Readout] | None = None

    @property
    def size(self) -> int | None:
        """The number of variables, if ``prune`` is a number; None otherwise."""
        return self.prune if isinstance(self.prune, int) else None

    def variants(self, n_fits: int) -> list[Variant]:
        """The variants that ``prune`` and ``start_share`` allow."""
        tried = variants(n_fits if self.prune == "auto" else 1)
        if self.start_share != "auto":
            tried = with_share(tried, float(self.start_share))
        elif n_fits == 1 or self.size is not None:
            # With a single fit there are no rows out of fold by which a share can be chosen. With
            # a given number of variables, the plain distance would add all other columns.
            tried = with_share(tried, 0.0)
        return [replace(variant, size=self.size) for variant in tried]


@dataclass(frozen=True)
class Fit:
    """A model, with the fits and the gain on which the warnings depend."""

    model: Model | Blend
    crossfit: CrossFit
    gain: float

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The class labels."""
        return self.model.classes


def fit_model(
    pool: Pool,
    classes: npt.NDArray[Any],
    names: Sequence[str] | None,
    options: LearningOptions,
    choices: Choices,
    run: Run,
    n_rows: int,
) -> Fit:
    """Learn the metrics of the folds, choose a variant and a readout, and create the model.

    Parameters
    ----------
    pool : Pool
    classes : ndarray
    names : sequence of str or None
        The names of the columns of the input.
    options : LearningOptions
    choices : Choices
    run : Run
    n_rows : int
        The number of rows of the table that was given to ``fit``.
    """
    crossfit = _learned(pool, options, choices, run)
    refuse_far_rows(crossfit, options.max_degree, names)
    tried = choices.variants(len(crossfit.fits))
    starts_plain = isinstance(options.init, str) and options.init == "identity"
    if choices.readouts is None and len(tried) == 1:
        model = finished(crossfit, pool, tried[0], classes, names, choices.size, starts_plain)
        return Fit(model, crossfit, np.nan)
    found = _judged(crossfit, pool, tried, choices, run)
    choice = chosen(crossfit, found)
    best = choice.best
    models = [
        finished(crossfit, pool, one.variant, classes, names, choices.size, starts_plain)
        for one in choice.candidates
    ]
    if choices.readouts is None:
        return Fit(models[0], crossfit, best.gain)
    rows, plain, n = rows_of(pool, models), plain_score(crossfit, found), effective_rows(crossfit)
    readings = [reading_of(one, rows, plain, n) for one in choice.candidates]
    out_of_fold = _out_of_fold(crossfit, pool, choice, n_rows)
    readings[0] = replace(readings[0], out_of_fold=out_of_fold)
    made = [replace(one, reading=reading) for one, reading in zip(models, readings)]
    return Fit(made[0] if len(made) == 1 else Blend(tuple(made)), crossfit, best.gain)


def _out_of_fold(crossfit: CrossFit, pool: Pool, choice: Choice, n_rows: int) -> OutOfFold | None:
    """The predictions by the numbers of the rows in the table; None with a single fit."""
    if crossfit.one_fit:
        return None
    order = np.argsort(choice.rows)
    rows = choice.rows[order]
    return OutOfFold(n_rows, pool.numbers[rows], pool.labels[rows], choice.log_odds[order])


def _learned(pool: Pool, options: LearningOptions, choices: Choices, run: Run) -> CrossFit:
    line = ProgressLine(options.boosting.max_iter) if run.verbose else None
    with run.opened(pool) as opened:
        crossfit = cross_fit(pool, options, choices.n_averaged, opened, line.fold if line else None)
    if line is not None:
        line.close([fit.path for fit in crossfit.fits])
    return crossfit


def _judged(
    crossfit: CrossFit, pool: Pool, tried: list[Variant], choices: Choices, run: Run
) -> list[Candidate]:
    at_a_time = run.fits_at_a_time(pool, len(tried) * len(crossfit.folds))
    crossfit = replace(crossfit, engine=run.engine_for(at_a_time))
    some = choices.readouts
    if some is None:  # the metric is for distances
        some = [readout for readout in readouts("auto", None) if not readout.on_terms]
    return candidates(crossfit, tried, some, at_a_time)
