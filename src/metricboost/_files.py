"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ENDING = ".unfinished"
#: Unfinished files that were not modified for this many seconds belong to no running process.
ABANDONED = 60.0


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A context to write a file atomically.

    The context yields the path of a temporary file in the same directory, which replaces the file
    at the end of the context. If writing fails, the temporary file is deleted and an existing file
    is not changed. Symbolic links are followed. A path that exists and is not a regular file, such
    as a device, is an error.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    unfinished = path.with_name(f".{secrets.token_hex(8)}{ENDING}")
    try:
        yield unfinished
        with open(unfinished, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def remove_abandoned(directory: Path) -> None:
    """Delete the unfinished files of processes that were killed while they wrote."""
    for path in directory.glob(f".*{ENDING}"):
        with suppress(OSError):  # deleted by another process, or not allowed
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
