"""Making numbers of columns: which of them are numbers, which categories, and which neither.

Every decision that leaves something out, or takes it for something else, is written down as a
``Problem``, which the command prints and the report shows.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .._typing import Float
from ..errors import TableError
from ._names import as_frame, names_of, refuse_twice, unknown_column
from ._numbers import (
    NUMBER_SHARE,
    Evidence,
    as_numbers,
    is_numeric,
    texts_of,
    too_large,
    training_numbers,
)

#: A category has a column for each of its so many most frequent levels.
MOST_LEVELS = 20
#: Text that differs in more than this share of the rows says who a row is, not what it is like.
IDENTIFIER_SHARE = 0.9
#: Fewer rows tell no identifier from a number.
FEWEST_ROWS = 20
#: A column with more than this share of missing values is worth a remark.
MANY_MISSING = 0.5
MISSING_LEVEL = "(missing)"

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
    """Something about a table that its owner should know.

    Attributes
    ----------
    kind : str
        "identifier", "constant", "missing", "levels", "not a number", "target", "unknown".
    column : str
    message : str
        What was found, what was done about it, and how to change that.
    """

    kind: str
    column: str
    message: str


@dataclass(frozen=True)
class Column:
    """An input column: a number, or a category with levels that get a column of their own.

    A category of two levels has one column, for the second of them. Numbers that were texts in
    training had a decimal point or comma; new tables may have the other.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    decimal: str = "."

    @property
    def features(self) -> list[str]:
        if self.kind == "number":
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


class TableEncoder:
    """A table of mixed columns as a table of numbers.

    Numbers and yes/no columns stay as they are, text becomes one column per level. Identifiers are
    left out, dates are refused with advice.

    Parameters
    ----------
    drop : str or iterable of str
        Columns to leave out.
    keep : str or iterable of str
        Columns to keep although they look like identifiers.

    Attributes
    ----------
    columns_ : list of Column
    features_ : list of str
        Names of the columns of the result.
    problems_ : list of Problem

    Examples
    --------
    >>> import pandas as pd
    >>> from metricboost.tables import TableEncoder
    >>> frame = pd.DataFrame({"age": [31, 44, None], "city": ["Rome", "Oslo", "Rome"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.features_
    ['age', 'city=Rome']
    >>> encoder.transform(frame)
    array([[31.,  1.],
           [44.,  0.],
           [nan,  1.]])
    """

    def __init__(self, drop: Iterable[str] = (), keep: Iterable[str] = ()) -> None:
        self.drop = names_of(drop)
        self.keep = names_of(keep)

    def fit(self, frame: Any) -> TableEncoder:
        """Decide what every column is."""
        frame = as_frame(frame)
        for name in (*self.drop, *self.keep):
            if name not in frame.columns:
                raise TableError(unknown_column(name, frame.columns))
        self.problems_: list[Problem] = []
        names = [name for name in frame.columns if name not in self.drop]
        self._refuse_dates(frame, names)
        marks = _evidence(frame, names).marks(names)
        found = [self._column(frame[name], name, marks[name]) for name in names]
        self._set_columns([column for column in found if column is not None])
        if not self.columns_:
            raise TableError("No column is left to learn from.")
        return self

    def _set_columns(self, columns: Sequence[Column]) -> None:
        self.columns_ = list(columns)
        self.features_ = [name for column in columns for name in column.features]
        twice = [name for name, count in Counter(self.features_).items() if count > 1]
        if twice:
            raise TableError(
                f"Two columns would be called {twice[0]!r} once text is encoded: rename one, or "
                "leave it out."
            )

    def _refuse_dates(self, frame: Any, names: Sequence[str]) -> None:
        dates = [name for name in names if _is_date(frame[name])]
        if dates:
            drops = " ".join(f"--drop {name}" for name in dates)
            raise TableError(
                f"{_listed(dates)} hold{'s' if len(dates) == 1 else ''} dates. A distance needs "
                "numbers that mean something: the age in days, the month, the hour. Make such "
                f"columns of them, or leave them out ({drops})."
            )

    def _column(self, values: Any, name: str, decimal: str) -> Column | None:
        """What a column is; None where it is left out."""
        if values.dtype.kind == "c":
            raise TableError(f"{name!r} holds complex numbers: make columns of their parts.")
        typed = is_numeric(values) and not too_large(values)
        values = values if typed else texts_of(values)
        self._remark_missing(values, name)
        if typed:
            return self._number(values, name)
        present = values.notna()
        if not present.any():
            return Column(name, "number")
        if too_large(values):  # as numbers, two of them might be one
            return self._category(values, name)
        numbers = training_numbers(values, decimal)
        if numbers[present].notna().mean() >= NUMBER_SHARE:
            wrong = values[present & numbers.isna()].tolist()
            if wrong:
                self._problem("not a number", name, _not_numbers(wrong[0], len(wrong)))
            return self._number(numbers, name, decimal)
        return self._category(values, name)

    def _number(self, values: Any, name: str, decimal: str = ".") -> Column | None:
        distinct = values.nunique()
        if distinct <= 1:
            self._problem("constant", name, "has one value only: it says nothing.")
        elif self._is_identifier(values, name, distinct):
            return None
        return Column(name, "number", decimal=decimal)

    def _is_identifier(self, values: Any, name: str, distinct: int) -> bool:
        """Integers, each of them once, that count the rows or are called an id."""
        if not distinct == len(values) >= FEWEST_ROWS or name in self.keep:
            return False
        if values.dtype.kind not in "iu" and bool((values % 1 != 0).any()):
            return False
        counting = int(values.max()) - int(values.min()) == len(values) - 1
        if not counting and not IDENTIFIER_NAME.search(name):
            return False
        self._problem("identifier", name, _identifier_message(name))
        return True

    def _category(self, values: Any, name: str) -> Column | None:
        texts = values.dropna()
        counts = texts.value_counts()
        if len(counts) > max(MOST_LEVELS, IDENTIFIER_SHARE * len(texts)) and name not in self.keep:
            self._problem("identifier", name, _identifier_message(name))
            return None
        # Frequent levels first; of equally frequent ones, in the order of the alphabet.
        ordered = sorted(counts.index, key=lambda level: (-counts[level], level))
        if len(ordered) > MOST_LEVELS:
            self._problem(
                "levels", name,
                f"has {len(ordered)} different texts: the {MOST_LEVELS} most frequent have a "
                "column each, the others none.",
            )  # fmt: skip
        levels = sorted(ordered[:MOST_LEVELS])
        if values.isna().any():
            levels.append(MISSING_LEVEL)
        if len(levels) <= 1:
            self._problem("constant", name, "has one value only: it says nothing.")
            return Column(name, "category", tuple(levels))
        return Column(name, "category", tuple(levels if len(levels) > 2 else levels[1:]))

    def _remark_missing(self, values: Any, name: str) -> None:
        share = float(values.isna().mean())
        if share > MANY_MISSING:
            self._problem("missing", name, f"is missing in {share:.0%} of the rows.")

    def _problem(self, kind: str, column: str, message: str) -> None:
        self.problems_.append(Problem(kind, column, message))

    def look_over(self, frames: Iterable[Any]) -> WholeTable:
        """What has to be known of a whole table before its first rows become numbers."""
        evidence = Evidence()
        for frame in frames:
            self._refuse_lacking(frame)
            names = [column.name for column in self.columns_ if column.kind == "number"]
            texts = [name for name in names if not is_numeric(frame[name])]
            if not texts:  # such a file has types: the rest of it is alike
                break
            for name in texts:
                evidence.add(name, texts_of(frame[name]))
        training = {c.name: c.decimal for c in self.columns_ if c.kind == "number"}
        return WholeTable(evidence.readings(training), self.problems_)

    def _refuse_lacking(self, frame: Any) -> None:
        refuse_twice(frame.columns, [column.name for column in self.columns_])
        missing = [column.name for column in self.columns_ if column.name not in frame.columns]
        if missing:
            raise TableError(
                f"The table lacks {_listed(missing)}, which the model was fitted with."
            )

    def transform(self, frame: Any, whole: WholeTable | None = None) -> Float:
        """The numbers; missing ones are NaN. Columns are found by name, others are ignored.

        Of a table that comes in pieces, ``whole`` is what ``look_over`` says about all of it, and
        gathers what is to be said at its end.
        """
        if not hasattr(self, "columns_"):
            raise NotFittedError("This TableEncoder is not fitted yet: call fit first.")
        frame = as_frame(frame)
        self._refuse_lacking(frame)
        table = self.look_over([frame]) if whole is None else whole
        parts = [self._encoded(column, frame[column.name], table) for column in self.columns_]
        if whole is None:
            table.judge()
        return np.hstack(parts) if parts else np.empty((len(frame), 0))

    def _encoded(self, column: Column, values: Any, table: WholeTable) -> Float:
        if column.kind == "number":
            numbers = values if is_numeric(values) else table.numbers(column.name, texts_of(values))
            result = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.where(np.isinf(result), np.nan, result)[:, None]
        texts = texts_of(values).astype(object)
        texts = texts.where(texts.notna(), MISSING_LEVEL)
        return np.stack([(texts == level).to_numpy(dtype=float) for level in column.levels], axis=1)


class WholeTable:
    """A table that is made numbers of, perhaps in pieces: how its texts are read, which are none.

    What is read, said or refused must not depend on how many rows are read at a time.
    """

    def __init__(self, readings: dict[str, str], known: Sequence[Problem] = ()) -> None:
        self._readings = readings
        self._said = {problem.column for problem in known if problem.kind == "not a number"}
        self._texts: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def numbers(self, name: str, texts: Any) -> Any:
        """Texts of a column that was numbers in training."""
        if not texts.notna().any():
            return texts.astype(float)
        numbers = as_numbers(texts, self._readings[name])
        wrong = texts[texts.notna() & numbers.isna()].tolist()
        self._numbers[name] += int(numbers.notna().sum())
        self._texts[name] += len(wrong)
        if wrong:
            self._first.setdefault(name, wrong[0])
        return numbers

    def judge(self) -> None:
        """A few are missing values, with a warning; a column of nothing else is refused."""
        for name, first in self._first.items():
            if self._texts[name] >= FEWEST_ROWS and not self._numbers[name]:
                raise TableError(
                    f"Column {name!r} was numbers in training and holds none here, but texts such "
                    f"as {first!r}."
                )
            if name not in self._said:
                warnings.warn(f"{name} {_not_numbers(first, self._texts[name])}", stacklevel=3)


def _evidence(frame: Any, names: Sequence[str]) -> Evidence:
    evidence = Evidence()
    for name in names:
        if not is_numeric(frame[name]):
            evidence.add(name, texts_of(frame[name]))
    return evidence


def _identifier_message(name: str) -> str:
    return (
        "looks like an identifier, which says who a row is and not what it is like: left out "
        f"(--keep {name} keeps it)."
    )


def _not_numbers(first: str, count: int) -> str:
    texts = f"the text {first!r}" if count == 1 else f"{count} texts such as {first!r}"
    return f"has {texts} among its numbers: taken as missing."


def _is_date(values: Any) -> bool:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values) or values.dtype.kind in "Mm":
        return True
    if is_numeric(values):
        return False
    some = values.dropna().head(200)
    texts = [str(value) for value in some]
    return len(texts) > 0 and sum(DATE.fullmatch(text) is not None for text in texts) >= (
        NUMBER_SHARE * len(texts)
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{rest}"
