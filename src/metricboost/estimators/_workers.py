"""Processes for the fits of small tables, threads inside the fits of large ones."""

from __future__ import annotations

from dataclasses import dataclass

from joblib import effective_n_jobs

from .._threads import allowed_threads

#: Numbers of a table whose fits are made one after the other, each by all threads: every process
#: would hold a copy of it, and threads have enough to do.
LARGE = 2**24


@dataclass(frozen=True)
class Workers:
    processes: int
    threads: int


def workers(n_jobs: int | None, n_numbers: int, n_tasks: int) -> Workers:
    """How tasks on a table of so many numbers are shared; either processes or threads."""
    jobs = effective_n_jobs(n_jobs)
    if n_tasks > 1 and jobs > 1 and n_numbers <= LARGE:
        return Workers(min(jobs, n_tasks), 1)
    return Workers(1, threads(n_jobs))


def threads(n_jobs: int | None) -> int:
    """So many as were asked for; as BLAS may have where nothing was."""
    jobs = effective_n_jobs(n_jobs)
    return allowed_threads() if n_jobs is None and jobs == 1 else jobs
