"""Validation of tables. Error messages name the columns at fault and a remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._blocks import is_sparse, slices
from .._typing import Data, Index
from .labels import is_missing, present_labels
from .names import listed


def check_table(estimator: Any, X: Any, *, reset: bool, missing: str = "error") -> Data:
    """Validate X and return it as a table of finite numbers.

    For an estimator that accepts sparse matrices, X keeps its type and memory layout (sparse
    matrices are converted to CSR). For other estimators X is converted to float64 in C order. With
    ``missing="impute"`` missing values of any kind are allowed and become NaN.
    """
    refuse_short_file(X)
    X = _with_nan_for_missing(X) if missing == "impute" else X
    _refuse_text(X, _remedy(estimator))
    X = validate_data(
        estimator, X, reset=reset, **_layout(estimator), ensure_min_samples=2 if reset else 1,
    )  # fmt: skip
    _refuse_not_finite(estimator, X, None if missing == "impute" else _remedy(estimator))
    return X


def check_training(
    estimator: Any, X: Any, y: Any, missing: str = "error"
) -> tuple[Data, npt.NDArray[Any]]:
    """Validate X and y for ``fit``: X as in ``check_table``, and one label for each row of X."""
    refuse_short_file(X)
    X = _with_nan_for_missing(X) if missing == "impute" else X
    _refuse_text(X, _remedy(estimator))
    y = present_labels(estimator, y)
    X, y = validate_data(
        estimator, X, y, **_layout(estimator), ensure_min_samples=2, multi_output=False,
    )  # fmt: skip
    _refuse_not_finite(estimator, X, None if missing == "impute" else _remedy(estimator))
    check_classification_targets(y)
    return X, y


def refuse_short_file(X: Any) -> None:
    """Raise an error if X is mapped to a file that is too short.

    Reading rows beyond the end of a mapped file would end the process.
    """
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.filename is not None:
            needed, size = X.offset + X.nbytes, os.path.getsize(X.filename)
            if size < needed:
                raise ValueError(
                    f"X is mapped to the file {X.filename}, which has {size} bytes, but at least "
                    f"{needed} bytes are needed: write the file again, and open it again."
                )
        X = X.base


def numbers_of(part: Any) -> npt.NDArray[Any]:
    """A part of a table as float32 or float64. Text, dates and complex numbers raise an error."""
    if is_sparse(part):
        part = part.toarray()
    _refuse_text(part, _IMPUTE)
    if hasattr(part, "to_numpy") and any(dtype != np.float32 for dtype in part.dtypes):
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
    array = np.asarray(part)
    if array.dtype.kind not in "biufO":
        raise ValueError(
            f"X is of type {array.dtype}, but distances need numbers: convert X to float64."
        )
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def column_names(estimator: Any, n_features: int) -> list[str]:
    """The names of the columns in messages and terms; ``x0, x1, ...`` if X had no names."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def _layout(estimator: Any) -> dict[str, Any]:
    """The arguments of ``validate_data``: X keeps its type if possible, to avoid a copy."""
    kept: dict[str, Any]
    if get_tags(estimator).input_tags.sparse:
        kept = {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
    else:
        kept = {"dtype": np.float64, "order": "C"}
    return {**kept, "ensure_all_finite": False}


def _with_nan_for_missing(X: Any) -> Any:
    if is_sparse(X):
        raise ValueError(
            'missing="impute" needs a dense X, but X is a sparse matrix. An entry that a sparse '
            'matrix leaves out is 0, not missing. Set missing="error", or pass X.toarray().'
        )
    return _nan_for_missing(X)


def _nan_for_missing(X: Any) -> Any:
    """Replace None and pandas.NA by NaN in columns of Python objects and strings."""
    if isinstance(X, list | tuple):
        objects = np.array(X, dtype=object)
        X = objects if objects.ndim == 2 else X
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return np.where(np.frompyfunc(is_missing, 1, 1)(X).astype(bool), np.nan, X)
    if not hasattr(X, "isetitem"):  # not pandas; the nulls of polars become NaN on conversion
        return X
    filled = X.copy(deep=False)
    for j, dtype in enumerate(X.dtypes):
        if str(dtype).lower().startswith(("object", "str")):
            filled.isetitem(j, _nan_for_missing(X.iloc[:, j].to_numpy(dtype=object)))
    return filled


def _remedy(estimator: Any) -> str:
    """The advice about missing values. It depends on whether the estimator can impute them."""
    own = ' or set missing="impute" (for a search, in its estimator)'
    return _IMPUTE + (own if hasattr(estimator, "missing") else "")


def _refuse_text(X: Any, remedy_for_missing: str) -> None:
    """Raise an error that names the columns whose values are not numbers."""
    found: dict[str, list[str]] = {}
    for name, column in _suspects(X):
        found.setdefault(_kind(column), []).append(name)
    for kind, remedy in (
        ("text", "encode it first (sklearn.preprocessing.OneHotEncoder) or drop it"),
        ("dates", "turn them into numbers first (days since a date, the month) or drop it"),
        ("complex numbers", "make separate columns of the real and imaginary parts or drop it"),
        ("integers too large for a float", "take logarithms or drop it"),
    ):
        if kind in found:
            raise ValueError(
                f"Column {listed(found[kind])} holds {kind}, but distances need numbers: {remedy}."
            )
    if "missing" in found:
        columns = listed(found["missing"])
        raise ValueError(f"Input X contains NaN in column {columns}: {remedy_for_missing}.")


_IMPUTE = "impute the missing values first (sklearn.impute.SimpleImputer)"


def _suspects(X: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of the columns whose type is not a type of numbers."""
    dtypes, names = getattr(X, "dtypes", None), getattr(X, "columns", None)
    if dtypes is not None and names is not None:
        for j, (name, dtype) in enumerate(zip(names, dtypes)):
            if str(dtype).lower().startswith(_NOT_NUMBERS):  # by place: names may repeat in pandas
                yield str(name), X.iloc[:, j] if hasattr(X, "iloc") else X[name]
        return
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS":
        for j in range(X.shape[1]):
            yield f"x{j}", X[:, j]


_NOT_NUMBERS = (
    "str", "utf8", "category", "enum", "categorical", "object", "date", "time", "duration",
    "period", "interval", "complex",
)  # fmt: skip


def _kind(column: Any) -> str:
    """The kind of the values of a column; "missing" if only missing values prevent a conversion."""
    if str(column.dtype).lower().startswith("complex"):
        return "complex numbers"
    if str(column.dtype).lower().startswith(("date", "time", "duration", "period")):
        return "dates"
    values = np.asarray(column)
    if values.dtype.kind == "O" and any(hasattr(value, "isoformat") for value in values):
        return "dates"
    try:
        values.astype(np.float64)
    except OverflowError:
        return "integers too large for a float"
    except ValueError:
        return "text"
    except TypeError:
        missing = values.dtype.kind == "O" and any(is_missing(value) for value in values)
        return "missing" if missing else "numbers"  # scikit-learn describes all other errors
    return "numbers"


def _refuse_not_finite(estimator: Any, X: Data, remedy_for_missing: str | None) -> None:
    """Raise an error for columns with infinity, or with NaN if a remedy for NaN is given."""
    missing: Sequence[int] | Index = (
        [] if remedy_for_missing is None else _columns_with(X, np.isnan)
    )
    infinite = _columns_with(X, np.isinf)
    if len(missing) or len(infinite):
        names = column_names(estimator, X.shape[1])
        complain_of_columns(missing, infinite, names, remedy_for_missing)


def complain_of_columns(
    missing: Sequence[int] | Index,
    infinite: Sequence[int] | Index,
    names: Sequence[str],
    remedy_for_missing: str | None = None,
) -> None:
    """Raise an error that names the columns with NaN or infinity, if there are any."""
    for what, bad, remedy in (
        ("NaN", missing, remedy_for_missing or _IMPUTE),
        ("infinity", infinite, "replace the infinite values or drop their rows"),
    ):
        if len(bad):
            columns = listed([names[j] for j in bad])
            raise ValueError(f"Input X contains {what} in column {columns}: {remedy}.")


def _columns_with(X: Data, found: Callable[..., Any]) -> Index:
    """The columns in which any value passes a test. The test must be False for 0."""
    if is_sparse(X):
        return np.unique(X.indices[found(X.data)])
    anywhere = np.zeros(X.shape[1], dtype=bool)
    for part in slices(X.shape[0], X.shape[1]):
        anywhere |= found(X[part]).any(axis=0)
    return np.flatnonzero(anywhere)
