"""From a model and rows to a page: numbers first (``Summary``), then the template, then it."""

from __future__ import annotations

import html
import json
import math
import os
import tempfile
import webbrowser
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from .._blocks import dense
from .._files import replacing
from .._threads import one_blas_thread
from .._typing import Float, Index
from ..inputs import check_table
from ..inspection import ModelExplanation, explain_model
from ..model.guessing import TO_BEAT_GUESSING, guessing
from ._charts import calibration_chart, network_chart, roc_chart
from ._quality import interval, quality
from ._rows import MOST_ROWS, packed, rows_data
from ._stages import ROWS, stages

#: Variables, terms and links of a page.
MOST_SHOWN = 25
MOST_LINKS = 24
#: Where more of the rows than this lie on a training row, they are training rows.
SEEN = 0.5


class Report:
    """A page about a model; made by ``model.report(X, y)`` and :func:`make_report`.

    Attributes
    ----------
    html : str
        The page: one self-contained file that fetches nothing.
    """

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; a file in the way is replaced, at once or not at all."""
        with replacing(path) as unfinished:
            unfinished.write_text(self.html, encoding="utf-8")

    def open(self) -> str:
        """Show the page in a browser; its place is returned."""
        path = Path(tempfile.mkdtemp()) / "report.html"
        self.save(path)
        webbrowser.open(path.as_uri())
        return str(path)

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:0"></iframe>'


def make_report(model: Any, X: Any = None, y: Any = None, title: str | None = None) -> Report:
    """A page about a model and how it does on some rows.

    Parameters
    ----------
    model : SDistClassifier, SDistClassifierCV or TableClassifier
        Fitted.
    X : array-like or DataFrame, optional
        Rows to show, best rows that the model has not seen. For a TableClassifier, a DataFrame,
        with the target column where it is known.
    y : array-like, optional
        Their classes (not for a TableClassifier).
    title : str, optional

    Returns
    -------
    Report

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=600, n_features=20, informative=2, random_state=0)
    >>> model = SDistClassifier(random_state=0).fit(X[:300], y[:300])
    >>> report = model.report(X[300:], y[300:])
    >>> report.html.startswith("<!doctype html>")
    True
    """
    problems: list[Any] = []
    numbers = None
    if isinstance(model, TableClassifier):
        problems = model.problems_
        X, y, numbers = _of_table(model, X)
        model = model.model_
    with one_blas_thread():  # many small products: threads would only wait
        summary = Summary(model, X, y, problems, numbers)
        page = _rendered(summary, title or "What the model has learned")
    return Report(page)


def _of_table(model: TableClassifier, frame: Any) -> tuple[Any, Any, Index | None]:
    """Rows, their classes where the target is there, and their places in the table."""
    if frame is None:
        return None, None, None
    frame = as_frame(frame)
    rows = model.encoded(frame)  # all of them: a column is judged as in predictions
    if model.target_ not in frame.columns:
        return rows, None, None
    places, y = model.scored(frame)
    return (rows.iloc[places], y, places) if len(places) else (rows, None, None)


class Summary:
    """All numbers of a report."""

    def __init__(
        self, model: Any, X: Any, y: Any, problems: list[Any], numbers: Index | None = None
    ) -> None:
        self.model = model
        self.best = getattr(model, "best_estimator_", model)
        self.problems = problems
        self.numbers = numbers
        self.has_rows = self.best._crossfit.X.shape[0] > 0
        self.X: Float | None = None
        self.labels: Index | None = None
        if X is not None and self.has_rows:
            self._classify(X)
            if y is not None:
                self.labels = _codes(y, model.classes_)
                if len(self.labels) != len(self.X):
                    raise ValueError(f"X has {len(self.X)} rows, but y has {len(self.labels)}.")

    def _classify(self, X: Any) -> None:
        self.X = dense(check_table(self.best, X, reset=False, missing=self.best.missing))
        if not len(self.X):
            raise ValueError("X has no rows to report on.")
        self.embedding = self.best._embedded(X)
        log_odds = self.model._log_odds(X)  # once: a search for neighbours is behind it
        self.probabilities = softmax(log_odds, axis=1)
        self.predicted = _codes(self.best._labels(log_odds), self.model.classes_)

    @cached_property
    def explanation(self) -> ModelExplanation:
        return explain_model(self.model)

    @cached_property
    def quality(self) -> dict[str, Any] | None:
        if self.labels is None:
            return None
        return quality(self.labels, self.probabilities, self.predicted)

    @cached_property
    def seen(self) -> float:
        """The share of the rows that lie on a training row."""
        if self.X is None:
            return 0.0
        distances, _ = self.best.kneighbors(self.X_named, 1)
        return float(np.mean(distances[:, 0] == 0))

    @property
    def X_named(self) -> Any:
        """The rows as the model takes them, with names where it has them."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return self.X
        import pandas as pd

        return pd.DataFrame(self.X, columns=names)

    def rows(self) -> dict[str, Any] | None:
        if self.X is None:
            return None
        some = slice(MOST_ROWS)
        labels = self.predicted if self.labels is None else self.labels
        data = rows_data(
            self.best, self.X[some], self.embedding[some], labels[some],
            self.probabilities[some], self.predicted[some],
        )  # fmt: skip
        numbers = np.arange(len(self.X)) if self.numbers is None else self.numbers
        return {
            **data,
            "labelled": self.labels is not None,
            "numbers": packed(numbers[some], "int32"),
            "last": int(numbers[some][-1]),
        }

    def stages(self) -> list[dict[str, Any]]:
        if not self.has_rows:
            return []
        if self.X is None or self.labels is None:
            return stages(self.best, np.empty((0, self.best.n_features_in_)), np.empty(0))
        return stages(self.best, self.X, self.model.classes_[self.labels])


def _codes(y: Any, classes: npt.NDArray[Any]) -> Index:
    y = np.asarray(y)
    codes = np.searchsorted(classes, y)
    strange = (codes >= len(classes)) | (classes[np.minimum(codes, len(classes) - 1)] != y)
    if strange.any():
        raise ValueError(
            f"y has the class {y[strange].tolist()[0]!r}, which the model does not know."
        )
    return codes


def _rendered(summary: Summary, title: str) -> str:
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError('The report needs jinja2: pip install "metricboost[report]".') from error

    here = files("metricboost.report")
    read = {
        name: (here / name).read_text("utf-8")
        for name in ("template.html", "style.css", "script.js")
    }
    rows, staged = summary.rows(), summary.stages()
    classes = [str(label) for label in summary.model.classes_.tolist()]
    data = {"classes": classes, "rows": rows, "stages": staged}
    template = Environment(autoescape=True, trim_blocks=True).from_string(read["template.html"])
    return template.render(
        title=title, css=Markup(read["style.css"]), script=Markup(read["script.js"]),
        data=Markup(_embedded_json(data)), classes=classes, rows=rows, stages=staged,
        has_rows=summary.has_rows, with_errors=bool(staged) and staged[0]["error"] is not None,
        staged_rows=0 if summary.X is None else min(len(summary.X), ROWS),
        left_out=0 if summary.X is None else max(0, len(summary.X) - MOST_ROWS),
        **_learned(summary), **_good(summary, classes), **_variables(summary), **_data(summary),
    )  # fmt: skip


def _embedded_json(data: Any) -> str:
    """JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _learned(summary: Summary) -> dict[str, Any]:
    from .. import __version__

    return {
        "version": __version__,
        "lead": _lead(summary),
        "figures": _figures(summary),
        "remarks": _remarks(summary),
    }


def _lead(summary: Summary) -> str:
    if summary.best.oob_gain_ < TO_BEAT_GUESSING:
        return f"{guessing(summary.best.oob_gain_)} {_found(summary)}"
    return _found(summary)


def _found(summary: Summary) -> str:
    explanation, n = summary.explanation, summary.model.n_features_in_
    if explanation.start_share == 1:
        return (
            f"Nothing stood out from the noise: the distance is the plain one on all {n} columns, "
            "every column counting alike."
        )
    used = len(explanation.variables)
    heaviest = explanation.terms[0]
    together = explanation.shares["interaction"]
    text = f"The distance looks at {used} of {n} variable{'s' if n > 1 else ''}. "
    if len(explanation.terms) == 1:
        text += f"Its only term is {heaviest.name}."
    else:
        text += (
            f"The heaviest term is {heaviest.name}, with {heaviest.share:.0%} of the weight; "
            f"interactions have {together:.0%} together."
        )
    if explanation.start_share:
        share = explanation.start_share
        text += (
            f" The plain distance on all columns has a share of {share:.0%}: many matter a little."
        )
    return text


def _figures(summary: Summary) -> list[tuple[str, str, str]]:
    found = []
    if summary.quality is not None:
        low, high = summary.quality["interval"]
        found.append(("Errors on these rows", _percent(summary.quality["error"]),
                      f"95% interval {_percent(low)} to {_percent(high)}"))  # fmt: skip
    found.append(("Errors out of fold", _percent(1 - summary.best.oob_score_),
                  "training rows, each classified by a metric and with a readout that were learned "
                  "and chosen without it"))  # fmt: skip
    plain = summary.best._plain_score
    if math.isfinite(plain):
        found.append(("Plain nearest neighbours", _percent(1 - plain),
                      "errors out of fold if all standardised columns count alike"))  # fmt: skip
    used, n = len(summary.explanation.variables), summary.model.n_features_in_
    found.append(("Variables used", f"{used} of {n}",
                  _counted(len(summary.explanation.terms), "term")))  # fmt: skip
    return found


def _remarks(summary: Summary) -> list[str]:
    found = []
    if summary.seen > SEEN:
        found.append(
            f"{summary.seen:.0%} of these rows are training rows of the model, so the errors on "
            "them are too optimistic. Use the figure out of fold, or report on new rows."
        )
    if summary.best.n_averaged == 1:
        found.append(
            "The metric was learned once from all rows (n_averaged=1), so its score out of fold is "
            "too optimistic."
        )
    elif hasattr(summary.model, "best_estimator_"):
        found.append(
            "The model is the best of a search, so its score out of fold is somewhat optimistic."
        )
    if not summary.has_rows:
        found.append(
            "The model was saved without its training rows, so it classifies no rows here."
        )
    return found


def _counted(n: int, what: str) -> str:
    return f"in {n} {what}{'' if n == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _good(summary: Summary, classes: list[str]) -> dict[str, Any]:
    found = summary.quality
    return {
        "comparison": _comparison(summary, classes),
        "quality": found,
        "roc": _markup(roc_chart(found["roc"], classes)) if found and found["roc"] else None,
        "calibration": _markup(calibration_chart(found["calibration"])) if found else None,
    }


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # names are escaped where the chart is drawn


def _comparison(summary: Summary, classes: list[str]) -> list[dict[str, Any]]:
    lines = []
    counts = summary.model.class_count_
    common, n = int(counts.argmax()), int(counts.sum())
    if summary.quality is not None and summary.labels is not None:
        n_rows, errors = summary.quality["n"], summary.quality["errors"]
        on = f"these {n_rows} rows"
        lines.append(_line("metricboost", on, errors, n_rows, own=True))
        missed = int((summary.labels != common).sum())
        lines.append(_line(f"always “{classes[common]}”", on, missed, n_rows))
    on = f"{n} training rows"
    out_of_fold = round((1 - summary.best.oob_score_) * n)
    lines.append(_line("metricboost", f"{on}, out of fold", out_of_fold, n, own=True))
    plain = summary.best._plain_score
    if math.isfinite(plain):
        lines.append(
            _line("plain nearest neighbours, all columns", f"{on}, out of fold",
                  round((1 - plain) * n), n)
        )  # fmt: skip
    lines.append(_line(f"always “{classes[common]}”", on, n - int(counts[common]), n))
    return lines


def _line(who: str, on: str, errors: int, n: int, own: bool = False) -> dict[str, Any]:
    low, high = interval(errors, n)
    said = f"{_percent(low)} to {_percent(high)}"
    return {"who": who, "on": on, "error": _percent(errors / n), "interval": said, "own": own}


def _variables(summary: Summary) -> dict[str, Any]:
    explanation = summary.explanation
    shares = ", ".join(
        f"{name} {explanation.shares[kind]:.0%}"
        for kind, name in (
            ("variable", "single variables"), ("power", "their powers"),
            ("interaction", "interactions"), ("missing", "whether values are missing"),
        )
        if explanation.shares[kind] > 0
    )  # fmt: skip
    shown = explanation.variables[:MOST_SHOWN]
    links = explanation.links
    return {
        "kinds": f"Where the weight of the metric lies: {shares}.",
        "variables": shown,
        "largest": max((variable.share for variable in shown), default=1.0),
        "more_variables": len(explanation.variables) - len(shown),
        "terms": explanation.terms[:MOST_SHOWN],
        "more_terms": max(0, len(explanation.terms) - MOST_SHOWN),
        "network": (
            _markup(network_chart(links, explanation.variables, MOST_LINKS)) if links else None
        ),
        "more_links": max(0, len(links) - MOST_LINKS),
    }


def _data(summary: Summary) -> dict[str, Any]:
    model, labels = summary.model, summary.labels
    counts = None if labels is None else np.bincount(labels, minlength=len(model.classes_)).tolist()
    parameters = summary.best.get_params(deep=False)
    return {
        "class_count": model.class_count_.tolist(),
        "counts": counts,
        "problems": [*summary.problems, *_row_problems(summary)],
        "parameters": [(name, _shown(value)) for name, value in parameters.items()],
    }


def _row_problems(summary: Summary) -> list[dict[str, str]]:
    """What the numbers themselves say about the table."""
    found = []
    counts = summary.model.class_count_
    rare = int(counts.argmin())
    if counts[rare] < 0.1 * counts.sum() / len(counts) * 2:
        found.append({"column": "Classes:", "message": (
            f"“{summary.model.classes_[rare]}” has {counts[rare]} of {counts.sum()} rows. Where "
            "finding it matters, fit with class_weight=\"balanced\" and look at the balanced "
            "accuracy.")})  # fmt: skip
    if summary.X is not None:
        missing = float(np.isnan(summary.X).mean())
        if missing > 0:
            filled = f"{missing:.1%} of the entries of these rows were filled with medians."
            found.append({"column": "Missing values:", "message": filled})
        twice = len(summary.X) - len({row.tobytes() for row in summary.X})
        if twice:
            found.append(
                {"column": "Rows:", "message": f"{twice} of these rows occur more than once."}
            )
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
