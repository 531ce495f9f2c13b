"""What the columns of a table are: numbers, categories, identifiers or dates.

Every decision that leaves a column out, or changes what its values mean, is recorded as a
``Problem``. The command prints the problems, and the report shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..errors import TableError
from .cells import Cells
from .decimals import NUMBER_SHARE, POINT
from .names import columns_named

#: A category has one encoded column for each of this many most frequent levels.
MOST_LEVELS = 20
#: A text column with more different texts than this share of the rows is an identifier.
IDENTIFIER_SHARE = 0.9
#: In a table with fewer rows than this, no column of integers is taken for an identifier.
FEWEST_ROWS = 20
#: A column in which a larger share of the values is missing is reported as a problem.
MANY_MISSING = 0.5
MISSING_LEVEL = "(missing)"
#: Values of a column that are looked at to find out whether they are dates.
DATES_SEEN = 200

IDENTIFIER_NAME = re.compile(
    r"(?i:(^|[^a-z])(id|uuid|guid|index|key|rownum|row)($|[^a-z])|^unnamed: \d+$)|[a-z](Id|ID)$"
)
DATE = re.compile(
    r"""\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T\s].*)?      # 2024-03-01, with a time
    |\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})(\s.*)?        # 01.03.2024
    |\d{1,2}[\s-](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s,-]+\d{2,4}.*
    |(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\s+\d{1,2},?\s+\d{4}.*)\s*""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Problem:
    """Something about a column that the owner of the table should know.

    ``str(problem)`` is a sentence with the name of the column.

    Attributes
    ----------
    kind : str
        "identifier", "constant", "missing", "levels", "not a number" or "target".
    column : str
    message : str
        What was found and what was done about it, without its subject, which is the column.
    """

    kind: str
    column: str
    message: str

    def __str__(self) -> str:
        return f"Column {self.column!r} {self.message}"


@dataclass(frozen=True)
class Column:
    """A column of a table and how it is encoded.

    Attributes
    ----------
    name : str
    kind : str
        "number" or "category".
    levels : tuple of str
        The levels of a category that have an encoded column. A category with two levels has one
        encoded column, for its second level.
    decimal : str
        The decimal mark that the texts of a number had in training. New tables may use the other.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    decimal: str = "."

    @property
    def features(self) -> list[str]:
        """The names of the encoded columns."""
        if self.kind == "number":
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


class ColumnTypes:
    """Decides what the columns of a training table are, and collects the problems.

    Parameters
    ----------
    keep : sequence of str
        Columns that are never taken for identifiers.

    Attributes
    ----------
    columns : dict
        The columns that are used, by name.
    problems : dict
        The problems of every column that has any, by name.
    """

    def __init__(self, keep: Sequence[str]) -> None:
        self.keep = keep
        self.columns: dict[str, Column] = {}
        self.problems: dict[str, list[Problem]] = {}

    def add_numbers(self, names: Sequence[str], values: npt.NDArray[Any]) -> None:
        """Decide what columns of numbers are.

        Parameters
        ----------
        names : sequence of str
        values : ndarray of shape (n_columns, n_rows)
        """
        self._report_missing(names, np.isnan(values))
        self._numbers(names, values, [POINT] * len(names))

    def add_texts(self, cells: Cells, marks: Sequence[str]) -> None:
        """Decide what columns of texts are.

        Parameters
        ----------
        cells : Cells
        marks : sequence of str
            The decimal mark of every column.
        """
        names, present, numbers = cells.names, cells.present, cells.numbers(marks)
        self._report_missing(names, ~present)
        numeric = _are_numeric(cells, numbers)
        wrong = present & np.isnan(numbers)
        for j in np.flatnonzero(numeric & wrong.any(axis=1)).tolist():
            first = cells.text(j, int(wrong[j].argmax()))
            message = texts_among_numbers(first, int(wrong[j].sum()))
            self._report("not a number", names[j], message)
        own = np.flatnonzero(numeric).tolist()
        self._numbers([names[j] for j in own], numbers[own], [marks[j] for j in own])
        for j in np.flatnonzero(~numeric).tolist():
            if present[j].any():
                self._category(names[j], cells.objects[j][present[j]].tolist(), len(present[j]))
            else:
                self.columns[names[j]] = Column(names[j], "number")

    def _numbers(
        self, names: Sequence[str], values: npt.NDArray[Any], marks: Sequence[str]
    ) -> None:
        ordered = np.sort(values, axis=1)  # NaN at the end
        distinct, n_rows = _distinct(ordered), values.shape[1]
        integers = (distinct == n_rows) & (n_rows >= FEWEST_ROWS) & _whole(values)
        consecutive = integers & _consecutive(ordered)
        for j, name in enumerate(names):
            if distinct[j] <= 1:
                self._report_constant(name)
            named = integers[j] and IDENTIFIER_NAME.search(name)
            if (consecutive[j] or named) and name not in self.keep:
                self._report_identifier(name)
            else:
                self.columns[name] = Column(name, "number", decimal=marks[j])

    def _category(self, name: str, texts: list[str], n_rows: int) -> None:
        counts = Counter(texts)
        if len(counts) > max(MOST_LEVELS, IDENTIFIER_SHARE * len(texts)) and name not in self.keep:
            self._report_identifier(name)
            return
        # The most frequent levels first, and equally frequent levels in alphabetical order.
        ordered = sorted(counts, key=lambda level: (-counts[level], level))
        if len(ordered) > MOST_LEVELS:
            self._report(
                "levels", name,
                f"has {len(ordered)} different texts. Each of the {MOST_LEVELS} most frequent ones "
                "has an encoded column, and the other texts have none.",
            )  # fmt: skip
        levels = sorted(ordered[:MOST_LEVELS])
        if len(texts) < n_rows:
            levels.append(MISSING_LEVEL)
        if len(levels) <= 1:
            self._report_constant(name)
        self.columns[name] = Column(
            name, "category", tuple(levels[1:] if len(levels) == 2 else levels)
        )

    def _report_missing(self, names: Sequence[str], missing: npt.NDArray[np.bool_]) -> None:
        shares = missing.sum(axis=1) / max(missing.shape[1], 1)
        for j in np.flatnonzero(shares > MANY_MISSING).tolist():
            self._report("missing", names[j], f"is missing in {shares[j]:.0%} of the rows.")

    def _report_constant(self, name: str) -> None:
        message = "has only one value, so it cannot tell the classes apart."
        self._report("constant", name, message)

    def _report_identifier(self, name: str) -> None:
        self._report(
            "identifier", name,
            f"looks like an identifier and was not used. Use --keep {name} (in Python "
            f"keep={name!r}) to use it.",
        )  # fmt: skip

    def _report(self, kind: str, column: str, message: str) -> None:
        self.problems.setdefault(column, []).append(Problem(kind, column, message))


def _are_numeric(cells: Cells, numbers: Float) -> npt.NDArray[np.bool_]:
    """Which columns are numeric although they hold texts.

    Integers that are too large for a float are no numbers, because different ones could become
    equal. Neither are the texts of a column with a code such as 007.
    """
    found, present = (~np.isnan(numbers)).sum(axis=1), cells.present.sum(axis=1)
    share = found / np.maximum(present, 1)
    codes = cells.matching(r"0\d+").any(axis=1)
    result: npt.NDArray[np.bool_] = (share >= NUMBER_SHARE) & ~codes & ~cells.too_large
    return result


def _distinct(ordered: npt.NDArray[Any]) -> Index:
    """The number of different values of every row of a sorted array. NaN does not count."""
    changes = (ordered[:, 1:] != ordered[:, :-1]) & ~np.isnan(ordered[:, 1:])
    present = ~np.isnan(ordered[:, :1])
    result: Index = present.sum(axis=1) + changes.sum(axis=1)
    return result


def _consecutive(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows of a sorted array span as many numbers as they have values."""
    low, high = ordered[:, :1].astype(np.float64), ordered[:, -1:].astype(np.float64)
    result: npt.NDArray[np.bool_] = (high - low == ordered.shape[1] - 1).ravel()
    return result


def _whole(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows of an array hold finite whole numbers only."""
    whole = np.isfinite(values) & (values == np.rint(values))
    result: npt.NDArray[np.bool_] = whole.all(axis=1)
    return result


def refuse_complex(names: Sequence[str]) -> None:
    """Refuse columns of complex numbers, if there are any."""
    if names:
        raise TableError(
            f"Column {names[0]!r} holds complex numbers. Replace it by two columns with their real "
            "and imaginary parts."
        )


def texts_among_numbers(first: str, count: int) -> str:
    """The message about texts in a column of numbers, without its subject."""
    if count == 1:
        return f"has the text {first!r} among its numbers. It counts as a missing value."
    return f"has {count} texts such as {first!r} among its numbers. They count as missing values."


def is_time(dtype: Any) -> bool:
    """Whether a type of columns is one of dates or durations."""
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind in "Mm")


def dates_among(cells: Cells) -> list[str]:
    """The names of the columns that hold dates.

    Parameters
    ----------
    cells : Cells
    """
    seen = cells.given & (cells.given.cumsum(axis=1) <= DATES_SEEN)
    some, numbers = seen.sum(axis=1), (seen & ~np.isnan(cells.points)).sum(axis=1)
    suspects = (some > 0) & (some - numbers >= NUMBER_SHARE * some)  # a number is no date
    return [
        cells.names[j]
        for j in np.flatnonzero(suspects)
        if sum(DATE.fullmatch(str(text)) is not None for text in cells.objects[j][seen[j]])
        >= NUMBER_SHARE * some[j]
    ]


def refuse_dates(names: Sequence[str]) -> None:
    """Refuse columns of dates, since distances need numbers with a meaning.

    Parameters
    ----------
    names : sequence of str
        The columns that hold dates.
    """
    if names:
        drops = " ".join(f"--drop {name}" for name in names)
        raise TableError(
            f"The {columns_named(names)} hold{'s' if len(names) == 1 else ''} dates, but distances "
            "need numbers with a meaning, such as an age in days, a month or an hour. Replace "
            f"the dates by such numbers, or leave the dates out ({drops}; in Python "
            f"drop={list(names)!r})."
        )
