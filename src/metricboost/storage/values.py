"""Parameters and class labels, to and from records.

A value is a number, a text, a boolean, None, a metric, an array, or a list or dictionary of values.
Anything else, such as a random number generator, a splitter or a function, is left out of a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from ..model import SparseMetric
from .metrics import pack_metric, unpack_metric
from .records import Arrays, Record

#: The most characters of all labels if each were as long as the longest. NumPy stores texts so.
MOST_CHARACTERS = 2**24
LABEL_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "str", "object",
)  # fmt: skip


def pack_values(values: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Named values as records. Values that a file cannot hold are left out."""
    packed = {name: _packed(value, arrays.below(name)) for name, value in values.items()}
    return {name: value for name, value in packed.items() if value is not None}


def unpack_values(record: Record) -> dict[str, Any]:
    """Named values from records."""
    return {name: _unpacked(record.record(name)) for name in record.values}


def _packed(value: Any, arrays: Arrays) -> dict[str, Any] | None:
    value = value.item() if isinstance(value, np.generic) else value
    if _is_plain(value):
        return {"value": value}
    if isinstance(value, SparseMetric):
        return {"metric": pack_metric(value, arrays)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": arrays.add("array", value.astype(np.float64)), "ndim": value.ndim}
    if isinstance(value, list | tuple):
        parts = [_packed(item, arrays.below(f"item{i}")) for i, item in enumerate(value)]
        return None if None in parts else {"list": parts}
    if isinstance(value, dict):
        pairs = [list(pair) for pair in value.items()]
        parts = [_packed(pair, arrays.below(f"pair{i}")) for i, pair in enumerate(pairs)]
        return None if None in parts else {"pairs": parts}
    return None


def _unpacked(record: Record) -> Any:
    if record.has("metric"):
        return unpack_metric(record.record("metric"))
    if record.has("array"):
        return record.numbers("array", *[None] * record.integer("ndim", 0, 2))
    if record.has("list"):
        return [_unpacked(item) for item in record.records("list")]
    if record.has("pairs"):
        pairs = [_unpacked(item) for item in record.records("pairs")]
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            record.fail("pairs", "are not pairs of values")
        return record.made(dict, pairs)
    value = record.values.get("value")
    if not _is_plain(value):
        record.fail("value", "is not a number, a text, a boolean or null")
    return value


def _is_plain(value: Any) -> bool:
    """Whether JSON has the value."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def pack_labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Class labels as a record."""
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = classes.tolist()
    if kind not in LABEL_TYPES or not all(map(_is_plain, values)):
        raise ValueError(
            f"Classes of type {classes.dtype} cannot be saved: use texts, integers or numbers."
        )
    return {"type": kind, "values": values}


def unpack_labels(record: Record) -> npt.NDArray[Any]:
    """Class labels from a record: at least two, in increasing order."""
    kind = record.text("type", LABEL_TYPES)
    values = record.values.get("values")
    if not isinstance(values, list) or not all(map(_is_plain, values)) or len(values) < 2:
        record.fail("values", "are not two or more labels")
    longest = max((len(value) for value in values if isinstance(value, str)), default=1)
    if longest * len(values) > MOST_CHARACTERS:
        record.fail("values", "are too long")
    try:
        classes = np.array(values, dtype=kind)
        increasing = bool((classes[1:] > classes[:-1]).all())
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{record.where}: {error}") from error
    if not increasing:
        record.fail("values", "are not in increasing order")
    return classes
