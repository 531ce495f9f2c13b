"""Threads: as many as BLAS may have, which users and joblib limit, and never both at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """Of the libraries that are loaded; NumPy and SciPy are by the time it is asked for."""
    return ThreadpoolController()


def allowed_threads() -> int:
    """How many threads BLAS may use at this moment: all cores, unless something says otherwise."""
    libraries = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Where threads of our own share the work, or results must not depend on the cores."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
