"""``TableEncoder``: a table of numbers and texts as a table of numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._typing import Float
from ..errors import TableError
from .cells import Blocks, Cells, by_type, large_integers
from .columns import (
    FEWEST_ROWS,
    MISSING_LEVEL,
    Column,
    ColumnTypes,
    Problem,
    dates_among,
    is_time,
    refuse_complex,
    refuse_dates,
    texts_among_numbers,
)
from .decimals import POINT
from .evidence import Evidence
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
        self._fitted(as_frame(frame))
        return self

    def fit_transform(self, frame: Any, y: Any = None) -> Float:
        """Decide what every column is, and encode the rows. The texts are looked at once.

        Parameters
        ----------
        frame : pandas.DataFrame
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_encoded_columns)
            Missing values are NaN.
        """
        frame = as_frame(frame)
        blocks = self._fitted(frame)
        return self._encoded(blocks, len(frame), None)

    def _fitted(self, frame: Any) -> Blocks:
        """Decide what every column is; the values of the columns."""
        refuse_duplicates(frame.columns)
        drop, keep = names_of(self.drop), names_of(self.keep)
        known = set(frame.columns)
        for name in (*drop, *keep):
            if name not in known:
                raise TableError(unknown_column(name, frame.columns))
        names = [name for name in frame.columns if name not in drop]
        blocks = _training_blocks(frame, names)
        types, marks = ColumnTypes(keep), Evidence.of(blocks.texts).marks(names)
        for own, values in blocks.numbers:
            types.add_numbers(own, values)
        for cells in blocks.texts:
            types.add_texts(cells, [marks[name] for name in cells.names])
        problems = [problem for name in names for problem in types.problems.get(name, [])]
        self._set([types.columns[name] for name in names if name in types.columns], problems)
        return blocks

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
        for frame in frames:
            self._check_columns(frame)
            texts = Blocks(frame, self._names("number")).texts
            if not texts:  # the columns of such a file have types, which later chunks share
                break
            for cells in texts:
                evidence.add(cells)
        return self._scan(evidence)

    def _names(self, *kinds: str) -> list[str]:
        return [column.name for column in self.columns_ if column.kind in kinds]

    def _scan(self, evidence: Evidence) -> TableScan:
        decimals = {one.name: one.decimal for one in self.columns_ if one.kind == "number"}
        return TableScan(evidence.readings(decimals), self.problems_)

    def _check_columns(self, frame: Any) -> None:
        names = self._names("number", "category")
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
        names, words = self._names("number", "category"), set(self._names("category"))
        return self._encoded(Blocks(frame, names, words), len(frame), scan)

    def _encoded(self, blocks: Blocks, n_rows: int, scan: TableScan | None) -> Float:
        numbers = set(self._names("number"))
        own = [cells for cells in blocks.texts if not numbers.isdisjoint(cells.names)]
        whole = self._scan(Evidence.of(own)) if scan is None else scan
        encoded = np.empty((n_rows, len(self.features_)))
        places = self._places()
        for names, values in (*blocks.numbers, *((one.names, whole.numbers(one)) for one in own)):
            used = [j for j, name in enumerate(names) if name in numbers]
            encoded[:, [places[names[j]] for j in used]] = values[used].T
        words = {column.name: column for column in self.columns_ if column.kind == "category"}
        for cells in blocks.texts:
            for j, name in enumerate(cells.names):
                if name in words:
                    levels = words[name].levels
                    at = slice(places[name], places[name] + len(levels))
                    encoded[:, at] = _indicators(cells, j, levels)
        if scan is None:
            whole.check_texts()
        encoded[np.isinf(encoded)] = np.nan
        return encoded

    def _places(self) -> dict[str, int]:
        """The first encoded column of every column."""
        sizes = [len(column.features) for column in self.columns_]
        starts = np.cumsum([0, *sizes]).tolist()
        return {column.name: start for column, start in zip(self.columns_, starts)}


def _training_blocks(frame: Any, names: Sequence[str]) -> Blocks:
    """The values of the columns of a training table. Dates and complex numbers are refused."""
    types = by_type(frame, names).items()
    refuse_complex([name for dtype, own in types if dtype.kind == "c" for name in own])
    times = {name for dtype, own in types if is_time(dtype) for name in own}
    others = [name for name in names if name not in times]
    blocks = Blocks(frame, others, large_integers(frame, others))
    times.update(name for cells in blocks.texts for name in dates_among(cells))
    refuse_dates([name for name in names if name in times])
    return blocks


def _indicators(cells: Cells, column: int, levels: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which rows have which level of a category, as an array of shape (n_rows, n_levels)."""
    texts = np.where(cells.present[column], cells.objects[column], MISSING_LEVEL)
    found: npt.NDArray[np.bool_] = texts[:, None] == np.array(levels, dtype=object)
    return found


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

    def numbers(self, cells: Cells) -> Float:
        """The texts of columns as numbers. In numeric columns, other texts are counted.

        Parameters
        ----------
        cells : Cells

        Returns
        -------
        ndarray of shape (n_columns, n_rows)
        """
        numbers = cells.numbers([self._readings.get(name, POINT) for name in cells.names])
        right = ~np.isnan(numbers)
        wrong = cells.present & ~right
        for j, name in enumerate(cells.names):
            if name in self._readings:
                self._numbers[name] += int(right[j].sum())
                self._texts[name] += int(wrong[j].sum())
                if name not in self._first and wrong[j].any():
                    self._first[name] = cells.text(j, int(wrong[j].argmax()))
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
