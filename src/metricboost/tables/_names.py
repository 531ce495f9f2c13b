"""Names that are not there, and what may have been meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

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
