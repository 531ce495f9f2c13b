"""``TableEncoder``: a table of numbers and texts as a table of numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._typing import Float
from ..errors import TableError
from .columns import (
    FEWEST_ROWS,
    MISSING_LEVEL,
    Column,
    ColumnTypes,
    Problem,
    refuse_dates,
    texts_among_numbers,
)
from .decimals import Evidence, as_numbers, is_numeric, texts_of
from .names import as_frame, columns_named, names_of, refuse_duplicates, unknown_column


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encodes a table of mixed columns as a table of numbers.

    Numeric and Boolean columns stay as they are. A text column becomes one column for each of its
    levels. Identifiers are left out, and dates are refused.

    Parameters
    ----------
    drop : str or sequence of str, default=()
        Columns to leave out.
    keep : str or sequence of str, default=()
        Columns to use although they look like identifiers.

    Attributes
    ----------
    columns_ : list of Column
        The columns that are used, and how they are encoded.
    features_ : list of str
        The names of the encoded columns.
    problems_ : list of Problem

    Examples
    --------
    >>> import pandas as pd
    >>> from metricboost.tables import TableEncoder
    >>> frame = pd.DataFrame({"age": [31, 44, None], "city": ["Rome", "Oslo", "Rome"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.features_
    ['age', 'city=Rome']
    >>> encoder.transform(frame)
    array([[31.,  1.],
           [44.,  0.],
           [nan,  1.]])
    """

    def __init__(self, drop: str | Sequence[str] = (), keep: str | Sequence[str] = ()) -> None:
        self.drop = drop
        self.keep = keep

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def fit(self, frame: Any, y: Any = None) -> TableEncoder:
        """Decide what every column is.

        Parameters
        ----------
        frame : pandas.DataFrame
            Or a table with the method ``to_pandas``, such as one of polars.
        y : ignored

        Returns
        -------
        self
        """
        frame = as_frame(frame)
        refuse_duplicates(frame.columns)
        drop, keep = names_of(self.drop), names_of(self.keep)
        for name in (*drop, *keep):
            if name not in frame.columns:
                raise TableError(unknown_column(name, frame.columns))
        names = [name for name in frame.columns if name not in drop]
        refuse_dates(frame, names)
        evidence = Evidence()
        for name in names:
            if not is_numeric(frame[name]):
                evidence.add(name, texts_of(frame[name]))
        types = ColumnTypes(keep)
        found = [
            types.column(frame[name], name, mark) for name, mark in evidence.marks(names).items()
        ]
        return self._set([column for column in found if column is not None], types.problems)

    @classmethod
    def of_columns(
        cls,
        columns: Sequence[Column],
        problems: Sequence[Problem] = (),
        drop: str | Sequence[str] = (),
        keep: str | Sequence[str] = (),
    ) -> TableEncoder:
        """A fitted encoder for columns that are known already.

        Parameters
        ----------
        columns : sequence of Column
        problems : sequence of Problem, default=()
        drop, keep : str or sequence of str, default=()
            The parameters of the encoder.

        Returns
        -------
        TableEncoder
        """
        return cls(drop, keep)._set(columns, problems)

    def _set(self, columns: Sequence[Column], problems: Sequence[Problem]) -> TableEncoder:
        self.columns_ = list(columns)
        self.problems_ = list(problems)
        self.features_ = [name for column in columns for name in column.features]
        if not columns:
            raise TableError(
                "No column is left to learn from: all columns were dropped or look like "
                "identifiers."
            )
        duplicates = [name for name, count in Counter(self.features_).items() if count > 1]
        if duplicates:
            raise TableError(
                f"Encoding texts gives two columns the name {duplicates[0]!r}. Rename or drop one "
                "of the columns that it comes from."
            )
        return self

    def scan(self, frames: Iterable[Any]) -> TableScan:
        """Find out how a whole table writes its numbers, before its first rows are encoded.

        Parameters
        ----------
        frames : iterable of pandas.DataFrame
            The table in chunks of rows.

        Returns
        -------
        TableScan
            To be passed to ``transform`` with every chunk.
        """
        check_is_fitted(self)
        evidence = Evidence()
        numbers = [column for column in self.columns_ if column.kind == "number"]
        for frame in frames:
            self._check_columns(frame)
            texts = [column.name for column in numbers if not is_numeric(frame[column.name])]
            if not texts:  # the columns of such a file have types, which later chunks share
                break
            for name in texts:
                evidence.add(name, texts_of(frame[name]))
        readings = evidence.readings({column.name: column.decimal for column in numbers})
        return TableScan(readings, self.problems_)

    def _check_columns(self, frame: Any) -> None:
        names = [column.name for column in self.columns_]
        refuse_duplicates(frame.columns, names)
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            raise TableError(
                f"The table lacks {columns_named(lacking)}, which the model was trained with."
            )

    def transform(self, frame: Any, scan: TableScan | None = None) -> Float:
        """Encode rows. Columns are found by name, and other columns are ignored.

        Parameters
        ----------
        frame : pandas.DataFrame
        scan : TableScan, optional
            What ``scan`` found in the whole table, if ``frame`` is a chunk of it. The caller then
            calls ``scan.check_texts()`` after the last chunk.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded_columns)
            Missing values are NaN.
        """
        check_is_fitted(self)
        frame = as_frame(frame)
        self._check_columns(frame)
        whole = self.scan([frame]) if scan is None else scan
        parts = [_encoded(column, frame[column.name], whole) for column in self.columns_]
        if scan is None:
            whole.check_texts()
        return np.hstack(parts)


def _encoded(column: Column, values: Any, scan: TableScan) -> Float:
    if column.kind == "number":
        numbers = values if is_numeric(values) else scan.numbers(column.name, texts_of(values))
        result = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isinf(result), np.nan, result)[:, None]
    texts = texts_of(values).astype(object)
    texts = texts.where(texts.notna(), MISSING_LEVEL)
    return np.stack([(texts == level).to_numpy(dtype=float) for level in column.levels], axis=1)


class TableScan:
    """How a whole table writes its numbers, and the texts that were found among the numbers.

    A table may be read in chunks. A scan of the whole table makes the numbers, the warnings and the
    errors independent of the size of the chunks. Scans are made by ``TableEncoder.scan``.

    Parameters
    ----------
    readings : dict
        How the texts of every numeric column are read.
    known : sequence of Problem
        The problems of the training table. A column with texts among its numbers in training does
        not lead to a warning.
    """

    def __init__(self, readings: dict[str, str], known: Sequence[Problem] = ()) -> None:
        self._readings = readings
        self._known = {problem.column for problem in known if problem.kind == "not a number"}
        self._texts: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def numbers(self, name: str, texts: Any) -> Any:
        """The texts of a numeric column as numbers; texts that are not numbers are counted.

        Parameters
        ----------
        name : str
        texts : pandas.Series
        """
        if not texts.notna().any():
            return texts.astype(float)
        numbers = as_numbers(texts, self._readings[name])
        wrong = texts[texts.notna() & numbers.isna()].tolist()
        self._numbers[name] += int(numbers.notna().sum())
        self._texts[name] += len(wrong)
        if wrong:
            self._first.setdefault(name, wrong[0])
        return numbers

    def check_texts(self) -> None:
        """Warn about texts among numbers; refuse a numeric column that holds only texts."""
        for name, first in self._first.items():
            if self._texts[name] >= FEWEST_ROWS and not self._numbers[name]:
                raise TableError(
                    f"Column {name!r} held numbers in training, but here it holds only texts, such "
                    f"as {first!r}."
                )
            if name not in self._known:
                message = texts_among_numbers(first, self._texts[name])
                warnings.warn(f"Column {name!r} {message}", stacklevel=3)
