"""How commands print and end: tables for people, JSON for programs, and no tracebacks."""

from __future__ import annotations

import functools
import io
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..errors import FitInterrupted, ModelFileError, TableError

P = ParamSpec("P")
R = TypeVar("R")

#: Exit codes.
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class WrongUsageError(Exception):
    """An argument that cannot be used, such as the name of a missing column. The exit code is 2."""


class Voice:
    """Prints the results of a command to standard output, and everything else to standard error.

    Parameters
    ----------
    quiet : bool, default=False
        Print errors only.
    as_json : bool, default=False
        Print one JSON object instead of texts and tables.
    """

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # The encoding of a terminal may lack characters of a name, which is not an error.
                stream.reconfigure(errors="replace")
        self.out = Console(highlight=False, soft_wrap=True, emoji=False)
        self.err = Console(stderr=True, highlight=False, emoji=False)

    @property
    def talks(self) -> bool:
        """Whether texts and tables are printed."""
        return not self.quiet and not self.as_json

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown, which takes a terminal."""
        return self.talks and self.err.is_terminal

    def say(self, text: str = "") -> None:
        """Print a line of text."""
        if self.talks:
            self.out.print(escape(text))

    def warn(self, text: str) -> None:
        """Print a warning to standard error."""
        if not self.quiet:
            self.err.print(f"[yellow]warning[/yellow] {escape(text)}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Print a table. Columns of numbers are aligned to the right.

        Parameters
        ----------
        columns : sequence of str
            The names of the columns.
        rows : sequence of sequence of str
        title : str, default=""
        """
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
        """Print the result as JSON, if the command was called with ``--json``."""
        if self.as_json:
            print(json.dumps(content, default=_plain, allow_nan=False))

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show a bar while the command works.

        Parameters
        ----------
        what : str
            The text beside the bar.

        Yields
        ------
        callable
            Changes the text.
        """
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
    def hearing_warnings(self) -> Iterator[None]:
        """Print the warnings of the library as warnings of the command, each of them once."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield
        for message in dict.fromkeys(str(item.message) for item in heard):
            self.warn(message)


def stability_text(value: float | None) -> str:
    """A stability for a table; empty if the model has none."""
    return "" if value is None else f"{value:.0%}"


def _numeric(text: str) -> bool:
    try:
        float(text.rstrip("%") or 0)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON has no form for a {type(value).__name__}.")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """End a command that fails with one line and an exit code instead of a traceback.

    Parameters
    ----------
    command : callable
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (WrongUsageError, FileNotFoundError, IsADirectoryError) as error:
            _end(_readable(error), WRONG_USAGE)
        except BrokenPipeError:  # the program that reads the output, such as head, has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except ModuleNotFoundError as error:
            _end(f'This command needs {error.name}: pip install "metricboost[cli]"', FAILED)
        except (TableError, ModelFileError, OSError, ValueError, MemoryError) as error:
            _end(_readable(error), FAILED)
        except FitInterrupted as stopped:
            _say_and_end(escape(str(stopped)), INTERRUPTED)
        except KeyboardInterrupt:
            _end("The command was interrupted.", INTERRUPTED)
        except Exception as error:
            if os.environ.get("METRICBOOST_TRACEBACK"):
                traceback.print_exc()
            _end(
                f"{type(error).__name__}: {error}. This is a bug in metricboost. Please report "
                "it, with the traceback that METRICBOOST_TRACEBACK=1 prints.",
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
