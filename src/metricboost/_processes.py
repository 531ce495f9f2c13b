"""Fits in worker processes, which stop when they are asked to, and not when Ctrl-C is pressed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, delayed

from .errors import FitInterrupted

#: As ``joblib.delayed`` makes them.
Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def run_fits(
    n_jobs: int,
    tasks: Iterable[Task],
    can_stop: bool,
    done: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Their results in order, each told of as it comes.

    Fits that can stop are waited for where one was: all of them have then ended their step.
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
    """An exception would make the pool end all others in the middle of their steps."""
    function, args, named = task
    try:
        return function(*args, **named)
    except FitInterrupted as stopped:
        return stopped


def _start_workers(n_jobs: int) -> None:
    """Where they are not yet started, with Ctrl-C blocked: what is blocked here, they inherit.

    Here it is delivered afterwards. Not every system can block it.
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
    """They unblock Ctrl-C as they start, so they go first."""
    resource_tracker.ensure_running()
    with suppress(ImportError):  # joblib may have moved its own
        from joblib.externals.loky.backend.resource_tracker import ensure_running

        ensure_running()
