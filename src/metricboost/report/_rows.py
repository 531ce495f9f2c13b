"""The rows on the page: their places on the map, and the reasons for their predictions.

The numbers go into the page as short binary columns, so that a page with 20,000 rows stays small.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..inspection import decomposed
from ..model import Model
from ._classified import ClassifiedRows

#: The most rows of a page.
MOST_ROWS = 20_000
#: Number of terms that are named as reasons for a row, and of variables whose values are shown.
REASONS = 5
SHOWN_VARIABLES = 8
#: The map shows one direction if the second one has a smaller share of the variance than this.
FLAT = 1e-6
#: Product of the numbers of terms and rows that are computed at a time.
BLOCK_SIZE = 2**22
#: Product of the numbers of terms and explained rows. Further rows are shown without reasons.
MOST_WORK = 3 * 10**8


@dataclass(frozen=True, eq=False)
class Projection:
    """The leading directions of the training rows' embedding.

    Attributes
    ----------
    center : ndarray of shape (rank,)
    basis : ndarray of shape (rank, n_dimensions)
    shares : ndarray of shape (n_dimensions,)
        The shares of the variance.
    """

    center: Float
    basis: Float
    shares: Float

    @classmethod
    def of(cls, embedding: Float, n_dimensions: int = 2) -> Projection:
        center = embedding.mean(axis=0)
        _, size, directions = np.linalg.svd(embedding - center, full_matrices=False)
        basis = np.zeros((embedding.shape[1], n_dimensions))
        kept = min(n_dimensions, len(size))
        basis[:, :kept] = directions[:kept].T
        # The sign of a direction is arbitrary: make its largest entry positive.
        largest = np.abs(basis).argmax(axis=0)
        basis *= np.where(basis[largest, range(n_dimensions)] < 0, -1, 1)
        total = float((size**2).sum()) or 1.0
        shares = np.zeros(n_dimensions)
        shares[:kept] = size[:kept] ** 2 / total
        return cls(center, basis, shares)

    def __call__(self, embedding: Float) -> Float:
        result: Float = (embedding - self.center) @ self.basis
        return result


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why rows are classified as they are.

    The reasons for a row are the terms whose contributions to its squared distances to two training
    rows differ most. These are the nearest training row of the predicted class and the nearest one
    of the second most probable class. Over all terms, the differences sum to the difference of the
    two squared distances.

    Attributes
    ----------
    against : ndarray of int of shape (n_explained,)
        The number of the second most probable class.
    near : ndarray of int of shape (n_explained, 2)
        The numbers of the two training rows.
    distances : ndarray of shape (n_explained, 2)
        The squared distances to them.
    terms : ndarray of int of shape (n_explained, n_reasons)
        The terms with the largest differences.
    amounts : ndarray of shape (n_explained, n_reasons)
        The differences.
    """

    against: Index
    near: Index
    distances: Float
    terms: Index
    amounts: Float


def rows_of_page(model: Model, rows: ClassifiedRows) -> dict[str, Any]:
    """Points, classes, values and reasons of the first MOST_ROWS rows, packed for the page.

    Parameters
    ----------
    model : Model
        With its training rows.
    rows : ClassifiedRows
    """
    rows = rows.first(MOST_ROWS)
    projection = Projection.of(model.training.rows)
    points = projection(rows.embedding)
    flat = projection.shares[1] < FLAT
    if flat:
        points[:, 1] = _spread(points[:, 0])
    variables = _heaviest(model)
    probability = rows.probabilities[np.arange(len(rows)), rows.predicted]
    labels = rows.predicted if rows.labels is None else rows.labels
    return {
        "n": len(rows),
        "labelled": rows.labels is not None,
        "numbers": packed(rows.numbers, "int32"),
        "last": int(rows.numbers[-1]),
        "points": packed(_as_integers(points), "uint16"),
        "labels": packed(labels, "uint16"),
        "predicted": packed(rows.predicted, "uint16"),
        "probability": packed(np.rint(255 * probability), "uint8"),
        "flat": bool(flat),
        "shares": projection.shares.round(3).tolist(),
        "variables": [model.metric.feature_names[j] for j in variables],
        "values": packed(rows.X[:, variables], "float32"),
        **_packed_reasons(model, _reasons(model, rows)),
    }


def _heaviest(model: Model) -> list[int]:
    """The columns with the largest shares of the metric."""
    importance = model.metric.importances()
    order = np.argsort(-importance, kind="stable")[:SHOWN_VARIABLES]
    return [int(j) for j in order if importance[j] > 0]


def _spread(places: Float) -> Float:
    """Heights for marks that lie on a line, so that the marks do not hide each other.

    Multiples of the golden ratio modulo 1 are evenly spread, and close rows get distant heights.
    """
    golden = (np.sqrt(5) - 1) / 2
    result: Float = 0.3 * np.ptp(places) * ((golden * np.arange(len(places))) % 1)
    return result


def _as_integers(points: Float) -> npt.NDArray[np.uint16]:
    """Points on a grid of 65536 x 65536 with the same scale in both directions."""
    low = points.min(axis=0)
    width = float((points - low).max()) or 1.0
    result: npt.NDArray[np.uint16] = np.rint((points - low) / width * 65535).astype(np.uint16)
    return result


def _reasons(model: Model, rows: ClassifiedRows) -> Reasons:
    """The reasons for the first rows, as many as MOST_WORK allows."""
    n_terms = len(model.metric.columns)
    rows = rows.first(MOST_WORK // max(n_terms, 1))
    against = _second_class(rows.probabilities, rows.predicted)
    own, other = (rows.nearest[np.arange(len(rows)), c] for c in (rows.predicted, against))
    terms = np.zeros((len(rows), min(REASONS, n_terms)), dtype=np.intp)
    amounts, distances = np.zeros(terms.shape), np.zeros((len(rows), 2))
    step = max(1, BLOCK_SIZE // max(n_terms, 1))
    for start in range(0, len(rows), step):
        block = slice(start, min(start + step, len(rows)))
        near, far = _contributions(model, rows.X[block], own[block], other[block])
        distances[block] = np.stack([near.sum(axis=1), far.sum(axis=1)], axis=1)
        difference = far - near
        order = np.argsort(-np.abs(difference), axis=1, kind="stable")[:, : terms.shape[1]]
        terms[block] = order
        amounts[block] = np.take_along_axis(difference, order, axis=1)
    numbers = model.rows.numbers[np.stack([own, other], axis=1)]
    return Reasons(against, numbers, distances, terms, amounts)


def _contributions(model: Model, X: Float, own: Index, other: Index) -> tuple[Float, Float]:
    """The contributions of the terms to the squared distances between rows and training rows."""
    metric, inside, values = model.metric, model.inside, model.rows.values
    features = metric.term_features(X)
    near = decomposed(metric, features - inside.term_features(values[own]))
    far = decomposed(metric, features - inside.term_features(values[other]))
    return near, far


def _second_class(probabilities: Float, predicted: Index) -> Index:
    """The number of the most probable class apart from the predicted one."""
    others = probabilities.copy()
    others[np.arange(len(others)), predicted] = -1.0
    result: Index = others.argmax(axis=1)
    return result


def _packed_reasons(model: Model, reasons: Reasons) -> dict[str, Any]:
    names = [term.name for term in model.metric.terms]
    return {
        "explained": len(reasons.against),
        "terms": names,
        "against": packed(reasons.against, "uint16"),
        "near": packed(reasons.near, "int32"),
        "distances": packed(reasons.distances, "float32"),
        "reasons": packed(reasons.terms, "uint16" if len(names) < 2**16 else "int32"),
        "amounts": packed(reasons.amounts, "float32"),
        "n_reasons": reasons.terms.shape[1],
    }


def packed(array: npt.ArrayLike, dtype: str) -> dict[str, str]:
    """A column as the page reads it: little-endian bytes, in base64.

    Parameters
    ----------
    array : array-like
    dtype : {"uint8", "uint16", "int32", "float32"}
        The type of the numbers in the page.
    """
    values = np.ascontiguousarray(np.asarray(array), dtype=np.dtype(dtype).newbyteorder("<"))
    return {"type": dtype, "data": base64.b64encode(values.tobytes()).decode()}
