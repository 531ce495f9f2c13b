"""Names of columns, and tables of pandas and of other libraries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from ..errors import TableError
from ..inputs import listed


def refuse_duplicates(columns: Iterable[str], wanted: Iterable[str] | None = None) -> None:
    """Refuse a table in which two columns have the same name.

    Parameters
    ----------
    columns : iterable of str
        The names of all columns.
    wanted : iterable of str, optional
        The names that have to be unique; by default all of them.
    """
    counts = Counter(columns)
    for name in counts if wanted is None else wanted:
        if counts[name] > 1:
            raise TableError(
                f"The table has {counts[name]} columns named {name!r}: rename them or keep one."
            )


def unknown_column(name: str, columns: Iterable[str]) -> str:
    """The message about a column that does not exist.

    Parameters
    ----------
    name : str
    columns : iterable of str
        The names of the columns that exist.
    """
    known = [str(column) for column in columns]
    by_case = {column.lower(): column for column in known}
    close = [by_case[match] for match in get_close_matches(name.lower(), by_case, n=3)]
    if close:
        return f"There is no column {name!r}. Did you mean {' or '.join(map(repr, close))}?"
    shown = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    return f"There is no column {name!r}. The columns are {shown}."


def names_of(columns: str | Iterable[str]) -> tuple[str, ...]:
    """Names as a tuple; a single string is one name, not a sequence of letters."""
    return (columns,) if isinstance(columns, str) else tuple(map(str, columns))


def columns_named(names: Sequence[str]) -> str:
    """Names of columns in a message: "column 'a'" or "columns 'a', 'b'"."""
    return f"column{'s' if len(names) > 1 else ''} {listed(names)}"


def as_frame(table: Any) -> Any:
    """A table as a pandas DataFrame. Names that are not texts, such as 0 and 1, become texts.

    Parameters
    ----------
    table : pandas.DataFrame, or a table with the method ``to_pandas``, such as one of polars
    """
    import pandas as pd

    frame = table.to_pandas() if hasattr(table, "to_pandas") else table
    if isinstance(frame, pd.DataFrame):
        named = all(isinstance(name, str) for name in frame.columns)
        return frame if named else frame.set_axis(map(str, frame.columns), axis=1)
    if isinstance(table, str | os.PathLike):
        advice = "read the file with metricboost.tables.read_table(path)"
    else:
        advice = "make a table with pandas.DataFrame(values, columns=names)"
    raise TypeError(
        f"A pandas DataFrame is needed, but this is a {type(table).__name__}: {advice}."
    )
