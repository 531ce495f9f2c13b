"""Texts, and numbers that are written as texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Float

#: How the texts of a column are read: with a decimal point, with a decimal comma, or as True/False.
POINT, COMMA, YES_NO = ".", ",", "yes/no"
#: A text column is read as numbers if at least this share of its texts are numbers.
NUMBER_SHARE = 0.9
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


def as_numbers(texts: Any, reading: str) -> Float:
    """Texts as numbers; a text that is not a number becomes NaN.

    Parameters
    ----------
    texts : pandas.Series
    reading : POINT, COMMA or YES_NO
        With a decimal comma, points separate thousands.
    """
    import pandas as pd

    if reading == YES_NO:
        numbers = texts.str.lower().map({"true": 1.0, "false": 0.0}).astype(float)
        return floats(numbers)
    if reading == COMMA:
        fits = texts.str.fullmatch(WITH_COMMA, na=False)
        plain = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        texts = plain.where(fits)
    return floats(pd.to_numeric(texts, errors="coerce"))


def floats(values: Any) -> Float:
    """A column of numbers as an array; NaN for missing values."""
    result: Float = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return result


def is_numeric(values: Any) -> bool:
    """Whether a column, or a type of columns, is numeric or Boolean."""
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
    if isinstance(values.dtype, pd.StringDtype):
        texts = values.str.strip()
    else:
        texts = values.astype(object).where(present).map(lambda value: str(value).strip(), "ignore")
    return texts.where(~texts.str.lower().isin(MISSING_MARKS)) if present.any() else texts


def _fit_integers(values: Any) -> bool:
    return bool((values % 1 == 0).all() and (values.abs() < 2.0**63).all())
