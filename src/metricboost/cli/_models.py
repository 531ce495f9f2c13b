"""Reads the files and models of commands, and refuses wrong arguments before the work begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .. import load
from ..errors import TableError
from ..tables import TableClassifier, read_table
from ..tables.names import unknown_column
from ._console import Voice, WrongUsageError


def read_data(voice: Voice, path: Path) -> Any:
    """A file as a DataFrame."""
    with voice.working(f"reading {path.name}"):
        return read_table(path)


def read_model(path: Path) -> TableClassifier:
    """The model of a table. Models of arrays are refused: they do not encode columns."""
    model = load(path)
    if not isinstance(model, TableClassifier):
        raise TableError(
            f"{path} holds a {type(model).__name__} that was saved in Python. The command takes "
            "models that metricboost fit or TableClassifier.save has written. Use "
            "metricboost.load in Python for the other models."
        )
    return model


def check_columns(frame: Any, names: tuple[str, ...]) -> None:
    """Refuse names of columns that the table does not have."""
    for name in names:
        if name not in frame.columns:
            raise WrongUsageError(unknown_column(name, frame.columns))


def check_target(target: str, drop: tuple[str, ...]) -> None:
    """Refuse to drop the target."""
    if target in drop:
        raise WrongUsageError(f"--drop {target}: this column is the target and cannot be dropped.")


def check_output(path: Path | None, *inputs: Path | None) -> None:
    """Refuse a file that cannot be written, or that the command reads, before the work begins."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise WrongUsageError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise WrongUsageError(f"{path} cannot be written: the folder {folder} is read-only.")
    if path.exists() and not path.is_file():
        raise WrongUsageError(f"{path} is not a file. Give the name of a file to write.")
    for source in inputs:
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise WrongUsageError(
                f"{path} would be overwritten, but the command reads this file. Give another "
                "--output."
            )
