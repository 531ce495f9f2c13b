"""The rows of a report: where they lie under the metric, and why each is classified as it is.

All of it goes into the page as short binary columns, so that 20,000 rows stay small.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..inspection import decomposed

#: Rows in a page.
MOST_ROWS = 20_000
#: Terms that are named as reasons for a row, and variables whose values are shown.
REASONS = 5
SHOWN_VARIABLES = 8
#: A second direction with less of the variance is none.
FLAT = 1e-6
#: Terms times rows at a time.
BLOCK_SIZE = 2**22
#: Terms times rows, all together: more rows are shown, but not explained.
MOST_WORK = 3 * 10**8


@dataclass(frozen=True)
class Projection:
    """The leading directions of the training rows' embedding."""

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
        # The sign is arbitrary: the largest entry is positive.
        largest = np.abs(basis).argmax(axis=0)
        basis *= np.where(basis[largest, range(n_dimensions)] < 0, -1, 1)
        total = float((size**2).sum()) or 1.0
        shares = np.zeros(n_dimensions)
        shares[:kept] = size[:kept] ** 2 / total
        return cls(center, basis, shares)

    def __call__(self, embedding: Float) -> Float:
        result: Float = (embedding - self.center) @ self.basis
        return result


def rows_data(
    model: Any, X: Float, embedding: Float, labels: Index, probabilities: Float, predicted: Index
) -> dict[str, Any]:
    """The points, classes and reasons of rows, packed for the page."""
    training = model._readout.training
    projection = Projection.of(training.rows)
    points = projection(embedding)
    flat = projection.shares[1] < FLAT
    if flat:
        points[:, 1] = _spread(points[:, 0])
    variables = _heaviest(model)
    data = {
        "n": len(X),
        "points": packed(_as_integers(points), "uint16"),
        "labels": packed(labels, "uint16"),
        "predicted": packed(predicted, "uint16"),
        "probability": packed(np.rint(255 * probabilities[np.arange(len(X)), predicted]), "uint8"),
        "flat": bool(flat),
        "shares": projection.shares.round(3).tolist(),
        "variables": [model.metric_.feature_names[j] for j in variables],
        "values": packed(X[:, variables], "float32"),
    }
    return {**data, **_reasons(model, X, embedding, predicted, probabilities)}


def _heaviest(model: Any) -> list[int]:
    importance = model.metric_.importances()
    order = np.argsort(-importance, kind="stable")[:SHOWN_VARIABLES]
    return [int(j) for j in order if importance[j] > 0]


def _spread(places: Float) -> Float:
    """Heights for marks on a line, which would hide each other: even, and in no order."""
    golden = (np.sqrt(5) - 1) / 2
    result: Float = 0.3 * np.ptp(places) * ((golden * np.arange(len(places))) % 1)
    return result


def _as_integers(points: Float) -> npt.NDArray[np.uint16]:
    """Places on a grid of 65536 x 65536 with the same scale in both directions."""
    low = points.min(axis=0)
    width = float((points - low).max()) or 1.0
    return np.rint((points - low) / width * 65535).astype(np.uint16)


def _reasons(
    model: Any, X: Float, embedding: Float, predicted: Index, probabilities: Float
) -> dict[str, Any]:
    """For every row its nearest training rows of the predicted and of the next class, and why.

    The reasons are the terms whose contributions to the two squared distances differ most; they
    add up, over all terms, to the difference of the squared distances.
    """
    metric = model.metric_
    n_terms = max(len(metric.columns), 1)
    explained = min(len(X), MOST_WORK // n_terms)
    against = _next_class(probabilities, predicted)[:explained]
    own = _nearest_of(model, embedding[:explained], predicted[:explained])
    other = _nearest_of(model, embedding[:explained], against)
    inside, table = metric.without_imputation(), model._crossfit.X
    n_reasons = min(REASONS, len(metric.columns))
    terms = np.zeros((explained, n_reasons), dtype=np.int64)
    amounts = np.zeros((explained, n_reasons))
    distances = np.zeros((explained, 2))
    step = max(1, BLOCK_SIZE // n_terms)
    for start in range(0, explained, step):
        block = slice(start, min(start + step, explained))
        features = metric.term_features(X[block])
        near = decomposed(metric, features - inside.term_features(table[own[block]]))
        far = decomposed(metric, features - inside.term_features(table[other[block]]))
        distances[block] = np.stack([near.sum(axis=1), far.sum(axis=1)], axis=1)
        difference = far - near
        order = np.argsort(-np.abs(difference), axis=1, kind="stable")[:, :n_reasons]
        terms[block] = order
        amounts[block] = np.take_along_axis(difference, order, axis=1)
    return {
        "explained": explained,
        "terms": [metric.name(term) for term in metric.columns],
        "against": packed(against, "uint16"),
        "near": packed(model._training_rows[np.stack([own, other], axis=1)], "int32"),
        "distances": packed(distances, "float32"),
        "reasons": packed(terms, "uint16" if n_terms < 2**16 else "int32"),
        "amounts": packed(amounts, "float32"),
        "n_reasons": n_reasons,
    }  # fmt: skip


def _next_class(probabilities: Float, predicted: Index) -> Index:
    """The most probable class but the predicted one."""
    others = probabilities.copy()
    others[np.arange(len(others)), predicted] = -1.0
    result: Index = others.argmax(axis=1)
    return result


def _nearest_of(model: Any, embedding: Float, classes: Index) -> Index:
    """The nearest training row of a class for every row."""
    training = model._readout.training
    found = np.zeros(len(embedding), dtype=np.intp)
    for c in np.unique(classes):
        members, own = training.members(int(c)), np.flatnonzero(classes == c)
        rows, _ = model._engine().nearest(embedding[own], training.rows[members], 1)
        found[own] = members[rows[:, 0]]
    return found


def packed(array: npt.ArrayLike, dtype: str) -> dict[str, str]:
    """A column as the page reads it: little-endian bytes, in base64."""
    values = np.ascontiguousarray(np.asarray(array), dtype=np.dtype(dtype).newbyteorder("<"))
    return {"type": dtype, "data": base64.b64encode(values.tobytes()).decode()}
