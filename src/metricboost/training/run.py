"""What belongs to the run of a fit, not to its model: engine, processes, threads, checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from joblib import effective_n_jobs

from .._threads import allowed_threads
from ..engines import Engine, get_engine, is_torch
from .checkpoints import WRITE_EVERY, Checkpoints, checkpoints_in, digest_of_table
from .pool import Pool

#: The fits of a table with more numbers than this are made one after the other, each with all
#: threads. Every process would hold a copy of such a table, and threads have enough to do.
LARGE = 2**24


@dataclass(frozen=True)
class Run:
    """How fits are computed. The model does not depend on it, except for the engine's last bits.

    Attributes
    ----------
    engine : str
        The name of the engine.
    n_jobs : int or None
        As in the estimators.
    directory : str, path or None
        Where checkpoints are kept.
    verbose : bool
        Whether lines of progress are shown.
    checkpoints : Checkpoints or None
        The open directory, while fits run.
    write_every : float
        Seconds between two writings of a checkpoint.
    """

    engine: str = "auto"
    n_jobs: int | None = None
    directory: str | os.PathLike[str] | None = None
    verbose: bool = False
    checkpoints: Checkpoints | None = None
    write_every: float = WRITE_EVERY

    @property
    def threads(self) -> int:
        """As many as were asked for, or as many as BLAS may have if nothing was."""
        jobs = effective_n_jobs(self.n_jobs)
        return allowed_threads() if self.n_jobs is None and jobs == 1 else jobs

    def processes(self, pool: Pool, n_tasks: int) -> int:
        """How many processes share tasks on a table. A device has room for one task at a time."""
        jobs = effective_n_jobs(self.n_jobs)
        many = n_tasks > 1 and jobs > 1 and pool.n_numbers <= LARGE and not is_torch(self.engine)
        return min(jobs, n_tasks) if many else 1

    def engine_for(self, processes: int) -> Engine:
        """The engine of a task: with one thread if processes share the tasks."""
        return get_engine(self.engine, 1 if processes > 1 else self.threads)

    @contextmanager
    def opened(self, pool: Pool) -> Iterator[Run]:
        """The run with its directory of checkpoints open."""
        digest = partial(digest_of_table, pool.X)
        with checkpoints_in(self.directory, digest, self.write_every) as checkpoints:
            yield replace(self, checkpoints=checkpoints)
