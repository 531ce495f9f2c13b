"""Reading files and models for commands; what is not there is wrong usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import load
from ..errors import TableError
from ..tables import TableClassifier, read_table
from ._console import Voice, WrongUsageError


def read_data(voice: Voice, path: Path) -> Any:
    with voice.working(f"reading {path.name}"):
        return read_table(path)


def read_model(path: Path) -> TableClassifier:
    """A model of a table; other models have no columns to read files by."""
    model = load(path)
    if not isinstance(model, TableClassifier):
        raise TableError(
            f"{path} holds a {type(model).__name__}, saved in Python: use it there, with "
            "metricboost.load. The command takes models that metricboost fit has made."
        )
    return model


def check_columns(frame: Any, names: tuple[str, ...]) -> None:
    from ..tables._names import unknown_column

    for name in names:
        if name not in frame.columns:
            raise WrongUsageError(unknown_column(name, frame.columns))


def check_output(path: Path | None) -> None:
    """A place to write to, before the work is done."""
    if path is not None and not path.absolute().parent.is_dir():
        raise WrongUsageError(f"{path}: there is no folder {path.absolute().parent}.")
    if path is not None and path.is_dir():
        raise WrongUsageError(f"{path} is a folder: give the name of a file.")
