"""The door: data is checked once, here, and every complaint names what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from .._blocks import dense, is_sparse, row_blocks, slices
from .._typing import Data, Float, Index
from ..engines import is_engine
from ..metric import SparseMetric
from ..selection.crossfit import CrossFit

#: Of the largest weight; smaller ones count as none.
LEAST_WEIGHT = 1e-100


class EngineName(StrOptions):  # type: ignore[misc]
    """What ``engine`` may be: a name, or "torch:" and a device."""

    def __init__(self) -> None:
        super().__init__({"auto", "native", "numpy", "torch"})

    def is_satisfied_by(self, val: Any) -> bool:
        return isinstance(val, str) and is_engine(val)

    def __str__(self) -> str:
        return (
            "'auto', 'native', 'numpy' or 'torch', or 'torch' with a device, such as 'torch:cpu' "
            "or 'torch:cuda:1'"
        )


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


def check_labels(estimator: Any, y: Any) -> npt.NDArray[Any]:
    """The labels by themselves, for a table that is elsewhere."""
    labels: npt.NDArray[Any] = column_or_1d(present_labels(estimator, y), warn=True)
    check_classification_targets(labels)
    return labels


def present_labels(estimator: Any, y: Any) -> Any:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "it learns from class labels."
        )
    _refuse_missing_labels(y)
    return _natural_labels(y)


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
    """What scikit-learn is to convert: each conversion is a copy."""
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
        return np.where(np.frompyfunc(_is_missing, 1, 1)(X).astype(bool), np.nan, X)
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
        missing = values.dtype.kind == "O" and any(_is_missing(value) for value in values)
        return "missing" if missing else "numbers"  # of the rest scikit-learn says what is wrong
    return "numbers"


def _refuse_not_finite(X: Data, names: Sequence[str], remedy_for_missing: str | None) -> None:
    """Columns with NaN (where there is a remedy to name: else it is let through) or infinity."""
    missing = [] if remedy_for_missing is None else _columns_with(X, np.isnan)
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


def _refuse_missing_labels(y: Any) -> None:
    labels = np.asarray(y)
    missing = labels.dtype.kind == "f" and not np.isfinite(labels).all()
    if labels.dtype.kind == "O":
        missing = any(_is_missing(label) for label in labels.ravel())
    if missing:
        raise ValueError("Input y contains NaN, None or infinity: every row needs a label.")


def _natural_labels(y: Any) -> Any:
    """Numbers and booleans that came as Python objects, as an array of their own type."""
    if getattr(getattr(y, "dtype", None), "kind", None) != "O":
        return y
    natural = np.array(np.asarray(y).tolist())
    return natural if natural.dtype.kind in "biuf" and natural.ndim == 1 else y


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def check_classes(
    estimator: Any, y: npt.NDArray[Any], remark: str = ""
) -> tuple[npt.NDArray[Any], Index]:
    """The classes, and the number of every row's class."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    name = type(estimator).__name__
    if len(classes) == 1:
        raise ValueError(
            f"{name} needs at least two classes, but y has only one class, {classes[0]}{remark}: "
            "check the target or the split."
        )
    if counts.min() < 2:
        rare = classes[np.argmin(counts)]
        raise ValueError(
            f"Class {rare} has 1 sample{remark}, and a row is never its own neighbour: "
            "every class needs at least 2 rows."
        )
    return classes, codes


def check_weights(
    sample_weight: Any, class_weight: Any, X: Data, y: npt.NDArray[Any]
) -> tuple[Index, Float]:
    """Numbers of the rows that have a weight; their weights times their class's, summing to n."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weight = _near_one(weight)
    rows = _with_weight(weight)
    if class_weight is not None:
        refuse_impossible(class_weight)
        weight[rows] *= _near_one(compute_sample_weight(class_weight, y[rows]))
        rows = _with_weight(weight)
    return rows, weight[rows] * (len(rows) / weight[rows].sum())


def _near_one(weight: Float) -> Float:
    """Divided by a power of two, so that no sum overflows; what is far below the largest is 0."""
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
        raise ValueError("All sample weights are zero: no row is left to learn from.")
    return rows


def refuse_impossible(class_weight: Any) -> None:
    if isinstance(class_weight, dict):
        for label, value in class_weight.items():
            if not (isinstance(value, Real) and np.isfinite(value) and value >= 0):
                raise ValueError(
                    f"class_weight gives class {label} the weight {value}: weights are finite "
                    "numbers, and not negative."
                )


def check_seed(checkpoint: Any, random_state: Any) -> None:
    """Where a fit is to go on it must be the same fit."""
    if checkpoint is not None and random_state is None:
        raise ValueError(
            "checkpoint needs random_state to be a number: with None every fit is another one, "
            "and none goes on where it was stopped."
        )


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
    try:
        matrix = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be a matrix of numbers: {error}.") from error
    return _checked_matrix(matrix, n_features)


def check_scales(X: Data, standardize: bool, max_degree: int) -> None:
    """Without standardisation squared distances between products must not overflow."""
    if not standardize:
        largest = max(float(np.abs(block).max()) for _, block in row_blocks(X))
        refuse_large(largest, max_degree)


def refuse_large(largest: float, max_degree: int) -> None:
    limit = 10.0 ** (300 / (2 * max_degree + 2))
    if largest > limit:
        raise ValueError(
            f"X has values up to {largest:.3g}, whose products overflow: set standardize=True "
            "or rescale the columns."
        )


def _checked_matrix(init: Float, n_features: int) -> Float:
    if init.shape != (n_features, n_features) or not np.isfinite(init).all():
        raise ValueError(
            f"init must be a finite matrix over the {n_features} columns, got shape {init.shape}."
        )
    values = np.linalg.eigvalsh(init)
    if not np.allclose(init, init.T) or values[0] < -1e-8 * max(values[-1], 0.0):
        raise ValueError("init must be symmetric and positive semi-definite.")
    return init


def refuse_far_rows(crossfit: CrossFit, max_degree: int, names: Sequence[str]) -> None:
    """Rows so far from those of another fold that their distances under its metric overflow."""
    limit = 10.0 ** (140 / max_degree)
    for fit in crossfit.fits:
        if fit.scaling.clip is not None and fit.scaling.clip < limit:
            continue
        for _, block in row_blocks(crossfit.X):
            with np.errstate(over="ignore"):
                away = np.abs(block - fit.scaling.center).max(axis=0)
            far = away[fit.scaling.kept] / limit > fit.scaling.scale[fit.scaling.kept]
            if far.any():
                columns = listed([names[j] for j in fit.scaling.kept[far]])
                raise ValueError(
                    f"Column {columns} has values so far from those of other rows that distances "
                    "overflow: check them, or set clip to a number."
                )


def refuse_overflow(embedding: Float, X: Data, metric: SparseMetric, names: Sequence[str]) -> None:
    """Rows so far from the training data that squared distances to them overflow."""
    if len(embedding) and not np.abs(embedding).max() < 1e140:
        used = sorted({j for term in metric.columns for j in term if j < metric.n_features})
        size = np.abs(dense(X[:, used]) / metric.scale[used]).max(axis=0)
        worst = names[used[int(np.argmax(size))]]
        raise ValueError(
            f"The values of column {worst!r} lie so far from the training data that distances "
            "overflow: check its units."
        )
