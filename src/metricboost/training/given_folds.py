"""The folds of a search, from the parameter ``cv``, and their validation."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from .._typing import Index
from .folds import Split
from .pool import Pool

Labels = npt.NDArray[Any]


def folds_of(cv: Any, pool: Pool, y: Labels | None, classes: Labels) -> list[Split]:
    """The kept rows and the left out rows of each fold, as positions in the pool.

    Parameters
    ----------
    cv : int, splitter or iterable
        The row numbers of an iterable or a splitter refer to the whole table. A fold that leaves
        out only rows with the weight 0 is dropped.
    pool : Pool
    y : ndarray or None
        The labels of all rows of the table; None if they are not in memory.
    classes : ndarray
    """
    if cv is None or isinstance(cv, Integral):
        found = _stratified(cv, pool)
    else:
        found = [_in_pool(pool, y, split) for split in _of_all_rows(cv, pool, y)]
        found = [(kept, out) for kept, out in found if len(out)]
    if len(found) < 2:
        raise ValueError(
            f"cv has {len(found)} folds that leave rows out, but at least 2 are needed. If cv is "
            "an iterator, it may have been used up by an earlier fit: pass a list."
        )
    for kept, _ in found:
        _check_classes(cv, pool, classes, kept)
    return found


def _stratified(cv: Any, pool: Pool) -> list[Split]:
    folds = check_cv(cv, pool.labels, classifier=True)
    most = int(np.bincount(pool.labels).max())
    if folds.get_n_splits() > most:
        raise ValueError(
            f"cv={cv}, but the largest class has only {most} rows: use at most {most} folds."
        )
    return list(folds.split(np.zeros((len(pool.labels), 1)), pool.labels))


def _of_all_rows(cv: Any, pool: Pool, y: Labels | None) -> list[Split]:
    """The folds of an iterable or a splitter, over all rows of the table.

    If the labels are not in memory, a splitter divides the rows of the pool instead.
    """
    if isinstance(cv, Iterable):
        if y is None:
            raise ValueError(
                "cv is a list of row numbers, but only a sample of the rows of a Dask collection "
                "is used: pass a number of folds or a splitter."
            )
        return list(check_cv(cv).split())
    y = pool.labels if y is None else y
    try:
        return list(cv.split(np.zeros((len(y), 1)), y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(
            f"{type(cv).__name__} needs groups, which fit does not take: pass "
            "cv=list(splitter.split(X, y, groups))."
        ) from error


def _in_pool(pool: Pool, y: Labels | None, split: tuple[Any, Any]) -> Split:
    """Convert a fold over all rows of the table to positions in the pool."""
    if y is None:
        return split
    place = np.full(len(y), -1)
    place[pool.numbers] = np.arange(len(pool.numbers))
    kept, out = (place[_row_numbers(rows, len(y))] for rows in split)
    return kept[kept >= 0], out[out >= 0]


def _row_numbers(rows: Any, n_rows: int) -> Index:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    rows = rows.astype(np.intp) if not rows.size else rows
    inside = rows.dtype.kind in "iu" and rows.ndim == 1 and (rows < n_rows).all()
    if not inside or (rows < -n_rows).any():
        raise ValueError(
            f"A fold of cv has row numbers that are not integers from 0 to {n_rows - 1}: X has "
            f"{n_rows} rows."
        )
    numbers: Index = rows.astype(np.intp)
    return numbers


def _check_classes(cv: Any, pool: Pool, classes: Labels, kept: Index) -> None:
    """Raise an error if a fold keeps fewer than two rows of a class.

    Two rows are needed because a row is never its own neighbour.
    """
    counts = np.bincount(pool.labels[kept], minlength=len(classes))
    if counts.min() >= 2:
        return
    c = int(np.argmin(counts))
    total = int((pool.labels == c).sum())
    if total < 3:
        remedy = f"the class has {total} rows in all, and a search needs 3"
    elif cv is None or isinstance(cv, Integral):
        remedy = "use more folds, so that each fold leaves out fewer rows"
    else:
        remedy = "use stratified folds (sklearn.model_selection.StratifiedKFold)"
    raise ValueError(
        f"A fold of cv={cv} has {counts[c]} rows of class {classes[c]} to learn from, but 2 are "
        f"needed: {remedy}."
    )
