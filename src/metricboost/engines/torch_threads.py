"""One thread of PyTorch on the CPU: how many share a sum changes its last bits."""

from __future__ import annotations

import threading

import torch


class OneThread:
    """A number of threads belongs to a thread, and new threads start with the last that was set.

    So it is each thread's own depth that says when to restore, and the first of all threads that
    knows what the process had chosen.
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
            found = torch.get_num_threads()  # asked, a new thread has its number for good
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
