"""A directory of checkpoints that belongs to one fit: of the command, which fits one table."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .._files import replacing
from ..errors import CheckpointError
from ._fingerprints import differences

NAME = "fit.json"
CHUNK = 2**20


def claim(directory: Path, data: Path, parameters: dict[str, Any]) -> None:
    """Take a directory for a fit; refused where another fit's checkpoints are in it."""
    from .. import __version__

    mine = {"version": __version__, "table": _digest(data), "parameters": parameters}
    mine = json.loads(json.dumps(mine))  # as it will be read
    try:
        there = json.loads((directory / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        _write(directory, mine)
        return
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{directory / NAME} cannot be read ({error}): delete {directory}, or give another."
        ) from error
    found = differences(there, mine)
    if found:
        raise CheckpointError(
            f"{directory} has the checkpoints of another fit: {'; '.join(found)}. Delete it, or "
            "give another directory."
        )


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
    except OSError:
        pass
