"""Golden fits: the results of fits to small tables of several kinds, on both engines, as JSON.

    python tests/golden.py write tests/golden.json     # store the results of the present code
    python tests/golden.py compare tests/golden.json   # print the differences from the file

``tests/test_golden.py`` compares the code with the file: terms and steps must be equal, and numbers
must agree to nine digits. The file is written again only if models are meant to change.
Probabilities of support vector machines agree to only two digits. libsvm stops at a tolerance, and
the number of its iterations depends on the last bits of the kernel, which differ between
processors.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from metricboost import SDistClassifier, SDistClassifierCV
from metricboost.datasets import make_double_ring, make_xor

#: Parameters of fits that take a fraction of a second.
SHORT: dict[str, Any] = {"random_state": 0, "n_averaged": 3, "max_iter": 15}
#: The largest relative difference between numbers that count as equal.
SAME = 1e-9
#: The largest relative difference for the probabilities of some cases with iterative readouts.
ROUGH = {"weights": 0.01, "panels, no gate": 1e-4}
Case = tuple[str, Any, Any, dict[str, Any], Any]


def cases() -> Iterator[Case]:
    """The cases: name, table, labels, parameters and weights."""
    xor, xor_labels = make_xor(200, 20, informative=2, random_state=1)
    yield "xor", xor, xor_labels, {}, None
    yield "one fit, float32", xor.astype(np.float32), xor_labels, {"n_averaged": 1}, None
    zeros = np.where(np.abs(xor) < 0.3, 0.0, xor)
    yield "sparse", sparse.csr_matrix(zeros), xor_labels, {"classifier": "knn"}, None
    rings, ring_labels = make_double_ring(200, 12, random_state=1)
    yield "rings, degree 3", rings, ring_labels, {"max_degree": 3, "classifier": "mixture"}, None
    yield "panels, no gate", rings, ring_labels, {"max_features": "sqrt", "oob_gate": None}, None
    yield "identity", rings, ring_labels, {"init": "identity", "prune": None}, None
    X, y = load_iris(return_X_y=True)
    yield "iris", X, y, {"classifier": "hull"}, None
    X, y = load_wine(return_X_y=True)
    yield "wine, coded, degree 1", X, y, {"multiclass": "coded", "max_degree": 1}, None
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:240, :12], y[:240]
    rng = np.random.default_rng(0)
    weight = rng.uniform(0, 2, len(y))
    weight[::7] = 0
    yield "weights", X, y, {"class_weight": "balanced", "classifier": "kernel"}, weight
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    yield "missing values", holes, y, {"missing": "impute", "start_share": 0.5}, None
    yield "search", xor, xor_labels, {"search": True}, None


def fitted(X: Any, y: Any, given: dict[str, Any], weight: Any, engine: str) -> Any:
    if given.get("search"):
        base = SDistClassifier(engine=engine, **SHORT)
        search = SDistClassifierCV(base, {"max_degree": [1, 2]}, cv=3, random_state=0)
        return search.fit(X, y)
    return SDistClassifier(**{**SHORT, **given, "engine": engine}).fit(X, y, weight)


def record(model: Any, X: Any) -> dict[str, Any]:
    """The stored results of a model."""
    metric = model.metric_
    path = getattr(model, "path_", None)
    return {
        "terms": [list(term) for term in metric.columns],
        "attempts": [] if path is None else path["attempt"].tolist(),
        "weights": metric.matrix().diagonal().tolist(),
        "probabilities": model.predict_proba(X[:30])[:, 0].tolist(),
        "scale": metric.scale.tolist(),
        "term_scale": metric.term_scale.tolist(),
    }


def records(engines: tuple[str, ...] = ("numpy", "native")) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, X, y, given, weight in cases():
        for engine in engines:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"{name} / {engine}", record(fitted(X, y, given, weight, engine), X)


def difference(case: str, one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of all numbers. Infinite if terms or steps differ.

    For the cases in ``ROUGH``, the difference of probabilities is scaled, so that it can be
    compared with ``SAME`` too.
    """
    if any(one[name] != other[name] for name in ("terms", "attempts")):
        return float("inf")
    found = [0.0]
    for name in ("weights", "probabilities", "scale", "term_scale"):
        a, b = np.array(one[name]), np.array(other[name])
        largest = float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-3), initial=0.0))
        scale = SAME / ROUGH.get(case, SAME) if name == "probabilities" else 1.0
        found.append(scale * largest)
    return max(found)


def main() -> None:
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        path.write_text(json.dumps(dict(records()), indent=0) + "\n")
        return
    known = json.loads(path.read_text())
    for name, found in records():
        print(f"{name}: {difference(name.split(' / ')[0], found, known[name]):.1e}")


if __name__ == "__main__":
    main()
