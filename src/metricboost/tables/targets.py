"""The target: which rows have a label, and which classes the labels name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from .._typing import Index
from ..errors import TableError
from .columns import Problem
from .decimals import EXACT
from .names import unknown_column

#: A numeric target with more different values than both of these (a number, and a share of the
#: rows) is refused, because it calls for regression.
MOST_CLASSES = 50
MOST_CLASSES_SHARE = 0.05
#: Texts in a target column that mean a missing label, in lower case.
NO_LABEL = ("", "na", "nan", "nat", "<na>")


def split_target(frame: Any, y: Any) -> tuple[Any, Any, str | None]:
    """The columns without the target, the labels, and the name of the target.

    Parameters
    ----------
    frame : pandas.DataFrame
    y : str or array-like
        The name of the target column, or one label for every row. The name of labels is that of
        their Series; other labels have no name.

    Returns
    -------
    columns : pandas.DataFrame
    labels : pandas.Series
    name : str or None
    """
    if isinstance(y, str):
        if y not in frame.columns:
            raise TableError(unknown_column(y, frame.columns))
        return frame.drop(columns=y), frame[y], y
    labels = label_series(frame, y)
    name = None if labels.name is None else str(labels.name)
    if name in frame.columns:
        raise TableError(
            f"The labels are named {name!r}, and so is a column of the table. If this column is "
            f"the target, give y={name!r} or drop the column; otherwise rename the labels."
        )
    return frame, labels, name


def label_series(frame: Any, y: Any) -> Any:
    """Labels for the rows of a table as a pandas Series."""
    import pandas as pd

    if y is None:
        raise ValueError(
            "TableClassifier requires y to be passed, but the target y is None: give the name of "
            "the target column, or the labels."
        )
    name = getattr(y, "name", None)
    if not isinstance(y, pd.Series):
        y = y.to_pandas() if hasattr(y, "to_pandas") else column_or_1d(y, warn=True)
    if len(y) != len(frame):
        raise ValueError(f"The table has {len(frame)} rows, but y has {len(y)} labels.")
    return pd.Series(y.array if isinstance(y, pd.Series) else y, index=frame.index, name=name)


def has_label(values: Any) -> npt.NDArray[np.bool_]:
    """Which rows of a target column have a label.

    Empty cells, NA and NaN are missing labels. Other texts, such as "-" and "None", may be classes.

    Parameters
    ----------
    values : pandas.Series
    """
    texts = values.astype(object).map(lambda value: str(value).strip().lower(), "ignore")
    known: npt.NDArray[np.bool_] = (values.notna() & ~texts.isin(NO_LABEL)).to_numpy(dtype=bool)
    return known


def target_problems(known: npt.NDArray[np.bool_], target: str | None) -> list[Problem]:
    """The problem of rows without a label, if there are any.

    Parameters
    ----------
    known : ndarray of bool
        Which rows have a label.
    target : str or None
        The name of the target. Labels without a name are called "y".
    """
    missing = int((~known).sum())
    if not missing:
        return []
    rows = "1 row. This row was" if missing == 1 else f"{missing} rows. These rows were"
    message = f"has no label in {rows} left out."
    return [Problem("target", "y" if target is None else target, message)]


def labels_of(values: Any, target: str | None) -> npt.NDArray[Any]:
    """The labels of a target column without missing values: texts, integers or booleans.

    Parameters
    ----------
    values : pandas.Series
    target : str or None
        The name of the target, for messages.
    """
    import pandas as pd

    name = "The target" if target is None else f"The target {target!r}"
    if not len(values):
        raise TableError(f"{name} is empty in every row. Check that it is the right column.")
    labels: npt.NDArray[Any]
    if pd.api.types.is_bool_dtype(values):
        labels = values.to_numpy(dtype=bool)
    else:
        labels = _numbers_or_texts(values, name)
    if len(np.unique(labels)) < 2:
        raise TableError(f"{name} has only one class, {labels[0]!s}. At least two are needed.")
    return labels


def labels_as_given(values: Any, target: str | None) -> npt.NDArray[Any]:
    """The labels that were given as an array. Unlike those of a column, texts stay texts.

    Predictions can then be compared with the labels, as scorers do.

    Parameters
    ----------
    values : pandas.Series
        Without missing values.
    target : str or None
        The name of the target, for messages.
    """
    labels = labels_of(values, target)
    texts = values.tolist()
    return np.array(texts) if all(isinstance(text, str) for text in texts) else labels


def _numbers_or_texts(values: Any, name: str) -> Any:
    import pandas as pd

    texts = values.astype(object).map(lambda value: str(value).strip())
    numbers = pd.to_numeric(texts, errors="coerce")
    codes = bool(texts.str.fullmatch(r"0\d+").any())  # such as 007
    if codes or numbers.isna().any():
        return texts.to_numpy(dtype=str)
    distinct = numbers.nunique()
    most = max(MOST_CLASSES, MOST_CLASSES_SHARE * len(values))
    if bool((numbers % 1 != 0).any()) or distinct > most:
        raise TableError(
            f"{name} is a number with {distinct} different values. metricboost learns classes and "
            "offers no regression: replace the values by classes, such as low and high."
        )
    if numbers.dtype.kind != "i" and float(numbers.abs().max()) >= EXACT:
        # As floating-point numbers, two different labels could become equal.
        return texts.map(_name).to_numpy(dtype=str)
    return numbers.to_numpy(dtype=np.int64)


def known_codes(values: Any, classes: npt.NDArray[Any]) -> tuple[Index, str | None]:
    """The class numbers of a target column, and an example of a label that is no class.

    Parameters
    ----------
    values : pandas.Series
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    codes : ndarray of int
        -1 if the row has no label, or a label that is none of the classes.
    unknown : str or None
        The first label that is none of the classes.
    """
    labelled = has_label(values)
    codes = np.where(labelled, codes_of(values, classes), -1)
    unknown = values[labelled & (codes < 0)]
    return codes, str(unknown.iloc[0]) if len(unknown) else None


def unknown_class(target: str | None, example: str) -> str:
    """The warning about labels that are none of the model's classes."""
    source = "The target" if target is None else f"Column {target!r}"
    return (
        f"{source} has classes that the model does not know, such as {example!r}. Rows of these "
        "classes are not scored."
    )


def codes_of(values: Any, classes: npt.NDArray[Any]) -> Index:
    """The numbers of the classes that labels name, whatever the type of the labels; -1 for none.

    Parameters
    ----------
    values : pandas.Series
    classes : ndarray of shape (n_classes,)
    """
    known = {_name(label): code for code, label in enumerate(classes.tolist())}
    codes = [known.get(_name(label), -1) for label in values.tolist()]
    return np.array(codes, dtype=np.intp)


def _name(label: Any) -> str:
    """A text for a label: equal for 1, 1.0, "1" and "1.0", and equal for True and "true"."""
    text = str(label).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    return text[:-2] if re.fullmatch(r"[+-]?\d+\.0", text) else text


def some_labels(labels: Sequence[Any], most: int = 6) -> str:
    """The first labels, for a message."""
    return ", ".join(map(repr, labels[:most])) + (", ..." if len(labels) > most else "")
