"""The columns and problems of a table as plain values for a model file, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from ..errors import ModelFileError
from .columns import Column, Problem
from .decimals import COMMA, POINT

KINDS = ("number", "category")


def pack_columns(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Columns as plain values. JSON has no tuples, so the levels are a list."""
    return [{**vars(column), "levels": list(column.levels)} for column in columns]


def unpack_columns(values: Any) -> list[Column]:
    """Columns from plain values, each of which is checked.

    Parameters
    ----------
    values : list of dict
    """
    columns = []
    for item in _records(values, Column, "columns"):
        levels = item["levels"]
        if not isinstance(levels, list | tuple) or not all(
            isinstance(level, str) for level in levels
        ):
            raise ModelFileError("The columns of the table have levels that are not texts.")
        column = Column(item["name"], item["kind"], tuple(levels), item["decimal"])
        if (
            not isinstance(column.name, str)
            or column.kind not in KINDS
            or column.decimal not in (POINT, COMMA)
        ):
            raise ModelFileError(f"The columns of the table are wrong: {column}.")
        columns.append(column)
    return columns


def pack_problems(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Problems as plain values."""
    return [asdict(problem) for problem in problems]


def unpack_problems(values: Any) -> list[Problem]:
    """Problems from plain values, each of which is checked.

    Parameters
    ----------
    values : list of dict
    """
    problems = [Problem(**item) for item in _records(values, Problem, "problems")]
    if not all(isinstance(text, str) for one in problems for text in asdict(one).values()):
        raise ModelFileError("The problems of the table are not texts.")
    return problems


def _records(
    values: Any, kind: type[Column] | type[Problem], what: str
) -> Iterator[dict[str, Any]]:
    names = {one.name for one in fields(kind)}
    if not isinstance(values, list):
        raise ModelFileError(f"The {what} of the table are not a list.")
    for item in values:
        if not isinstance(item, dict) or item.keys() != names:
            raise ModelFileError(f"The {what} of the table lack {', '.join(sorted(names))}.")
        yield item
