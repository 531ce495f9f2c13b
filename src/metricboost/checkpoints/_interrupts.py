"""Ctrl-C while a fit writes checkpoints: it ends after the step at hand, with all of it written."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from ..errors import FitInterrupted

#: Whether Ctrl-C was pressed in this process while a fit could be asked to stop.
_asked = threading.Event()


def asked() -> bool:
    return _asked.is_set()


class Interrupts:
    """In the main thread the first Ctrl-C asks, and the second interrupts at once.

    Another one inside changes nothing.
    """

    _depth = 0

    def __enter__(self) -> Interrupts:
        Interrupts._depth += 1
        self._before: Any = None
        if Interrupts._depth == 1 and threading.current_thread() is threading.main_thread():
            _asked.clear()
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if _asked.is_set():
            raise KeyboardInterrupt
        _asked.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        Interrupts._depth -= 1
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        stop = _asked.is_set()
        _asked.clear()
        if stop and kind is None:
            raise FitInterrupted("Stopped after the last step: fit again to go on from there.")
