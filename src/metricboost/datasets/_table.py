"""A table of numbers with labels: its fingerprint, and its copy on disk."""

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
    """Values (float64, n x p) and labels (n) as the source gives them."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.generic]


def make_table(X: npt.ArrayLike, y: npt.ArrayLike) -> Table:
    """Bring values to one form: float64 in C order, one kind of NaN, no negative zero."""
    values = np.array(X, dtype=np.float64, order="C", ndmin=2)
    values += 0.0
    values[np.isnan(values)] = np.nan
    labels = np.asarray(y)
    labels = labels.astype(np.int64) if labels.dtype.kind in "iu" else labels
    if values.ndim != 2 or labels.shape != values.shape[:1]:
        raise ValueError(f"values of shape {values.shape} with labels of shape {labels.shape}")
    return Table(values, labels)


def fingerprint(table: Table) -> str:
    """SHA-256 of the shape, the values and the labels: the same whatever file they came from."""
    digest = hashlib.sha256(repr(table.X.shape).encode())
    digest.update(table.X.astype("<f8").tobytes())
    digest.update("\n".join(map(str, table.y.tolist())).encode())
    return digest.hexdigest()


def read_table(path: Path) -> Table:
    """Read the arrays ``X`` and ``y`` of an .npz file."""
    with np.load(path, allow_pickle=False) as arrays:
        return make_table(arrays["X"], arrays["y"])


def write_table(path: Path, table: Table, feature_names: list[str]) -> None:
    """Write an .npz file; nobody ever sees a part of it, nor does a failure leave one."""
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
