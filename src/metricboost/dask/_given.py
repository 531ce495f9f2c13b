"""The table that is given to ``fit``: checked where its partitions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import validate_data

from .._typing import Float, Index
from ..estimators import Given, SDist
from ..inputs import (
    check_classes,
    check_labels,
    column_names,
    complain_of_columns,
    present_labels,
    refuse_impossible,
)
from ..sources.cluster import MOST_LABELS, Look, OnCluster, looked_at, parts_of

Labels = npt.NDArray[Any]


def refuse_other_tables(estimator: Any, X: Any) -> None:
    """Refuse everything but Dask arrays and dataframes.

    Parameters
    ----------
    estimator : object
        The error names its class.
    X : object
    """
    taken = f"metricboost.dask takes dask arrays and dataframes, not {type(X).__name__}: "
    if isinstance(X, Delayed | Future):
        raise TypeError(f"{taken}make one with dask.array.from_delayed.")
    if not (is_dask_collection(X) and hasattr(X, "ndim")):
        name = type(estimator).__name__
        raise TypeError(f"{taken}metricboost.{name} is for tables in memory.")


def refuse_other_dimensions(X: Any) -> None:
    """Refuse a Dask collection that is not a table."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected a table of rows and columns, got {X.ndim} dimension(s): reshape it."
        )


def is_array(X: Any) -> bool:
    """Whether a Dask collection is an array; otherwise it is a dataframe."""
    return hasattr(X, "chunks")


def whole_rows(X: Any) -> Any:
    """The same collection with all columns of a row in one partition."""
    return X.rechunk({1: -1}) if is_array(X) else X


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Check the number and the names of the columns of a Dask collection, without its values.

    Parameters
    ----------
    estimator : SDist or SDistClassifierCV
    X : dask array or dataframe
    reset : bool
        Whether the estimator is to remember them; otherwise they must be those of its fit.
    """
    columns = np.empty((0, int(X.shape[1]))) if is_array(X) else X._meta
    validate_data(estimator, columns, reset=reset, skip_check_array=True)


def given_on_cluster(estimator: SDist, client: Client, X: Any, y: Any, sample_weight: Any) -> Given:
    """What was given to ``fit``, checked.

    Parameters
    ----------
    estimator : SDist
        Its ``missing`` and ``class_weight`` are used. Its attributes for the columns are set.
    client : distributed.Client
    X : dask array or dataframe of shape (n_samples, n_features)
    y : array-like or dask collection of shape (n_samples,)
    sample_weight : array-like or dask collection of shape (n_samples,), or None

    Returns
    -------
    metricboost.estimators.Given
        With all partitions as its source, and without the labels, which stay on the workers.
    """
    if not is_dask_collection(y):  # the labels of a collection are checked on the workers
        present_labels(estimator, y)
    refuse_other_dimensions(X)
    X = whole_rows(X)
    _set_columns(estimator, X)
    parts = parts_of(X, y, sample_weight, client)
    looks = looked_at(client, parts)
    _check_rows(estimator, looks)
    classes, counts, weights = _classes_of(estimator, looks)
    of_class = _class_weights(estimator.class_weight, classes, counts)
    of_class = of_class * (float(counts.sum()) / float(of_class @ weights))
    _check_weighted(estimator, classes, counts, of_class)
    sizes = [look.n_rows for look in looks]
    n_columns = int(estimator.n_features_in_)
    source = OnCluster(client, parts, sizes, n_columns, classes, counts, of_class)
    return Given(source, classes, None)


def _set_columns(estimator: SDist, X: Any) -> None:
    if not is_array(X):
        twice = X.columns[X.columns.duplicated()]
        if len(twice):
            raise ValueError(f"Column {twice[0]!r} stands twice in X: rename one of them.")
    check_columns(estimator, X, reset=True)
    if not estimator.n_features_in_:
        raise ValueError("X has 0 columns: there is nothing to learn a distance from.")


def _check_rows(estimator: SDist, looks: Sequence[Look]) -> None:
    """Refuse too few rows, and columns with values that are missing or infinite."""
    n_rows = sum(look.n_rows for look in looks)
    if n_rows < 2:
        raise ValueError(f"X has {n_rows} row(s), and a distance is between rows.")
    missing = np.flatnonzero(np.any([look.missing for look in looks], axis=0))
    infinite = np.flatnonzero(np.any([look.infinite for look in looks], axis=0))
    names = column_names(estimator, int(estimator.n_features_in_))
    complain_of_columns([] if estimator.missing == "impute" else missing, infinite, names)


def _classes_of(estimator: SDist, looks: Sequence[Look]) -> tuple[Labels, Index, Float]:
    """The classes; for each the number of its rows with a weight, and the sum of their weights."""
    given = np.concatenate([look.labels for look in looks])
    check_labels(estimator, given)
    if max(len(look.labels) for look in looks) >= MOST_LABELS:
        raise ValueError(
            f"y has {MOST_LABELS} or more different labels in a partition: a metric is learned "
            "from classes, so check the target."
        )
    classes, codes = np.unique(given, return_inverse=True)
    counts, weights = (
        np.bincount(codes, np.concatenate([getattr(look, name) for look in looks]))
        for name in ("counts", "weights")
    )
    if not counts.sum():
        raise ValueError("All sample weights are zero: no row is left to learn from.")
    present = counts > 0
    return classes[present], counts[present].astype(np.intp), weights[present].astype(np.float64)


def _class_weights(class_weight: Any, classes: Labels, counts: Index) -> Float:
    """The weight of every class; "balanced" as in scikit-learn."""
    if class_weight is None:
        return np.ones(len(classes))
    refuse_impossible(class_weight)
    if class_weight == "balanced":
        balanced: Float = counts.sum() / (len(classes) * counts)
        return balanced
    given: Float = compute_sample_weight(class_weight, classes)
    return given


def _check_weighted(estimator: SDist, classes: Labels, counts: Index, of_class: Float) -> None:
    """Refuse too few classes, classes with one row, and classes whose weight is 0."""
    weighted = of_class > 0
    remark = "" if weighted.all() else " among the rows whose weight is not 0"
    two_rows_at_most = counts[weighted].clip(0, 2)
    check_classes(estimator, np.repeat(classes[weighted], two_rows_at_most), remark)
    if not weighted.all():
        raise ValueError(
            "class_weight gives a class the weight 0: with Dask, leave its rows out of X first."
        )
