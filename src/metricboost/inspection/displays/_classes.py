"""The classes of rows, and how pictures show them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from ..._typing import Float, Index
from ...inputs import class_codes, refuse_missing_labels
from ._drawing import COLOURS, fitting
from ._given import model_in

#: Nine markers and ten colours: the pairs of marker and colour repeat after 90 classes.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "p")
#: Classes in one column of a legend.
LEGEND_ROWS = 18
#: The place of a legend beside three-dimensional axes, where it does not cover their numbers.
BESIDE_SOLID = {"loc": "center left", "bbox_to_anchor": (1.06, 0.5)}
#: Every class is drawn in this many parts, in turn, so that no class covers all others.
TURNS = 5


@dataclass(frozen=True)
class RowClasses:
    """The class of every row.

    Attributes
    ----------
    names : ndarray
        The classes, in the order of the model if they are classes of the model.
    codes : ndarray of int
        The number of every row's class.
    predicted : bool
        Whether the classes are predictions.
    """

    names: npt.NDArray[Any]
    codes: Index
    predicted: bool


def row_classes(estimator: Any, X: Any, y: Any, n_rows: int) -> RowClasses | None:
    """The classes in y. If y is None, the predicted classes, or None if there are no predictions.

    Parameters
    ----------
    estimator : object
        What a user gave to a display.
    X, y : array-like
    n_rows : int
        The number of rows of X.
    """
    if y is None:
        return _predicted(estimator, X, n_rows)
    refuse_missing_labels(y)
    labels = column_or_1d(y)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels, but X has {n_rows} rows: give one for each.")
    names = getattr(estimator, "classes_", None)
    # In the order of the model, a class has the same colour in pictures of different rows.
    if names is None or not set(labels.tolist()) <= set(names.tolist()):
        names = np.unique(labels)
    return RowClasses(names, class_codes(labels, names, n_rows), predicted=False)


def _predicted(estimator: Any, X: Any, n_rows: int) -> RowClasses | None:
    if not hasattr(estimator, "predict"):
        return None
    model = model_in(estimator)
    if model is not None and not model.best.has_rows:  # saved without its training rows
        return None
    names = estimator.classes_
    return RowClasses(names, class_codes(estimator.predict(X), names, n_rows), predicted=True)


def colour(code: int) -> str:
    """The colour of a class."""
    return COLOURS[code % len(COLOURS)]


def _marker(code: int) -> str:
    return MARKERS[code % len(MARKERS)]


def scatter(ax: Any, places: Float, rows: RowClasses | None, **options: Any) -> None:
    """Draw points in the colours and markers of their classes.

    Parameters
    ----------
    ax : matplotlib Axes
    places : ndarray of shape (n_samples, 2) or (n_samples, 3)
    rows : RowClasses or None
    **options
        To ``Axes.scatter``.
    """
    options = {**_size(len(places)), **options}
    if rows is None:
        ax.scatter(*places.T, **{"facecolors": "0.35", **options})
        return
    for turn in range(TURNS):
        part, codes = places[turn::TURNS], rows.codes[turn::TURNS]
        for code in np.unique(codes).tolist():
            look = {"facecolors": colour(code), "marker": _marker(code)}
            ax.scatter(*part[codes == code].T, **{**look, **options})


def _size(n_rows: int) -> dict[str, Any]:
    """Size and opacity of points. Many points are small and pale, to be seen behind each other."""
    size = float(np.clip(9000 / max(n_rows, 1), 12, 36))
    return {"s": size, "alpha": 0.8 if n_rows <= 1000 else 0.55, "linewidths": 0}


def legend_label(name: Any) -> str:
    """The name of a class in a legend."""
    text = fitting(name)
    # matplotlib leaves labels with a leading underscore out of legends.
    return f"\N{WORD JOINER}{text}" if text.startswith("_") else text


def legend(ax: Any, rows: RowClasses | None, **place: Any) -> None:
    """Draw the legend of the classes beside the picture, where it hides no points.

    Parameters
    ----------
    ax : matplotlib Axes
    rows : RowClasses or None
    **place
        To ``Axes.legend``.
    """
    if rows is None:
        return
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"linestyle": "", "markersize": 6, "markeredgewidth": 0}
    handles = [
        Line2D(
            [], [], color=colour(c), marker=_marker(c), label=legend_label(rows.names[c]), **look
        )
        for c in np.unique(rows.codes).tolist()
    ]
    given = {
        "loc": "center left", "bbox_to_anchor": (1.02, 0.5),
        "title": "predicted class" if rows.predicted else "class",
        "ncols": ceil(len(handles) / LEGEND_ROWS),
    }  # fmt: skip
    ax.legend(handles=handles, **given | place)
