"""Write models that later versions must load: ``python tests/saved/make.py``, at every release.

The models go into a folder that is named after the version. A change of the file format makes the
files anew; then delete the folder first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import metricboost
from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_xor
from metricboost.tables import TableClassifier

#: The first rows are for the fits, the others to predict.
TRAINING = 80


def tables() -> tuple[Any, Any, Any, Any]:
    """Numbers, labels, numbers with missing values, and a frame with text."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    with_missing = X.copy()
    with_missing[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        colour=np.where(X[:, 3] > 0, "red", "blue"), target=y
    )
    return X, y, with_missing, frame


def new_rows(name: str) -> Any:
    """The rows that the model of a name predicts."""
    X, _, with_missing, frame = tables()
    return {"imputed": with_missing, "table": frame}.get(name, X)[TRAINING:]


def models() -> dict[str, Any]:
    """Fitted models of every kind."""
    X, y, with_missing, frame = tables()
    given = {"max_iter": 8, "random_state": 0}
    rows, labels = X[:TRAINING], np.where(y[:TRAINING] == y.max(), "yes", "no")
    search = SDistClassifierCV(SDistClassifier(max_iter=8), cv=3, random_state=0,
                               param_grid={"max_degree": [1, 2]})  # fmt: skip
    fitted = {
        "sdist": SDist(**given).fit(rows, labels),
        "imputed": SDist(missing="impute", **given).fit(with_missing[:TRAINING], labels),
        "search": search.fit(rows, y[:TRAINING]),
        "table": TableClassifier(SDistClassifier(missing="impute", **given)).fit(
            frame[:TRAINING], "target"
        ),
    }
    for kind in ("margin", "hull", "knn", "kernel", "mixture"):
        fitted[kind] = SDistClassifier(classifier=kind, **given).fit(rows, labels)
    return {**fitted, "metric": fitted["sdist"].metric_}


def predicted(model: Any, rows: Any) -> np.ndarray:
    method = "predict_proba" if hasattr(model, "predict_proba") else "transform"
    return np.asarray(getattr(model, method)(rows))


if __name__ == "__main__":
    folder = Path(__file__).parent / metricboost.__version__
    folder.mkdir()
    results = {}
    for name, model in models().items():
        metricboost.save(model, folder / f"{name}.mbz")
        results[name] = predicted(model, new_rows(name))
    np.savez_compressed(folder / "expected.npz", **results)
