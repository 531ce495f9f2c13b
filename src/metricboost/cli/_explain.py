"""``metricboost explain``: the model, or given rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..inspection import ModelExplanation, RowExplanation
from ._console import Voice, WrongUsageError
from ._fit import _stability
from ._models import read_data, read_model

#: Lines of a table.
SHOWN = 15
REASONS = 6


def run_explain(
    voice: Voice, model_path: Path, data: Path | None, rows: tuple[int, ...], neighbors: int
) -> None:
    model = read_model(model_path)
    if data is None:
        if rows:
            raise WrongUsageError("--row needs --data: rows of which table?")
        explanation = model.explain()
        voice.result(_model_content(explanation))
        _say_model(voice, explanation)
        return
    frame = read_data(voice, data)
    chosen = rows or tuple(range(min(len(frame), 1)))
    wrong = [row for row in chosen if not 0 <= row < len(frame)]
    if wrong:
        raise WrongUsageError(f"--row {wrong[0]}: {data} has rows 0 to {len(frame) - 1}.")
    with voice.hearing_warnings(), voice.working("explaining"):
        table = model.encoded(frame)  # all rows: a column is judged as in predictions
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
    voice.say(f"Where the weight of the metric lies: {kinds}")
    if explanation.start_share:
        voice.say(f"of it, {explanation.start_share:.0%} in the plain distance on all columns")
    voice.say()
    terms = explanation.terms
    voice.table(
        ["term", "kind", "share", "stability"],
        [[t.name, t.kind, f"{t.share:.1%}", _stability(t.stability)] for t in terms[:SHOWN]],
    )
    _say_more(voice, len(terms))
    variables = explanation.variables
    voice.table(
        ["variable", "share", "alone", "in interactions", "stability"],
        [
            [
                v.name,
                f"{v.share:.1%}",
                f"{v.alone:.1%}",
                f"{v.together:.1%}",
                _stability(v.stability),
            ]
            for v in variables[:SHOWN]
        ],
    )
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
    voice.table(
        ["term", "puts the other class farther away by"],
        [[term, f"{amount:+.4g}"] for term, amount in reasons[:REASONS]],
    )
    voice.say("Terms add up to the difference of the mean squared distances; they may be negative.")
    voice.say()
    for change in explanation.changes[:3]:
        voice.say(
            f"It would be {change.label!r} with {change.variable} = {change.new_value:.4g} in "
            f"place of {_value(change.value)} ({change.deviations:+.1f} deviations)."
        )
    if not explanation.changes:
        voice.say("No change of a single variable would change that.")
    if explanation.way is not None:
        voice.say(f"{explanation.way:.0%} of the way to its nearest row of another class would.")
    voice.say()
