"""What the columns of a table are: numbers, categories, identifiers or dates.

Every decision that leaves a column out, or changes what its values mean, is recorded as a
``Problem``. The command prints the problems, and the report shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import TableError
from .decimals import NUMBER_SHARE, is_numeric, texts_of, too_large, training_numbers
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
    """

    def __init__(self, keep: Sequence[str]) -> None:
        self.keep = keep
        self.problems: list[Problem] = []

    def column(self, values: Any, name: str, decimal: str) -> Column | None:
        """What a column is; None if it is an identifier and not used.

        Parameters
        ----------
        values : pandas.Series
        name : str
        decimal : str
            The decimal mark of its texts.
        """
        if values.dtype.kind == "c":
            raise TableError(
                f"Column {name!r} holds complex numbers. Replace it by two columns with their real "
                "and imaginary parts."
            )
        typed = is_numeric(values) and not too_large(values)
        values = values if typed else texts_of(values)
        self._report_missing(values, name)
        if typed:
            return self._number(values, name)
        present = values.notna()
        if not present.any():
            return Column(name, "number")
        if too_large(values):  # as floating-point numbers, different values could become equal
            return self._category(values, name)
        numbers = training_numbers(values, decimal)
        if numbers[present].notna().mean() >= NUMBER_SHARE:
            wrong = values[present & numbers.isna()].tolist()
            if wrong:
                self._report("not a number", name, texts_among_numbers(wrong[0], len(wrong)))
            return self._number(numbers, name, decimal)
        return self._category(values, name)

    def _number(self, values: Any, name: str, decimal: str = ".") -> Column | None:
        distinct = values.nunique()
        if distinct <= 1:
            self._report_constant(name)
        elif self._is_identifier(values, name, distinct):
            return None
        return Column(name, "number", decimal=decimal)

    def _is_identifier(self, values: Any, name: str, distinct: int) -> bool:
        """Whether a column has different integers that are consecutive, or the name of an id."""
        if not distinct == len(values) >= FEWEST_ROWS or name in self.keep:
            return False
        if values.dtype.kind not in "iu" and bool((values % 1 != 0).any()):
            return False
        consecutive = int(values.max()) - int(values.min()) == len(values) - 1
        if not consecutive and not IDENTIFIER_NAME.search(name):
            return False
        self._report_identifier(name)
        return True

    def _category(self, values: Any, name: str) -> Column | None:
        texts = values.dropna()
        counts = texts.value_counts()
        if len(counts) > max(MOST_LEVELS, IDENTIFIER_SHARE * len(texts)) and name not in self.keep:
            self._report_identifier(name)
            return None
        # The most frequent levels first, and equally frequent levels in alphabetical order.
        ordered = sorted(counts.index, key=lambda level: (-counts[level], level))
        if len(ordered) > MOST_LEVELS:
            self._report(
                "levels", name,
                f"has {len(ordered)} different texts. Each of the {MOST_LEVELS} most frequent ones "
                "has an encoded column, and the other texts have none.",
            )  # fmt: skip
        levels = sorted(ordered[:MOST_LEVELS])
        if values.isna().any():
            levels.append(MISSING_LEVEL)
        if len(levels) <= 1:
            self._report_constant(name)
            return Column(name, "category", tuple(levels))
        return Column(name, "category", tuple(levels if len(levels) > 2 else levels[1:]))

    def _report_missing(self, values: Any, name: str) -> None:
        share = float(values.isna().mean())
        if share > MANY_MISSING:
            self._report("missing", name, f"is missing in {share:.0%} of the rows.")

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
        self.problems.append(Problem(kind, column, message))


def texts_among_numbers(first: str, count: int) -> str:
    """The message about texts in a column of numbers, without its subject."""
    if count == 1:
        return f"has the text {first!r} among its numbers. It counts as a missing value."
    return f"has {count} texts such as {first!r} among its numbers. They count as missing values."


def refuse_dates(frame: Any, names: Iterable[str]) -> None:
    """Refuse columns of dates, since distances need numbers with a meaning.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : iterable of str
        The columns that are used.
    """
    dates = [name for name in names if _is_date(frame[name])]
    if dates:
        drops = " ".join(f"--drop {name}" for name in dates)
        raise TableError(
            f"The {columns_named(dates)} hold{'s' if len(dates) == 1 else ''} dates, but distances "
            "need numbers with a meaning, such as an age in days, a month or an hour. Replace "
            f"the dates by such numbers, or leave the dates out ({drops}; in Python "
            f"drop={dates!r})."
        )


def _is_date(values: Any) -> bool:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values) or values.dtype.kind in "Mm":
        return True
    if is_numeric(values):
        return False
    texts = [str(value) for value in values.dropna().head(DATES_SEEN)]
    dates = sum(DATE.fullmatch(text) is not None for text in texts)
    return len(texts) > 0 and dates >= NUMBER_SHARE * len(texts)
