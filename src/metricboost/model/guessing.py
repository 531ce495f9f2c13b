"""Whether a model is better than guessing with the frequencies of the classes."""

from __future__ import annotations

#: Standard errors by which a model must be better than guessing to count as better.
TO_BEAT_GUESSING = 2.0


def no_better_than_guessing(gain: float) -> bool:
    """Whether a gain out of fold, in standard errors, is too small; an unknown one (NaN) is not."""
    return gain < TO_BEAT_GUESSING


def guessing(gain: float) -> str:
    """What to say of a model that is no better than guessing."""
    return (
        "The model is no better than guessing: out of fold its Brier score is "
        f"{max(gain, 0.0):.1f} standard errors better than that of the class frequencies, and "
        f"{TO_BEAT_GUESSING:.0f} are needed. Its variables and terms are not evidence of anything."
    )
