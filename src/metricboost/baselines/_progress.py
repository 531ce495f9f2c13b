"""The progress line of an optimiser."""

from __future__ import annotations

from typing import Any

from .._counter import Counter


class Iterations:
    """A callback for SciPy's ``minimize`` that counts iterations in a progress line."""

    def __init__(self, what: str, most: int) -> None:
        self._line = Counter(what)
        self._most = most
        self._done = 0

    def __call__(self, _: Any) -> None:
        self._done += 1
        self._line(min(self._done, self._most), self._most)
