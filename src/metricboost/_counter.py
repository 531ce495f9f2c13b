"""How many of some tasks are done, shown while they run."""

from __future__ import annotations

import sys
import time
from typing import TextIO

#: Letters of a bar.
WIDTH = 24


class Counter:
    """How many of some tasks are done, on one line of a stream."""

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
