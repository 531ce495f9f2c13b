"""Warnings of ``fit``, one for each problem that the user can solve."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..boosting.draws import panel_size
from ..errors import GuessingWarning
from ..inputs import listed
from ..model.guessing import guessing, no_better_than_guessing
from ..training.fits import CrossFit
from ..training.options import LearningOptions
from ..training.pool import Pool


class Fitted(Protocol):
    """The results of a fit on which the warnings depend."""

    @property
    def classes(self) -> npt.NDArray[Any]: ...

    @property
    def crossfit(self) -> CrossFit: ...

    @property
    def gain(self) -> float: ...


def warn_about_fit(
    fit: Fitted, pool: Pool, options: LearningOptions, names: list[str], nonzero_given: bool
) -> None:
    """Issue the warnings of a fit.

    The function must be called from ``fit`` itself, so that the warnings point to the line of the
    user that calls ``fit``.

    Parameters
    ----------
    fit : Fitted
    pool : Pool
    options : LearningOptions
    names : list of str
        The names of the columns of the input.
    nonzero_given : bool
        Whether the value of the parameter ``n_nonzero`` differs from its default.
    """
    crossfit = fit.crossfit
    names = names if pool.imputation is None else pool.imputation.names(names)
    for message in (
        *_about_columns(crossfit, names),
        *_about_neighbors(fit.classes, crossfit, options),
        *(_about_nonzeros(crossfit, options) if nonzero_given else ()),
        *_about_steps(crossfit),
    ):
        # Five frames: this function, ``fit``, its two decorators, and the caller of ``fit``.
        warnings.warn(message, UserWarning, stacklevel=5)
    if no_better_than_guessing(fit.gain) and any(one.best_iter for one in crossfit.fits):
        warnings.warn(guessing(fit.gain), GuessingWarning, stacklevel=5)


def _about_columns(crossfit: CrossFit, names: Sequence[str]) -> Iterator[str]:
    constant = sorted(set(range(len(names))) - set(crossfit.scaling.kept.tolist()))
    if constant:
        yield (
            f"Constant column {listed([names[j] for j in constant])} is left out, because a "
            "constant column has no influence on distances."
        )


def _about_neighbors(
    classes: npt.NDArray[Any], crossfit: CrossFit, options: LearningOptions
) -> Iterator[str]:
    k, counts = options.boosting.n_neighbors, np.bincount(crossfit.labels)
    few = np.flatnonzero(counts <= k)
    if len(few):
        names = listed([str(classes[c]) for c in few])
        yield (
            f"n_neighbors={k}, but class {names} has too few rows "
            f"({', '.join(str(counts[c]) for c in few[:5])}): a row has fewer neighbours in this "
            f"class. Set n_neighbors to at most {counts.min() - 1} for the same number of "
            "neighbours in every class."
        )


def _about_nonzeros(crossfit: CrossFit, options: LearningOptions) -> Iterator[str]:
    screening = crossfit.fits[0].screening
    n_candidates = len(crossfit.scaling.kept) + (len(screening.pairs) if screening else 0)
    panel = panel_size(options.boosting.max_features, n_candidates)
    kappa = options.boosting.n_nonzero
    if isinstance(kappa, int) and kappa > panel:
        yield (
            f"n_nonzero={kappa} is larger than the panel of {panel} candidates from which a step "
            f"chooses: {panel} is used. Reduce n_nonzero, or increase max_features."
        )


def _about_steps(crossfit: CrossFit) -> Iterator[str]:
    fit = crossfit.fits[0]
    if fit.screening is not None and fit.screening.n_screened < len(fit.scaling.kept):
        yield (
            f"The table is large, so only pairs of the {fit.screening.n_screened} columns that "
            f"differ most between the classes were screened, out of {len(fit.scaling.kept)} "
            "columns. Set screen_pairs to a number to screen the pairs of all columns."
        )
    if not any(one.best_iter for one in crossfit.fits):
        yield (
            "No step was accepted, so the metric is the start metric. No column and no product of "
            "columns separates the classes more than is to be expected from noise with this number "
            "of rows. A lower oob_gate accepts weaker evidence."
        )
