"""Validation of the weights of rows and classes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from .._typing import Data, Float, Index

#: Weights smaller than about this share of the largest weight are set to zero.
LEAST_WEIGHT = 1e-100


def check_weights(
    sample_weight: Any, class_weight: Any, X: Data, y: npt.NDArray[Any]
) -> tuple[Index, Float]:
    """The numbers of the rows whose weight is not 0, and the weights of these rows.

    The weight of a row is multiplied by the weight of its class. The returned weights have a mean
    of 1.
    """
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weight = _near_one(weight)
    rows = _with_weight(weight)
    if class_weight is not None:
        refuse_impossible(class_weight)
        weight[rows] *= _near_one(compute_sample_weight(class_weight, y[rows]))
        rows = _with_weight(weight)
    return rows, weight[rows] * (len(rows) / weight[rows].sum())


def _near_one(weight: Float) -> Float:
    """Divide the weights by a power of two, so that sums do not overflow, and drop tiny weights."""
    largest = weight.max(initial=0.0)
    if not largest > 0:
        return weight.copy()
    scaled = np.ldexp(weight, -int(np.frexp(largest)[1]))
    scaled[scaled < LEAST_WEIGHT] = 0.0
    result: Float = scaled
    return result


def _with_weight(weight: Float) -> Index:
    rows = np.flatnonzero(weight > 0)
    if not len(rows):
        raise ValueError(
            "All sample weights are zero, so there is no row to learn from: pass a positive "
            "sample_weight for some rows of every class."
        )
    return rows


def refuse_impossible(class_weight: Any) -> None:
    """Raise an error if the weight of a class is negative or not finite."""
    if isinstance(class_weight, dict):
        for label, value in class_weight.items():
            if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
                raise ValueError(
                    f"class_weight gives class {label} the weight {value}, but a weight must be a "
                    "finite number that is not negative."
                )
