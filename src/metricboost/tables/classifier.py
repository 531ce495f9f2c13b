"""``TableClassifier``: a classifier for tables with names, text and missing values."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._typing import Float, Index
from ..errors import ModelFileError, TableError
from ..estimators import SDistClassifier, SDistClassifierCV
from ..inputs import check_table
from ..model import SparseMetric
from ..report import Report, make_report
from ..storage import Saved, write
from .columns import Problem
from .encoder import TableEncoder, TableScan
from .names import as_frame, names_of, refuse_duplicates, unknown_column
from .saving import pack_columns, pack_problems, unpack_columns, unpack_problems
from .targets import (
    has_label,
    known_codes,
    label_series,
    labels_as_given,
    labels_of,
    some_labels,
    split_target,
    target_problems,
    unknown_class,
)

#: The models that a file of a TableClassifier may hold, by name.
MODELS: dict[str, Any] = {kind.__name__: kind for kind in (SDistClassifier, SDistClassifierCV)}


class TableClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for a DataFrame with text and missing values.

    The columns are encoded as numbers by a :class:`TableEncoder`, and a model is fitted to the
    encoded columns.

    Parameters
    ----------
    model : SDistClassifier or SDistClassifierCV, default=None
        The model to fit a clone of. It needs ``missing="impute"`` if numbers are missing; for a
        search, its ``estimator`` needs it. None means
        ``SDistClassifier(missing="impute", random_state=0)``.
    drop : str or sequence of str, default=()
        Columns to leave out.
    keep : str or sequence of str, default=()
        Columns to use although they look like identifiers.

    Attributes
    ----------
    model_ : SDistClassifier or SDistClassifierCV
        The fitted model of the encoded columns. The neighbours in its explanations have the row
        numbers of the table that was given to ``fit``.
    encoder_ : TableEncoder
    target_ : str or None
        The name of the target; None if the labels had no name.
    classes_ : ndarray of shape (n_classes,)
    metric_ : SparseMetric
        The metric of ``model_``.
    problems_ : list of Problem
        What the owner of the table should know about the target and the columns.
    n_features_in_ : int
        The number of columns of the table, without the target.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from metricboost.tables import TableClassifier
    >>> frame = load_wine(as_frame=True).frame
    >>> model = TableClassifier().fit(frame, "target")
    >>> bool(model.score(frame) > 0.95)
    True
    >>> X, y = frame.drop(columns="target"), frame["target"]
    >>> bool(cross_val_score(TableClassifier(), X, y, cv=3).mean() > 0.9)
    True
    """

    def __init__(
        self,
        model: Any = None,
        drop: str | Sequence[str] = (),
        keep: str | Sequence[str] = (),
    ) -> None:
        self.model = model
        self.drop = drop
        self.keep = keep

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any) -> TableClassifier:
        """Learn to tell the classes of the target apart. Rows without a label are left out.

        Parameters
        ----------
        X : pandas.DataFrame
            Or a table with the method ``to_pandas``, such as one of polars.
        y : str or array-like of shape (n_samples,)
            The name of the target column of X, or the labels of the rows of X. Texts that are given
            as labels stay texts. The texts of a target column become integers if all of them are
            integers, because all values of a CSV file are texts.

        Returns
        -------
        self
        """
        frame = as_frame(X)
        refuse_duplicates(frame.columns)
        columns, values, target = split_target(frame, y)
        if isinstance(y, str) and y in names_of(self.drop):
            raise TableError(f"{y!r} is the target: it cannot be dropped.")
        known = has_label(values)
        labels = (labels_of if isinstance(y, str) else labels_as_given)(values[known], target)
        rows = columns if known.all() else columns[known]
        encoder = TableEncoder(self.drop, self.keep)
        table = _named(encoder, encoder.fit_transform(rows))
        model = self._new_model().fit(table, labels)
        _renumber(model, np.flatnonzero(known))
        problems = target_problems(known, target) + encoder.problems_
        self._set(model, encoder, problems, target, list(columns.columns))
        return self

    def _new_model(self) -> Any:
        """An unfitted model. ``model`` itself is not fitted: it may serve several tables."""
        if self.model is None:
            return SDistClassifier(missing="impute", random_state=0)
        return clone(self.model)

    def _set(
        self,
        model: Any,
        encoder: TableEncoder,
        problems: list[Problem],
        target: str | None,
        names: Sequence[str],
    ) -> None:
        self.model_, self.encoder_, self.problems_ = model, encoder, problems
        self.target_ = target
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        classes: npt.NDArray[Any] = self.model_.classes_
        return classes

    @property
    def metric_(self) -> SparseMetric:
        metric: SparseMetric = self.model_.metric_
        return metric

    def encoded(self, X: Any, scan: TableScan | None = None) -> Any:
        """The table that ``model_`` takes: a column for every number and for every level of a text.

        Parameters
        ----------
        X : pandas.DataFrame
        scan : TableScan, optional
            What ``encoder_.scan`` found in the whole table, if X is a chunk of it.

        Returns
        -------
        pandas.DataFrame
        """
        check_is_fitted(self)
        return _named(self.encoder_, self.encoder_.transform(X, scan))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted class of every row.

        Parameters
        ----------
        X : pandas.DataFrame
            Columns are found by name, and other columns are ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        table = self.encoded(X)
        result: npt.NDArray[Any] = self.model_.predict(table)
        return result

    def predict_proba(self, X: Any) -> Float:
        """The probability of every class.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        table = self.encoded(X)
        result: Float = self.model_.predict_proba(table)
        return result

    def transform(self, X: Any) -> Float:
        """The embedding of rows under the metric.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        ndarray of shape (n_samples, rank)
        """
        table = self.encoded(X)
        result: Float = self.model_.transform(table)
        return result

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the rows that are classified correctly.

        Rows without a label are left out, and so are rows of classes that the model does not know.
        The latter lead to a warning.

        Parameters
        ----------
        X : pandas.DataFrame
        y : str or array-like of shape (n_samples,), default=None
            The name of the target column of X, or the labels; None takes the column ``target_``.

        Returns
        -------
        float
        """
        places, labels = self._known_labels(X, y)
        if not len(places):
            raise TableError(
                f"No row has a class that the model knows, so there is nothing to score. The model "
                f"was fitted with the classes {some_labels(self.classes_.tolist())}."
            )
        return float(np.mean(self.predict(X)[places] == labels))

    def labelled(self, X: Any, y: Any = None) -> tuple[Any, npt.NDArray[Any]]:
        """The rows whose class the model knows, and their classes as the model names them.

        Parameters
        ----------
        X : pandas.DataFrame
        y : str or array-like of shape (n_samples,), default=None
            As in :meth:`score`.

        Returns
        -------
        rows : pandas.DataFrame
        labels : ndarray
        """
        places, labels = self._known_labels(X, y)
        return as_frame(X).iloc[places], labels

    def _known_labels(self, X: Any, y: Any) -> tuple[Index, npt.NDArray[Any]]:
        """The numbers of the rows whose class the model knows, and their classes."""
        check_is_fitted(self)
        values = self._target_values(as_frame(X), y)
        codes, unknown = known_codes(values, self.classes_)
        if unknown is not None:
            warnings.warn(unknown_class(self.target_, unknown), stacklevel=4)
        return np.flatnonzero(codes >= 0), self.classes_[codes[codes >= 0]]

    def _target_values(self, frame: Any, y: Any) -> Any:
        if y is not None and not isinstance(y, str):
            return label_series(frame, y)
        name = self.target_ if y is None else y
        if name is None:
            raise TableError(
                "The model was fitted with labels that have no name, so the target is not known: "
                "give y."
            )
        if name not in frame.columns:
            raise TableError(f"{unknown_column(name, frame.columns)} It is the target.")
        return frame[name]

    def explain(self, X: Any = None, n_neighbors: int = 3) -> Any:
        """What was learned or, for given rows, why they are classified as they are.

        Parameters
        ----------
        X : pandas.DataFrame, optional
            Rows to explain; None explains the model.
        n_neighbors : int, default=3
            Neighbours of each class in the explanation of a row.

        Returns
        -------
        metricboost.inspection.ModelExplanation, or a list of \
        metricboost.inspection.RowExplanation
        """
        check_is_fitted(self)
        if X is None:
            return self.model_.explain()
        return self.model_.explain(self.encoded(X), n_neighbors)

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Report:
        """A self-contained page about the model and how it does on some rows.

        Parameters
        ----------
        X : pandas.DataFrame, optional
            Rows to show. Best are rows that the model has not seen.
        y : str or array-like of shape (n_samples,), optional
            As in :meth:`score`. Without y and without the target column, the page shows the rows
            without their classes.
        title : str, optional

        Returns
        -------
        metricboost.report.Report
        """
        check_is_fitted(self)
        rows = labels = numbers = None
        best = getattr(self.model_, "best_estimator_", self.model_)
        if X is not None:
            table = self.encoded(X)  # all rows, so that columns are read as in predictions
            rows = check_table(self.model_, table, reset=False, missing=best.missing)
            if y is not None or self.target_ in as_frame(X).columns:
                places, known = self._known_labels(X, y)
                if len(places):
                    rows, labels, numbers = rows[places], known, places
        return make_report(
            self.model_.model_, rows, labels, title=title, numbers=numbers,
            parameters=best.get_params(deep=False),
            problems=[(problem.column, problem.message) for problem in self.problems_],
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the fitted model to a file, which :func:`metricboost.load` reads.

        Parameters
        ----------
        path : str or path
            Usually with the ending ``.mbz``.
        rows : bool, default=True
            Whether the file holds the training rows, in the columns that the model uses. Without
            them the model can embed rows and explain what was learned, but it cannot classify.
        """
        write(self.saved(rows), path)

    def saved(self, rows: bool = True) -> Saved:
        """The content of a model file.

        Parameters
        ----------
        rows : bool, default=True
            As in :meth:`save`.

        Returns
        -------
        metricboost.storage.Saved
        """
        check_is_fitted(self)
        return Saved(
            kind=type(self).__name__,
            parameters={"drop": names_of(self.drop), "keep": names_of(self.keep)},
            feature_names=[str(name) for name in self.feature_names_in_],
            n_features=self.n_features_in_,
            more={
                "target": self.target_,
                "columns": pack_columns(self.encoder_.columns_),
                "problems": pack_problems(self.problems_),
            },
            part=self.model_.saved(rows),
        )

    @classmethod
    def from_saved(cls, saved: Saved) -> TableClassifier:
        """The classifier that was saved.

        Parameters
        ----------
        saved : metricboost.storage.Saved

        Returns
        -------
        TableClassifier
        """
        if saved.part is None or saved.part.kind not in MODELS or saved.feature_names is None:
            raise ModelFileError(
                f"The file of a TableClassifier must hold one of {', '.join(MODELS)}, and the "
                "names of the columns."
            )
        inner = MODELS[saved.part.kind].from_saved(saved.part)
        made = cls(clone(inner), **saved.parameters)
        columns = unpack_columns(saved.more["columns"])
        problems = unpack_problems(saved.more["problems"])
        encoder = TableEncoder.of_columns(columns, problems, made.drop, made.keep)
        if encoder.features_ != list(getattr(inner, "feature_names_in_", ())):
            raise ModelFileError("The columns of the table are not those of the model.")
        target = saved.more["target"]
        if target is not None and not isinstance(target, str):
            raise ModelFileError("The name of the target is not a text.")
        made._set(inner, encoder, problems, target, saved.feature_names)
        return made


def _named(encoder: TableEncoder, encoded: Float) -> Any:
    """Encoded rows as a DataFrame with the names of the encoded columns."""
    import pandas as pd

    return pd.DataFrame(encoded, columns=encoder.features_)


def _renumber(model: Any, numbers: Index) -> None:
    """Give the training rows of a model the numbers of the user's table.

    The model was fitted to the rows with a label only. A search without ``refit`` has no model.
    """
    fitted = getattr(model, "model_", None)
    if fitted is not None:
        model.model_ = fitted.with_row_numbers(numbers[fitted.best.rows.numbers])
