"""Model files: what a file holds, written and read."""

from __future__ import annotations

import math
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
#: How deep estimators may be nested: a classifier of tables holds another classifier.
MOST_PARTS = 2


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
        The number of columns.
    more : mapping of str to object
        Other values that the class needs.
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

    def number(self, name: str) -> float:
        """A finite number of ``more``.

        Parameters
        ----------
        name : str
        """
        value = self.more.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ModelFileError(f"The {name} of the {self.kind} is not a number.")
        if not math.isfinite(value):
            raise ModelFileError(f"The {name} of the {self.kind} is not a finite number.")
        return float(value)

    def integer(self, name: str, least: int = 0) -> int:
        """An integer of ``more``.

        Parameters
        ----------
        name : str
        least : int, default=0
            The smallest integer that is allowed.
        """
        value = self.more.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ModelFileError(
                f"The {name} of the {self.kind} is not an integer from {least} on."
            )
        return value

    def record(self, name: str) -> dict[str, Any]:
        """A dictionary of ``more`` whose keys are texts.

        Parameters
        ----------
        name : str
        """
        return _checked_record(self.more.get(name), f"The {name} of the {self.kind}")

    def records(self, name: str, length: int) -> list[dict[str, Any]]:
        """A list of ``more`` of dictionaries whose keys are texts.

        Parameters
        ----------
        name : str
        length : int
            The number of dictionaries.
        """
        values = self.more.get(name)
        what = f"The {name} of the {self.kind}"
        if not isinstance(values, list) or len(values) != length:
            raise ModelFileError(f"{what} are not a list of {length} dictionaries.")
        return [_checked_record(value, f"{what}[{i}]") for i, value in enumerate(values)]


def _checked_record(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ModelFileError(f"{what} is not a dictionary whose keys are texts.")
    return value


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
        saved = _unpacked(Record(manifest.get("saved"), arrays, "saved"), 1)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except archive.DAMAGE as error:
        raise ModelFileError(f"{path} does not hold a model: {error}.") from error
    if arrays:
        raise ModelFileError(f"{path}: no part of the model uses the array {min(arrays)}.")
    return saved


def _packed(saved: Saved, arrays: Arrays) -> dict[str, Any]:
    model, names = saved.model, saved.feature_names
    metric = model if isinstance(model, SparseMetric) else None
    fitted = model if isinstance(model, Model | Blend) else None
    return {
        "kind": saved.kind,
        "parameters": pack_values(saved.parameters, arrays.below("parameters")),
        "metric": None if metric is None else pack_metric(metric, arrays.below("metric")),
        "model": None if fitted is None else pack_model(fitted, names, arrays.below("model")),
        "feature_names": names,
        "n_features": int(saved.n_features),
        "more": pack_values(saved.more, arrays.below("more")),
        "part": None if saved.part is None else _packed(saved.part, arrays.below("part")),
    }


def _unpacked(record: Record, depth: int) -> Saved:
    n_features = record.integer("n_features")
    names = record.texts("feature_names", n_features) if record.has("feature_names") else None
    part = record.optional_record("part")
    if part is not None and depth == MOST_PARTS:
        record.fail("part", f"is nested more than {MOST_PARTS - 1} levels deep")
    return Saved(
        kind=record.text("kind"),
        parameters=unpack_values(record.record("parameters")),
        model=_unpacked_model(record, names, n_features),
        feature_names=names,
        n_features=n_features,
        more=unpack_values(record.record("more")),
        part=None if part is None else _unpacked(part, depth + 1),
    )


def _unpacked_model(
    record: Record, names: list[str] | None, n_features: int
) -> SparseMetric | Model | Blend | None:
    if record.has("metric"):
        return unpack_metric(record.record("metric"))
    if record.has("model"):
        return unpack_model(record.record("model"), names, n_features)
    return None
