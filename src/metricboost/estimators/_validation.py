"""The door: data is checked once, here, and every complaint names what is wrong and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._typing import Float
from ..metric import SparseMetric


def check_table(estimator: Any, X: Any, *, reset: bool) -> Float:
    """X as finite float64, C order; text, NaN and infinity are named by their column."""
    _refuse_text(X)
    X = validate_data(
        estimator, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )  # fmt: skip
    _refuse_not_finite(X, column_names(estimator, X.shape[1]))
    result: Float = X
    return result


def check_training(estimator: Any, X: Any, y: Any) -> tuple[Float, npt.NDArray[Any]]:
    """X and y for ``fit``: a finite table and one label for each of its rows."""
    _refuse_text(X)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "it learns from class labels."
        )
    X, y = validate_data(
        estimator, X, y, dtype=np.float64, order="C", ensure_all_finite=False,
        ensure_min_samples=2, multi_output=False,
    )  # fmt: skip
    _refuse_not_finite(X, column_names(estimator, X.shape[1]))
    _refuse_missing_labels(y)
    check_classification_targets(y)
    return X, y


def column_names(estimator: Any, n_features: int) -> list[str]:
    """The names the columns go by in messages and terms."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def _refuse_text(X: Any) -> None:
    """Text columns of a data frame, by name; arrays of text are refused by scikit-learn."""
    dtypes = getattr(X, "dtypes", None)
    columns = getattr(X, "columns", None)
    if dtypes is None or columns is None:
        return
    text = [str(name) for name, dtype in zip(columns, dtypes) if _is_text(str(dtype))]
    if text:
        raise ValueError(
            f"Column {_listed(text)} holds text, but distances need numbers: encode it first "
            "(sklearn.preprocessing.OneHotEncoder, pandas.get_dummies) or drop it."
        )


def _is_text(dtype: str) -> bool:
    return dtype.lower().startswith(("string", "str", "utf8", "category", "enum", "categorical"))


def _refuse_not_finite(X: Float, names: Sequence[str]) -> None:
    for what, found, remedy in (
        ("NaN", np.isnan, "impute the missing values first (sklearn.impute.SimpleImputer)"),
        ("infinity", np.isinf, "replace the infinite values or drop their rows"),
    ):
        bad = np.flatnonzero(found(X).any(axis=0))
        if len(bad):
            listed = _listed([names[j] for j in bad])
            raise ValueError(f"Input X contains {what} in column {listed}: {remedy}.")


def _refuse_missing_labels(y: npt.NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label.")
    if y.dtype.kind == "O" and any(label is None or label != label for label in y):
        raise ValueError("Input y contains NaN or None: every row needs a label.")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def check_two_classes(
    estimator: Any, y: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The two classes, and which rows are of the second."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    name = type(estimator).__name__
    if len(classes) == 1:
        raise ValueError(
            f"{name} needs two classes, but y has only one class, {classes[0]}: "
            "check the target or the split."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"y has {len(classes)} classes. Use sklearn.multiclass.OneVsRestClassifier."
        )
    if counts.min() < 2:
        rare = classes[np.argmin(counts)]
        raise ValueError(
            f"Class {rare} has 1 sample, and a row is never its own neighbour: "
            "every class needs at least 2 rows."
        )
    return classes, codes == 1


def check_weights(
    sample_weight: Any, class_weight: Any, X: Float, y: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Weights of the rows in the loss, times those of their class, summing to n."""
    from sklearn.utils.class_weight import compute_sample_weight

    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, y)
    total = weight.sum()
    if not total > 0:
        raise ValueError("All sample weights are zero: no row is left to learn from.")
    result: npt.NDArray[np.float64] = weight * (len(y) / total)
    return result


def check_init(init: Any, n_features: int, max_degree: int) -> Any:
    """The start: a word, a metric over the same columns, or a PSD matrix over them."""
    if isinstance(init, str):
        return init
    if isinstance(init, SparseMetric):
        if init.n_features != n_features:
            raise ValueError(f"init has {init.n_features} columns, X has {n_features}.")
        degree = max((len(term) for term in init.columns), default=0)
        if degree > max_degree:
            raise ValueError(
                f"init has a term of degree {degree}: set max_degree to at least {degree}."
            )
        return init
    return _checked_matrix(np.asarray(init, dtype=np.float64), n_features)


def _checked_matrix(init: Float, n_features: int) -> Float:
    if init.shape != (n_features, n_features) or not np.isfinite(init).all():
        raise ValueError(
            f"init must be a finite matrix over the {n_features} columns, got shape {init.shape}."
        )
    values = np.linalg.eigvalsh(init)
    if not np.allclose(init, init.T) or values[0] < -1e-8 * max(values[-1], 0.0):
        raise ValueError("init must be symmetric and positive semi-definite.")
    return init


def warn_about(
    names: Sequence[str], kept: npt.NDArray[np.intp], n_neighbors: int, smallest_class: int
) -> None:
    """Warn once about what is handled but the user may want to change."""
    constant = sorted(set(range(len(names))) - set(kept.tolist()))
    if constant:
        listed = _listed([names[j] for j in constant])
        warnings.warn(f"Constant column {listed} is left out.", UserWarning, stacklevel=4)
    if n_neighbors > smallest_class - 1:
        warnings.warn(
            f"n_neighbors={n_neighbors}, but the smallest class has {smallest_class} rows: "
            f"k is lowered to {smallest_class - 1} within a class and to "
            f"{min(n_neighbors, smallest_class)} across.",
            UserWarning,
            stacklevel=4,
        )
