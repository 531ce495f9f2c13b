"""Random bags of rows and panels of candidates.

The bag and the panel of an attempt depend only on the seed and the number of the attempt. A fit of
M attempts cut after attempt m is therefore equal to a fit of m attempts. Random numbers are drawn
here with NumPy and never by an engine, so that all engines use the same bags and panels.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from .._typing import Index

MaxFeatures = None | Literal["sqrt"] | int | float


class Draws:
    """The bag and the panel of every attempt."""

    def __init__(self, seed: int, n_rows: int, subsample: float, max_features: MaxFeatures) -> None:
        self.seed, self.n_rows = seed, n_rows
        self.n_bag = max(1, round(subsample * n_rows))
        self.max_features = max_features

    def __call__(self, attempt: int, n_candidates: int) -> tuple[npt.NDArray[np.bool_], Index]:
        """Draw the in-bag mask over the rows, and the panel as sorted candidate numbers."""
        rng = np.random.default_rng((self.seed, attempt))
        in_bag = np.ones(self.n_rows, dtype=bool)
        if self.n_bag < self.n_rows:  # without replacement (Friedman 2002)
            in_bag[rng.permutation(self.n_rows)[self.n_bag :]] = False
        size = panel_size(self.max_features, n_candidates)
        if size == n_candidates:
            return in_bag, np.arange(n_candidates)
        return in_bag, np.sort(rng.choice(n_candidates, size, replace=False, shuffle=False))


def panel_size(max_features: MaxFeatures, n_candidates: int) -> int:
    """The number of candidates in a panel."""
    if max_features is None:
        return n_candidates
    if max_features == "sqrt":
        return max(1, round(float(np.sqrt(n_candidates))))
    if isinstance(max_features, int):
        return min(max_features, n_candidates)
    return max(1, round(float(max_features) * n_candidates))


def nonzeros(n_nonzero: int | float, panel: int) -> int:
    """kappa, the largest number of nonzero entries of xi.

    An integer ``n_nonzero`` is kappa itself. A float is the paper's rho, a share of the panel.
    """
    if isinstance(n_nonzero, int):
        return min(n_nonzero, panel)
    return min(max(1, round(n_nonzero * panel)), panel)
