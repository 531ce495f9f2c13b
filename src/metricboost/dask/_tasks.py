"""Tasks that stay with what they are about: each has a worker as its home."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import SchedulerPlugin, rejoin, secede, wait

Future = Any


@contextmanager
def thread_given_back() -> Iterator[None]:
    """For a fit inside a task: tasks of the fit may need the thread that the task has."""
    try:
        secede()
    except (ValueError, KeyError):  # there is no task, or it has given its thread back before
        yield
        return
    try:
        yield
    finally:
        rejoin()


class Staying(SchedulerPlugin):  # type: ignore[misc]
    """On the scheduler: tasks of one name that are at their homes are not stolen from there.

    Idle workers steal tasks that may run elsewhere, and all that these need travels with them. So
    a task may do so only until it is sent to a worker, and again when that worker is lost.
    """

    def __init__(self, name: str) -> None:
        self.name, self._scheduler = name, None

    async def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        if self._scheduler is None or self.name not in str(key):
            return
        task = self._scheduler.tasks.get(key)
        if task is not None and task.worker_restrictions:
            task.loose_restrictions = finish != "processing"


class Tasks:
    """Sends tasks to a cluster, until it is closed."""

    def __init__(self, client: Any) -> None:
        self.client, self.name, self._count = client, f"mb{uuid4().hex[:8]}", count()
        self._staying = self._register()

    def _register(self) -> bool:
        """A scheduler may lack this package, or take no plugins: that costs bytes, not the fit."""
        try:
            self.client.register_plugin(Staying(self.name), name=self.name)
        except Exception as error:
            warnings.warn(
                f"The scheduler does not take the plugin that keeps tasks where their rows are "
                f"({error}): idle workers may fetch rows of others, which is not counted.",
                UserWarning, stacklevel=2,
            )  # fmt: skip
            return False
        return True

    def submit(self, task: Callable[..., Any], *args: Any, at: str | None = None) -> Future:
        """A task, which runs at a worker while it lives; where most of what it needs is else."""
        key = f"{task.__name__}-{self.name}-{next(self._count)}"
        where = {} if at is None else {"workers": [at], "allow_other_workers": True}
        return self.client.submit(task, *args, key=key, pure=False, **where)

    def placed(
        self, delayed: list[Any], there_already: bool
    ) -> tuple[list[Future], list[str | None]]:
        """Partitions as futures, and the worker at which each stays.

        Those that are not on the cluster yet are shared out in their order. The rows of a shard,
        and the last bits of its sums, are then the same in every fit on as many workers.
        """
        if there_already:
            futures = self.client.compute(delayed)
            wait(futures)  # then it is known where each lies
            return futures, self.homes(futures)
        workers = list(self.client.ncores())
        places = np.arange(len(delayed)) * len(workers) // len(delayed)
        futures, homes = [], []
        for number, worker in enumerate(workers):
            own = [delayed[i] for i in np.flatnonzero(places == number)]
            if own:
                futures += self.client.compute(own, workers=[worker], allow_other_workers=True)
                homes += [worker] * len(own)
        return futures, homes

    def homes(self, futures: Sequence[Future]) -> list[str | None]:
        """A worker that has the result of each; None where none has it now."""
        held = self.client.who_has(list(futures))
        return [min(held.get(future.key) or (), default=None) for future in futures]

    def results(self, futures: list[Future]) -> list[Any]:
        results: list[Any] = self.client.gather(futures)
        return results

    def close(self) -> None:
        """Leave the scheduler as it was, where it is still there."""
        if self._staying and self.client.status == "running":
            self.client.unregister_scheduler_plugin(self.name)
