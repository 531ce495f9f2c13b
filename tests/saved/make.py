"""Models of this version, for later ones to load: ``python tests/saved/make.py`` at a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import metricboost
from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_xor
from metricboost.persistence import save
from metricboost.tables import TableClassifier


def models() -> dict[str, tuple[Any, Any]]:
    """Fitted models of every kind, and rows to predict."""
    X, y = make_xor(120, 6, informative=2, random_state=0)
    given = {"max_iter": 8, "random_state": 0}
    rows, labels = X[:80], np.where(y[:80] == y.max(), "yes", "no")
    with_missing = X.copy()
    with_missing[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        colour=np.where(X[:, 3] > 0, "red", "blue"), target=y
    )
    search = SDistClassifierCV(SDistClassifier(max_iter=8), cv=3, random_state=0,
                               param_grid={"max_degree": [1, 2]})  # fmt: skip
    fitted = {
        "sdist": SDist(**given).fit(rows, labels),
        "imputed": SDist(missing="impute", **given).fit(with_missing[:80], labels),
        "search": search.fit(rows, y[:80]),
        "table": TableClassifier(SDistClassifier(missing="impute", **given)).fit(
            frame[:80], "target"
        ),
    }
    for kind in ("margin", "hull", "knn", "kernel", "mixture"):
        fitted[kind] = SDistClassifier(classifier=kind, **given).fit(rows, labels)
    fitted["metric"] = fitted["sdist"].metric_
    new = dict.fromkeys(fitted, X[80:])
    return {
        name: (model, {"imputed": with_missing[80:], "table": frame[80:]}.get(name, new[name]))
        for name, model in fitted.items()
    }


def predicted(model: Any, rows: Any) -> np.ndarray:
    method = "predict_proba" if hasattr(model, "predict_proba") else "transform"
    return np.asarray(getattr(model, method)(rows))


if __name__ == "__main__":
    folder = Path(__file__).parent / metricboost.__version__
    folder.mkdir()
    results = {}
    for name, (model, rows) in models().items():
        save(model, folder / f"{name}.mbz")
        results[name] = predicted(model, rows)
    np.savez_compressed(folder / "expected.npz", **results)
