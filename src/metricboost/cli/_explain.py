"""``metricboost explain``: what a model has learned, or why rows are classified as they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..inspection import ModelExplanation, RowExplanation
from ..model.guessing import guessing, no_better_than_guessing
from ._console import Voice, WrongUsageError, stability_text
from ._models import read_data, read_model

#: The most terms and variables that are printed.
SHOWN = 15
#: The most terms that are printed as reasons for a row.
REASONS = 6
#: The most changes that are printed for a row.
CHANGES = 3


def run_explain(
    voice: Voice, model_path: Path, data: Path | None, rows: tuple[int, ...], neighbors: int
) -> None:
    """Explain a model or, with a table, rows.

    Parameters
    ----------
    voice : Voice
    model_path : Path
    data : Path or None
        The file of the table.
    rows : tuple of int
        The numbers of the rows to explain; the first row if empty.
    neighbors : int
        The number of neighbours of each class.
    """
    model = read_model(model_path)
    if data is None:
        if rows:
            raise WrongUsageError("--row needs --data: give the table that has the row.")
        explanation = model.explain()
        voice.result(_model_content(explanation))
        gain = model.model_.model_.best.the_reading.gain
        if no_better_than_guessing(gain):
            voice.say(guessing(gain))
            voice.say()
        _say_model(voice, explanation)
        return
    frame = read_data(voice, data)
    chosen = rows or tuple(range(min(len(frame), 1)))
    wrong = [row for row in chosen if not 0 <= row < len(frame)]
    if wrong:
        raise WrongUsageError(f"--row {wrong[0]}: {data} has the rows 0 to {len(frame) - 1}.")
    with voice.hearing_warnings(), voice.working("explaining"):
        table = model.encoded(frame)  # all rows, so that columns are read as in predictions
        explained = model.model_.explain(table.iloc[list(chosen)], neighbors)
    voice.result({"rows": [_row_content(row, one) for row, one in zip(chosen, explained)]})
    for row, one in zip(chosen, explained):
        _say_row(voice, row, one)


def _model_content(explanation: ModelExplanation) -> dict[str, Any]:
    return {
        "terms": [vars(term) for term in explanation.terms],
        "variables": [vars(variable) for variable in explanation.variables],
        "links": [vars(link) for link in explanation.links],
        "shares": explanation.shares,
        "start_share": explanation.start_share,
    }


def _say_model(voice: Voice, explanation: ModelExplanation) -> None:
    kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in explanation.shares.items() if share)
    voice.say(f"Weight of the metric by kind of term: {kinds}.")
    if explanation.start_share:
        voice.say(f"The plain distance on all columns has {explanation.start_share:.0%} of it.")
    voice.say()
    terms = explanation.terms
    voice.table(
        ["term", "kind", "share", "stability"],
        [[t.name, t.kind, f"{t.share:.1%}", stability_text(t.stability)] for t in terms[:SHOWN]],
    )
    _say_more(voice, len(terms))
    variables = explanation.variables
    voice.table(
        ["variable", "share", "alone", "in interactions", "stability"],
        [
            [v.name, f"{v.share:.1%}", f"{v.alone:.1%}", f"{v.together:.1%}",
             stability_text(v.stability)]
            for v in variables[:SHOWN]
        ],
    )  # fmt: skip
    _say_more(voice, len(variables))


def _say_more(voice: Voice, n: int) -> None:
    voice.say(f"and {n - SHOWN} more" if n > SHOWN else "")


def _row_content(row: int, explanation: RowExplanation) -> dict[str, Any]:
    return {
        "row": row,
        "prediction": explanation.label,
        "probabilities": {str(c): p for c, p in explanation.probabilities.items()},
        "neighbors": [
            {"row": n.row, "label": n.label, "squared_distance": n.squared_distance,
             "contributions": dict(zip(explanation.terms, n.contributions.tolist()))}
            for n in explanation.neighbors
        ],
        "reasons": [{"term": term, "amount": amount} for term, amount in explanation.reasons()],
        "changes": [{**vars(c), "value": _known(c.value)} for c in explanation.changes],
        "way": explanation.way,
    }  # fmt: skip


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _value(value: float) -> str:
    return "a missing value" if math.isnan(value) else f"{value:.4g}"


def _say_row(voice: Voice, row: int, explanation: RowExplanation) -> None:
    label, probabilities = explanation.label, explanation.probabilities
    voice.say(f"Row {row} is classified as {label!r}, with probability {probabilities[label]:.0%}.")
    voice.say()
    voice.table(
        ["nearest training rows", "class", "squared distance"],
        [[str(n.row), str(n.label), f"{n.squared_distance:.4g}"] for n in explanation.neighbors],
    )
    voice.say()
    reasons = sorted(explanation.reasons(), key=lambda reason: -abs(reason[1]))
    others = [name for name in probabilities if name != label]
    other = max(others, key=lambda name: probabilities[name])
    voice.table(
        ["term", f"squared distance to {other!r} minus that to {label!r}"],
        [[term, f"{amount:+.4g}"] for term, amount in reasons[:REASONS]],
    )
    voice.say("The amounts of all terms sum to the difference of the mean squared distances.")
    voice.say()
    _say_changes(voice, explanation)
    voice.say()


def _say_changes(voice: Voice, explanation: RowExplanation) -> None:
    for change in explanation.changes[:CHANGES]:
        voice.say(
            f"The prediction would be {change.label!r} with {change.variable} = "
            f"{change.new_value:.4g} instead of {_value(change.value)} "
            f"({change.deviations:+.1f} standard deviations)."
        )
    if not explanation.changes:
        voice.say("No change of a single variable changes the prediction.")
    if explanation.way is not None:
        voice.say(
            f"The prediction changes if the row moves {explanation.way:.0%} of the way to a near "
            "training row of another class."
        )
