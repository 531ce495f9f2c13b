"""Compare the score of the best candidate of a search with the score of an outer cross-validation.

    python examples/honest_score.py

The five tables have 60 rows and 200 columns of noise, so the expected accuracy on new rows is 0.5.
The score of the best candidate is too optimistic, because it is the best of many scores.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import cross_val_score

from metricboost import SDistClassifier, SDistClassifierCV

TABLES = 5


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # fits warn that no step was accepted
    best, outer = [], []
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 200)), rng.permutation(60) % 2
        margin = SDistClassifier(classifier="margin")  # the fastest readout
        search = SDistClassifierCV(margin, {"max_degree": [1]}, scoring="accuracy", random_state=0)
        best.append(search.fit(X, y).best_score_)
        outer.append(cross_val_score(search, X, y, scoring="accuracy").mean())
    print(f"best_score_ of the search       {np.mean(best):.2f}")
    print(f"cross_val_score of the search   {np.mean(outer):.2f}")


if __name__ == "__main__":
    main()
