"""A progress line."""

from __future__ import annotations

import sys
import time
from typing import TextIO

#: Number of characters in the bar.
WIDTH = 24


class Counter:
    """A progress line with the number of tasks done and the estimated time left.

    Parameters
    ----------
    what : str
        The label of the line.
    stream : file object, optional
        By default ``sys.stderr``.
    """

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream if stream is not None else sys.stderr
        self._start = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        left = (time.monotonic() - self._start) / done * (total - done)
        filled = WIDTH * done // total
        bar = "#" * filled + "." * (WIDTH - filled)
        end = "\n" if done == total else ""
        self._stream.write(f"\r{self._what} [{bar}] {done}/{total}  {left:.0f}s left   {end}")
        self._stream.flush()
