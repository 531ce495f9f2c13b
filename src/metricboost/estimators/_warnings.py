"""One warning for each thing that was handled but that the user can change."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..boosting import LearningOptions
from ..boosting.draws import panel_size
from ..errors import GuessingWarning
from ..imputation import Imputation
from ..selection.choosing import TO_BEAT_GUESSING
from ..selection.crossfit import CrossFit
from ._validation import column_names, listed


def warn_about_fit(
    model: Any,
    crossfit: CrossFit,
    options: LearningOptions,
    imputation: Imputation | None,
    gain: float,
) -> None:
    """Called from ``fit``, so that the warnings point to the line that called it.

    ``gain`` is by how many standard errors the model is better than guessing.
    """
    names = column_names(model, model.n_features_in_)
    names = names if imputation is None else imputation.names(names)
    for message in (
        *_about_columns(crossfit, names),
        *_about_neighbors(model, crossfit, options),
        *_about_nonzeros(model, crossfit, options),
        *_about_steps(crossfit),
    ):
        # the frames of fit: itself, its two decorators, and this
        warnings.warn(message, UserWarning, stacklevel=5)
    if gain < TO_BEAT_GUESSING and any(fit.best_iter for fit in crossfit.fits):
        warnings.warn(guessing(gain), GuessingWarning, stacklevel=5)


def _about_columns(crossfit: CrossFit, names: list[str]) -> Iterator[str]:
    constant = sorted(set(range(len(names))) - set(crossfit.scaling.kept.tolist()))
    if constant:
        yield f"Constant column {listed([names[j] for j in constant])} is left out."


def _about_neighbors(model: Any, crossfit: CrossFit, options: LearningOptions) -> Iterator[str]:
    k, counts = options.boosting.n_neighbors, np.bincount(crossfit.labels)
    few = np.flatnonzero(counts <= k)
    if len(few):
        names = listed([str(model.classes_[c]) for c in few])
        yield (
            f"n_neighbors={k}, but class {names} has too few rows "
            f"({', '.join(str(counts[c]) for c in few[:5])}): fewer neighbours are used within it, "
            "and of it."
        )


def _about_nonzeros(model: Any, crossfit: CrossFit, options: LearningOptions) -> Iterator[str]:
    screening = crossfit.fits[0].screening
    n_candidates = len(crossfit.scaling.kept) + (len(screening.pairs) if screening else 0)
    panel = panel_size(options.boosting.max_features, n_candidates)
    kappa = options.boosting.n_nonzero
    if isinstance(kappa, int) and kappa > panel and _was_given(model, "n_nonzero"):
        yield f"n_nonzero={kappa}, but a step sees {panel} candidates: {panel} are used."


def _was_given(model: Any, name: str) -> bool:
    """Whether a parameter is not at its default."""
    return bool(getattr(model, name) != getattr(type(model)(), name))


def _about_steps(crossfit: CrossFit) -> Iterator[str]:
    fit = crossfit.fits[0]
    if fit.screening is not None and fit.screening.n_screened < len(fit.scaling.kept):
        yield (
            f"Pairs were screened among the {fit.screening.n_screened} columns that differ most, "
            "not all, to bound the work; set screen_pairs to a number to screen all of them."
        )
    if not any(fit.best_iter for fit in crossfit.fits):
        yield (
            "No step was accepted, so the metric is the one that the fit started from. "
            "No column or product separates the classes by more than noise in this number of "
            "rows. A lower oob_gate accepts weaker evidence."
        )


def guessing(gain: float) -> str:
    """What to say of a model that is no better than guessing."""
    return (
        "The model is no better than guessing: out of fold its Brier score is "
        f"{max(gain, 0.0):.1f} standard errors better than that of the class frequencies, and "
        f"{TO_BEAT_GUESSING:.0f} are needed. Its variables and terms are not evidence of anything."
    )
