"""Validation of labels, the classes of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._typing import Index
from .names import listed


def check_labels(estimator: Any, y: Any) -> npt.NDArray[Any]:
    """Validate labels on their own, if the table is not in memory."""
    labels: npt.NDArray[Any] = column_or_1d(present_labels(estimator, y), warn=True)
    check_classification_targets(labels)
    return labels


def present_labels(estimator: Any, y: Any) -> Any:
    """Check that every row has a label.

    Labels that are numbers or booleans in an array of Python objects get their natural type.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "the estimator learns from class labels. Pass them as y."
        )
    refuse_missing_labels(y)
    return natural_labels(y)


def refuse_missing_labels(y: Any) -> None:
    """Raise an error if a label is NaN, None or infinite."""
    labels = np.asarray(y)
    missing = labels.dtype.kind == "f" and not np.isfinite(labels).all()
    if labels.dtype.kind == "O":
        missing = any(is_missing(label) for label in labels.ravel())
    if missing:
        raise ValueError(
            "Input y contains NaN, None or infinity, but every row needs a label. Drop the rows "
            "without a label."
        )


def natural_labels(y: Any) -> Any:
    """Convert an array of Python objects that are numbers or booleans to the natural type."""
    if getattr(getattr(y, "dtype", None), "kind", None) != "O":
        return y
    natural = np.array(np.asarray(y).tolist())
    return natural if natural.dtype.kind in "biuf" and natural.ndim == 1 else y


def is_missing(label: Any) -> bool:
    """Whether a value is None, NaN or pandas.NA."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def check_classes(
    estimator: Any, y: npt.NDArray[Any], remark: str = ""
) -> tuple[npt.NDArray[Any], Index]:
    """The classes, and the class number of each row. Every class must have at least two rows.

    ``remark`` is added to the description of the rows in error messages.
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    name = type(estimator).__name__
    if len(classes) == 1:
        raise ValueError(
            f"{name} needs at least two classes, but y has only one class, {classes[0]}{remark}. "
            "Check that y is the right column, and that the split keeps rows of every class."
        )
    if counts.min() < 2:
        rare = classes[np.argmin(counts)]
        raise ValueError(
            f"Class {rare} has 1 sample{remark}. A row is never its own neighbour, so every class "
            "needs at least 2 rows. Drop the class or add rows."
        )
    return classes, codes


def class_codes(y: Any, classes: npt.NDArray[Any], n_rows: int) -> Index:
    """The class number of each label.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The labels. Each label must be one of the classes.
    classes : ndarray
        The classes of a fitted model.
    n_rows : int
        The number of rows of the table X.

    Returns
    -------
    ndarray of int of shape (n_rows,)
    """
    labels = column_or_1d(y)
    if len(labels) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels.")
    known = {label: code for code, label in enumerate(classes.tolist())}
    codes = [known.get(label, -1) for label in labels.tolist()]
    if -1 in codes:
        strange = labels.tolist()[codes.index(-1)]
        raise ValueError(
            f"y has the class {strange!r}, which the model does not know. The classes of the model "
            f"are {listed([str(label) for label in classes.tolist()])}."
        )
    return np.array(codes, dtype=np.intp)
