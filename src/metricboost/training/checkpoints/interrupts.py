"""Ctrl-C while fits write checkpoints: every fit ends after its current step and writes all of it.

Fits may run in several threads. They share a temporary folder with the thread that started them. A
file in the folder asks all fits to stop. Another file collects the warnings of all fits, so that
the thread that started them can give each kind of warning once.
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
    """The folder that fits share with the thread that started them.

    Attributes
    ----------
    folder : path
    """

    folder: Path

    def ask_to_stop(self) -> None:
        """Ask all fits to stop after their current step."""
        with suppress(OSError):
            (self.folder / "stop").touch()

    def asked_to_stop(self) -> bool:
        """Whether the fits have been asked to stop."""
        return os.path.exists(self.folder / "stop")

    def warn(self, kind: str, message: str) -> None:
        """Pass a warning to the thread that started the fits.

        Parameters
        ----------
        kind : str
            A word for the cause. Only the first warning of every kind is given.
        message : str
        """
        line = f"{kind}\t{message}".replace("\n", " ")
        with suppress(OSError), open(self.folder / "warnings", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def warnings(self) -> list[str]:
        """The first warning of every kind."""
        try:
            lines = (self.folder / "warnings").read_text(encoding="utf-8").split("\n")[:-1]
        except OSError:
            return []
        first: dict[str, str] = {}
        for line in lines:
            first.setdefault(*line.split("\t", 1))
        return list(first.values())


@contextmanager
def listening() -> Iterator[Channel]:
    """A channel for the fits that run inside the context.

    In the main thread the first Ctrl-C asks all fits to stop, and the second one interrupts at
    once. The warnings of the fits are given when the context ends.
    """
    with tempfile.TemporaryDirectory(prefix="metricboost-", ignore_cleanup_errors=True) as folder:
        channel = Channel(Path(folder))
        with _handling(channel):
            yield channel
        stopped, messages = channel.asked_to_stop(), channel.warnings()
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=4)
    if stopped:
        raise FitInterrupted("Stopped after the last step: fit again to make the model of it.")


@contextmanager
def _handling(channel: Channel) -> Iterator[None]:
    """Ctrl-C asks the fits of a channel to stop.

    Nothing changes outside the main thread, which alone may handle signals, and if Ctrl-C is
    ignored or handled by something else than Python.
    """
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
