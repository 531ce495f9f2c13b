"""Tables of numbers with labels: fingerprint, reading and writing."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Table:
    """The values (float64, n x p) and the labels (n) of a source."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.generic]


def make_table(X: npt.ArrayLike, y: npt.ArrayLike) -> Table:
    """Make a table in canonical form: float64 in C order, one kind of NaN, no negative zero."""
    values = np.array(X, dtype=np.float64, order="C", ndmin=2)
    values += 0.0
    values[np.isnan(values)] = np.nan
    labels = np.asarray(y)
    labels = labels.astype(np.int64) if labels.dtype.kind in "iu" else labels
    if values.ndim != 2 or labels.shape != values.shape[:1]:
        raise ValueError(f"values of shape {values.shape} with labels of shape {labels.shape}")
    return Table(values, labels)


def fingerprint(table: Table) -> str:
    """SHA-256 of the shape, the values and the labels. It does not depend on the file format."""
    digest = hashlib.sha256(repr(table.X.shape).encode())
    digest.update(table.X.astype("<f8").tobytes())
    digest.update("\n".join(map(str, table.y.tolist())).encode())
    return digest.hexdigest()


def read_table(path: Path) -> Table:
    """Read the arrays ``X`` and ``y`` of an .npz file."""
    with np.load(path, allow_pickle=False) as arrays:
        return make_table(arrays["X"], arrays["y"])


def write_table(path: Path, table: Table, feature_names: list[str]) -> None:
    """Write an .npz file atomically. If writing fails, no partial file is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            names = np.array(feature_names)
            np.savez_compressed(file, X=table.X, y=table.y, feature_names=names)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
