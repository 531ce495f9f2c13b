"""A table with numbers, texts, booleans, missing values and an identifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from metricboost.datasets import make_xor


def mixed(n: int = 120, seed: int = 0) -> Any:
    """The table. The column ``outcome`` is the target."""
    X, y = make_xor(n_samples=n, n_features=6, informative=2, random_state=seed)
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(6)])
    frame.insert(0, "patient_id", np.arange(5000, 5000 + n))
    frame["sex"] = random.choice(["m", "f"], n)
    frame["city"] = random.choice(["Rome", "Oslo", "Bern"], n)
    frame["smoker"] = random.choice([True, False], n)
    frame.loc[::9, "g3"] = np.nan
    frame.loc[::11, "city"] = None
    frame["outcome"] = np.where(y == 1, "ill", "well")
    return frame
