"""The comparison of a model with guessing, that is, with predicting the class frequencies."""

from __future__ import annotations

#: A model is better than guessing if its gain is at least this number of standard errors.
TO_BEAT_GUESSING = 2.0


def no_better_than_guessing(gain: float) -> bool:
    """Whether a gain out of fold, in standard errors, is too small. For NaN the result is False."""
    return gain < TO_BEAT_GUESSING


def guessing(gain: float) -> str:
    """The message about a model that is no better than guessing."""
    return (
        "The model is no better than guessing: out of fold its Brier score is "
        f"{max(gain, 0.0):.1f} standard errors better than that of the class frequencies, and "
        f"{TO_BEAT_GUESSING:.0f} are needed. Do not interpret its variables and terms."
    )
