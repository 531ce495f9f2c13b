"""Code that depends on whether a worker of a Dask cluster runs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import get_worker, rejoin, secede


def worker_threads() -> int | None:
    """The number of threads of the worker that runs this code; None outside a worker."""
    try:
        return int(get_worker().state.nthreads)
    except ValueError:
        return None


@contextmanager
def thread_given_back() -> Iterator[None]:
    """Give the thread of the running task back to its worker while the block runs.

    A fit inside a task waits for tasks of its own. They may need this thread. Outside a task, or in
    a task that has given its thread back before, the block runs as it is.
    """
    try:
        secede()
    except (ValueError, KeyError):
        yield
        return
    try:
        yield
    finally:
        rejoin()
