"""Warnings that are ignored in several threads at the same time.

``warnings.catch_warnings`` restores the filters of the whole process. Two threads that enter and
leave it in turns could leave the filter of one of them behind.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_caught = warnings.catch_warnings()


@contextmanager
def ignoring(category: type[Warning]) -> Iterator[None]:
    """A context in which warnings of a category are ignored.

    The first thread to enter a context saves the filters, and the last thread to leave restores
    them.

    Parameters
    ----------
    category : type
    """
    if getattr(sys.flags, "context_aware_warnings", False):  # every thread has its own filters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category)
            yield
        return
    _enter(category)
    try:
        yield
    finally:
        _leave()


def _enter(category: type[Warning]) -> None:
    global _inside, _caught
    with _lock:
        if _inside == 0:
            _caught = warnings.catch_warnings()
            _caught.__enter__()
        warnings.simplefilter("ignore", category)
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            _caught.__exit__(None, None, None)
