"""The pictures of the documentation, drawn by the package's own displays into ``docs/_pictures``.

    python docs/pictures.py    # draws all of them anew

``conf.py`` draws those that are missing. SECOM's needs the table (``METRICBOOST_DATA``); where it
is not at hand a note stands in, and it is drawn once the table is there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

from metricboost import SDist, SDistClassifier, SparseMetric
from metricboost.datasets import fetch_secom, make_double_ring, make_xor
from metricboost.inspection import (
    EmbeddingDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
)

FOLDER = Path(__file__).parent / "_pictures"
DPI = 110
#: Lies beside the pictures where SECOM's are only notes.
WITHOUT_SECOM = FOLDER / "without-secom"


@cache
def xor_table() -> tuple[Any, Any]:
    """The class is the sign of the product of 2 of 500 columns."""
    return make_xor(1000, 500, informative=2, random_state=0)


@cache
def xor_model() -> SDistClassifier:
    X, y = xor_table()
    return SDistClassifier(random_state=0).fit(X[:500], y[:500])


@cache
def ring_table() -> tuple[Any, Any]:
    """The distance from the centre of a plane of 2 of 30 columns decides."""
    return make_double_ring(700, 30, informative=2, random_state=0)


@cache
def ring_model(prune: str | None = "auto") -> SDistClassifier:
    X, y = ring_table()
    return SDistClassifier(prune=prune, random_state=0).fit(X[:400], y[:400])


@cache
def wine() -> tuple[Any, Any]:
    """Three cultivars, 13 measurements."""
    bunch = load_wine(as_frame=True)
    return bunch.data, bunch.target_names[bunch.target]


@cache
def wine_model() -> SDistClassifier:
    X, y = wine()
    return SDistClassifier(start_share=0, random_state=0).fit(X, y)


def panels(width: float, height: float, n: int = 2, **options: Any) -> Any:
    return plt.subplots(1, n, figsize=(width, height), layout="constrained", **options)


def plain_metric(X: Any) -> SparseMetric:
    """The Euclidean distance on standardised columns."""
    n = X.shape[1]
    none, ones = np.zeros(n), np.ones(n)
    center, scale = X.mean(axis=0), X.std(axis=0)
    columns = [(j,) for j in range(n)]
    return SparseMetric(columns, np.zeros((0, n)), center, scale, none, ones, diagonal=ones)


def found() -> Any:
    """The surface over the two columns that were found, and what they weigh."""
    X, y = xor_table()
    figure, (left, right) = panels(9.6, 4.0, width_ratios=[1.35, 1])
    SurfaceDisplay.from_estimator(xor_model(), X[500:], y=y[500:], ax=left, s=14)
    ImportanceDisplay.from_estimator(xor_model(), ax=right)
    left.set_title("500 new rows over the two columns found", fontsize="medium")
    return figure


def neighbours() -> Any:
    """Rows under the plain distance, and under the learned one."""
    X, y = xor_table()
    figure, (left, right) = panels(9.6, 3.9)
    EmbeddingDisplay.from_estimator(plain_metric(X), X[500:], y[500:], ax=left)
    EmbeddingDisplay.from_estimator(xor_model(), X[500:], y[500:], ax=right)
    left.set_title("the plain distance on 500 columns", fontsize="medium")
    right.set_title("the learned distance (second direction stretched)", fontsize="medium")
    return figure


def first_steps() -> Any:
    """W after one step, and after all of one fit."""
    X, y = ring_table()
    figure, axes = panels(9.6, 4.3)
    for ax, steps in zip(axes, (1, 75)):
        one = SDist(max_iter=steps, n_averaged=1, random_state=0).fit(X[:400], y[:400])
        MetricMatrixDisplay.from_estimator(one, max_terms=6, ax=ax)
        words = "after one step" if steps == 1 else f"after {one.best_iter_} accepted steps"
        ax.set_title(f"{words}\n{ax.get_title()}", fontsize="medium")
    return figure


def path() -> Any:
    return PathDisplay.from_estimator(ring_model()).figure_


def pruning() -> Any:
    """Variables with their stability, before and after pruning."""
    figure, axes = panels(9.6, 4.0)
    for ax, prune in zip(axes, (None, "auto")):
        ImportanceDisplay.from_estimator(ring_model(prune), max_variables=12, ax=ax)
        ax.set_title(f"prune={prune!r}\n{ax.get_title()}", fontsize="medium", pad=26)
    return figure


def ring() -> Any:
    """The ring as probabilities, and as the paper draws it."""
    X, y = ring_table()
    figure = plt.figure(figsize=(10.4, 4.3), layout="constrained")
    flat = figure.add_subplot(1, 2, 1)
    solid = figure.add_subplot(1, 2, 2, projection="3d")
    display = SurfaceDisplay.from_estimator(ring_model(), X[400:], y=y[400:], ax=flat, s=14)
    display.plot(ax=solid, kind="surface")
    return figure


def wine_importance() -> Any:
    return ImportanceDisplay.from_estimator(wine_model()).figure_


def wine_interaction() -> Any:
    return InteractionDisplay.from_estimator(wine_model(), max_links=12).figure_


def wine_matrix() -> Any:
    return MetricMatrixDisplay.from_estimator(wine_model(), max_terms=14).figure_


def wine_embedding() -> Any:
    return EmbeddingDisplay.from_estimator(wine_model(), *wine()).figure_


def wine_surface() -> Any:
    X, y = wine()
    return SurfaceDisplay.from_estimator(wine_model(), X, y=y).figure_


def secom_importance() -> Any:
    """As in the tutorial, on the same rows."""
    from sklearn.model_selection import train_test_split

    X, y = fetch_secom(preprocessed=True, as_frame=True, return_X_y=True)
    X, _, y, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    model = SDistClassifier(class_weight="balanced", start_share=0, random_state=0).fit(X, y)
    return ImportanceDisplay.from_estimator(model, max_variables=12).figure_


def note() -> Any:
    figure = plt.figure(figsize=(7, 1.2))
    words = "The SECOM table was not at hand: set METRICBOOST_DATA and build again."
    figure.text(0.5, 0.5, words, ha="center", va="center")
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "found": found,
    "neighbours": neighbours,
    "first_steps": first_steps,
    "path": path,
    "pruning": pruning,
    "ring": ring,
    "wine_importance": wine_importance,
    "wine_interaction": wine_interaction,
    "wine_matrix": wine_matrix,
    "wine_embedding": wine_embedding,
    "wine_surface": wine_surface,
    "secom_importance": secom_importance,
}


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.png"


def make(name: str) -> None:
    """Draw a picture into its file."""
    if name == "secom_importance":
        WITHOUT_SECOM.unlink(missing_ok=True)
    try:
        figure = PICTURES[name]()
    except OSError:  # the table is not here and cannot be fetched
        if name != "secom_importance":
            raise
        figure = note()
        WITHOUT_SECOM.touch()
    figure.savefig(file_of(name), dpi=DPI)
    plt.close("all")


def make_missing() -> None:
    """Draw what is not there yet."""
    FOLDER.mkdir(exist_ok=True)
    stale = ["secom_importance"] if WITHOUT_SECOM.exists() else []
    for name in PICTURES:
        if name in stale or not file_of(name).exists():
            make(name)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in PICTURES:
        make(name)


if __name__ == "__main__":
    main()
