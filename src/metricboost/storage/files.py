"""``save`` and ``load``: one file for a metric or a fitted estimator."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ModelFileError
from ..estimators import SDist, SDistClassifierCV
from ..metric import SparseMetric
from ..tables import TableClassifier
from .archive import DAMAGE, read, write
from .metrics import pack_metric, unpack_metric
from .models import pack_model, unpack_model
from .records import Record
from .tables import pack_table_model, unpack_table_model
from .writing import Arrays

#: Arrays of a file may take this much unless the caller allows more.
MAX_BYTES = 2**32


def save(model: Any, path: str | os.PathLike[str], rows: bool = True) -> None:
    """Write a metric or a fitted estimator to a model file; see :func:`load`.

    Parameters
    ----------
    model : SparseMetric, SDist, SDistClassifier, SDistClassifierCV or TableClassifier
    path : str or path
        Usually with the ending ``.mbz``. A file in the way is replaced, at once or not at all.
    rows : bool, default=True
        Whether the training rows go along (only the columns that matter). Without them no data
        leaves the machine, but the model cannot classify: that takes neighbours.
    """
    arrays = Arrays()
    if isinstance(model, SparseMetric):
        content = {"kind": "SparseMetric", "metric": pack_metric(model, arrays)}
    elif isinstance(model, TableClassifier):
        content = pack_table_model(model, rows, arrays)
    elif isinstance(model, SDist | SDistClassifierCV):
        content = pack_model(model, rows, arrays)
    else:
        raise TypeError(f"A model file holds metrics and fitted estimators, not {type(model)}.")
    write(path, {"model": content}, arrays.found)


def load(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a model file that ``save`` has written.

    Loading runs no code from the file and reads no other file. Its arrays take no more memory than
    the file declares and ``max_bytes`` allows; names and terms take a few times their size.

    Parameters
    ----------
    path : str or path
    max_bytes : int, default=4 GiB
        The most memory that its arrays, or its training rows as a table, may take.

    Returns
    -------
    SparseMetric, SDist, SDistClassifier, SDistClassifierCV or TableClassifier
        As it was saved. ``engine``, ``n_jobs``, ``verbose`` and ``checkpoint`` have
        their defaults, and a search comes without its ``cv_results_``, its ``param_grid`` and its
        ``estimator``.

    Raises
    ------
    ModelFileError
        Where the file is damaged, hostile, or newer than this version.
    OSError
        Where it cannot be read.

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
    manifest, arrays = read(path, max_bytes)
    try:
        record = Record(manifest.get("model"), arrays)
        if record.values.get("kind") == "SparseMetric":
            return unpack_metric(record.record("metric"))
        if record.values.get("kind") == "TableClassifier":
            return unpack_table_model(record, max_bytes)
        return unpack_model(record, max_bytes)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except DAMAGE as error:
        raise ModelFileError(f"{path} does not hold a model: {error}.") from error
