"""The line that shows how a fit is getting on."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ..boosting import Path

#: Seconds between two updates of the line.
INTERVAL = 0.1
WIDTH = 24


class ProgressLine:
    """Attempts, accepted steps, loss, terms and time left, on one line of a stream."""

    def __init__(self, max_iter: int, stream: TextIO | None = None) -> None:
        self.max_iter = max_iter
        self._stream = stream if stream is not None else sys.stderr
        self._start = time.monotonic()
        self._shown = -INTERVAL

    def __call__(self, attempt: int, path: Path) -> None:
        elapsed = time.monotonic() - self._start
        if elapsed - self._shown >= INTERVAL:
            self._shown = elapsed
            self._write(attempt, path, elapsed / attempt * (self.max_iter - attempt))

    def close(self, path: Path) -> None:
        self._write(path.n_attempts, path, 0.0)
        self._stream.write("\n")
        self._stream.flush()

    def _write(self, attempt: int, path: Path, left: float) -> None:
        filled = WIDTH * attempt // self.max_iter
        bar = "#" * filled + "." * (WIDTH - filled)
        loss = f"{path.steps[-1].loss:.4g}" if path.steps else "-"
        terms = path.steps[-1].n_terms if path.steps else 0
        self._stream.write(
            f"\rsDist [{bar}] {attempt}/{self.max_iter}  accepted {len(path)}  loss {loss}  "
            f"terms {terms}  {left:.0f}s left   "
        )
        self._stream.flush()
