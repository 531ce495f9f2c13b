"""The folds of a search, over the rows that have a weight; what cannot be used is named."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from .._typing import Index
from ._rows import Table

Split = tuple[Index, Index]


def folds_of(cv: Any, table: Table, classes: npt.NDArray[Any]) -> list[Split]:
    """Kept and left out rows of every fold, numbered among those that have a weight.

    Folds that are given, or that a splitter makes, number all rows; one that leaves out no row with
    a weight is left away.
    """
    if cv is None or isinstance(cv, Integral):
        found = _stratified(cv, table)
    else:
        found = [_among_weighted(table, split) for split in _of_all_rows(cv, table)]
        found = [(kept, out) for kept, out in found if len(out)]
    if len(found) < 2:
        raise ValueError(
            f"cv has {len(found)} folds that leave rows out, and at least 2 are needed. (An "
            "iterator serves one fit only: give a list.)"
        )
    for kept, _ in found:
        _check_classes(cv, table, classes, kept)
    return found


def _stratified(cv: Any, table: Table) -> list[Split]:
    folds = check_cv(cv, table.pool.labels, classifier=True)
    most = int(np.bincount(table.pool.labels).max())
    if folds.get_n_splits() > most:
        raise ValueError(
            f"cv={cv}, but the largest class has {most} rows: use at most {most} folds."
        )
    return list(folds.split(np.zeros((len(table.pool.labels), 1)), table.pool.labels))


def _of_all_rows(cv: Any, table: Table) -> list[Split]:
    """Folds as they are given or as a splitter makes them, of all rows of the table.

    If the labels are not in memory, a splitter divides the rows of the pool.
    """
    if isinstance(cv, Iterable):
        if table.y is None:
            raise ValueError(
                "cv has row numbers, but of a Dask collection only a sample of rows is used: pass "
                "a number of folds or a splitter."
            )
        return list(check_cv(cv).split())
    y = table.pool.labels if table.y is None else table.y
    try:
        return list(cv.split(np.zeros((len(y), 1)), y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"{type(cv).__name__} needs groups: pass cv=list(splitter.split(X, y, groups))."
        ) from error


def _among_weighted(table: Table, split: tuple[Any, Any]) -> Split:
    if table.y is None:
        return split
    n_rows, numbers = len(table.y), table.pool.numbers
    place = np.full(n_rows, -1)
    place[numbers] = np.arange(len(numbers))
    kept, out = (place[_row_numbers(rows, n_rows)] for rows in split)
    return kept[kept >= 0], out[out >= 0]


def _row_numbers(rows: Any, n_rows: int) -> Index:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    rows = rows.astype(np.intp) if not rows.size else rows
    inside = rows.dtype.kind in "iu" and rows.ndim == 1 and (rows < n_rows).all()
    if not inside or (rows < -n_rows).any():
        raise ValueError(f"A fold of cv has row numbers that are not within 0 to {n_rows - 1}.")
    return rows.astype(np.intp)


def _check_classes(cv: Any, table: Table, classes: npt.NDArray[Any], kept: Index) -> None:
    """Two rows of every class to learn from: a row is never its own neighbour."""
    counts = np.bincount(table.pool.labels[kept], minlength=len(classes))
    if counts.min() >= 2:
        return
    c = int(np.argmin(counts))
    total = int((table.pool.labels == c).sum())
    if total < 3:
        remedy = f"it has {total} rows in all, and a search needs 3"
    elif cv is None or isinstance(cv, Integral):
        remedy = "use more folds, so that each leaves fewer rows out"
    else:
        remedy = "use stratified folds (sklearn.model_selection.StratifiedKFold)"
    raise ValueError(
        f"A fold of cv={cv} has {counts[c]} rows of class {classes[c]} to learn from, and 2 are "
        f"needed: {remedy}."
    )
