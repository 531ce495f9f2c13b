"""``TableClassifier``: a model for tables as they come, with names, text and gaps."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .._typing import Float, Index
from ..errors import TableError
from ..estimators import SDistClassifier
from .columns import Problem
from .decimals import EXACT
from .encoder import TableEncoder
from .names import as_frame, names_of, refuse_duplicates as refuse_twice, unknown_column

WholeTable = Any

#: A number with more different values than this, and in this share of the rows, is no class.
MOST_CLASSES = 50
MOST_CLASSES_SHARE = 0.05
#: Texts of a target that say it is not known, in small letters.
NO_LABEL = ("", "na", "nan", "nat", "<na>")


class TableClassifier:
    """A classifier for a DataFrame with a target column, text and missing values.

    Parameters
    ----------
    model : SDistClassifier or SDistClassifierCV, optional
        With ``missing="impute"`` (in the search, of its estimator); by default an
        ``SDistClassifier(missing="impute", random_state=0)``.
    drop : str or iterable of str
        Columns to leave out.
    keep : str or iterable of str
        Columns to keep although they look like identifiers.

    Attributes
    ----------
    model_ : SDistClassifier or SDistClassifierCV
        The fitted model, on the encoded columns.
    encoder_ : TableEncoder
    target_ : str
    classes_ : ndarray
    problems_ : list of Problem
        What its owner should know about the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_wine
    >>> from metricboost.tables import TableClassifier
    >>> frame = load_wine(as_frame=True).frame
    >>> model = TableClassifier().fit(frame, "target")
    >>> bool(model.score(frame) > 0.95)
    True
    """

    def __init__(
        self, model: Any = None, drop: Iterable[str] = (), keep: Iterable[str] = ()
    ) -> None:
        self.model = model
        self.drop = names_of(drop)
        self.keep = names_of(keep)

    def fit(self, frame: Any, target: str) -> TableClassifier:
        """Learn to tell the classes of a target column apart.

        Parameters
        ----------
        frame : pandas.DataFrame
            Or a table with ``to_pandas``, such as one of polars.
        target : str
            The column with the classes. Rows where it is missing are left out.

        Returns
        -------
        self
        """
        frame = as_frame(frame)
        refuse_twice(frame.columns)
        if target not in frame.columns:
            raise TableError(unknown_column(target, frame.columns))
        if target in self.drop:
            raise TableError(f"{target!r} is the target: it cannot be dropped.")
        known = has_label(frame[target])
        rows = frame[known]
        y = labels_of(rows[target], target)
        self.target_ = target
        self.encoder_ = TableEncoder(self.drop, self.keep).fit(rows.drop(columns=target))
        self.problems_ = self._target_problems(known) + self.encoder_.problems_
        self.model_ = self._new_model().fit(self._encoded(rows), y)
        positions = np.flatnonzero(known)
        for part in (self.model_, *getattr(self.model_, "estimators_", ())):
            if hasattr(part, "_training_rows"):  # neighbours are named by their place in the table
                part._training_rows = positions[part._training_rows]
        return self

    def _new_model(self) -> Any:
        """Not the given one itself: several tables may be fitted with it."""
        if self.model is None:
            return SDistClassifier(missing="impute", random_state=0)
        return clone(self.model)

    def _target_problems(self, known: Any) -> list[Problem]:
        unknown = int((~known).sum())
        if not unknown:
            return []
        message = f"is missing in {unknown} row{'s' if unknown > 1 else ''}: left out."
        return [Problem("target", self.target_, message)]

    def encoded(self, frame: Any, whole: WholeTable | None = None) -> Any:
        """The columns as the model takes them: numbers, one column for every level of a text.

        Of a table that comes in pieces, ``whole`` is what ``encoder_.look_over`` says of all of it.
        """
        self._check_fitted()
        return self._encoded(frame, whole)

    def _encoded(self, frame: Any, whole: WholeTable | None = None) -> Any:
        import pandas as pd

        numbers = self.encoder_.transform(frame, whole)
        return pd.DataFrame(numbers, columns=self.encoder_.features_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError("This TableClassifier is not fitted yet: call fit first.")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        result: npt.NDArray[Any] = self.model_.classes_
        return result

    @property
    def metric_(self) -> Any:
        return self.model_.metric_

    def predict(self, frame: Any) -> npt.NDArray[Any]:
        """The predicted class of every row."""
        table = self.encoded(frame)
        result: npt.NDArray[Any] = self.model_.predict(table)
        return result

    def predict_proba(self, frame: Any) -> Float:
        """The probabilities of the classes."""
        table = self.encoded(frame)
        result: Float = self.model_.predict_proba(table)
        return result

    def transform(self, frame: Any) -> Float:
        """The embedding under the metric."""
        table = self.encoded(frame)
        result: Float = self.model_.transform(table)
        return result

    def score(self, frame: Any) -> float:
        """The share of the rows, of those whose class is known, that are classified correctly.

        Rows of classes that the model does not know are left out, with a warning.
        """
        places, y = self.scored(frame)
        if not len(places):
            raise TableError(
                f"No row has a {self.target_} that the model knows: there is nothing to score. It "
                f"was fitted with {_few(self.classes_.tolist())}."
            )
        return float(np.mean(self.predict(frame)[places] == y))

    def labelled(self, frame: Any) -> tuple[Any, npt.NDArray[Any]]:
        """The rows whose class the model knows, and their classes as it knows them."""
        places, y = self.scored(frame)
        return as_frame(frame).iloc[places], y

    def scored(self, frame: Any) -> tuple[Index, npt.NDArray[Any]]:
        """The places of the rows whose class the model knows, and their classes."""
        self._check_fitted()
        frame = as_frame(frame)
        if self.target_ not in frame.columns:
            raise TableError(
                f"The table has no column {self.target_!r}, the target: its rows cannot be scored."
            )
        codes, strange = known_codes(frame[self.target_], self.classes_)
        if strange is not None:
            warnings.warn(unknown_class(self.target_, strange), stacklevel=3)
        return np.flatnonzero(codes >= 0), self.classes_[codes[codes >= 0]]

    def explain(self, frame: Any = None, n_neighbors: int = 3) -> Any:
        """What was learned or, for given rows, why they are classified as they are."""
        self._check_fitted()
        if frame is None:
            return self.model_.explain()
        return self.model_.explain(self.encoded(frame), n_neighbors)

    def report(self, frame: Any = None, title: str | None = None) -> Any:
        """A self-contained page about the model and how it does on some rows.

        Parameters
        ----------
        frame : pandas.DataFrame, optional
            Rows to show, with the target column where it is known.
        title : str, optional

        Returns
        -------
        metricboost.report.Report
        """
        from ..report import make_report

        self._check_fitted()
        return make_report(self, frame, title=title)

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write everything to a model file; ``rows=False`` keeps the training rows out of it."""
        from ..persistence import save

        self._check_fitted()
        save(self, path, rows)


def has_label(values: Any) -> npt.NDArray[np.bool_]:
    """Where a target is known: texts such as "-" and "None" may be classes, NA is none."""
    texts = values.astype(object).map(lambda value: str(value).strip().lower(), "ignore")
    known: npt.NDArray[np.bool_] = (values.notna() & ~texts.isin(NO_LABEL)).to_numpy(dtype=bool)
    return known


def labels_of(values: Any, target: str) -> npt.NDArray[Any]:
    """The classes of a target column without gaps: texts, whole numbers or yes and no."""
    import pandas as pd

    if not len(values):
        raise TableError(
            f"The target {target!r} has no class: all of its cells are empty. Is it the right "
            "column?"
        )
    if pd.api.types.is_bool_dtype(values):
        labels = values.to_numpy(dtype=bool)
    else:
        labels = _numbers_or_texts(values, target)
    if len(np.unique(labels)) < 2:
        raise TableError(f"The target {target!r} has one class only: nothing to tell apart.")
    return labels


def _numbers_or_texts(values: Any, target: str) -> npt.NDArray[Any]:
    import pandas as pd

    texts = values.astype(object).map(lambda value: str(value).strip())
    if texts.str.fullmatch(r"0\d+").any():  # codes such as 007
        return texts.to_numpy(dtype=str)
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.isna().any():
        return texts.to_numpy(dtype=str)
    distinct = numbers.nunique()
    most = max(MOST_CLASSES, MOST_CLASSES_SHARE * len(values))
    if bool((numbers % 1 != 0).any()) or distinct > most:
        raise TableError(
            f"The target {target!r} is a number with {distinct} different values. metricboost "
            "tells classes apart and offers no regression: cut it into classes, such as low and "
            "high."
        )
    if numbers.dtype.kind != "i" and float(numbers.abs().max()) >= EXACT:
        return texts.map(_name).to_numpy(dtype=str)  # as numbers, two of them might be one
    return numbers.to_numpy(dtype=np.int64)


def known_codes(values: Any, classes: npt.NDArray[Any]) -> tuple[Index, str | None]:
    """The codes of a target, -1 where there is no label or no such class; a class of that kind."""
    labelled = has_label(values)
    codes = np.where(labelled, codes_of(values, classes), -1)
    strange = values[labelled & (codes < 0)]
    return codes, str(strange.iloc[0]) if len(strange) else None


def unknown_class(target: str, example: str) -> str:
    return (
        f"{target} has classes the model does not know, such as {example!r}: their rows are not "
        "scored."
    )


def codes_of(values: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The numbers of the classes that labels name, whatever type they have; -1 for none."""
    known = {_name(label): code for code, label in enumerate(classes.tolist())}
    codes = [known.get(_name(label), -1) for label in values.tolist()]
    return np.array(codes, dtype=np.intp)


def _name(label: Any) -> str:
    """1, 1.0, "1" and "1.0" are one class, and so are True and "true"."""
    text = str(label).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    return text[:-2] if re.fullmatch(r"[+-]?\d+\.0", text) else text


def _few(labels: Sequence[Any], most: int = 6) -> str:
    return ", ".join(map(repr, labels[:most])) + (", ..." if len(labels) > most else "")
