"""A context with one thread of PyTorch on the CPU.

The last bits of a sum depend on the number of threads that compute it.
"""

from __future__ import annotations

import threading

import torch


class OneThread:
    """A reentrant context that sets the number of threads of PyTorch to 1.

    In PyTorch every Python thread has its own number of threads, and a new Python thread starts
    with the number that was set last. Each Python thread therefore counts its own depth, and
    restores the number when it leaves its outermost context. The number to restore is read by the
    first thread that enters, because it is the only one that still has the number chosen by the
    process.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        depth = self._own.depth = getattr(self._own, "depth", 0) + 1
        if depth > 1:
            return
        with self._lock:
            found = torch.get_num_threads()  # this call also fixes the number of a new thread
            if not self._inside:
                self._before = found
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        self._own.depth -= 1
        if self._own.depth:
            return
        with self._lock:
            self._inside -= 1
            torch.set_num_threads(self._before)


one_torch_thread = OneThread()
