"""The runner: measures cells in separate processes, several at a time, with a limit of time.

The limit counts CPU seconds and not wall-clock seconds. A busy machine therefore slows a cell down,
but does not turn it into a timeout. If a process dies, only its own cell is lost.
"""

from __future__ import annotations

import math
import multiprocessing as mp
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from threadpoolctl import threadpool_limits

from .limits import OUT_OF_TIME, cpu_limit
from .results import Cell, Results, Row

#: A cell counts as stuck after this multiple of the limit, in wall-clock seconds.
STUCK = 10

#: The function that measures a cell.
Measure = Callable[[Cell], Row]
#: Called after each cell with the cell, its row, the number of finished cells and of all cells.
Tell = Callable[[Cell, Row, int, int], None]


class NotAvailableError(RuntimeError):
    """A package that a model needs is not installed."""


def run_cells(
    cells: Sequence[Cell],
    results: Results,
    measure: Measure,
    *,
    jobs: int = 1,
    limit: float = math.inf,
    give_up: int = 2,
    threads: int | None = 1,
    tell: Tell | None = None,
) -> None:
    """Measure cells in their order, and add each result when its cell ends.

    A cell has one thread. With ``threads=None`` a cell has all threads of the machine. After
    ``give_up`` timeouts of one model on one table, including those of earlier runs, the other seeds
    are not measured and are recorded as timeouts.
    """
    # Imports take time only once: the processes are copies of a process that has imported all.
    posix = "forkserver" in mp.get_all_start_methods()
    context = mp.get_context("forkserver" if posix else "spawn")
    if posix:
        context.set_forkserver_preload([measure.__module__])
    runner = _Runner(cells, results, measure, context, jobs, limit, give_up, threads, tell)
    try:
        runner.run()
    finally:
        runner.stop()
        for experiment in dict.fromkeys(cell.experiment for cell in cells):
            results.tidy(experiment)


@dataclass
class _Runner:
    cells: Sequence[Cell]
    results: Results
    measure: Measure
    context: Any
    jobs: int
    limit: float
    give_up: int
    threads: int | None
    tell: Tell | None
    done: int = 0
    running: dict[Any, tuple[Any, Cell, float]] = field(default_factory=dict)
    timeouts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def run(self) -> None:
        self.waiting = deque(self.cells)
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.jobs:
                self._start(self.waiting.popleft())
            for receiver in wait(list(self.running), timeout=10) if self.running else []:
                self._ended(receiver, *self.running.pop(receiver))
            self._kill_stuck()

    def stop(self) -> None:
        for process, _, _ in self.running.values():
            process.terminate()

    def _start(self, cell: Cell) -> None:
        if self._timeouts(cell) >= self.give_up:
            message = "as others before it"
            self._report(cell, {"status": "timeout", "limit": self.limit, "message": message})
            return
        receiver, sender = self.context.Pipe(duplex=False)
        arguments = (self.measure, cell, self.limit, self.threads, sender)
        process = self.context.Process(target=_work, args=arguments)
        process.start()
        sender.close()  # so that the receiver notices when the process dies
        self.running[receiver] = (process, cell, time.monotonic())

    def _timeouts(self, cell: Cell) -> int:
        """Timeouts of this model on this table, also of earlier runs with at least this limit."""
        group = cell.experiment, cell.table, cell.model
        if group not in self.timeouts:
            todo = {one.seed for one in self.cells if one.key[:2] == cell.key[:2]}
            rows = [row for row in self.results.seeds(*group) if row["seed"] not in todo]
            late = [r for r in rows if r["status"] == "timeout" and r["limit"] >= self.limit]
            self.timeouts[group] = len(late)
        return self.timeouts[group]

    def _ended(self, receiver: Any, process: Any, cell: Cell, _: float) -> None:
        try:
            row = receiver.recv()
        except EOFError:
            process.join()
            row = {"status": "failed", "message": f"the process ended with {process.exitcode}"}
            if OUT_OF_TIME is not None and process.exitcode == OUT_OF_TIME:
                row = {"status": "timeout", "limit": self.limit}
        receiver.close()
        process.join()
        self._report(cell, row)

    def _report(self, cell: Cell, row: Row) -> None:
        self.results.add(cell, row)
        if row["status"] == "timeout":
            self.timeouts[cell.experiment, cell.table, cell.model] += 1
        self.done += 1
        if self.tell is not None:
            self.tell(cell, row, self.done, len(self.cells))

    def _kill_stuck(self) -> None:
        for process, _, start in self.running.values():
            if time.monotonic() - start > STUCK * self.limit:
                process.kill()


def _work(measure: Measure, cell: Cell, limit: float, threads: int | None, sender: Any) -> None:
    """Measure a cell in its own process and send the row. A signal ends a cell at its limit."""
    try:
        with warnings.catch_warnings(), threadpool_limits(threads), cpu_limit(limit):
            warnings.simplefilter("ignore")
            row = {"status": "ok", **measure(cell)}
    except TimeoutError:
        row = {"status": "timeout", "limit": limit}
    except NotAvailableError as error:
        row = {"status": "not available", "message": str(error)}
    except Exception as error:
        row = {"status": "failed", "message": f"{type(error).__name__}: {error}"}
    sender.send(row)


def measure_missing(
    cells: Sequence[Cell],
    results: Results,
    measure: Measure,
    *,
    jobs: int = 1,
    limit: float = math.inf,
    give_up: int = 2,
    threads: int | None = 1,
    fresh: bool = False,
) -> None:
    """Measure the cells without a result, or all of them, and print a line for each."""
    todo = list(cells) if fresh else results.missing(cells, limit)
    print(f"{len(cells)} cells, {len(todo)} to measure", flush=True)
    run_cells(
        todo, results, measure, jobs=jobs, limit=limit, give_up=give_up, threads=threads,
        tell=_print,
    )  # fmt: skip


def _print(cell: Cell, row: Row, done: int, total: int) -> None:
    print(f"[{done}/{total}] {cell}: {outcome(row)}", flush=True)


def outcome(row: Row) -> str:
    if row["status"] != "ok":
        return f"{row['status']} {row.get('message', '')}".rstrip()
    told: Iterable[str] = (
        f"{row[key]:{form}}" for key, form in (("error", ".3f"), ("cpu_seconds", ".1f"))
        if key in row
    )  # fmt: skip
    return ", ".join(told) or "ok"
