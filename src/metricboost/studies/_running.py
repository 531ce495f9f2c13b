"""Cells run in processes of their own, some at a time, each within a limit of CPU seconds.

The limit counts the processor's time, on one thread: a busy machine slows a cell down, but does not
turn it into a timeout. A cell that dies takes nothing along but itself.
"""

from __future__ import annotations

import math
import multiprocessing as mp
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from ._cells import Piece, Row, read, write
from ._limits import OUT_OF_TIME

#: Wall seconds, as a multiple of the limit, after which a cell is stuck.
STUCK = 10

#: What measures a cell and writes its file: the cell, the folder, the limit of CPU seconds.
Measure = Callable[[Any, Path, float], None]
#: Told after each cell: the cell, its row, how many are done, how many there are.
Tell = Callable[[Any, Row, int, int], None]


def run_cells(
    cells: Sequence[Piece],
    results: Path,
    measure: Measure,
    *,
    jobs: int = 1,
    limit: float = math.inf,
    give_up: int = 2,
    timeouts: Mapping[tuple[str, str], int] | None = None,
    tell: Tell | None = None,
) -> None:
    """Measure cells, the first ones first, and write each as it ends.

    After ``give_up`` timeouts, ``timeouts`` of earlier runs included, the rest of a group is left
    out, and recorded as timeouts too.
    """
    # Imports are paid once: processes are copies of one that has made them.
    posix = "forkserver" in mp.get_all_start_methods()
    context = mp.get_context("forkserver" if posix else "spawn")
    if posix:
        context.set_forkserver_preload([measure.__module__])
    runner = _Runner(
        deque(cells), results, measure, context, jobs, limit, give_up, tell or (lambda *_: None),
        len(cells), Counter(timeouts or {}),
    )  # fmt: skip
    try:
        runner.run()
    finally:
        runner.stop()


@dataclass
class _Runner:
    waiting: deque[Piece]
    results: Path
    measure: Measure
    context: Any
    jobs: int
    limit: float
    give_up: int
    tell: Tell
    total: int
    timeouts: Counter[tuple[str, str]]
    done: int = 0
    running: dict[Any, tuple[Any, Piece, float]] = field(default_factory=dict)

    def run(self) -> None:
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.jobs:
                self._start(self.waiting.popleft())
            if self.running:  # of none it would wait in vain
                self._collect()

    def _collect(self) -> None:
        for sentinel in wait(list(self.running), timeout=10):
            self._ended(*self.running.pop(sentinel))
        self._kill_stuck()

    def stop(self) -> None:
        for process, _, _ in self.running.values():
            process.terminate()

    def _start(self, cell: Piece) -> None:
        if self.timeouts[cell.group()] >= self.give_up:
            row = {"status": "timeout", "limit": self.limit, "message": "as others before it"}
            self._report(cell, row, record=True)
            return
        cell.path(self.results).unlink(missing_ok=True)  # what failed before
        process = self.context.Process(target=self.measure, args=(cell, self.results, self.limit))
        process.start()
        self.running[process.sentinel] = (process, cell, time.monotonic())

    def _ended(self, process: Any, cell: Piece, _: float) -> None:
        process.join()
        row = read(cell, self.results)
        if OUT_OF_TIME is not None and process.exitcode == OUT_OF_TIME:
            self._report(cell, {"status": "timeout", "limit": self.limit}, record=True)
        elif process.exitcode or row is None:
            message = f"the process ended with {process.exitcode}"
            self._report(cell, {"status": "failed", "message": message}, record=True)
        else:
            self._report(cell, row)

    def _report(self, cell: Piece, row: Row, record: bool = False) -> None:
        if record:
            write(cell, self.results, row)
        if row["status"] == "timeout":
            self.timeouts[cell.group()] += 1
        self.done += 1
        self.tell(cell, row, self.done, self.total)

    def _kill_stuck(self) -> None:
        for process, _, start in self.running.values():
            if time.monotonic() - start > STUCK * self.limit:
                process.kill()
