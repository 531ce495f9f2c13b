"""Rows in their classes: which they are, and how they are told apart in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from ..._typing import Float, Index
from ...inputs import refuse_missing_labels
from ...model import Model
from ._drawing import COLOURS, fitting

#: One less than colours: the pairs of colour and marker repeat after 90 classes only.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "p")
#: Classes in one column of a legend.
LEGEND_ROWS = 18
#: Where a legend stands clear of the numbers of three-dimensional axes.
BESIDE_SOLID = {"loc": "center left", "bbox_to_anchor": (1.06, 0.5)}
#: Rows are drawn in so many turns, so that no class covers all others.
TURNS = 5


@dataclass(frozen=True)
class RowClasses:
    """The class of every row.

    Attributes
    ----------
    names : ndarray
        The classes, in the model's order where they are the model's.
    codes : ndarray of int
        The number of every row's class.
    predicted : bool
        Whether they are predictions.
    """

    names: npt.NDArray[Any]
    codes: Index
    predicted: bool


def row_classes(model: Any, X: Any, y: Any, n_rows: int) -> RowClasses | None:
    """The classes in y or, where it is None, predicted ones; None where there are neither."""
    if y is None:
        return _predicted(model, X)
    refuse_missing_labels(y)
    labels = column_or_1d(y)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels, but X has {n_rows} rows: give one for each.")
    names = getattr(model, "classes_", None)
    # The model's own order, so that a class has the same colour whichever rows are drawn.
    if names is None or not set(labels.tolist()) <= set(names.tolist()):
        names = np.unique(labels)
    return RowClasses(names, _codes(names, labels), predicted=False)


def _predicted(model: Any, X: Any) -> RowClasses | None:
    if not hasattr(model, "predict"):
        return None
    fitted = getattr(model, "model_", None)
    best = None if fitted is None else fitted.best
    if isinstance(best, Model) and not best.has_rows:  # saved without its training rows
        return None
    return RowClasses(model.classes_, _codes(model.classes_, model.predict(X)), predicted=True)


def _codes(names: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Index:
    number = {name: i for i, name in enumerate(names.tolist())}
    return np.array([number[label] for label in labels.tolist()], dtype=np.intp)


def colour(code: int) -> str:
    return COLOURS[code % len(COLOURS)]


def _marker(code: int) -> str:
    return MARKERS[code % len(MARKERS)]


def scatter(ax: Any, places: Float, rows: RowClasses | None, **options: Any) -> None:
    """Points in the colours and markers of their classes."""
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
    """Smaller and paler points where there are many, so that they do not hide each other."""
    size = float(np.clip(9000 / max(n_rows, 1), 12, 36))
    return {"s": size, "alpha": 0.8 if n_rows <= 1000 else 0.55, "linewidths": 0}


def legend_label(name: Any) -> str:
    """The name of a class, as legends show it."""
    text = fitting(name)
    # matplotlib leaves labels with a leading underscore out of legends.
    return f"\N{WORD JOINER}{text}" if text.startswith("_") else text


def legend(ax: Any, rows: RowClasses | None, **place: Any) -> None:
    """The classes beside the picture, where they hide no points."""
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
