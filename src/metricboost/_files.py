"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A place beside a file to write to, which takes the file's place once all is written.

    Where writing fails, nothing is left behind, and a file that was there stays as it was.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield unfinished
        with open(unfinished, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
