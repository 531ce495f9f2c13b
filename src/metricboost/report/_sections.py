"""The content of the sections of a page: the numbers of a summary in words and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._intervals import interval
from ..inspection import ModelExplanation
from ..model import Reading
from ..model.guessing import guessing, no_better_than_guessing
from ._charts import calibration_chart, network_chart, roc_chart
from ._classified import ClassifiedRows
from ._summary import Summary

#: The most variables and terms of a page, and the most links of its network.
MOST_SHOWN = 25
MOST_LINKS = 24
#: The given rows count as training rows if a larger share of them than this are training rows.
SEEN = 0.5
#: A class is reported as rare if it has less than this share of the mean size of the classes.
RARE = 0.2


def learned(summary: Summary) -> dict[str, Any]:
    """The section "What was learned"."""
    return {"lead": _lead(summary), "figures": _figures(summary), "remarks": _remarks(summary)}


def _lead(summary: Summary) -> str:
    gain = summary.model.best.the_reading.gain
    found = _found(summary.explanation, summary.model.best.metric.n_features)
    return f"{guessing(gain)} {found}" if no_better_than_guessing(gain) else found


def _found(explanation: ModelExplanation, n_features: int) -> str:
    share = explanation.start_share
    if share == 1:
        return (
            "Nothing stood out from the noise: the distance is the plain distance, in which all "
            f"{n_features} standardised columns have the same weight."
        )
    variables = "variable" if n_features == 1 else "variables"
    text = f"The distance uses {len(explanation.variables)} of {n_features} {variables}. "
    heaviest = explanation.terms[0]
    if len(explanation.terms) == 1:
        text += f"Its only term is {heaviest.name}."
    else:
        text += (
            f"The heaviest term is {heaviest.name}, with {heaviest.share:.0%} of the weight. All "
            f"interactions together have {explanation.shares['interaction']:.0%} of the weight."
        )
    if share:
        text += (
            f" The plain distance on all columns has a share of {share:.0%}, because many columns "
            "matter a little."
        )
    return text


def _figures(summary: Summary) -> list[tuple[str, str, str]]:
    """Names, values and explanations of the most important numbers."""
    reading, found = summary.model.best.the_reading, []
    if summary.quality is not None:
        low, high = summary.quality.interval
        note = f"95% interval {_range(low, high)}"
        found.append(("Error on these rows", _percent(summary.quality.error), note))
    note = (
        f"{_interval_of(reading, reading.score)}training rows; the metric and the readout that "
        "classified a row were learned and chosen without the row"
    )
    found.append(("Out-of-fold error", _percent(1 - reading.score), note))
    if math.isfinite(reading.plain_score):
        note = "out-of-fold error if all standardised columns have the same weight"
        found.append(("Plain nearest neighbours", _percent(1 - reading.plain_score), note))
    used, n_terms = len(summary.explanation.variables), len(summary.explanation.terms)
    note = f"in {n_terms} term{'' if n_terms == 1 else 's'}"
    found.append(("Variables used", f"{used} of {summary.model.best.metric.n_features}", note))
    return found


def _remarks(summary: Summary) -> list[str]:
    found = []
    if summary.seen > SEEN:
        found.append(
            f"{summary.seen:.0%} of these rows are training rows of the model, so the errors on "
            "them are too optimistic. Use the out-of-fold error, or report on new rows."
        )
    if len(summary.model.best.history.fits) == 1:
        found.append(
            "The metric was learned by a single fit on all rows (n_averaged=1), so its out-of-fold "
            "error is too optimistic."
        )
    elif summary.out_of_fold is None and summary.model.best.has_rows:
        found.append(
            "The model is the best of a search, so its out-of-fold error is somewhat too "
            "optimistic."
        )
    if not summary.model.best.has_rows:
        found.append(
            "The model was saved without its training rows, so it cannot classify rows here."
        )
    return found


def _interval_of(reading: Reading, score: float) -> str:
    low, high = reading.interval_of(score)
    return f"95% interval {_range(1 - high, 1 - low)}; " if math.isfinite(low) else ""


def _range(low: float, high: float) -> str:
    return f"{_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def quality_section(summary: Summary, classes: Sequence[str]) -> dict[str, Any]:
    """The section "How good it is".

    Parameters
    ----------
    summary : Summary
    classes : sequence of str
        The names of the classes.
    """
    quality, rows = summary.quality, "these {} rows"
    if quality is None or (summary.seen > SEEN and summary.out_of_fold is not None):
        quality, rows = summary.out_of_fold, "{} training rows, by predictions out of fold"
    return {
        "comparison": _comparison(summary, classes),
        "quality": quality,
        "quality_rows": quality and rows.format(quality.n),
        "roc_chart": roc_chart(quality.roc, classes) if quality and quality.roc else None,
        "calibration_chart": calibration_chart(quality.calibration) if quality else None,
    }


def _comparison(summary: Summary, classes: Sequence[str]) -> list[dict[str, Any]]:
    """The lines of the table of errors."""
    best, lines = summary.model.best, []
    common, n = int(best.class_count.argmax()), int(best.class_count.sum())
    always = f"always “{classes[common]}”"
    if summary.quality is not None and summary.rows is not None:
        assert summary.rows.labels is not None
        n_rows = summary.quality.n
        given = f"these {n_rows} rows"
        missed = int((summary.rows.labels != common).sum())
        lines.append(_line("metricboost", given, summary.quality.errors, n_rows, own=True))
        lines.append(_line(always, given, missed, n_rows))
    reading = best.the_reading
    lines.append(_line_out_of_fold("metricboost", reading, reading.score, n, own=True))
    if math.isfinite(reading.plain_score):
        plain = "plain nearest neighbours, all columns"
        lines.append(_line_out_of_fold(plain, reading, reading.plain_score, n))
    missed = n - int(best.class_count[common])
    lines.append(_line(always, f"{n} training rows", missed, n))
    return lines


def _line(model: str, rows: str, errors: int, n: int, own: bool = False) -> dict[str, Any]:
    low, high = interval(errors, n)
    return {
        "model": model, "rows": rows, "error": _percent(errors / n),
        "interval": _range(low, high), "own": own,
    }  # fmt: skip


def _line_out_of_fold(
    model: str, reading: Reading, score: float, n: int, own: bool = False
) -> dict[str, Any]:
    low, high = reading.interval_of(score)
    return {
        "model": model, "rows": f"{n} training rows, out of fold", "error": _percent(1 - score),
        "interval": _range(1 - high, 1 - low) if math.isfinite(low) else "", "own": own,
    }  # fmt: skip


def variables_section(explanation: ModelExplanation) -> dict[str, Any]:
    """The section "Variables and interactions"."""
    kinds = (
        ("variable", "single variables"), ("power", "their powers"),
        ("interaction", "interactions"), ("missing", "indicators of missing values"),
    )  # fmt: skip
    shares = ", ".join(
        f"{name} {explanation.shares[kind]:.0%}"
        for kind, name in kinds
        if explanation.shares[kind] > 0
    )
    shown, links = explanation.variables[:MOST_SHOWN], explanation.links[:MOST_LINKS]
    return {
        "kinds": f"Shares of the metric's weight: {shares}.",
        "variables": shown,
        "largest": max((variable.share for variable in shown), default=1.0),
        "more_variables": len(explanation.variables) - len(shown),
        "terms": explanation.terms[:MOST_SHOWN],
        "more_terms": max(0, len(explanation.terms) - MOST_SHOWN),
        "network": network_chart(links, explanation.variables) if links else None,
        "more_links": len(explanation.links) - len(links),
    }


def data_section(
    summary: Summary, classes: Sequence[str], problems: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """The section "The data".

    Parameters
    ----------
    summary : Summary
    classes : sequence of str
        The names of the classes.
    problems : sequence of (str, str)
        As in ``make_report``.
    """
    rows, counts = summary.rows, None
    if rows is not None and rows.labels is not None:
        counts = np.bincount(rows.labels, minlength=len(classes)).tolist()
    of_classes = _rare_class(summary, classes)
    of_rows = [] if rows is None else _problems_of_rows(rows)
    return {
        "class_count": summary.model.best.class_count.tolist(),
        "counts": counts,
        "problems": [*problems, *of_classes, *of_rows],
    }


def _rare_class(summary: Summary, classes: Sequence[str]) -> list[tuple[str, str]]:
    counts = summary.model.best.class_count
    rare, n = int(counts.argmin()), int(counts.sum())
    if counts[rare] >= RARE * n / len(counts):
        return []
    message = (
        f"“{classes[rare]}” has {counts[rare]} of {n} rows. If it is important to find this class, "
        'fit with class_weight="balanced" and look at the balanced accuracy.'
    )
    return [("Classes:", message)]


def _problems_of_rows(rows: ClassifiedRows) -> list[tuple[str, str]]:
    found = []
    missing = float(np.isnan(rows.X).mean())
    if missing > 0:
        message = f"{missing:.1%} of the values of these rows are missing. Medians replace them."
        found.append(("Missing values:", message))
    repeated = len(rows) - len({row.tobytes() for row in rows.X})
    if repeated:
        found.append(("Rows:", f"{repeated} of these rows repeat another row."))
    return found
