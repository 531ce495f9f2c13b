"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ENDING = ".unfinished"
#: Seconds after which no process is still at an unfinished file.
ABANDONED = 60.0


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place beside a file to write to, which takes the file's place once all is written.

    Where writing fails, nothing is left behind, and a file that was there stays as it was. A link
    is followed; what is there and is no file, such as a device, is not replaced.
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
        with suppress(OSError):  # another process was faster, or may, and this one may not
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
