"""The columns of a table in groups: the work on many columns at once takes less time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float
from .decimals import COMMA, EXACT, POINT, YES_NO, as_numbers, floats, is_numeric, texts_of

#: Cells of a table that are looked at together.
CELLS = 2**21
#: Columns with fewer rows than this are joined as arrays of Python objects. For longer columns,
#: joining them as they are is faster.
LONG = 1000


class Cells:
    """Columns of texts, one below the other, and what their texts mean as numbers.

    The work on one long column takes a small part of the time of the same work on many short ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its columns have one type.

    Attributes
    ----------
    names : list of str
    texts : pandas.Series
        The stripped texts of all columns; NaN for missing values.
    given : ndarray of bool of shape (n_columns, n_rows)
        Which values are not empty. They may be marks of missing values.
    """

    def __init__(self, frame: Any) -> None:
        self.names = list(frame.columns)
        values = _joined(frame)
        self.given = self.by_column(values.notna())
        self.texts = texts_of(values)
        if not self.texts.notna().any():
            self.texts = self.texts.astype(object)  # pandas may have made floats of missing values

    def by_column(self, values: Any) -> npt.NDArray[Any]:
        """One value for every text as an array of shape (n_columns, n_rows)."""
        array: npt.NDArray[Any] = np.asarray(values).reshape(len(self.names), -1)
        return array

    def text(self, column: int, row: int) -> str:
        """The text in a row of a column."""
        return str(self.texts.iloc[column * self.present.shape[1] + row])

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which texts are not missing. Shape (n_columns, n_rows), as of the other properties."""
        return self.by_column(self.texts.notna())

    @cached_property
    def points(self) -> Float:
        """The texts as numbers with a decimal point; NaN for other texts."""
        return self.by_column(as_numbers(self.texts, POINT))

    @cached_property
    def objects(self) -> npt.NDArray[np.object_]:
        """The texts as Python objects."""
        return self.by_column(self.texts.to_numpy(dtype=object))

    def matching(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Which texts match a regular expression."""
        return self.by_column(self.texts.str.fullmatch(pattern, na=False).astype(bool))

    def numbers(self, readings: Sequence[str]) -> Float:
        """The texts as numbers; NaN for missing values and for texts that are not numbers.

        Parameters
        ----------
        readings : sequence of str
            How every column is read.
        """
        found, chosen = self.points.copy(), np.array(readings)
        for reading in (COMMA, YES_NO):
            own = np.zeros(found.shape, dtype=bool)
            own[chosen == reading] = True
            if own.any():
                found[own] = as_numbers(self.texts[own.ravel()], reading)
        return found

    @property
    def too_large(self) -> npt.NDArray[np.bool_]:
        """Which columns mostly hold integers that are too large to be exact as floats.

        A few of them do not count: they may be a code for "not measured" in a column of numbers.
        """
        large = np.abs(self.points) >= EXACT
        if large.any():
            own = self.texts[large.ravel()]
            large[large] = own.str.fullmatch(r"[+-]?\d+", na=False).to_numpy(dtype=bool)
        result: npt.NDArray[np.bool_] = large.sum(axis=1) > self.present.sum(axis=1) / 2
        return result


def _joined(frame: Any) -> Any:
    """The columns of a table, one below the other, as one pandas Series."""
    import pandas as pd

    columns = [frame.iloc[:, 0]]
    if frame.shape[1] == 1:
        return columns[0].reset_index(drop=True)
    if len(frame) < LONG:
        texts, dtype = frame.to_numpy(dtype=object).T.ravel(), frame.dtypes.iloc[0]
        if dtype.kind == "O" and pd.api.types.infer_dtype(texts) == "string":
            dtype = pd.Series(["text"]).dtype  # texts of one type take less time
        return pd.Series(texts, dtype=dtype)
    columns = [frame[name] for name in frame.columns]
    return pd.concat(columns, ignore_index=True)


class Blocks:
    """The values of some columns of a table, in groups of columns with the same type.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
        The columns.
    words : collection of str, default=()
        Columns whose values are taken as texts, whatever their type.

    Attributes
    ----------
    numbers : list of (list of str, ndarray of shape (n_columns, n_rows))
        Columns with numeric types.
    texts : list of Cells
        The other columns.
    """

    def __init__(self, frame: Any, names: Sequence[str], words: Collection[str] = ()) -> None:
        self.numbers: list[tuple[list[str], npt.NDArray[Any]]] = []
        self.texts: list[Cells] = []
        for numeric, own in _groups(frame, names, words):
            part = frame if len(own) == frame.shape[1] else frame[own]
            if numeric:
                self.numbers.append((list(part.columns), _numbers(part)))
            else:
                self.texts.append(Cells(part))


def _groups(
    frame: Any, names: Sequence[str], words: Collection[str]
) -> Iterator[tuple[bool, list[str]]]:
    """Columns of one type with at most CELLS values, and whether they are taken as numbers."""
    import pandas as pd

    for dtype, alike in by_type(frame, names).items():
        numeric, one_type = is_numeric(dtype), isinstance(dtype, np.dtype | pd.StringDtype)
        for is_word in (False, True):
            own = [name for name in alike if (name in words) == is_word]
            alone = not one_type or (numeric and is_word)
            size = 1 if alone else max(1, CELLS // max(len(frame), 1))
            for start in range(0, len(own), size):
                yield numeric and not is_word, own[start : start + size]


def by_type(frame: Any, names: Sequence[str]) -> dict[Any, list[str]]:
    """The columns of every type.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    """
    types = dict(zip(frame.columns, frame.dtypes))
    found: dict[Any, list[str]] = {}
    for name in names:
        found.setdefault(types[name], []).append(name)
    return found


def _numbers(frame: Any) -> npt.NDArray[Any]:
    """Columns with one numeric type as an array of shape (n_columns, n_rows)."""
    if isinstance(frame.dtypes.iloc[0], np.dtype):
        values: npt.NDArray[Any] = frame.to_numpy().T
        return values
    return floats(frame.iloc[:, 0])[None]


def large_integers(frame: Any, names: Sequence[str]) -> set[str]:
    """The columns with an integer type that mostly hold integers too large to be exact as floats.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : sequence of str
    """
    import pandas as pd

    types = by_type(frame, names).items()
    integers = [n for dtype, own in types if pd.api.types.is_integer_dtype(dtype) for n in own]
    found: set[str] = set()
    for own, values in Blocks(frame, integers).numbers:
        sizes = np.abs(values.astype(np.float64))
        large = (sizes >= EXACT).sum(axis=1) > (~np.isnan(sizes)).sum(axis=1) / 2
        found.update(own[j] for j in np.flatnonzero(large))
    return found
