"""Learn a linear metric of metric-learn, for a caller in another environment.

    python foreign.py LMNN '{"n_neighbors": 3}' training.npz components.npz

metric-learn 0.7.0 does not work with current scikit-learn. This file therefore runs in a separate
environment with scikit-learn 1.5, and imports nothing of this project. It sees only training rows.
"""

import json
import sys
import warnings

import metric_learn
import numpy as np


def main() -> None:
    kind, parameters, source, target = sys.argv[1:]
    with np.load(source) as file:
        X, y = file["X"], file["y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = getattr(metric_learn, kind)(**json.loads(parameters)).fit(X, y)
    # LFDA takes square roots of eigenvalues. If rounding made an eigenvalue negative, its direction
    # is NaN and is set to zero.
    np.savez(target, components=np.nan_to_num(np.real(learner.components_)))


if __name__ == "__main__":
    main()
