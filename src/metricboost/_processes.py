"""Fits in worker processes.

Worker processes ignore Ctrl-C. They stop when the main process asks them to.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, delayed

from .errors import FitInterrupted

#: A task as created by ``joblib.delayed``.
Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def run_fits(
    n_jobs: int,
    tasks: Iterable[Task],
    can_stop: bool,
    done: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Run tasks in worker processes and return their results in order.

    Parameters
    ----------
    n_jobs : int
    tasks : iterable of Task
    can_stop : bool
        Whether a fit ends with ``FitInterrupted`` after its current step when it is asked to stop.
        If a fit was interrupted, all other fits are waited for before the exception is raised.
    done : callable, optional
        Called with the number of finished tasks and the number of all tasks after every task.
    """
    tasks = list(tasks)
    if can_stop and n_jobs > 1:
        _start_workers(n_jobs)
    run = Parallel(n_jobs, return_as="generator")
    found = []
    for result in run(delayed(_stopped_is_a_result)(task) for task in tasks):
        found.append(result)
        if done is not None:
            done(len(found), len(tasks))
    for result in found:
        if isinstance(result, FitInterrupted):
            raise result
    return found


def _stopped_is_a_result(task: Task) -> Any:
    """Run a task and return ``FitInterrupted`` instead of raising it.

    An exception would make the pool stop all other tasks in the middle of their steps.
    """
    function, args, named = task
    try:
        return function(*args, **named)
    except FitInterrupted as stopped:
        return stopped


def _start_workers(n_jobs: int) -> None:
    """Start the worker processes with Ctrl-C (SIGINT) blocked, if they are not yet started.

    Worker processes inherit the blocked signals of the main process. In the main process the signal
    is delivered after the start. Systems without ``pthread_sigmask`` cannot block the signal.
    """
    if not hasattr(signal, "pthread_sigmask"):
        return
    _start_trackers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        Parallel(n_jobs)(delayed(os.getpid)() for _ in range(n_jobs))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_trackers() -> None:
    """Start the resource trackers, which must not be started later, because they unblock SIGINT."""
    resource_tracker.ensure_running()
    with suppress(ImportError):  # the module of joblib is private and may move
        from joblib.externals.loky.backend.resource_tracker import ensure_running

        ensure_running()
