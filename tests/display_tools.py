"""What the tests of the displays share: tables, and how to read what was drawn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection
from sklearn.datasets import load_wine

from metricboost import SparseMetric
from metricboost.datasets import make_xor
from metricboost.inspection import (
    EmbeddingDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
)

OF_MODEL = [PathDisplay, ImportanceDisplay, InteractionDisplay, MetricMatrixDisplay]
OF_METRIC = [ImportanceDisplay, InteractionDisplay, MetricMatrixDisplay]
ALL = [*OF_MODEL, EmbeddingDisplay, SurfaceDisplay]
SMALL = {"max_iter": 25, "n_averaged": 2, "random_state": 0}
NAMES = ["age", "income", "height", "weight", "rate", "_score", "cost in $ or $$", "x" * 60]


def named_xor():
    """Two classes, and an interaction of the first two of eight named columns."""
    X, y, info = make_xor(200, 8, informative=2, return_info=True, random_state=0)
    order = [*info.informative, *(j for j in range(8) if j not in info.informative)]
    return pd.DataFrame(X[:, order], columns=NAMES), np.array(["no", "yes"])[y]


def named_wine():
    """Three classes."""
    data = load_wine(as_frame=True)
    return data.data, data.target_names[data.target]


@contextmanager
def figures_closed() -> Iterator[None]:
    """Close all figures at the end."""
    try:
        yield
    finally:
        plt.close("all")


def render_all() -> None:
    """Draw all figures. A warning of matplotlib, such as for a missing letter, is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()


def metric_of_columns(n_columns, **changes):
    """A metric on single columns, each with weight 1."""
    zeros, ones = np.zeros(n_columns), np.ones(n_columns)
    columns = [(j,) for j in range(n_columns)]
    arguments = {"components": np.empty((0, n_columns)), "diagonal": ones, **changes}
    factor = arguments.pop("components")
    return SparseMetric(columns, factor, zeros, ones, zeros, ones, **arguments)


def drawn(display, model, X=None, y=None, **options):
    """Any display of a model, with the rows if it shows rows."""
    if display is EmbeddingDisplay:
        return display.from_estimator(model, X, y, **options)
    if display is SurfaceDisplay:
        return display.from_estimator(model, X, y, grid_resolution=8, **options)
    return display.from_estimator(model, **options)


def points(ax):
    """All points of the scatter plots of axes, and their colours."""
    parts = [part for part in ax.collections if isinstance(part, PathCollection)]
    places = np.vstack([part.get_offsets() for part in parts])
    colours = np.vstack([np.repeat(p.get_facecolor(), len(p.get_offsets()), 0) for p in parts])
    return places, colours


def sorted_rows(rows):
    return rows[np.lexsort(np.asarray(rows).T)]


def legend_texts(ax):
    return [text.get_text().lstrip("\N{WORD JOINER}") for text in ax.get_legend().get_texts()]
