"""``save`` and ``load``: a metric or a fitted estimator in one file."""

from __future__ import annotations

import os
from typing import Any

from .errors import ModelFileError
from .estimators import SDist, SDistClassifier, SDistClassifierCV
from .model import SparseMetric
from .storage import MAX_BYTES, Saved, read, write
from .tables import TableClassifier

#: The estimators that a model file may hold, by name.
ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (SDist, SDistClassifier, SDistClassifierCV, TableClassifier)
}


def save(model: Any, path: str | os.PathLike[str], rows: bool = True) -> None:
    """Write a metric or a fitted estimator to a model file, which :func:`load` reads.

    Parameters
    ----------
    model : SparseMetric, SDist, SDistClassifier, SDistClassifierCV or TableClassifier
    path : str or path
        Usually with the ending ``.mbz``. A file of that name is replaced when the new one is
        complete.
    rows : bool, default=True
        Whether the file holds the training rows of a classifier, in the columns that the model
        uses. Without them no row of the table leaves the machine. The model can then embed rows
        and explain what was learned, but it cannot classify, because classifying takes neighbours.

    Examples
    --------
    >>> import os, tempfile
    >>> import metricboost
    >>> metric = metricboost.SparseMetric([(0, 1)], [[0.5]], [0, 0], [1, 1], [0], [1])
    >>> path = os.path.join(tempfile.mkdtemp(), "metric.mbz")
    >>> metricboost.save(metric, path)
    >>> metricboost.load(path).terms[0].name
    'x0*x1'
    """
    if isinstance(model, SparseMetric):
        write(Saved("SparseMetric", model=model), path)
    elif isinstance(model, SDist | SDistClassifierCV | TableClassifier):
        write(model.saved(rows), path)
    else:
        raise TypeError(f"A model file holds metrics and fitted estimators, not {type(model)}.")


def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a model file that :func:`save` has written.

    Loading runs no code from the file and reads no other file. The arrays take no more memory than
    the file declares and ``max_bytes`` allows. Names and terms take a few times their size.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=4 GiB
        The most memory that the arrays may take.

    Returns
    -------
    SparseMetric, SDist, SDistClassifier, SDistClassifierCV or TableClassifier
        As it was saved. ``engine``, ``n_jobs``, ``verbose`` and ``checkpoint`` have their
        defaults, and so do parameters that a file cannot hold, such as functions, splitters and
        random number generators. A search comes without ``cv_results_`` and without its
        ``estimator``.

    Raises
    ------
    ModelFileError
        If the file is damaged, hostile, or of another version of the format.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import metricboost
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=300, n_features=10, informative=2, random_state=0)
    >>> model = metricboost.SDistClassifier(random_state=0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.mbz")
    >>> model.save(path)
    >>> bool((metricboost.load(path).predict(X) == model.predict(X)).all())
    True
    """
    saved = read(path, max_bytes)
    if saved.kind == "SparseMetric":
        if not isinstance(saved.model, SparseMetric):
            raise ModelFileError(f"{path} does not hold a metric, although it says so.")
        return saved.model
    if saved.kind not in ESTIMATORS:
        raise ModelFileError(
            f"{path} holds a {saved.kind[:100]!r}, but a model file of metricboost holds a "
            f"SparseMetric, {', '.join(ESTIMATORS)}."
        )
    try:
        return ESTIMATORS[saved.kind].from_saved(saved)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise ModelFileError(f"{path} does not hold a {saved.kind}: {error}.") from error
