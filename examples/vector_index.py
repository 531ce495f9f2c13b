"""Search for neighbours under a metric with a vector index.

Distances under the metric are Euclidean distances between rows of ``metric_.transform``, so any
vector index can search for neighbours. The metric is learned on a thousand rows. Ten thousand other
rows are embedded and put into an index of usearch, which then answers queries without the model.
The script compares this index with an index of the raw columns. 10 of the 100 columns carry a
plane, and the class is the sign of the product of its two coordinates.

    pip install usearch
    python examples/vector_index.py
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from metricboost import SDistClassifier
from metricboost.datasets import make_xor

try:
    from usearch.index import Index
except ImportError:
    raise SystemExit("This example needs a vector index: pip install usearch") from None

N_FIT, N_INDEXED, N_QUERIES, N_COLUMNS = 1000, 10_000, 1000, 100
N_NEIGHBORS = 9


def from_index(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The approximate neighbours of every query, as row numbers."""
    index = Index(ndim=rows.shape[1], metric="l2sq", dtype="f32")
    index.add(np.arange(len(rows)), rows.astype(np.float32))
    return index.search(queries.astype(np.float32), N_NEIGHBORS).keys.astype(int)


def exact(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The exact neighbours, found by comparing every query with every row."""
    search = NearestNeighbors(n_neighbors=N_NEIGHBORS, algorithm="brute").fit(rows)
    return search.kneighbors(queries, return_distance=False)


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """The share of the true neighbours that were found."""
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found)]))


def main() -> None:
    n_rows = N_FIT + N_INDEXED + N_QUERIES
    X, y, info = make_xor(n_rows, N_COLUMNS, informative=0.1, return_info=True, random_state=0)
    (X_fit, X, X_query), (y_fit, y, y_query) = (
        np.split(part, [N_FIT, N_FIT + N_INDEXED]) for part in (X, y)
    )
    metric = SDistClassifier(random_state=0).fit(X_fit, y_fit).metric_
    spaces = {
        "raw columns": (X, X_query),
        "under the metric": (metric.transform(X), metric.transform(X_query)),
    }
    print(f"{N_INDEXED} rows in the index, {N_QUERIES} queries, {N_NEIGHBORS} neighbours each.")
    print(f"The best possible error is {info.bayes_error:.3f}.\n")
    print(f"{'':20}{'dimensions':>12}{'recall':>10}{'error':>10}")
    for name, (rows, queries) in spaces.items():
        found = from_index(rows, queries)
        voted = y[found].mean(axis=1) > 0.5
        error = (voted != y_query).mean()
        share = recall(found, exact(rows, queries))
        print(f"{name:20}{rows.shape[1]:12}{share:10.3f}{error:10.3f}")


if __name__ == "__main__":
    main()
