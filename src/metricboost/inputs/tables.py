"""Tables are checked once, here. Every message names what is wrong and what to do."""

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
    """X as a finite table; text, NaN and infinity are named by their column.

    An estimator that takes sparse matrices gets X in the type and layout that it has, a sparse one
    as CSR; any other gets float64 in C order.

    With ``missing="impute"`` missing values of any kind are let through, as NaN.
    """
    refuse_short_file(X)
    X = _with_nan_for_missing(X) if missing == "impute" else X
    _refuse_text(X, _remedy(estimator))
    X = validate_data(
        estimator, X, reset=reset, **_layout(estimator), ensure_min_samples=2 if reset else 1,
    )  # fmt: skip
    names, remedy = column_names(estimator, X.shape[1]), _remedy(estimator)
    _refuse_not_finite(X, names, None if missing == "impute" else remedy)
    return X


def check_training(
    estimator: Any, X: Any, y: Any, missing: str = "error"
) -> tuple[Data, npt.NDArray[Any]]:
    """X and y for ``fit``: a table as from ``check_table`` and one label for each of its rows."""
    refuse_short_file(X)
    X = _with_nan_for_missing(X) if missing == "impute" else X
    _refuse_text(X, _remedy(estimator))
    y = present_labels(estimator, y)
    X, y = validate_data(
        estimator, X, y, **_layout(estimator), ensure_min_samples=2, multi_output=False,
    )  # fmt: skip
    names, remedy = column_names(estimator, X.shape[1]), _remedy(estimator)
    _refuse_not_finite(X, names, None if missing == "impute" else remedy)
    check_classification_targets(y)
    return X, y


def refuse_short_file(X: Any) -> None:
    """A memory-mapped file that has become shorter ends the process when its rows are read."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.filename is not None:
            needed, size = X.offset + X.nbytes, os.path.getsize(X.filename)
            if size < needed:
                raise ValueError(
                    f"X is mapped to the file {X.filename}, which has {size} bytes where at least "
                    f"{needed} are needed: write the file again, and open it again."
                )
        X = X.base


def numbers_of(part: Any) -> npt.NDArray[Any]:
    """Some rows of a table as float32 or float64; text, dates and complex numbers are refused."""
    if is_sparse(part):
        part = part.toarray()
    _refuse_text(part, _IMPUTE)
    if hasattr(part, "to_numpy") and any(dtype != np.float32 for dtype in part.dtypes):
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
    array = np.asarray(part)
    if array.dtype.kind not in "biufO":
        raise ValueError(f"X is of type {array.dtype}, but distances need numbers.")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def column_names(estimator: Any, n_features: int) -> list[str]:
    """The names the columns go by in messages and terms."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def _layout(estimator: Any) -> dict[str, Any]:
    """What scikit-learn is to convert. Every conversion is a copy."""
    kept: dict[str, Any]
    if get_tags(estimator).input_tags.sparse:
        kept = {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
    else:
        kept = {"dtype": np.float64, "order": "C"}
    return {**kept, "ensure_all_finite": False}


def _with_nan_for_missing(X: Any) -> Any:
    if is_sparse(X):
        raise ValueError(
            'missing="impute" needs a dense X, and this one is sparse: what a sparse matrix leaves '
            'out is 0, not missing. Set missing="error", or pass X.toarray().'
        )
    return _nan_for_missing(X)


def _nan_for_missing(X: Any) -> Any:
    """None and pandas.NA as NaN where they stand among objects; numbers are left as they are."""
    if isinstance(X, list | tuple):
        objects = np.array(X, dtype=object)
        X = objects if objects.ndim == 2 else X
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        return np.where(np.frompyfunc(is_missing, 1, 1)(X).astype(bool), np.nan, X)
    if not hasattr(X, "isetitem"):  # polars' nulls become NaN without help
        return X
    filled = X.copy(deep=False)
    for j, dtype in enumerate(X.dtypes):
        if str(dtype).lower().startswith(("object", "str")):
            filled.isetitem(j, _nan_for_missing(X.iloc[:, j].to_numpy(dtype=object)))
    return filled


def _remedy(estimator: Any) -> str:
    """What to do about missing values: not every estimator can impute them itself."""
    own = ' or set missing="impute" (of a search: in its estimator)'
    return _IMPUTE + (own if hasattr(estimator, "missing") else "")


def _refuse_text(X: Any, remedy_for_missing: str) -> None:
    """Columns that are not numbers, by name."""
    found: dict[str, list[str]] = {}
    for name, column in _suspects(X):
        found.setdefault(_kind(column), []).append(name)
    for kind, remedy in (
        ("text", "encode it first (sklearn.preprocessing.OneHotEncoder) or drop it"),
        ("dates", "turn them into numbers first (days since a date, the month) or drop it"),
        ("complex numbers", "make columns of their parts or drop it"),
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
    """Columns of a data frame or an array whose type is none of numbers."""
    dtypes, names = getattr(X, "dtypes", None), getattr(X, "columns", None)
    if dtypes is not None and names is not None:
        for j, (name, dtype) in enumerate(zip(names, dtypes)):
            if str(dtype).lower().startswith(_NOT_NUMBERS):  # a name may stand twice in pandas
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
    """Numbers, text, dates, complex numbers, or objects some of which are missing."""
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
        return "missing" if missing else "numbers"  # of the rest scikit-learn says what is wrong
    return "numbers"


def _refuse_not_finite(X: Data, names: Sequence[str], remedy_for_missing: str | None) -> None:
    """Columns with NaN (where there is a remedy to name: else it is let through) or infinity."""
    missing: Sequence[int] | Index = (
        [] if remedy_for_missing is None else _columns_with(X, np.isnan)
    )
    complain_of_columns(missing, _columns_with(X, np.isinf), names, remedy_for_missing)


def complain_of_columns(
    missing: Sequence[int] | Index,
    infinite: Sequence[int] | Index,
    names: Sequence[str],
    remedy_for_missing: str | None = None,
) -> None:
    """Where there are any."""
    for what, bad, remedy in (
        ("NaN", missing, remedy_for_missing or _IMPUTE),
        ("infinity", infinite, "replace the infinite values or drop their rows"),
    ):
        if len(bad):
            columns = listed([names[j] for j in bad])
            raise ValueError(f"Input X contains {what} in column {columns}: {remedy}.")


def _columns_with(X: Data, found: Callable[..., Any]) -> Index:
    """The columns in which a test of values holds anywhere; it does not for 0."""
    if is_sparse(X):
        return np.unique(X.indices[found(X.data)])
    anywhere = np.zeros(X.shape[1], dtype=bool)
    for part in slices(X.shape[0], X.shape[1]):
        anywhere |= found(X[part]).any(axis=0)
    return np.flatnonzero(anywhere)
