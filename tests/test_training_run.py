"""How the work of a fit is shared: by processes or by threads, never by both."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from metricboost.sources import InMemory
from metricboost.training.pool import Pool
from metricboost.training.run import LARGE, Run


def pool_of(numbers):
    """A pool of a table with this number of entries, which take no memory."""
    X = np.broadcast_to(0.0, (numbers // 4, 4))
    rows = np.broadcast_to(0, len(X))
    return Pool(X, rows, rows, rows, InMemory(X, rows, rows))


def shared(n_jobs, numbers, n_tasks):
    """The processes that share the tasks, and the threads of the engine of each."""
    run = Run("numpy", n_jobs)
    processes = run.processes(pool_of(numbers), n_tasks)
    return processes, run.engine_for(processes).threads


@pytest.mark.parametrize(
    ("n_jobs", "numbers", "n_tasks", "expected"),
    [
        (1, 100, 5, (1, 1)),
        (3, 100, 5, (3, 1)),
        (3, 100, 2, (2, 1)),
        (3, 100, 1, (1, 3)),
        (3, LARGE, 5, (3, 1)),
        (3, LARGE + 4, 5, (1, 3)),
    ],
)
def test_processes_or_threads(n_jobs, numbers, n_tasks, expected):
    """Processes and threads together would be more than ``n_jobs``."""
    assert shared(n_jobs, numbers, n_tasks) == expected


@pytest.mark.parametrize("limit", [1, 2])
def test_threads_are_those_that_blas_may_have(limit):
    with threadpool_limits(limit, user_api="blas"):
        assert shared(None, 2 * LARGE, 5) == (1, limit)


def test_workers_of_joblib_are_not_oversubscribed():
    """Inside a worker fits get the threads that joblib leaves to it."""
    inside = Parallel(2)(delayed(shared)(None, 2 * LARGE, 5) for _ in range(2))
    assert all(processes == 1 for processes, _ in inside)
    assert sum(threads for _, threads in inside) <= max(effective_n_jobs(-1), 2)


def test_a_device_has_room_for_one_task_at_a_time():
    assert Run("torch:cpu", 3).processes(pool_of(100), 5) == 1
