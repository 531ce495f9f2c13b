"""How the threads of a fit are shared: by tasks, or by the operations of a single task."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fits import prepared
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from metricboost import SDist
from metricboost._threads import one_blas_thread
from metricboost.sources import InMemory
from metricboost.training.pool import Pool
from metricboost.training.run import LARGE, Run


def pool_of(numbers):
    """A pool of a table with this number of entries, which take no memory."""
    X = np.broadcast_to(0.0, (numbers // 4, 4))
    rows = np.broadcast_to(0, len(X))
    return Pool(X, rows, rows, rows, InMemory(X, rows, rows))


def shared(n_jobs, numbers, n_tasks):
    """The number of tasks that run at a time, and the threads of the engine of each."""
    run = Run("numpy", n_jobs)
    at_a_time = run.tasks_at_a_time(pool_of(numbers), n_tasks)
    return at_a_time, run.engine_for(at_a_time).threads


@pytest.mark.parametrize(
    ("n_jobs", "numbers", "n_tasks", "expected"),
    [
        (1, 100, 5, (1, 1)),
        (3, 100, 5, (3, 1)),
        (3, 100, 2, (2, 1)),
        (3, 100, 1, (1, 3)),
        (3, 100, 0, (1, 3)),
        (3, LARGE, 5, (3, 1)),
        (3, LARGE + 4, 5, (1, 3)),
    ],
)
def test_tasks_or_operations_share_the_threads(n_jobs, numbers, n_tasks, expected):
    """Both together would use more threads than ``n_jobs``."""
    assert shared(n_jobs, numbers, n_tasks) == expected


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_threads_are_those_that_blas_may_have(limit):
    """Inside of ``one_blas_thread`` the number is that of before."""
    with threadpool_limits(limit, user_api="blas"):
        assert shared(None, 100, 5) == (limit, 1)
        assert shared(None, 100, 2) == (min(limit, 2), 1)
        assert shared(None, 2 * LARGE, 5) == (1, limit)
        with one_blas_thread(), one_blas_thread():
            assert shared(None, 2 * LARGE, 5) == (1, limit)


def test_default_of_other_threads_is_one_thread():
    """A process with several threads that fit has other work for its cores."""
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(shared, None, 100, 5).result() == (1, 1)
        assert pool.submit(shared, 2, 100, 5).result() == (2, 1)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_are_not_oversubscribed(backend):
    """Inside a worker fits get the threads that joblib leaves to it."""
    for numbers in (100, 2 * LARGE):
        tasks = (delayed(shared)(None, numbers, 5) for _ in range(2))
        inside = Parallel(2, backend=backend)(tasks)
        total = sum(at_a_time * threads for at_a_time, threads in inside)
        assert total <= max(effective_n_jobs(-1), 2)


def test_a_device_has_room_for_one_task_at_a_time():
    assert Run("torch:cpu", 3).tasks_at_a_time(pool_of(100), 5) == 1


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "panel"),
    [(149, 20, "sqrt"), (149, 1000, "sqrt"), (150, 20, None), (149, 19, None), (149, 1001, None)],
)
def test_small_tables_have_random_panels(n_rows: int, n_columns: int, panel: str | None) -> None:
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    options = prepared(SDist(), X, np.arange(n_rows) % 2).options
    assert options.boosting.max_features == panel
    assert options.max_candidates == 4096
    chosen = prepared(SDist(max_features=5), X, np.arange(n_rows) % 2).options
    assert chosen.boosting.max_features == 5
