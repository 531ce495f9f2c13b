"""The command's directory of checkpoints, which belongs to one table and one set of parameters.

A file in the directory names the table and the parameters. Another fit is refused, so that its
checkpoints do not come to lie among those of the first one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._files import replacing
from ..._version import __version__
from ...errors import CheckpointError
from .fingerprints import DIGEST_BYTES, Fingerprint, differences

NAME = "metricboost.json"
#: Bytes of a table that are read at a time.
CHUNK = 2**20


def claim(directory: Path, data: Path, parameters: Mapping[str, Any]) -> None:
    """Reserve a directory of checkpoints for a fit.

    A directory that cannot be written is not an error: the fit then warns that it cannot write
    checkpoints, and goes on without them.

    Parameters
    ----------
    directory : path
        Made if it does not exist.
    data : path
        The file with the table.
    parameters : mapping of str to object
        The parameters that the model depends on.

    Raises
    ------
    CheckpointError
        If the directory is reserved for a fit of another table, or with other parameters.
    """
    own: Fingerprint = {
        "version": __version__,
        "table": _digest_of_file(data),
        "parameters": parameters,
    }
    own = json.loads(json.dumps(own))  # tuples become lists, as in the file
    there = _claimed(directory)
    if there is None:
        _write(directory, own)
        return
    found = differences(there, own)
    if found:
        raise CheckpointError(
            f"{directory} has the checkpoints of another fit: {'; '.join(found)}. Give another "
            "directory, or delete this one."
        )


def _claimed(directory: Path) -> Any:
    """The content of the directory's file; None if there is no such file or it cannot be read."""
    try:
        return json.loads((directory / NAME).read_text(encoding="utf-8"))
    except OSError:
        return None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{directory / NAME} is damaged or was not written by metricboost ({error}): give "
            "another directory, or delete this one."
        ) from error


def _digest_of_file(path: Path) -> str:
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _write(directory: Path, own: Fingerprint) -> None:
    # The fit warns about a directory that cannot be written, so errors are not raised here.
    try:
        os.makedirs(directory, exist_ok=True)
        with replacing(directory / NAME) as unfinished:
            unfinished.write_text(json.dumps(own), encoding="utf-8")
    except (OSError, ValueError):
        pass
