"""The tasks: functions that measure a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from metricboost._typing import Float, Index
from metricboost.datasets import make_xor
from metricboost.model import SparseMetric
from metricboost.training.learn import Learned

from ..measures import error_of_split
from ..results import Cell, Row
from ..rivals import K, nearest
from ..tables import Split, load
from .protocol import REFINED, PaperSDist, by_margin, metric_after

#: The points along each side of a surface.
SIDE = np.linspace(-2.2, 2.2, 17)
#: The redundant third coordinate of the tilted plane.
TILT = np.array([0.5, 0.3])


def measure(cell: Cell) -> Row:
    """Do the task of a cell."""
    return TASKS[cell.task](cell)


def generator(cell: Cell) -> Row:
    """3-NN with other deviations of the noise, and on the columns of the plane alone."""
    row: Row = {"noises": cell.settings["noises"], "errors": [], "standardised": []}
    for noise in row["noises"]:
        split = load(cell.table, cell.seed, noise=noise)
        for key, scaling in (("errors", "none"), ("standardised", "standard")):
            row[key].append(_error_of(nearest(scaling), split))
    split = load(cell.table, cell.seed)
    on_plane = partial(_error_of, split=split, columns=split.relevant)
    return row | {
        "error": on_plane(nearest("none")),
        "margin_error": on_plane(KNeighborsClassifier(REFINED["n_neighbors"])),
        "bayes_error": split.test_bayes_error,
    }


def _error_of(model: Any, split: Split, columns: Any = slice(None)) -> float:
    model.fit(split.X_train[:, columns], split.y_train)
    return float(np.mean(model.predict(split.X_test[:, columns]) != split.y_test))


def tilted_plane(cell: Cell) -> Row:
    """Figure 1: XOR on a plane in three dimensions, and the surface of L phi over x1 and x2."""
    plane, y = make_xor(200, 2, informative=2, random_state=cell.seed)
    X, grid = (np.column_stack([rows, rows @ TILT]) for rows in (plane, _grid()))
    learned = _one_path(cell, X, y)
    metric = metric_after(learned, len(learned.path))
    heights = _heights(metric, np.concatenate([grid, X]))
    return {
        "sides": np.round(SIDE, 3),
        "surface": heights[: len(grid)].reshape(len(SIDE), -1),
        "points": np.round(X, 3),
        "classes": y,
        "heights": heights[len(grid) :],
        "terms": [term.name for term in metric.terms],
        "importances": np.round(metric.importances(), 4),
    }


def surfaces(cell: Cell) -> Row:
    """Figure 2: the surface over the two informative columns at three steps of a path."""
    split = load(cell.table, cell.seed)
    learned = _one_path(cell, split.X_train, split.y_train)
    relevant, last = split.relevant, len(learned.path)
    grid = np.tile(split.X_train.mean(axis=0), (len(SIDE) ** 2, 1))
    grid[:, relevant] = _grid()
    row: Row = {"sides": np.round(SIDE, 3), "steps": [1, max(1, round(last / 2)), last]}
    for place, m in zip(("first", "middle", "last"), row["steps"]):
        metric = metric_after(learned, m)
        row[place] = _heights(metric, grid).reshape(len(SIDE), -1)
        row[f"{place}_terms"] = [term.name for term in metric.terms]
    shown = np.random.default_rng(0).permutation(len(split.y_train))[:200]
    row["points"] = np.round(split.X_train[shown][:, relevant], 3)
    row["classes"], row["relevant"] = split.y_train[shown], relevant
    return row


def _grid() -> Float:
    """All points of a square. The first coordinate changes more slowly."""
    return np.column_stack([side.ravel() for side in np.meshgrid(SIDE, SIDE, indexing="ij")])


def _one_path(cell: Cell, X: Float, y: Index) -> Learned:
    settings = dict(cell.settings)
    return PaperSDist(**settings).learned(X, y, settings["rhos"][0])


def _heights(metric: SparseMetric, rows: Float) -> Float:
    """The first principal component of L phi(x)."""
    embedding = metric.transform(rows)
    _, _, directions = np.linalg.svd(embedding - embedding.mean(axis=0), full_matrices=False)
    heights: Float = (embedding - embedding.mean(axis=0)) @ directions[0]
    sign = 1.0 if heights[np.abs(heights).argmax()] >= 0 else -1.0
    return np.round(sign * heights, 4)


def cross_validated(cell: Cell) -> Row:
    """Figures 4 and 5: training and validation errors of both classifiers in five folds."""
    settings = dict(cell.settings)
    split = load(cell.table, 0, settings.pop("rows", None))
    ks = settings.pop("ks", [K])
    X = np.concatenate([split.X_train, split.X_test])
    y = np.concatenate([split.y_train, split.y_test])
    folds = StratifiedKFold(5, shuffle=True, random_state=cell.seed)
    found = [
        _both_errors(PaperSDist(**settings), X[a], y[a], X[b], y[b], ks)
        for a, b in folds.split(X, y)
    ]
    means: Float = np.mean(found, axis=0)
    names = ("training, 3-NN", "training, margin", "validation, 3-NN", "validation, margin")
    return {"ks": ks, **{name: np.round(values, 5) for name, values in zip(names, means)}}


def _both_errors(
    model: PaperSDist, X: Float, y: Index, X_held: Float, y_held: Index, ks: list[int]
) -> Float:
    """Errors of both classifiers on training rows, each left out, and on other rows."""
    model.fit(X, y)
    inside, outside = model.metric_.transform(X), model.metric_.transform(X_held)
    errors = np.empty((4, len(ks)))
    for column, k in enumerate(ks):
        near = KNeighborsClassifier(k).fit(inside, y)
        left_out = y[near.kneighbors(return_distance=False)]
        errors[0, column] = np.mean((left_out.mean(axis=1) > 0.5) != y)
        errors[1, column] = np.mean(by_margin(inside, y, None, k) != y)
        errors[2, column] = np.mean(near.predict(outside) != y_held)
        errors[3, column] = np.mean(by_margin(inside, y, outside, k) != y_held)
    return errors


def path(cell: Cell) -> Row:
    """Figure 6: loss, complexity and errors at the refreshed steps of a path."""
    settings = dict(cell.settings)
    split = load(cell.table, cell.seed, settings.pop("rows", None))
    learned = PaperSDist(**settings).learned(split.X_train, split.y_train, settings["rhos"][0])
    row: Row = {name: [] for name in ("step", "loss", "complexity", "training", "test", "margin")}
    for m in learned.path.comparable():
        metric = metric_after(learned, m)
        inside, outside = metric.transform(split.X_train), metric.transform(split.X_test)
        near = KNeighborsClassifier(K).fit(inside, split.y_train)
        left_out = split.y_train[near.kneighbors(return_distance=False)].mean(axis=1) > 0.5
        margin = by_margin(inside, split.y_train, outside, K)
        row["step"].append(m)
        row["loss"].append(round(learned.path.steps[m - 1].loss / len(split.y_train), 5))
        row["complexity"].append(round(learned.path.factor(m).complexity(), 5))
        row["training"].append(float(np.mean(left_out != split.y_train)))
        row["test"].append(float(np.mean(near.predict(outside) != split.y_test)))
        row["margin"].append(float(np.mean(margin != split.y_test)))
    return row


TASKS: dict[str, Callable[[Cell], dict[str, Any]]] = {
    "test error": error_of_split,
    "generator": generator,
    "tilted plane": tilted_plane,
    "surfaces": surfaces,
    "cross-validated": cross_validated,
    "path": path,
}
