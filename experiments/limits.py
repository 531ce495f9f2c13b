"""CPU seconds and memory of a process, and a limit of its CPU seconds on POSIX."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: The exit code of a process that used more than its limit.
OUT_OF_TIME = -signal.SIGXCPU if resource is not None else None


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Let a signal end this process when it has used this number of CPU seconds."""
    if resource is None or not math.isfinite(seconds):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def cpu_seconds() -> float:
    """The CPU seconds of this process and of the processes that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def peak_megabytes() -> float:
    """The peak memory of this process, or of a process that it waited for if that is more."""
    if resource is None:
        return math.nan
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024
