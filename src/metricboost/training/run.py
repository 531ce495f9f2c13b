"""The execution of fits: engine, threads and checkpoints."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from joblib import effective_n_jobs

from .._threads import allowed_threads
from ..engines import Engine, get_engine, is_torch
from .checkpoints import WRITE_EVERY, Checkpoints, checkpoints_in, digest_of_table
from .pool import Pool

#: The fits of a table with more numbers than this run one after the other, each with all threads.
#: Several fits at a time would each hold a copy of the table, and a single fit of such a table
#: keeps all threads busy.
LARGE = 2**24
#: By default, the fits of a table with fewer rows and fewer numbers than these run in one thread.
#: They take little time outside of Python, and threads that run Python wait for each other.
FEW_ROWS, FEW_NUMBERS = 500, 2**14


@dataclass(frozen=True)
class Run:
    """How fits are executed. Models depend on the engine only by rounding, and not on the rest.

    Attributes
    ----------
    engine : str
        The name of the engine.
    n_jobs : int or None
        As in the estimators.
    directory : str, path or None
        The directory of the checkpoints. None writes no checkpoints.
    verbose : bool
        Whether the progress is shown.
    checkpoints : Checkpoints or None
        The open directory of the checkpoints while fits run.
    write_every : float
        The number of seconds after which a checkpoint is written again.
    """

    engine: str = "auto"
    n_jobs: int | None = None
    directory: str | os.PathLike[str] | None = None
    verbose: bool = False
    checkpoints: Checkpoints | None = None
    write_every: float = WRITE_EVERY

    @property
    def threads(self) -> int:
        """The number of threads: ``n_jobs``, or by default the number that BLAS may use.

        The default is one thread if the caller is not the main thread of its process. Its process
        then probably has several such threads, for example those of joblib, Dask or a web server.
        """
        if self.n_jobs is not None:
            return int(effective_n_jobs(self.n_jobs))
        alone = threading.current_thread() is threading.main_thread()
        return allowed_threads() if alone else 1

    def tasks_at_a_time(self, pool: Pool, n_tasks: int) -> int:
        """The number of tasks that run at the same time. A GPU runs one task at a time."""
        one = pool.n_numbers > LARGE or is_torch(self.engine)
        return 1 if one else max(min(self.threads, n_tasks), 1)

    def fits_at_a_time(self, pool: Pool, n_tasks: int) -> int:
        """As ``tasks_at_a_time``, for the fits of one model and its choices."""
        few = len(pool.labels) < FEW_ROWS and pool.n_numbers < FEW_NUMBERS
        return 1 if few and self.n_jobs is None else self.tasks_at_a_time(pool, n_tasks)

    def engine_for(self, tasks_at_a_time: int) -> Engine:
        """The engine of a task. It has one thread if several tasks run at the same time."""
        return get_engine(self.engine, 1 if tasks_at_a_time > 1 else self.threads)

    @contextmanager
    def opened(self, pool: Pool) -> Iterator[Run]:
        """Open the directory of the checkpoints, and return the run with it."""
        digest = partial(digest_of_table, pool.X)
        with checkpoints_in(self.directory, digest, self.write_every) as checkpoints:
            yield replace(self, checkpoints=checkpoints)
