"""A directory of checkpoints that belongs to one fit: of the command, which fits one table."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..._files import replacing
from ..._version import __version__
from ...errors import CheckpointError
from .fingerprints import differences

NAME = "metricboost.json"
CHUNK = 2**20


def claim(directory: Path, data: Path, parameters: dict[str, Any]) -> None:
    """Take a directory for a fit; refused where another fit's checkpoints are in it."""
    mine = {"version": __version__, "table": _digest(data), "parameters": parameters}
    mine = json.loads(json.dumps(mine))  # as it will be read
    there = _claimed(directory)
    if there is None:
        _write(directory, mine)
        return
    found = differences(there, mine)
    if found:
        raise CheckpointError(
            f"{directory} has the checkpoints of another fit: {'; '.join(found)}. Give another "
            "directory, or delete this one."
        )


def _claimed(directory: Path) -> Any:
    """What the directory is of; None for a new one, or where nothing can be kept at all."""
    try:
        return json.loads((directory / NAME).read_text(encoding="utf-8"))
    except OSError:
        return None
    except ValueError as error:
        raise CheckpointError(
            f"{directory / NAME} is no file of ours ({error}): give another directory."
        ) from error


def _digest(data: Path) -> str:
    found = hashlib.blake2b(digest_size=16)
    with open(data, "rb") as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _write(directory: Path, mine: dict[str, Any]) -> None:
    """Where it cannot be written, no checkpoint can, and the fit will say so."""
    try:
        os.makedirs(directory, exist_ok=True)
        with replacing(directory / NAME) as unfinished:
            unfinished.write_text(json.dumps(mine), encoding="utf-8")
    except (OSError, ValueError):
        pass
