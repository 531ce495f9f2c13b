"""Threads: as many as BLAS may have, which users and joblib limit, and never both at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Of the libraries that are loaded; NumPy and SciPy are by the time it is asked for."""
    return ThreadpoolController()


class _OneThread:
    """BLAS has one limit for the whole process: the first to come sets it, the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = _blas_threads()
                self._limit = _controller().limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(None, None, None)

    def allowed(self) -> int:
        with self._lock:
            return self._before if self._inside else _blas_threads()


_one_thread = _OneThread()


def _blas_threads() -> int:
    libraries = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


def allowed_threads() -> int:
    """How many threads BLAS may use, unless we limit it: all cores, or what something else says."""
    return _one_thread.allowed()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Where threads of our own share the work, or results must not depend on the cores.

    Also as a decorator: ``@one_blas_thread()``.
    """
    _one_thread.enter()
    try:
        yield
    finally:
        _one_thread.leave()
