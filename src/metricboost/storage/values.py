"""Parameters and class labels, to and from records.

A value is a number, a text, a boolean, None, a metric, an array of numbers, or a list, a tuple or a
dictionary of values. Anything else, such as a random number generator, a splitter or a function, is
left out of a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from ..model import SparseMetric
from .archive import MOST_DIMENSIONS
from .metrics import pack_metric, unpack_metric
from .records import Arrays, Record

#: How deep lists and dictionaries may be nested.
MOST_DEPTH = 10
#: The most characters of all labels if each were as long as the longest. NumPy stores texts so.
MOST_CHARACTERS = 2**24
#: The types of class labels, and what their values are in a manifest.
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), (int,)),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), (int,)),
    **dict.fromkeys(("float32", "float64"), (int, float)),
    "str": (str,),
    "object": (bool, int, float, str),
}
#: The kinds of arrays by the letters that NumPy has for them.
ARRAY_KINDS = {"f": "numbers", "i": "integers", "u": "integers", "b": "flags"}


def pack_values(values: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Named values as records. Values that a file cannot hold are left out.

    Parameters
    ----------
    values : mapping of str to object
    arrays : Arrays
        Receives the arrays of the values.
    """
    packed = {
        name: _packed(_without_scalars(value, 0), arrays.below(name), 0)
        for name, value in values.items()
    }
    return {name: value for name, value in packed.items() if value is not None}


def unpack_values(record: Record) -> dict[str, Any]:
    """Named values from records.

    Parameters
    ----------
    record : Record
    """
    return {name: _unpacked(record.record(name), 0) for name in record.values}


def _without_scalars(value: Any, depth: int) -> Any:
    """The value with numbers of Python for the scalars of NumPy that are in it."""
    if isinstance(value, np.generic):
        return value.item()
    if depth < MOST_DEPTH and type(value) in (list, tuple):
        return type(value)(_without_scalars(item, depth + 1) for item in value)
    if depth < MOST_DEPTH and type(value) is dict:
        return {
            _without_scalars(key, depth): _without_scalars(item, depth + 1)
            for key, item in value.items()
        }
    return value


def _packed(value: Any, arrays: Arrays, depth: int) -> dict[str, Any] | None:
    """A value as a record; None if a file cannot hold the value."""
    if depth > MOST_DEPTH:
        return None
    if _is_json(value, depth):
        return {"value": value}
    if isinstance(value, SparseMetric):
        return {"metric": pack_metric(value, arrays)}
    if isinstance(value, list | tuple):
        parts = _packed_parts(value, arrays, depth)
        name = "list" if isinstance(value, list) else "tuple"
        return None if parts is None else {name: parts}
    if isinstance(value, dict):
        pairs = [list(pair) for pair in value.items() if _is_plain(pair[0])]
        parts = _packed_parts(pairs, arrays, depth) if len(pairs) == len(value) else None
        return None if parts is None else {"dict": parts}
    if hasattr(value, "__array__"):
        return _packed_array(np.asarray(value), arrays)
    return None


def _packed_parts(
    values: list[Any] | tuple[Any, ...], arrays: Arrays, depth: int
) -> list[dict[str, Any]] | None:
    """The records of several values; None if a file cannot hold one of them."""
    parts = []
    for i, value in enumerate(values):
        part = _packed(value, arrays.below(f"part{i}"), depth + 1)
        if part is None:
            return None
        parts.append(part)
    return parts


def _packed_array(array: npt.NDArray[Any], arrays: Arrays) -> dict[str, Any] | None:
    kind = ARRAY_KINDS.get(array.dtype.kind)
    if kind is None or not 1 <= array.ndim <= MOST_DIMENSIONS or not np.isfinite(array).all():
        return None
    return {"array": arrays.add("array", array), "type": kind, "ndim": array.ndim}


def _unpacked(record: Record, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise ModelFileError(f"{record.where} is nested more than {MOST_DEPTH} levels deep.")
    if "metric" in record.values:
        return unpack_metric(record.record("metric"))
    if "array" in record.values:
        return _unpacked_array(record)
    if "list" in record.values:
        return _unpacked_parts(record, "list", depth)
    if "tuple" in record.values:
        return tuple(_unpacked_parts(record, "tuple", depth))
    if "dict" in record.values:
        pairs = _unpacked_parts(record, "dict", depth)
        if not all(
            isinstance(pair, list) and len(pair) == 2 and _is_plain(pair[0]) for pair in pairs
        ):
            record.fail("dict", "is not a list of pairs of a key and a value")
        return dict(pairs)
    if "value" not in record.values or not _is_json(record.values["value"], depth):
        record.fail("value", "is missing, is nested too deep or has a number that is not finite")
    return record.values["value"]


def _unpacked_parts(record: Record, key: str, depth: int) -> list[Any]:
    return [_unpacked(part, depth + 1) for part in record.records(key)]


def _unpacked_array(record: Record) -> npt.NDArray[Any]:
    kind = record.text("type", tuple(ARRAY_KINDS.values()))
    shape = [None] * record.integer("ndim", 1, MOST_DIMENSIONS)
    if kind == "flags":
        return record.flags("array", *shape)
    if kind == "integers":
        return record.integers("array", *shape, least=None)
    return record.numbers("array", *shape)


def _is_json(value: Any, depth: int) -> bool:
    """Whether JSON gives the value back as it is, unlike a tuple or a key that is no text."""
    if depth > MOST_DEPTH:
        return False
    if type(value) is list:
        return all(_is_json(item, depth + 1) for item in value)
    if type(value) is dict:
        texts = all(type(key) is str for key in value)
        return texts and all(_is_json(item, depth + 1) for item in value.values())
    return _is_plain(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is a finite number, a text, a boolean or None."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def pack_labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Class labels as a record.

    Parameters
    ----------
    classes : ndarray
        Texts, integers, finite numbers or booleans.
    """
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = [v.item() if isinstance(v, np.generic) else v for v in classes.tolist()]
    if not _are_labels(values, kind):
        raise ValueError(
            f"Classes of type {classes.dtype} cannot be saved: use texts, integers or finite "
            "numbers."
        )
    return {"type": kind, "values": values}


def unpack_labels(record: Record) -> npt.NDArray[Any]:
    """Class labels from a record: at least two, in increasing order.

    Parameters
    ----------
    record : Record
    """
    kind = record.text("type", tuple(LABEL_TYPES))
    values = record.values.get("values")
    if not isinstance(values, list) or len(values) < 2 or not _are_labels(values, kind):
        record.fail("values", f"is not a list of two or more labels of the type {kind}")
    longest = max((len(value) for value in values if isinstance(value, str)), default=1)
    if longest * len(values) > MOST_CHARACTERS:
        record.fail("values", "are too long")
    try:
        classes = np.array(values, dtype=kind)
        increasing = bool((classes[1:] > classes[:-1]).all())
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{record.where}.values: {error}") from error
    if not increasing:
        record.fail("values", "are not in increasing order")
    return classes


def _are_labels(values: list[Any], kind: str) -> bool:
    """Whether all values are those of a type of labels."""
    types = LABEL_TYPES.get(kind, ())
    return all(isinstance(value, types) and _is_plain(value) for value in values)
