"""Fits in threads of one process: the same models, no more threads than allowed, and clean ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from fits import product_table, short
from joblib import Parallel, cpu_count, delayed
from rooms import ENGINES
from threadpoolctl import threadpool_info, threadpool_limits

from metricboost import SDist, SDistClassifierCV
from metricboost._ignoring import ignoring
from metricboost._tasks import end_if_cancelled, run_tasks
from metricboost._threads import allowed_threads, one_blas_thread
from metricboost.errors import FitInterrupted
from metricboost.training import folds, run


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """After a test, no thread of a pool runs, and the limit on the threads of BLAS is as before."""
    before = set(threading.enumerate())
    limit = blas_threads()
    yield
    # The threads that joblib keeps have other names.
    own = [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]
    for thread in set(own) - before:
        thread.join(60)  # Ctrl-C may come while a thread starts, which then ends by itself
        assert not thread.is_alive()
    assert blas_threads() == allowed_threads() == limit


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt`` even if the tests were started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def blas_threads() -> int:
    """The number of threads that BLAS may use now."""
    found = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    return max(found, default=1)


# --- tasks


def test_results_come_in_order() -> None:
    for n_threads in (1, 2, 5):
        done = mock.Mock()
        tasks = [partial(pow, i, 2) for i in range(7)]
        assert run_tasks(n_threads, tasks, done) == [i * i for i in range(7)]
        assert done.call_args_list == [mock.call(i + 1, 7) for i in range(7)]
    assert run_tasks(3, []) == []


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_tasks_run_at_the_same_time(n_threads: int) -> None:
    """The number of threads is the given one. A single thread is that of the caller."""
    barrier, seen = threading.Barrier(n_threads), set()

    def task() -> int:
        barrier.wait(60)
        seen.add(threading.get_ident())
        return blas_threads()

    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        assert run_tasks(n_threads, [task] * 8) == [1] * 8
        assert blas_threads() == before
    assert len(seen) == n_threads
    assert (seen == {threading.get_ident()}) == (n_threads == 1)


def until_cancelled(seconds: float = 60) -> None:
    """A task that ends when it is asked to, or fails after a minute."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        end_if_cancelled()
        time.sleep(0.001)
    raise AssertionError("The task was not asked to end.")


def failing() -> None:
    raise ValueError("of the task")


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_task_that_fails_ends_the_others(n_threads: int) -> None:
    """The failure of a later task ends the first one, and no other task begins."""
    begun: list[int] = []
    first = until_cancelled if n_threads > 1 else lambda: None
    with pytest.raises(ValueError, match="of the task"):
        run_tasks(n_threads, [first, failing, *[lambda: begun.append(1)] * 3])
    assert not begun


def test_a_task_that_is_stopped_does_not_end_the_others() -> None:
    """``FitInterrupted`` is raised when all tasks have ended."""
    ended: list[int] = []

    def stopped() -> None:
        raise FitInterrupted("stopped")

    def running() -> None:
        end_if_cancelled()
        ended.append(1)

    with pytest.raises(FitInterrupted, match="stopped"):
        run_tasks(2, [stopped, running, running])
    assert len(ended) == 2


def test_outside_of_tasks_nothing_is_cancelled() -> None:
    end_if_cancelled()
    with pytest.raises(ValueError, match="of the task"):
        run_tasks(2, [failing, failing])
    end_if_cancelled()
    run_tasks(2, [end_if_cancelled, end_if_cancelled])


@pytest.mark.skipif(os.name != "posix", reason="POSIX")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_all_tasks() -> None:
    begun: list[int] = []

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        until_cancelled()

    with pytest.raises(KeyboardInterrupt):
        run_tasks(2, [press, until_cancelled, *[lambda: begun.append(1)] * 3])
    assert not begun


# --- the threads of BLAS


@pytest.mark.parametrize("last", ["first", "second"])
def test_any_thread_limits_and_restores_blas(last: str) -> None:
    """The limit holds for fits of any thread, and any of them may be the last one to end."""
    found, inside, go = {}, threading.Barrier(3), [threading.Event() for _ in range(2)]

    def limited(number: int) -> None:
        with one_blas_thread():
            inside.wait(60)
            go[number].wait(60)
            found[number] = blas_threads()

    with threadpool_limits(3, user_api="blas"):
        others = [threading.Thread(target=limited, args=(i,)) for i in range(2)]
        for thread in others:
            thread.start()
        inside.wait(60)
        assert (blas_threads(), allowed_threads()) == (1, 3)
        for i in (1, 0) if last == "first" else (0, 1):
            go[i].set()
            others[i].join()
        assert blas_threads() == allowed_threads() == 3
    assert found == {0: 1, 1: 1}


def test_limits_of_other_threads_hold_after_a_fit() -> None:
    """A thread in which a fit has ended does not keep other threads from setting limits."""
    ended = threading.Event()

    def limited() -> None:
        with one_blas_thread():
            pass
        ended.wait(60)

    other = threading.Thread(target=limited)
    other.start()
    for limit in (3, 2):
        with threadpool_limits(limit, user_api="blas"):
            assert blas_threads() == limit
    ended.set()
    other.join()


# --- models


def search(**params: Any) -> SDistClassifierCV:
    return SDistClassifierCV(
        short(n_averaged=1), param_grid={"max_degree": [1, 2]}, cv=3, random_state=0, **params
    )


MODELS: dict[str, Callable[..., Any]] = {
    "classifier": lambda **params: short(n_averaged=4, **params),
    "metric": lambda **params: short(SDist, n_averaged=4, **params),
    "search": search,
}


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    return product_table()


def saved(model: Any, folder: Path) -> bytes:
    """The bytes of the file of a fitted model."""
    model.save(folder / "model.mbz")
    return (folder / "model.mbz").read_bytes()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_models_do_not_depend_on_the_threads(
    name: str, engine: str, table: Any, tmp_path: Path
) -> None:
    """The files of the models have the same bytes for any ``n_jobs``, and for the default."""
    found = set()
    with threadpool_limits(3, user_api="blas"):
        for n_jobs in (1, 2, 4, None):
            model = MODELS[name](n_jobs=n_jobs)
            base = model if name != "search" else model.estimator
            base.set_params(engine=engine)
            found.add(saved(model.fit(*table), tmp_path))
    assert len(found) == 1


class Counted:
    """Counts the threads in which folds are fitted.

    Fits wait until as many of them as expected run at the same time.
    """

    def __init__(self, together: int) -> None:
        self._barrier, self._learn = threading.Barrier(together), folds.learn
        self.threads: set[int] = set()
        self.of_blas: set[int] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._barrier.wait(60)
        self.threads.add(threading.get_ident())
        self.of_blas.add(blas_threads())
        return self._learn(*args, **kwargs)


@pytest.mark.parametrize(
    ("n_jobs", "limit", "expected"),
    [(1, 4, 1), (2, 4, 2), (4, 4, 4), (7, 4, 4), (2, 1, 2), (None, 1, 1), (None, 2, 2),
     (None, 9, 4)],
)  # fmt: skip
def test_number_of_threads(
    n_jobs: int | None, limit: int, expected: int, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is ``n_jobs``, or by default that of BLAS. BLAS has one thread during a fit."""
    counted = Counted(expected)
    monkeypatch.setattr(folds, "learn", counted)
    monkeypatch.setattr(run, "FEW_ROWS", 0)
    with threadpool_limits(limit, user_api="blas"):
        short(n_averaged=4, n_jobs=n_jobs).fit(*table)
        assert blas_threads() == limit
    assert len(counted.threads) == expected
    assert (counted.threads == {threading.get_ident()}) == (expected == 1)
    assert counted.of_blas == {1}


def test_small_tables_have_one_thread_by_default(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n_jobs, expected in (None, 1), (2, 2):
        counted = Counted(expected)
        with monkeypatch.context() as patch, threadpool_limits(2, user_api="blas"):
            patch.setattr(folds, "learn", counted)
            short(n_averaged=4, n_jobs=n_jobs).fit(*table)
        assert len(counted.threads) == expected


# --- warnings


def test_ignored_warnings_of_several_threads() -> None:
    """A warning is ignored until its thread has left, and the filters are then as before."""
    inside, left = threading.Barrier(2), threading.Event()

    def first() -> None:
        with ignoring(FutureWarning):
            inside.wait(60)
        left.set()

    def second() -> None:
        inside.wait(60)
        with ignoring(DeprecationWarning):
            warnings.warn("ignored", DeprecationWarning, stacklevel=1)
            left.wait(60)
            warnings.warn("ignored", DeprecationWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        run_tasks(2, [first, second])
        assert list(warnings.filters) == before
        with pytest.raises(DeprecationWarning):
            warnings.warn("heard", DeprecationWarning, stacklevel=1)


def test_mixtures_of_several_threads_leave_no_filter(table: Any) -> None:
    """A search fits mixtures, whose warnings are ignored, in several threads."""
    before = list(warnings.filters)
    model = search(n_jobs=2, scoring="roc_auc")
    model.estimator.set_params(classifier="mixture")
    model.fit(*table)
    assert list(warnings.filters) == before


# --- fits that fail or are interrupted


class Failing:
    """The fit of a fold that raises an exception: the first one to begin has the number 1."""

    def __init__(self, number: int) -> None:
        self._number, self._learn = number, folds.learn
        self._lock, self.begun, self.ended = threading.Lock(), 0, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self.begun += 1
            number = self.begun
        if number == self._number:
            raise ZeroDivisionError("in a fold")
        found = self._learn(*args, **kwargs)
        self.ended += 1
        return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_in_a_fold_is_raised(
    name: str, n_jobs: int, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other fits end early, BLAS has its threads again, and a second fit succeeds."""
    model, failing = MODELS[name](n_jobs=n_jobs), Failing(2)
    with threadpool_limits(3, user_api="blas"):
        with monkeypatch.context() as patch:
            patch.setattr(folds, "learn", failing)
            with pytest.raises(ZeroDivisionError, match="in a fold"):
                model.fit(*table)
        assert blas_threads() == allowed_threads() == 3
    assert failing.begun <= 1 + n_jobs
    assert failing.ended <= 1
    assert not hasattr(model, "model_")
    model.fit(*table)


@pytest.mark.skipif(os.name != "posix", reason="POSIX")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_without_a_checkpoint(
    n_jobs: int, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All fits end after their current attempt, and ``KeyboardInterrupt`` is raised."""
    learn, ended = folds.learn, []

    def pressed(*args: Any, **kwargs: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        found = learn(*args, **kwargs)
        ended.append(1)
        return found

    monkeypatch.setattr(folds, "learn", pressed)
    model = short(n_averaged=4, max_iter=1500, oob_gate=None, n_jobs=n_jobs)
    with threadpool_limits(3, user_api="blas"):
        with pytest.raises(KeyboardInterrupt):
            model.fit(*table)
        assert blas_threads() == 3
    assert not ended


# --- other processes and threads


def fitted(table: Any, folder: str) -> bytes:
    """The bytes of a model that is fitted with the default number of threads."""
    return saved(short(n_averaged=4).fit(*table), Path(folder))


def fitted_and_counted(table: Any, folder: str) -> tuple[bytes, int]:
    """The bytes of the model, and the number of threads in which its folds were fitted."""
    counted = Counted(1)
    with mock.patch.object(folds, "learn", counted):
        return fitted(table, folder), len(counted.threads)


def test_fits_in_workers_of_joblib(table: Any, tmp_path: Path) -> None:
    """The fits of a worker process use its share of the cores."""
    expected = fitted(table, str(tmp_path))
    parts = [tmp_path / str(i) for i in range(2)]
    for part in parts:
        part.mkdir()
    found = Parallel(2, backend="loky")(
        delayed(fitted_and_counted)(table, str(part)) for part in parts
    )
    assert all(model == expected for model, _ in found)
    assert all(n_threads <= max(cpu_count() // 2, 1) for _, n_threads in found)


def test_fits_in_threads_of_joblib(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit uses the thread that calls it, and no other."""
    expected = fitted(table, str(tmp_path))
    counted = Counted(1)
    monkeypatch.setattr(folds, "learn", counted)
    parts = [tmp_path / str(i) for i in range(2)]
    for part in parts:
        part.mkdir()

    def fit(part: Path) -> tuple[bytes, int]:
        return fitted(table, str(part)), threading.get_ident()

    with threadpool_limits(3, user_api="blas"):
        found = Parallel(2, backend="threading")(delayed(fit)(part) for part in parts)
        assert blas_threads() == 3
    assert all(model == expected for model, _ in found)
    assert counted.threads == {ident for _, ident in found}
    assert counted.of_blas == {1}


IN_CHILDREN = """
import multiprocessing, os, sys
from pathlib import Path
from threadpoolctl import threadpool_limits
sys.path.insert(0, sys.argv[1])
from fits import product_table, short

def fitted(n_jobs=None):
    path = Path(sys.argv[2]) / f"{os.getpid()}.mbz"
    short(n_averaged=4, n_jobs=n_jobs).fit(*product_table()).save(path)
    return path.read_bytes()

threadpool_limits(2)
expected = fitted(2)
context = multiprocessing.get_context("fork")
with context.Pool(1) as pool:
    for n_jobs in (None, 2):
        assert pool.apply_async(fitted, (n_jobs,)).get(60) == expected
child = os.fork()
if not child:
    same = False
    try:
        same = fitted(2) == expected == fitted()
    finally:
        os._exit(0 if same else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert fitted(2) == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_fits_in_forked_processes(tmp_path: Path) -> None:
    """A process that has fitted with threads is forked, and its children fit, too."""
    command = [sys.executable, "-W", "ignore", "-c", IN_CHILDREN]
    subprocess.run([*command, str(Path(__file__).parent), str(tmp_path)], check=True, timeout=120)
