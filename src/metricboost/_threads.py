"""The number of threads.

The threads of this package are limited to the number of threads of BLAS, which users and joblib can
set. While threads of this package run, BLAS uses one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """The controller of the loaded libraries. NumPy and SciPy are loaded before it is created."""
    return ThreadpoolController()


class _OneThread:
    """Limits BLAS to one thread while at least one caller is inside.

    BLAS has one limit for the whole process. The first caller to enter sets it, and the last caller
    to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = _blas_threads()
                _let_this_thread_set_limits()
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _let_this_thread_set_limits()
                self._limit.__exit__(None, None, None)
                _let_this_thread_set_limits()  # this thread keeps no other thread from it

    def allowed(self) -> int:
        with self._lock:
            return self._before if self._inside else _blas_threads()


_one_thread = _OneThread()


def _blas_threads() -> int:
    libraries = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


def _let_this_thread_set_limits() -> None:
    """Take the control over the threads of OpenBLAS from any other thread.

    threadpoolctl 3.7 and later versions let only one thread set limits, the first one that does,
    and ignore the limits of all other threads while that thread is alive. ``_OneThread`` may be
    entered and left by different threads, and counts them itself.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


def allowed_threads() -> int:
    """The number of threads BLAS may use outside of ``one_blas_thread``.

    By default this is the number of cores. Users, joblib and environment variables can lower it.
    """
    return _one_thread.allowed()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context or decorator in which BLAS uses one thread.

    It is used when threads of this package share the work, and when results must not depend on the
    number of cores.
    """
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()
