"""The page of a report: the template, filled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from .._version import __version__
from ._rows import MOST_ROWS
from ._sections import data_section, learned, quality_section, variables_section
from ._stages import ROWS
from ._summary import Summary

#: The longest value of a parameter on the page, in letters.
LONGEST = 80
#: The values of the sections that are SVG.
CHARTS = ("roc_chart", "calibration_chart", "network")


def rendered(
    summary: Summary, title: str, parameters: Mapping[str, Any], problems: Sequence[tuple[str, str]]
) -> str:
    """The page as HTML.

    Parameters
    ----------
    summary : Summary
    title, parameters, problems
        As in ``make_report``.
    """
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError('The report needs jinja2: pip install "metricboost[report]".') from error

    template = Environment(autoescape=True, trim_blocks=True).from_string(_text("template.html"))
    classes = [str(label) for label in summary.model.classes.tolist()]
    data = {"classes": classes, "rows": summary.map, "stages": summary.stages}
    n_rows = 0 if summary.rows is None else len(summary.rows)
    sections = {
        **learned(summary),
        **quality_section(summary, classes),
        **variables_section(summary.explanation),
        **data_section(summary, classes, problems),
    }
    # Charts are markup already: the names in them are escaped where the charts are drawn.
    charts = {name: sections[name] and Markup(sections[name]) for name in CHARTS}
    return template.render(
        title=title, version=__version__, css=Markup(_text("style.css")),
        script=Markup(_text("script.js")), data=Markup(_embedded(data)), classes=classes,
        rows=summary.map, has_rows=summary.model.best.has_rows, stages=summary.stages,
        with_errors=bool(summary.stages) and summary.stages[0]["error"] is not None,
        staged_rows=min(n_rows, ROWS), left_out=max(0, n_rows - MOST_ROWS),
        parameters=[(name, _short(value)) for name, value in parameters.items()],
        **{**sections, **charts},
    )  # fmt: skip


def _text(name: str) -> str:
    return (files("metricboost.report") / name).read_text("utf-8")


def _embedded(data: Any) -> str:
    """JSON that cannot end its script element, whatever names are in it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
