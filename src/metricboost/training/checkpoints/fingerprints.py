"""Fingerprints: what identifies a fit.

A fingerprint has the version of metricboost, the engine, the parameters, and digests of the table,
the rows, the labels and the weights. A checkpoint is only used by a fit with the same fingerprint.
The name of the file is a digest of it, so that the fits of a search, or of several folds, can share
a directory.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..._blocks import row_blocks
from ..._typing import Data
from ...model import SparseMetric

if TYPE_CHECKING:
    from ..learn import Known

Fingerprint = dict[str, Any]
#: The length of the digests in a fingerprint, and of the digest that names a file.
DIGEST_BYTES, KEY_BYTES = 16, 10


def digest_of_table(X: Data) -> str:
    """A digest of the shape and the numbers of a table, whatever their layout and type.

    Parameters
    ----------
    X : ndarray or sparse matrix
    """
    found = hashlib.blake2b(repr(tuple(map(int, X.shape))).encode(), digest_size=DIGEST_BYTES)
    for _, block in row_blocks(X):
        found.update(block.data)
    return found.hexdigest()


def digest(array: npt.ArrayLike) -> str:
    """A digest of the shape, the type and the values of an array.

    Parameters
    ----------
    array : array-like
    """
    plain = np.ascontiguousarray(array)
    found = hashlib.blake2b(repr((plain.shape, plain.dtype.str)).encode(), digest_size=DIGEST_BYTES)
    found.update(plain.tobytes())
    return found.hexdigest()


def digest_of_known(known: Known) -> str:
    """A digest of what a fit on a sample of rows is told about the whole table.

    Parameters
    ----------
    known : Known
        The constants of the columns and the screened pairs.
    """
    scaling, screening = known.scaling, known.screening
    pairs = [] if screening is None else screening.pairs
    parts = (scaling.center, scaling.scale, scaling.kept, np.array(pairs, dtype=np.int64))
    return digest(np.frombuffer("".join(map(digest, parts)).encode(), dtype=np.uint8))


def plain_options(options: Any) -> dict[str, Any]:
    """The fields of nested dataclasses by their names, with values that JSON can hold.

    Parameters
    ----------
    options : dataclass instance
    """
    found: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        found.update(plain_options(value) if is_dataclass(value) else {field.name: _plain(value)})
    return found


def _plain(value: Any) -> Any:
    """A value that JSON can hold. Metrics and arrays become digests."""
    if isinstance(value, SparseMetric):
        arrays = (value.components, value.center, value.scale, value.term_center, value.term_scale)
        terms = list(map(list, value.columns))
        return [terms, value.clip, *map(digest, (*arrays, value.diagonal))]
    if isinstance(value, np.ndarray | list | tuple):
        return digest(value)
    return value.item() if isinstance(value, np.generic) else value


def key(fingerprint: Fingerprint) -> str:
    """The name of a checkpoint's file: a digest of the fingerprint without the version.

    A checkpoint of another version is thus found, and can be refused with an error that says so.

    Parameters
    ----------
    fingerprint : dict
    """
    known = {name: value for name, value in fingerprint.items() if name != "version"}
    text = json.dumps(known, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).hexdigest()


def differences(there: Any, here: Fingerprint) -> list[str]:
    """How the fingerprint of a file differs from that of a fit, in words.

    Parameters
    ----------
    there : object
        What the file has as its fingerprint. It may be damaged.
    here : dict
        The fingerprint of the fit.

    Returns
    -------
    list of str
        Empty if both are the same.
    """
    if not isinstance(there, dict):
        return ["the file does not say which fit it belongs to"]
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
