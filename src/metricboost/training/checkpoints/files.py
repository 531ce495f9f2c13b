"""The files of a directory of checkpoints: one for each fit, and each complete at any time.

A checkpoint is the path of accepted steps so far. Everything else follows from the path: bags and
panels are drawn from the number of the attempt, and the embedding, the margins and the neighbours
of the rows are computed from the steps.
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
from typing import TYPE_CHECKING, Any, NoReturn

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

if TYPE_CHECKING:
    from ..learn import Known
    from ..options import LearningOptions

#: Seconds between two writings of a checkpoint.
WRITE_EVERY = 3.0
ENDING = ".checkpoint"
#: Limits for a checkpoint that is read: bytes of its arrays, and the numbers of terms.
MAX_BYTES, MOST_TERMS = 2**32, 2**62
NOT_WRITTEN = "No checkpoint can be written, so the fit goes on without one"


@contextmanager
def checkpoints_in(
    directory: str | os.PathLike[str] | None,
    digest: Callable[[], str],
    write_every: float = WRITE_EVERY,
) -> Iterator[Checkpoints | None]:
    """The checkpoints of a directory, open while fits run.

    Parameters
    ----------
    directory : str, path or None
        Made if it does not exist. A warning says if no file can be written there.
    digest : callable
        Computes the digest of the table. It is only called if there is a directory.
    write_every : float, default=3.0
        Seconds between two writings of a checkpoint.

    Yields
    ------
    Checkpoints or None
        None if there is no directory, or if no file can be written there.
    """
    problem = None if directory is None else _unusable(directory)
    if problem is not None:
        warnings.warn(f"{NOT_WRITTEN}: {problem}.", UserWarning, stacklevel=4)
    if directory is None or problem is not None:
        yield None
        return
    with listening() as channel:
        yield Checkpoints(FilePath(directory), digest(), channel, write_every)


def _unusable(directory: str | os.PathLike[str]) -> Exception | None:
    """The error that writing to a directory raises; None if files can be written there."""
    try:
        os.makedirs(directory, exist_ok=True)
        remove_abandoned(FilePath(directory))
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"test")
    except (OSError, ValueError) as error:  # ValueError: a name must not contain a NUL character
        return error
    return None


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of all fits over one table.

    Attributes
    ----------
    directory : path
    table : str
        The digest of the table.
    channel : Channel or None
        How fits are asked to stop, and where their warnings go.
    write_every : float
        Seconds between two writings of a checkpoint.
    """

    directory: FilePath
    table: str
    channel: Channel | None = None
    write_every: float = WRITE_EVERY

    @classmethod
    def of(
        cls, directory: str | os.PathLike[str], X: Data, write_every: float = WRITE_EVERY
    ) -> Checkpoints:
        """The checkpoints of the fits over a table.

        Parameters
        ----------
        directory : str or path
        X : ndarray or sparse matrix
        write_every : float, default=3.0
            Seconds between two writings of a checkpoint.
        """
        return cls(FilePath(directory), digest_of_table(X), write_every=write_every)

    def fit(
        self,
        labels: Index,
        weight: Float,
        rows: Index | None,
        engine: str,
        options: LearningOptions,
        known: Known | None = None,
    ) -> FitFile:
        """The checkpoint of one fit. Raises ``FitInterrupted`` if fits have been asked to stop.

        Parameters
        ----------
        labels, weight : ndarray of shape (n_rows,)
        rows : ndarray of shape (n_rows,) or None
            The numbers of the rows in the table; None for all rows.
        engine : str
            The signature of the engine.
        options : LearningOptions
        known : Known, optional
            What the fit is told about the whole table if its rows are a sample.
        """
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
        path = self.directory / f"{key(fingerprint)}{ENDING}"
        file = FitFile(path, fingerprint, self.channel, self.write_every)
        if file.asked_to_stop():
            file.stop("Stopped before the next fit")
        return file


class FitFile:
    """The checkpoint of one fit. If it cannot be written, the fit goes on without it.

    Parameters
    ----------
    path : path
    fingerprint : dict
        Identifies the fit. A file with another fingerprint is refused.
    channel : Channel, optional
        How the fit is asked to stop, and where its warnings go.
    write_every : float, default=3.0
        Seconds between two writings.
    """

    def __init__(
        self,
        path: FilePath,
        fingerprint: Fingerprint,
        channel: Channel | None = None,
        write_every: float = WRITE_EVERY,
    ) -> None:
        self.path = path
        self._fingerprint, self._channel = fingerprint, channel
        self._write_every = write_every
        self._last_written, self._can_write = time.monotonic(), True

    def known(self) -> Path | None:
        """The path in the file; None, and a warning, if the file is damaged; None if there is none.

        Raises
        ------
        CheckpointError
            If the file belongs to another fit.
        """
        try:
            content, arrays = read(self.path, MAX_BYTES)
            self._check(content.get("fit"))
            return unpack_path(Record(content.get("path"), arrays, "path"), MOST_TERMS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except CheckpointError:
            raise
        except (ModelFileError, OSError, *DAMAGE) as error:
            problem = f"The checkpoint {self.path} cannot be read, so the fit begins anew"
            self._warn("not read", f"{problem}: {error}.")
            return None

    def _check(self, there: Any) -> None:
        found = differences(there, self._fingerprint)
        if found:
            raise CheckpointError(
                f"{self.path} is a checkpoint of another fit: {'; '.join(found)}. Delete it, or "
                "give another directory."
            )

    def __call__(self, attempt: int, path: Path) -> None:
        """Write the path if it is time to. To be called after every attempted step.

        Raises ``FitInterrupted`` if the fit has been asked to stop. The path is then written.

        Parameters
        ----------
        attempt : int
            The number of the attempted step.
        path : Path
            The accepted steps so far.
        """
        # Asked once: the path must have been written if the fit stops.
        stop = self.asked_to_stop()
        if stop or time.monotonic() - self._last_written >= self._write_every:
            self.write(path)
        if stop:
            self.stop(f"Stopped after attempt {attempt}")

    def asked_to_stop(self) -> bool:
        """Whether the fit has been asked to stop."""
        return self._channel is not None and self._channel.asked_to_stop()

    def stop(self, when: str) -> NoReturn:
        """Raise ``FitInterrupted``.

        Parameters
        ----------
        when : str
            The beginning of the message, such as "Stopped after attempt 3".
        """
        if not self._can_write:
            raise FitInterrupted(f"{when}. No checkpoint could be written, so nothing was kept.")
        raise FitInterrupted(
            f"{when}. The steps learned so far are in {self.path.parent}: fit again with the same "
            "checkpoint to continue."
        )

    def write(self, path: Path) -> None:
        """Write a path, without the metric that it starts from: that follows from the parameters.

        Parameters
        ----------
        path : Path
        """
        if not self._can_write:
            return
        arrays = Arrays()
        packed = pack_path(replace(path, start=Factor.empty()), arrays)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, {"fit": self._fingerprint, "path": packed}, arrays.found)
        except OSError as error:
            self._can_write = False
            self._warn("not written", f"{NOT_WRITTEN}: {error}.")
        self._last_written = time.monotonic()

    def _warn(self, kind: str, message: str) -> None:
        """Give the warning. With a channel, the thread that started the fit gives it."""
        if self._channel is not None:
            self._channel.warn(kind, message)
        else:
            warnings.warn(message, UserWarning, stacklevel=2)
