"""The files of a directory of checkpoints: one for each fit, written whole or not at all.

A checkpoint is the path so far. All else follows from it: bags and panels are drawn from the
attempt's number, and the rows' embedding, margins and neighbours from the steps.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, NoReturn

from ..._files import remove_abandoned
from ..._typing import Data, Float, Index
from ..._version import __version__
from ...errors import CheckpointError, FitInterrupted, ModelFileError
from ...model import Factor, Path
from ...storage.archive import DAMAGE, read, write
from ...storage.paths import pack_path, unpack_path
from ...storage.records import Arrays, Record
from .fingerprints import (
    Fingerprint,
    differences,
    digest,
    digest_of_known,
    digest_of_table,
    key,
    plain_options,
)
from .interrupts import Channel, listening

#: Seconds between two writings.
EVERY = 3.0
ENDING = ".checkpoint"
MAX_BYTES, MOST_TERMS = 2**32, 2**62
NOT_WRITTEN = "No checkpoint can be written, so the fit goes on without"


@contextmanager
def checkpoints_in(
    directory: str | os.PathLike[str] | None, digest: Callable[[], str]
) -> Iterator[Checkpoints | None]:
    """Where fits keep what they learn, while they run; None where they do not, or cannot."""
    problem = None if directory is None else _unusable(directory)
    if problem is not None:
        warnings.warn(f"{NOT_WRITTEN}: {problem}.", UserWarning, stacklevel=4)
    if directory is None or problem is not None:
        yield None
        return
    with listening() as channel:
        yield Checkpoints(FilePath(directory), digest(), channel)


def _unusable(directory: str | os.PathLike[str]) -> Exception | None:
    """What keeps files from being written there."""
    try:
        os.makedirs(directory, exist_ok=True)
        remove_abandoned(FilePath(directory))
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"some")
    except (OSError, ValueError) as error:  # a name may not hold a zero
        return error
    return None


@dataclass(frozen=True)
class Checkpoints:
    """Where the fits over one table keep what they have learned."""

    directory: FilePath
    table: str
    channel: Channel | None = None

    @classmethod
    def of(cls, directory: str | os.PathLike[str], X: Data) -> Checkpoints:
        return cls(FilePath(directory), digest_of_table(X))

    def fit(
        self,
        labels: Index,
        weight: Float,
        rows: Index | None,
        engine: str,
        options: Any,
        known: Any = None,
    ) -> FitFile:
        fingerprint = {
            "version": __version__,
            "table": self.table,
            "labels": digest(labels),
            "weights": digest(weight),
            "rows": None if rows is None else digest(rows),
            "engine": engine,
            "parameters": plain_options(options),
            "constants": None if known is None else digest_of_known(known),
        }
        file = FitFile(self.directory / f"{key(fingerprint)}{ENDING}", fingerprint, self.channel)
        if file.asked_to_stop():
            file.stop("Stopped before the next fit")
        return file


class FitFile:
    """One fit's checkpoint. Where it cannot be written, the fit goes on without one."""

    def __init__(
        self, path: FilePath, fingerprint: Fingerprint, channel: Channel | None = None
    ) -> None:
        self.path, self._fingerprint, self._channel = path, fingerprint, channel
        self._last, self._works = time.monotonic(), True

    def known(self) -> Path | None:
        """The path that the file has; None where there is none, or it is damaged."""
        try:
            content, arrays = read(self.path, MAX_BYTES)
            self._check(content.get("fit"))
            return unpack_path(Record(content.get("path"), arrays, "path"), MOST_TERMS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except CheckpointError:
            raise
        except (ModelFileError, OSError, *DAMAGE) as error:
            what = f"The checkpoint {self.path} cannot be read, so the fit begins anew"
            self._complain("not read", f"{what}: {error}.")
            return None

    def _check(self, there: Any) -> None:
        found = differences(there, self._fingerprint)
        if found:
            raise CheckpointError(
                f"{self.path} is a checkpoint of another fit: {'; '.join(found)}. Delete it, or "
                "give another directory."
            )

    def __call__(self, attempt: int, path: Path) -> None:
        """After every attempt."""
        asked = self.asked_to_stop()
        if asked or time.monotonic() - self._last >= EVERY:
            self.write(path)
        if asked:  # not asked again: what was written must be all
            self.stop(f"Stopped after attempt {attempt}")

    def asked_to_stop(self) -> bool:
        return self._channel is not None and self._channel.asked_to_stop()

    def stop(self, when: str) -> NoReturn:
        if not self._works:
            raise FitInterrupted(f"{when}. No checkpoint could be written: nothing is kept.")
        raise FitInterrupted(
            f"{when}. What was learned is in {self.path.parent}: fit again with the same "
            "checkpoint to go on."
        )

    def write(self, path: Path) -> None:
        """All but the metric it started from, which follows from the parameters."""
        if not self._works:
            return
        arrays = Arrays()
        packed = pack_path(replace(path, start=Factor.empty()), arrays)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, {"fit": self._fingerprint, "path": packed}, arrays.found)
        except OSError as error:
            self._works = False
            self._complain("not written", f"{NOT_WRITTEN}: {error}.")
        self._last = time.monotonic()

    def _complain(self, kind: str, what: str) -> None:
        """To who waits for this fit, perhaps in another process."""
        if self._channel is not None:
            self._channel.complain(kind, what)
        else:
            warnings.warn(what, UserWarning, stacklevel=2)
