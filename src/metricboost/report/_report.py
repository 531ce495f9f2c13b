"""``make_report``: from a model and rows to a page.

``_summary.py`` computes all numbers, ``_sections.py`` turns them into the content of the sections,
and ``_page.py`` fills the template.
"""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._files import replacing
from .._threads import one_blas_thread
from .._typing import Data, Index
from ..engines import Engine
from ..model import Blend, Model
from ._page import rendered
from ._summary import summarised

TITLE = "What the model has learned"


class Report:
    """A page about a model; ``model.report(X, y)`` and :func:`make_report` make one.

    Parameters
    ----------
    html : str
        The page: one self-contained file that fetches nothing.

    Attributes
    ----------
    html : str
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path
            A file of that name is replaced when the new one is complete.
        """
        with replacing(path) as unfinished:
            unfinished.write_text(self.html, encoding="utf-8")

    def open(self) -> str:
        """Show the page in a browser.

        Returns
        -------
        str
            The path of the temporary file that the browser shows.
        """
        path = Path(tempfile.mkdtemp()) / "report.html"
        self.save(path)
        webbrowser.open(path.as_uri())
        return str(path)

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:800px;border:0"></iframe>'


def make_report(
    model: Model | Blend,
    X: Data | None = None,
    y: Any = None,
    *,
    title: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    problems: Sequence[tuple[str, str]] = (),
    numbers: Index | None = None,
    engine: Engine | None = None,
) -> Report:
    """A page about a model and how well it classifies some rows.

    Parameters
    ----------
    model : Model or Blend
        ``model_`` of a fitted classifier. Of a blend, the page explains the best model, and the
        predictions are those of the blend.
    X : ndarray or sparse matrix of shape (n_samples, n_features), optional
        Rows to show. Best are rows that the model has not seen. They are checked rows: finite
        numbers, with NaN only if the metric has an imputation. A user calls ``report(X, y)`` of
        the classifier, which checks them.
    y : array-like of shape (n_samples,), optional
        The class of every row, one of ``model.classes``.
    title : str, optional
    parameters : mapping, optional
        Names and values of parameters of the fit, to show at the end of the page.
    problems : sequence of (str, str), optional
        What a reader should know about the data: pairs of the name of a column and what was found
        in the column.
    numbers : ndarray of int of shape (n_samples,), optional
        The numbers that the page gives to the rows, in increasing order; 0, 1, ... by default.
    engine : Engine, optional
        Computes the neighbours. By default the fastest engine that is installed.

    Returns
    -------
    Report

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> from metricboost.report import make_report
    >>> X, y = make_xor(n_samples=600, n_features=20, informative=2, random_state=0)
    >>> model = SDistClassifier(random_state=0).fit(X[:300], y[:300])
    >>> report = make_report(model.model_, X[300:], y[300:], title="XOR")
    >>> report.html.startswith("<!doctype html>")
    True
    """
    if not isinstance(model, Model | Blend):
        raise TypeError(
            f"model is a {type(model).__name__}, but must be a metricboost.model.Model or Blend: "
            "give model_ of a fitted classifier."
        )
    with one_blas_thread():  # the products are small, so several threads would mostly wait
        summary = summarised(model, X, y, numbers, engine)
        page = rendered(summary, title or TITLE, dict(parameters or {}), problems)
    return Report(page)
