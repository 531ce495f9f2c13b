"""What a fit is of: its table, rows and labels, its parameters, its engine, and the version.

A checkpoint belongs to one fingerprint, after which its file is named: fits of a search, or of
folds, never meet in one directory.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._blocks import row_blocks
from ..._typing import Data
from ...model import SparseMetric

Fingerprint = dict[str, Any]


def digest_of_table(X: Data) -> str:
    """Of the numbers, whatever their layout and type."""
    found = hashlib.blake2b(repr(tuple(map(int, X.shape))).encode(), digest_size=16)
    for _, block in row_blocks(X):
        found.update(block.data)
    return found.hexdigest()


def digest(array: npt.ArrayLike) -> str:
    plain = np.ascontiguousarray(array)
    found = hashlib.blake2b(repr((plain.shape, plain.dtype.str)).encode(), digest_size=16)
    found.update(plain.tobytes())
    return found.hexdigest()


def digest_of_known(known: Any) -> str:
    """Of the column constants and the screened pairs that come from more rows than a fit has."""
    scaling, screening = known.scaling, known.screening
    pairs = [] if screening is None else screening.pairs
    parts = (scaling.center, scaling.scale, scaling.kept, np.array(pairs, dtype=np.int64))
    return digest(np.frombuffer("".join(map(digest, parts)).encode(), dtype=np.uint8))


def plain_options(options: Any) -> dict[str, Any]:
    """The fields of nested dataclasses, by name, as JSON has them."""
    found: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        found.update(plain_options(value) if is_dataclass(value) else {field.name: _plain(value)})
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, SparseMetric):
        arrays = (value.components, value.center, value.scale, value.term_center, value.term_scale)
        return [list(map(list, value.columns)), *map(digest, (*arrays, value.diagonal))]
    if isinstance(value, np.ndarray | list | tuple):
        return digest(value)
    return value.item() if isinstance(value, np.generic) else value


def key(fingerprint: Fingerprint) -> str:
    """The name of its file: of all but the version."""
    known = {name: value for name, value in fingerprint.items() if name != "version"}
    text = json.dumps(known, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def differences(there: Any, here: Fingerprint) -> list[str]:
    """What is not the same, in words."""
    if not isinstance(there, dict):
        return ["it says nothing of what it is of"]
    found = []
    for name, value in here.items():
        other = there.get(name)
        if other == value:
            continue
        if isinstance(value, dict) and isinstance(other, dict):
            found += [
                f"{part} is {value.get(part)!r} here and {other.get(part)!r} there"
                for part in sorted({*value, *other})
                if value.get(part) != other.get(part)
            ]
        elif name in ("version", "engine"):
            found.append(f"the {name} is {value} here and {other} there")
        else:
            found.append(f"the {name} differ" if name.endswith("s") else f"the {name} differs")
    return found
