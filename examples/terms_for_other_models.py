"""The terms of a metric as columns for other models.

One product of two columns and one single column, of 300 columns, determine the class. Boosted trees
do not find the product, because neither of its columns differs between the classes. With the terms
of the metric as columns (``metric_.term_features``) they do.

    python examples/terms_for_other_models.py
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metricboost import SDist

SEEDS = range(5)


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 300))
    odds = 3 * X[:, 0] * X[:, 1] + 2 * X[:, 2]
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def errors(seed: int) -> dict[str, float]:
    X, y = table(2600, seed)
    X_test, y_test, X, y = X[600:], y[600:], X[:600], y[:600]
    metric = SDist(random_state=0).fit(X, y).metric_
    terms, terms_test = metric.term_features(X), metric.term_features(X_test)
    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.05)),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
    }
    found = {}
    for name, model in models.items():
        found[name] = 1 - model.fit(X, y).score(X_test, y_test)
        found[name + ", terms"] = 1 - model.fit(terms, y).score(terms_test, y_test)
    return found


def main() -> None:
    rows = [errors(seed) for seed in SEEDS]
    print(f"test error, mean of {len(rows)} seeds (standard error)")
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        print(f"  {name:28}{values.mean():.3f} ({values.std(ddof=1) / np.sqrt(len(values)):.3f})")


if __name__ == "__main__":
    main()
