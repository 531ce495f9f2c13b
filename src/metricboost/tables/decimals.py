"""Numbers that are written as texts: which decimal mark a table uses, and what its texts mean.

The decimal mark is a property of the table that is read, not of the model. A model that was trained
on a file with decimal points can classify a file with decimal commas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

#: How the texts of a column are read: with a decimal point, with a decimal comma, or as True/False.
POINT, COMMA, YES_NO = ".", ",", "yes/no"
OTHER = {POINT: COMMA, COMMA: POINT}
#: A text column is read as numbers if at least this share of its texts are numbers.
NUMBER_SHARE = 0.9
#: In a column with many texts such as 1.234, a smaller share of decimal commas than this counts as
#: typing errors.
TYPING_ERRORS = 0.1
#: Integers below this are exact as floating-point numbers.
EXACT = 2.0**53
#: A number with a decimal comma. Points may separate thousands, but a group of thousands does not
#: begin with a zero: 0.637 has a decimal point.
WITH_COMMA = r"[+-]?(?:(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d*)?|,\d+)(?:[eE][+-]?\d+)?"
#: Texts that mean a missing value, in lower case.
MISSING_MARKS = frozenset((
    "", "?", ".", "-", "*", "na", "n/a", "n.a.", "#n/a", "nan", "nat", "null", "none", "missing",
    "(missing)", "unknown", "<na>",
))  # fmt: skip


class Evidence:
    """Counts over the texts of a whole table, by column, which tell how its numbers are written."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def add(self, name: str, texts: Any) -> None:
        """Count the texts of a column, or of a chunk of it.

        A text such as 1.5 shows a decimal point and 1,5 a decimal comma. 1.234 and 12 fit both.

        Parameters
        ----------
        name : str
        texts : pandas.Series
        """
        if not texts.notna().any():
            return
        point = as_numbers(texts, POINT).notna()
        comma = texts.str.fullmatch(WITH_COMMA, na=False).astype(bool)
        dotted = point & comma & texts.str.contains(".", regex=False, na=False)
        counts = self._counts.setdefault(name, Counter())
        counts["texts"] += int(texts.notna().sum())
        counts["numbers"] += int((point | comma).sum())
        counts["either"] += int(dotted.sum())
        counts[POINT] += int((point & ~comma).sum())
        counts[COMMA] += int((comma & ~point).sum())
        counts[YES_NO] += int(as_numbers(texts[~(point | comma)], YES_NO).notna().sum())

    def mark(self, name: str) -> str | None:
        """The decimal mark of a column; None if all of its texts fit both marks."""
        counts = self._counts.get(name, Counter())
        if counts[COMMA] > counts[POINT] + TYPING_ERRORS * counts["either"]:
            return COMMA
        return POINT if counts[POINT] > counts[COMMA] else None

    def marks(self, names: Iterable[str]) -> dict[str, str]:
        """The decimal marks of training columns.

        A column whose texts fit both marks gets the mark of most of the other numeric columns.
        """
        common = self._common_mark()
        return {name: self.mark(name) or common for name in names}

    def _common_mark(self) -> str:
        numbers = [
            name for name, counts in self._counts.items()
            if counts["numbers"] >= NUMBER_SHARE * counts["texts"]
        ]  # fmt: skip
        marks = Counter(self.mark(name) for name in numbers)
        return COMMA if marks[COMMA] > marks[POINT] else POINT

    def readings(self, training: dict[str, str]) -> dict[str, str]:
        """How to read every column of a new table.

        A column whose texts fit both marks is read as in training. If most of the columns that
        show their mark have the other mark than in training, it is read with the other mark too.

        Parameters
        ----------
        training : dict
            The decimal mark that every column had in training.
        """
        marks = {name: self.mark(name) for name in training}
        changed = [mark != training[name] for name, mark in marks.items() if mark is not None]
        usual = training
        if 2 * sum(changed) > len(changed):
            usual = {name: OTHER[mark] for name, mark in training.items()}
        return {
            name: YES_NO if self._is_yes_no(name) else mark or usual[name]
            for name, mark in marks.items()
        }

    def _is_yes_no(self, name: str) -> bool:
        counts = self._counts.get(name, Counter())
        return counts[YES_NO] > 0 and counts["numbers"] == 0


def as_numbers(texts: Any, reading: str) -> Any:
    """Texts as numbers; a text that is not a number becomes NaN.

    Parameters
    ----------
    texts : pandas.Series
    reading : POINT, COMMA or YES_NO
        With a decimal comma, points separate thousands.
    """
    import pandas as pd

    if reading == YES_NO:
        return (
            texts.map(lambda text: str(text).lower(), "ignore")
            .map({"true": 1.0, "false": 0.0})
            .astype(float)
        )
    if reading == COMMA:
        fits = texts.str.fullmatch(WITH_COMMA, na=False)
        plain = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        texts = plain.where(fits)
    return pd.to_numeric(texts, errors="coerce")


def training_numbers(texts: Any, decimal: str) -> Any:
    """The texts of a training column as numbers.

    If one text has leading zeros, such as 007, all texts are codes and become NaN.
    """
    if texts.str.fullmatch(r"0\d+", na=False).any():
        return texts.map(lambda _: np.nan).astype(float)
    return as_numbers(texts, decimal)


def too_large(values: Any) -> bool:
    """Whether most values are integers, or texts of integers, too large to be exact as floats.

    A few of them do not count: they may be a code for "not measured" in a column of numbers.
    """
    import pandas as pd

    if pd.api.types.is_integer_dtype(values):
        sizes = values.dropna().astype(float).abs()
    elif is_numeric(values):
        return False
    else:
        present = values.dropna()
        sizes = as_numbers(present.where(present.str.fullmatch(r"[+-]?\d+")), POINT).abs()
    return bool((sizes.astype(float) >= EXACT).sum() > len(sizes) / 2)


def is_numeric(values: Any) -> bool:
    """Whether a column has a numeric or Boolean type."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values))


def texts_of(values: Any) -> Any:
    """A column of any type as stripped texts, with NaN for missing values.

    Integers are written without a decimal point, so that a level is the same text whether it comes
    from a CSV file or from a column with a type.
    """
    import pandas as pd

    if pd.api.types.is_float_dtype(values) and _fit_integers(values.dropna()):
        values = values.astype("Int64")
    present = values.notna()
    texts = values.astype(object).where(present).map(lambda value: str(value).strip(), "ignore")
    return texts.where(~texts.str.lower().isin(MISSING_MARKS)) if present.any() else texts


def _fit_integers(values: Any) -> bool:
    return bool((values % 1 == 0).all() and (values.abs() < 2.0**63).all())
