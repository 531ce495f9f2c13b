"""The line that shows the progress of a fit."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from .._counter import WIDTH
from ..boosting.loop import Watch
from ..model import Path

#: Seconds between two updates of the line.
INTERVAL = 0.1


class ProgressLine:
    """Shows attempts, accepted steps, loss, terms and the remaining time on one line."""

    def __init__(self, max_iter: int, stream: TextIO | None = None) -> None:
        self.max_iter = max_iter
        self._stream = stream if stream is not None else sys.stderr
        self._start = time.monotonic()
        self._shown = -INTERVAL

    def fold(self, number: int, n_fits: int) -> Watch:
        """The function that one of several consecutive fits calls after each attempt."""

        def watch(attempt: int, path: Path) -> None:
            elapsed = time.monotonic() - self._start
            if elapsed - self._shown >= INTERVAL:
                self._shown = elapsed
                done = number + attempt / self.max_iter
                self._write(number + 1, n_fits, attempt, path, elapsed / done * (n_fits - done))

        return watch

    def close(self, paths: Sequence[Path]) -> None:
        last = paths[-1]
        self._write(len(paths), len(paths), last.n_attempts, last, 0.0)
        self._stream.write("\n")
        self._stream.flush()

    def _write(self, fit: int, n_fits: int, attempt: int, path: Path, left: float) -> None:
        filled = WIDTH * attempt // self.max_iter
        bar = "#" * filled + "." * (WIDTH - filled)
        loss = f"{path.steps[-1].loss:.4g}" if path.steps else "-"
        terms = path.steps[-1].n_terms if path.steps else 0
        self._stream.write(
            f"\rsDist fit {fit}/{n_fits} [{bar}] {attempt}/{self.max_iter}  "
            f"accepted {len(path)}  loss {loss}  terms {terms}  {left:.0f}s left   "
        )
        self._stream.flush()
