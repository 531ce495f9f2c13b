"""Ctrl-C while fits write checkpoints: each ends after the step at hand, with all of it written.

Fits may run in worker processes. They and the process that started them share a folder: a file in
it says that they are to stop, another has what they complain of, so that it is said once.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...errors import FitInterrupted


@dataclass(frozen=True)
class Channel:
    """Between fits and the process that waits for them."""

    folder: Path

    def ask_to_stop(self) -> None:
        with suppress(OSError):
            (self.folder / "stop").touch()

    def asked_to_stop(self) -> bool:
        return os.path.exists(self.folder / "stop")

    def complain(self, kind: str, what: str) -> None:
        line = f"{kind}\t{what}".replace("\n", " ")
        with suppress(OSError), open(self.folder / "complaints", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def complaints(self) -> list[str]:
        """The first of every kind."""
        try:
            lines = (self.folder / "complaints").read_text(encoding="utf-8").split("\n")[:-1]
        except OSError:
            return []
        first: dict[str, str] = {}
        for line in lines:
            first.setdefault(*line.split("\t", 1))
        return list(first.values())


@contextmanager
def listening() -> Iterator[Channel]:
    """In the main thread the first Ctrl-C asks all fits to stop; the second interrupts at once."""
    with tempfile.TemporaryDirectory(prefix="metricboost-", ignore_cleanup_errors=True) as folder:
        channel = Channel(Path(folder))
        with _handling(channel):
            yield channel
        stopped, complaints = channel.asked_to_stop(), channel.complaints()
    for complaint in complaints:
        warnings.warn(complaint, UserWarning, stacklevel=4)
    if stopped:
        raise FitInterrupted("Stopped after the last step: fit again to go on from there.")


@contextmanager
def _handling(channel: Channel) -> Iterator[None]:
    """Where Ctrl-C is another's, or ignored, it stays so."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def ask(number: int, frame: object) -> None:
        if channel.asked_to_stop():
            raise KeyboardInterrupt
        channel.ask_to_stop()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
