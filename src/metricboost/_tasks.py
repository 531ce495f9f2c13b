"""Tasks in threads of this process.

The kernels release the global interpreter lock, so that several fits use several cores. The results
do not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ._threads import one_blas_thread
from .errors import FitInterrupted

T = TypeVar("T")
#: A task has no arguments.
Task = Callable[[], T]

_local = threading.local()


def run_tasks(
    n_threads: int, tasks: Sequence[Task[T]], done: Callable[[int, int], None] | None = None
) -> list[T]:
    """Run tasks in threads and return their results in order.

    If a task raises an exception, or if Ctrl-C interrupts the caller, no further task begins, and
    the running tasks end at their next call of ``end_if_cancelled``. A task that is asked to stop
    (``FitInterrupted``) does not cancel the other tasks, which are asked to stop, too.

    Parameters
    ----------
    n_threads : int
        With 1 the tasks run in the thread of the caller.
    tasks : sequence of callable
    done : callable, optional
        Called with the number of finished tasks and the number of all tasks after every task.
    """
    with one_blas_thread():
        if min(n_threads, len(tasks)) <= 1:
            return [_counted(task(), i, len(tasks), done) for i, task in enumerate(tasks)]
        cancelled, found = threading.Event(), list[T | FitInterrupted]()
        pool = ThreadPoolExecutor(
            min(n_threads, len(tasks)), initializer=_enter, initargs=(cancelled,)
        )
        with pool:
            try:
                futures = [pool.submit(_run, task) for task in tasks]
                for i, future in enumerate(futures):
                    result = _result(future)
                    found.append(_counted(result, i, len(tasks), done))
            except BaseException:
                cancelled.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    for result in found:
        if isinstance(result, FitInterrupted):
            raise result
    return found  # type: ignore[return-value]


def end_if_cancelled() -> None:
    """End the task of this thread if the pool of the thread was cancelled."""
    cancelled = getattr(_local, "cancelled", None)
    if cancelled is not None and cancelled.is_set():
        raise FitInterrupted("The fit was cancelled, because another fit failed or by Ctrl-C.")


def _enter(cancelled: threading.Event) -> None:
    _local.cancelled = cancelled


def _run(task: Task[T]) -> T:
    """Run a task. If the task fails, the pool is cancelled at once.

    The caller waits for the results in order, and may learn of the failure much later.
    """
    end_if_cancelled()
    try:
        return task()
    except FitInterrupted:
        raise
    except BaseException:
        _local.cancelled.set()
        raise


def _result(future: Future[T]) -> T | FitInterrupted:
    """The result of a task. All tasks are waited for before ``FitInterrupted`` is raised."""
    try:
        return future.result()
    except FitInterrupted as stopped:
        return stopped


def _counted(result: T, number: int, total: int, done: Callable[[int, int], None] | None) -> T:
    if done is not None:
        done(number + 1, total)
    return result
