"""What commands say and how they end: tables for people, JSON for machines, no tracebacks."""

from __future__ import annotations

import functools
import io
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ..errors import FitInterrupted, ModelFileError, TableError

P = ParamSpec("P")
R = TypeVar("R")

#: Exit codes.
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class WrongUsageError(Exception):
    """Something on the command line that cannot be meant: a file or a column that is not there."""


class Voice:
    """Where a command speaks: results to the output, everything else to the error stream."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a name no terminal can show is no error
        self.out = Console(highlight=False, soft_wrap=True, emoji=False)
        self.err = Console(stderr=True, highlight=False, emoji=False)

    @property
    def talks(self) -> bool:
        return not self.quiet and not self.as_json

    @property
    def shows_progress(self) -> bool:
        return self.talks and self.err.is_terminal

    def say(self, text: str = "") -> None:
        if self.talks:
            self.out.print(escape(text))

    def warn(self, text: str) -> None:
        if not self.quiet:
            self.err.print(f"[yellow]warning[/yellow] {escape(text)}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """The first column is text, the others are numbers where they look like them."""
        if not self.talks:
            return
        table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
        for i, name in enumerate(columns):
            numeric = bool(rows) and all(_numeric(row[i]) for row in rows)
            table.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        self.out.print(table)

    def result(self, content: dict[str, Any]) -> None:
        """What a machine reads, in one piece."""
        if self.as_json:
            print(json.dumps(content, default=_plain, allow_nan=False))

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """A bar that moves while something takes its time; what it says can be changed."""
        if not self.shows_progress:
            yield lambda _: None
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.err, transient=True) as progress:
            task = progress.add_task(escape(what), total=None)
            yield lambda text: progress.update(task, description=escape(text))

    @contextmanager
    def counting(self, total: int) -> Iterator[Callable[[str], None]]:
        """A bar over a known number of pieces, with the time left; told what each was.

        Where nobody watches it, a line now and then.
        """
        if not self.shows_progress:
            yield _Lines(total, self.err.print if self.talks else lambda _: None)
            return
        columns = (
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.description}"),
        )
        # Pieces take from milliseconds to minutes: the speed is that of the last ten minutes.
        with Progress(*columns, console=self.err, speed_estimate_period=600) as progress:
            task = progress.add_task("", total=total)
            yield lambda text: progress.update(task, advance=1, description=escape(text))

    @contextmanager
    def hearing_warnings(self) -> Iterator[None]:
        """Warnings of the library in the command's own voice, each once."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        for message in dict.fromkeys(str(item.message) for item in heard):
            self.warn(message)


class _Lines:
    """How far a long run is, in lines at least a minute apart."""

    APART = 60.0

    def __init__(self, total: int, put: Callable[[str], None]) -> None:
        self.total, self.put, self.done = total, put, 0
        self.start = self.last = time.monotonic()

    def __call__(self, text: str) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.last < self.APART and self.done < self.total:
            return
        self.last = now
        left = (now - self.start) / self.done * (self.total - self.done)
        minutes = f"{left / 60:.0f} min left" if self.done < self.total else "done"
        self.put(f"{self.done} of {self.total}, {minutes}")


def _numeric(text: str) -> bool:
    try:
        float(text.rstrip("%") or 0)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value)} has no form in JSON")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """A user's mistake ends with one line and an exit code, never with a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (WrongUsageError, FileNotFoundError, IsADirectoryError) as error:
            _end(_readable(error), WRONG_USAGE)
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except ModuleNotFoundError as error:
            _end(f'this needs {error.name}: pip install "metricboost[cli]"', FAILED)
        except (TableError, ModelFileError, OSError, ValueError, MemoryError) as error:
            _end(_readable(error), FAILED)
        except FitInterrupted as stopped:
            _say_and_end(escape(str(stopped)), INTERRUPTED)
        except KeyboardInterrupt:
            _end("interrupted", INTERRUPTED)
        except Exception as error:
            if os.environ.get("METRICBOOST_TRACEBACK"):
                traceback.print_exc()
            _end(
                f"{type(error).__name__}: {error}. This is a fault of metricboost, please report "
                "it; METRICBOOST_TRACEBACK=1 shows where it happened.",
                FAILED,
            )

    return run


def _readable(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _end(message: str, code: int) -> NoReturn:
    _say_and_end(f"[red]error[/red] {escape(message)}", code)


def _say_and_end(message: str, code: int) -> NoReturn:
    Console(stderr=True, highlight=False).print(message, soft_wrap=True)
    raise typer.Exit(code)
