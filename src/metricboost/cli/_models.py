"""Reading files and models for commands; what is not there is wrong usage."""

from __future__ import annotations

import os
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


def check_target(target: str, drop: tuple[str, ...]) -> None:
    if target in drop:
        raise WrongUsageError(f"--drop {target}: it is the target, which cannot be dropped.")


def check_output(path: Path | None, *inputs: Path | None) -> None:
    """A place to write to, before the work is done; never a file that is read."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise WrongUsageError(f"{path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise WrongUsageError(f"{path}: the folder {folder} cannot be written to.")
    if path.exists() and not path.is_file():
        raise WrongUsageError(f"{path} is not a file: give the name of one.")
    for source in inputs:
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise WrongUsageError(f"{path} would be overwritten, and it is what is read.")
