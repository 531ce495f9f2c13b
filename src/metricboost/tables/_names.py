"""What is given: names of columns, also such that are not there, and tables of any library."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from ..errors import TableError


def refuse_twice(columns: Iterable[str], wanted: Iterable[str] | None = None) -> None:
    """Columns are known by name: of all, or of those that are wanted, none may stand twice."""
    counts = Counter(columns)
    for name in counts if wanted is None else wanted:
        if counts[name] > 1:
            raise TableError(f"There are {counts[name]} columns {name!r}: rename or drop some.")


def unknown_column(name: str, columns: Iterable[str]) -> str:
    """What to say about a column that does not exist."""
    known = [str(column) for column in columns]
    by_case = {column.lower(): column for column in known}
    close = [by_case[match] for match in get_close_matches(name.lower(), by_case, n=3)]
    if close:
        return f"There is no column {name!r}. Did you mean {' or '.join(map(repr, close))}?"
    shown = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return f"There is no column {name!r}. The columns are {shown}."


def names_of(columns: Iterable[str]) -> tuple[str, ...]:
    """A single name is that of one column, not a list of letters."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def as_frame(table: Any) -> Any:
    """A table of pandas, or of a library that makes one of its own, such as polars."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    made = table.to_pandas() if hasattr(table, "to_pandas") else None
    if isinstance(made, pd.DataFrame):
        return made
    if isinstance(table, str | os.PathLike):
        advice = "read the file with metricboost.tables.read_table(path)"
    else:
        advice = "make one with pandas.DataFrame(values, columns=names)"
    raise TypeError(
        f"A pandas DataFrame is wanted, and this is a {type(table).__name__}: {advice}."
    )
