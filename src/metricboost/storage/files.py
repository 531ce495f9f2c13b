"""Model files: what a file holds, written and read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import ModelFileError
from ..model import Blend, Model, SparseMetric
from . import archive
from .metrics import pack_metric, unpack_metric
from .models import pack_model, unpack_model
from .records import Arrays, Record
from .values import pack_values, unpack_values

#: The most memory that the arrays of a file may take by default.
MAX_BYTES = 2**32


@dataclass(frozen=True)
class Saved:
    """The content of a model file, apart from the classes of Python that it belongs to.

    Attributes
    ----------
    kind : str
        The name of the class that was saved.
    parameters : mapping of str to object
        Parameters of the constructor. Those that a file cannot hold get their defaults.
    model : SparseMetric, Model, Blend or None
        None if ``part`` holds the model.
    feature_names : list of str or None
        The names of the columns, if the table had names.
    n_features : int
    more : mapping of str to object
        What else the class needs.
    part : Saved or None
        The content of an estimator inside this one.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    model: SparseMetric | Model | Blend | None = None
    feature_names: list[str] | None = None
    n_features: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    part: Saved | None = None


def write(saved: Saved, path: str | os.PathLike[str]) -> None:
    """Write a model file. A file of that name is replaced when the new one is complete.

    Parameters
    ----------
    saved : Saved
    path : str or path
    """
    arrays = Arrays()
    archive.write(path, {"saved": _packed(saved, arrays)}, arrays.found)


def read(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Saved:
    """Read a model file. No code of the file runs, and no other file is read.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=4 GiB
        The most memory that the arrays may take.

    Returns
    -------
    Saved

    Raises
    ------
    ModelFileError
        If the content is damaged, hostile, or of another version of the format.
    OSError
        If the file cannot be opened.
    """
    manifest, arrays = archive.read(path, max_bytes)
    try:
        return _unpacked(Record(manifest.get("saved"), arrays, "saved"))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except archive.DAMAGE as error:
        raise ModelFileError(f"{path} does not hold a model: {error}.") from error


def _packed(saved: Saved, arrays: Arrays) -> dict[str, Any]:
    model, names = saved.model, saved.feature_names
    part = None if saved.part is None else _packed(saved.part, arrays.below("part"))
    is_metric = isinstance(model, SparseMetric)
    return {
        "kind": saved.kind,
        "parameters": pack_values(saved.parameters, arrays.below("parameters")),
        "metric": pack_metric(model, arrays.below("metric")) if is_metric else None,
        "model": (
            None if model is None or is_metric else pack_model(model, names, arrays.below("model"))
        ),
        "feature_names": names,
        "n_features": int(saved.n_features),
        "more": pack_values(saved.more, arrays.below("more")),
        "part": part,
    }


def _unpacked(record: Record) -> Saved:
    n_features = record.integer("n_features")
    names = record.texts("feature_names", n_features) if record.has("feature_names") else None
    model: SparseMetric | Model | Blend | None = None
    if record.has("metric"):
        model = unpack_metric(record.record("metric"))
    elif record.has("model"):
        model = unpack_model(record.record("model"), names, n_features)
    part = record.optional_record("part")
    return Saved(
        kind=record.text("kind"),
        parameters=unpack_values(record.record("parameters")),
        model=model,
        feature_names=names,
        n_features=n_features,
        more=unpack_values(record.record("more")),
        part=None if part is None else _unpacked(part),
    )
