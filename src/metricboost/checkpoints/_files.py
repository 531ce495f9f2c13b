"""The files of a directory of checkpoints: one for each fit, written whole or not at all.

A checkpoint is the path so far. All else follows from it: bags and panels are drawn from the
attempt's number, and the rows' embedding, margins and neighbours from the steps.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from .._files import remove_abandoned
from .._typing import Data, Float, Index
from ..boosting.path import Path
from ..errors import CheckpointError, FitInterrupted, ModelFileError
from ._fingerprints import Fingerprint, differences, digest, digest_of_table, key, plain_options
from ._interrupts import asked

#: Seconds between two writings.
EVERY = 3.0
ENDING = ".checkpoint"
MAX_BYTES, MOST_TERMS = 2**32, 2**62
#: Directories that could not be written to, of which was warned.
_warned: set[str] = set()


@dataclass(frozen=True)
class Checkpoints:
    """Where the fits over one table keep what they have learned."""

    directory: FilePath
    table: str

    @classmethod
    def of(cls, directory: str | os.PathLike[str], X: Data) -> Checkpoints:
        return cls(FilePath(directory), digest_of_table(X))

    def fit(
        self, labels: Index, weight: Float, rows: Index | None, engine: str, options: Any
    ) -> FitFile:
        from .. import __version__

        fingerprint = {
            "version": __version__,
            "table": self.table,
            "labels": digest(labels),
            "weights": digest(weight),
            "rows": None if rows is None else digest(rows),
            "engine": engine,
            "parameters": plain_options(options),
        }
        return FitFile(self.directory / f"{key(fingerprint)}{ENDING}", fingerprint)


class FitFile:
    """One fit's checkpoint. Where it cannot be written, the fit goes on without one."""

    def __init__(self, path: FilePath, fingerprint: Fingerprint) -> None:
        self.path, self._fingerprint = path, fingerprint
        self._last, self._works = time.monotonic(), True

    def known(self) -> Path | None:
        """The path that the file has; None where there is none, or it is damaged."""
        from ..persistence.archive import DAMAGE, read
        from ..persistence.metrics import unpack_path
        from ..persistence.records import Record

        remove_abandoned(self.path.parent)
        try:
            content, arrays = read(self.path, MAX_BYTES)
            self._check(content.get("fit"))
            return unpack_path(Record(content.get("path"), arrays, "path"), MOST_TERMS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except CheckpointError:
            raise
        except (ModelFileError, OSError, *DAMAGE) as error:
            self._warn(f"The checkpoint {self.path} cannot be read, so the fit begins anew", error)
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
        stop = asked()
        if stop or time.monotonic() - self._last >= EVERY:
            self.write(path)
        if stop:
            raise FitInterrupted(
                f"Stopped after attempt {attempt}. What was learned is in {self.path.parent}: "
                "fit again with the same checkpoint to go on."
            )

    def write(self, path: Path) -> None:
        from ..persistence.archive import write
        from ..persistence.metrics import pack_path
        from ..persistence.writing import Arrays

        if not self._works:
            return
        arrays = Arrays()
        content = {"fit": self._fingerprint, "path": pack_path(path, arrays)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, content, arrays.found)
        except OSError as error:
            self._works = False
            if str(self.path.parent) not in _warned:
                _warned.add(str(self.path.parent))
                self._warn("No checkpoint can be written, so the fit goes on without", error)
        self._last = time.monotonic()

    def _warn(self, what: str, error: Exception) -> None:
        warnings.warn(f"{what}: {error}.", UserWarning, stacklevel=2)
