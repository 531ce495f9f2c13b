"""Numbers that are texts: which decimal mark a table has, and what its texts are under it.

The mark belongs to the table that is read and not to the model: a file with decimal commas may
follow one with decimal points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

#: How the texts of a column are read.
POINT, COMMA, YES_NO = ".", ",", "yes/no"
OTHER = {POINT: COMMA, COMMA: POINT}
#: Text of which at least this share are numbers is a number with gaps.
NUMBER_SHARE = 0.9
#: Fewer commas than this share of texts such as 1.234 are slips of the pen.
SLIPS = 0.1
#: Whole numbers below this are exact as floating-point numbers.
EXACT = 2.0**53
#: A number with a decimal comma. Points part thousands, and no thousands begin with a zero: 0.637
#: has a decimal point.
WITH_COMMA = r"[+-]?(?:(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d*)?|,\d+)(?:[eE][+-]?\d+)?"
#: Texts that stand for a missing value, in small letters.
MISSING_MARKS = frozenset((
    "", "?", ".", "-", "*", "na", "n/a", "n.a.", "#n/a", "nan", "nat", "null", "none", "missing",
    "(missing)", "unknown", "<na>",
))  # fmt: skip


class Evidence:
    """What the texts of a whole table, by column, say about how they are to be read."""

    def __init__(self) -> None:
        self._votes: dict[str, Counter[str]] = {}

    def add(self, name: str, texts: Any) -> None:
        """Some texts of a column; of those that are numbers, only some tell the marks apart."""
        if not texts.notna().any():
            return
        point = as_numbers(texts, POINT).notna()
        comma = texts.str.fullmatch(WITH_COMMA, na=False).astype(bool)
        dotted = point & comma & texts.str.contains(".", regex=False, na=False)
        votes = self._votes.setdefault(name, Counter())
        votes["texts"] += int(texts.notna().sum())
        votes["numbers"] += int((point | comma).sum())
        votes["either"] += int(dotted.sum())
        votes[POINT] += int((point & ~comma).sum())
        votes[COMMA] += int((comma & ~point).sum())
        votes[YES_NO] += int(as_numbers(texts[~(point | comma)], YES_NO).notna().sum())

    def mark(self, name: str) -> str | None:
        """The decimal mark of a column; None where all of its texts fit both."""
        votes = self._votes.get(name, Counter())
        if votes[COMMA] > votes[POINT] + SLIPS * votes["either"]:
            return COMMA
        return POINT if votes[POINT] > votes[COMMA] else None

    def marks(self, names: Iterable[str]) -> dict[str, str]:
        """Of columns in training: where all texts fit both, the mark of most columns of numbers."""
        common = self._common_mark()
        return {name: self.mark(name) or common for name in names}

    def _common_mark(self) -> str:
        numbers = [
            name for name, votes in self._votes.items()
            if votes["numbers"] >= NUMBER_SHARE * votes["texts"]
        ]  # fmt: skip
        marks = Counter(self.mark(name) for name in numbers)
        return COMMA if marks[COMMA] > marks[POINT] else POINT

    def readings(self, training: dict[str, str]) -> dict[str, str]:
        """How to read every column, given the marks of training, which decide if in doubt.

        Where most columns that tell have another mark than in training, so has the table, and the
        columns that do not tell go with them.
        """
        marks = {name: self.mark(name) for name in training}
        turned = [mark != training[name] for name, mark in marks.items() if mark is not None]
        usual = {n: OTHER[m] for n, m in training.items()} if _most(turned) else training
        return {
            name: YES_NO if self._is_yes_no(name) else mark or usual[name]
            for name, mark in marks.items()
        }

    def _is_yes_no(self, name: str) -> bool:
        votes = self._votes.get(name, Counter())
        return votes[YES_NO] > 0 and votes["numbers"] == 0


def _most(found: Iterable[bool]) -> bool:
    found = list(found)
    return 2 * sum(found) > len(found)


def as_numbers(texts: Any, reading: str) -> Any:
    """Texts as numbers, NaN where they are none; with a decimal comma, points part thousands."""
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
    """As ``as_numbers``; texts such as 007 are codes: then none is a number."""
    if texts.str.fullmatch(r"0\d+", na=False).any():
        return texts.map(lambda _: np.nan).astype(float)
    return as_numbers(texts, decimal)


def too_large(values: Any) -> bool:
    """Whether most are whole numbers, of integer type or as texts, that no float has exactly.

    Most of them: one code for "not measured" makes no texts of a column.
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
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values))


def texts_of(values: Any) -> Any:
    """Any column as stripped texts, NaN where missing; whole numbers are written without a point.

    So a level is the same text whether it was read from a CSV file or had a type of its own.
    """
    import pandas as pd

    if pd.api.types.is_float_dtype(values) and _fit_integers(values.dropna()):
        values = values.astype("Int64")
    present = values.notna()
    texts = values.astype(object).where(present).map(lambda value: str(value).strip(), "ignore")
    return texts.where(~texts.str.lower().isin(MISSING_MARKS)) if present.any() else texts


def _fit_integers(values: Any) -> bool:
    return bool((values % 1 == 0).all() and (values.abs() < 2.0**63).all())
