"""Parameters and class labels, to and from records: what JSON cannot say is told apart or left out.

What belongs to a machine rather than to a model (``engine``, ``n_jobs``, ``verbose``,
``checkpoint``) is not kept, nor are random number generators, splitters and functions: they come
back as defaults.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from ..metric import SparseMetric
from .metrics import pack_metric, unpack_metric
from .records import Record
from .writing import Arrays

OF_THE_MACHINE = ("engine", "n_jobs", "verbose", "checkpoint")
#: Letters of all labels, each as long as the longest: NumPy's texts have one length.
MOST_LETTERS = 2**24
LABEL_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "str", "object",
)  # fmt: skip


def pack_parameters(model: Any, arrays: Arrays) -> dict[str, Any]:
    defaults = type(model)().get_params(deep=False)
    packed = {
        name: pack_value(value, name, arrays)
        for name, value in model.get_params(deep=False).items()
        if name not in OF_THE_MACHINE and name != "estimator"
        and not (value is None and defaults[name] is None)
    }  # fmt: skip
    return {name: value for name, value in packed.items() if value is not None}


def unpack_parameters(model: Any, record: Record) -> None:
    """Set them on a model, which has its defaults, and check them as ``fit`` would."""
    known = set(model.get_params(deep=False)) - {*OF_THE_MACHINE, "estimator"}
    for name in record.values:
        if name not in known:
            record.fail(name, "is not a parameter of this model")
        model.set_params(**{name: unpack_value(record.record(name))})
    try:
        model._validate_params()
    except ValueError as error:
        raise ModelFileError(f"{record.where}: {error}") from error


def pack_value(value: Any, name: str, arrays: Arrays) -> dict[str, Any] | None:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, SparseMetric):
        return {"metric": pack_metric(value, arrays.below(name))}
    if isinstance(value, dict) and all(_is_plain(part) for pair in value.items() for part in pair):
        return {"pairs": [[_number(key), _number(item)] for key, item in value.items()]}
    if name == "init" and not isinstance(value, str):
        return {"array": arrays.add(name, np.asarray(value, dtype=np.float64))}
    return {"value": value} if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str | np.integer)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def unpack_value(record: Record) -> Any:
    if "metric" in record.values:
        return unpack_metric(record.record("metric"))
    if "array" in record.values:
        return record.numbers("array", None, None)
    if "pairs" in record.values:
        pairs = record.values["pairs"]
        fine = isinstance(pairs, list) and all(
            isinstance(pair, list) and len(pair) == 2 and all(map(_is_plain, pair))
            for pair in pairs
        )
        if not fine:
            record.fail("pairs", "are not pairs of plain values")
        return dict(pairs)
    value = record.values.get("value")
    if not _is_plain(value):
        record.fail("value", "is not a plain value")
    return value


def pack_labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = classes.tolist()
    if kind not in LABEL_TYPES or not all(map(_is_plain, values)):
        raise ValueError(
            f"Classes of type {classes.dtype} cannot be saved: use texts, integers or numbers."
        )
    return {"type": kind, "values": values}


def unpack_labels(record: Record) -> npt.NDArray[Any]:
    kind = record.text("type", LABEL_TYPES)
    values = record.values.get("values")
    if not isinstance(values, list) or not all(map(_is_plain, values)) or len(values) < 2:
        record.fail("values", "are not two or more labels")
    longest = max((len(value) for value in values if isinstance(value, str)), default=1)
    if longest * len(values) > MOST_LETTERS:
        record.fail("values", "are too long")
    try:
        classes = np.array(values, dtype=kind)
        increasing = bool((classes[1:] > classes[:-1]).all())
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{record.where}: {error}") from error
    if not increasing:
        record.fail("values", "are not in increasing order")
    return classes
