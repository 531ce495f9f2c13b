"""Bags of rows and panels of candidates, drawn on the host from (seed, attempt) alone.

Nothing depends on the number of attempts to come, so a fit of M attempts cut at m equals a fit
of m attempts; and no engine draws, so every engine sees the same bags and panels.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from .._typing import Index

MaxFeatures = None | Literal["sqrt"] | int | float


class Draws:
    def __init__(self, seed: int, n_rows: int, subsample: float, max_features: MaxFeatures) -> None:
        self.seed, self.n_rows = seed, n_rows
        self.subsample, self.max_features = subsample, max_features

    def __call__(self, attempt: int, n_candidates: int) -> tuple[npt.NDArray[np.bool_], Index]:
        """In-bag mask over the rows, and the panel as sorted candidate numbers."""
        rng = np.random.default_rng((self.seed, attempt))
        in_bag = np.ones(self.n_rows, dtype=bool)
        n_bag = max(1, round(self.subsample * self.n_rows))
        if n_bag < self.n_rows:  # without replacement (Friedman 2002)
            in_bag[rng.permutation(self.n_rows)[n_bag:]] = False
        size = panel_size(self.max_features, n_candidates)
        if size == n_candidates:
            return in_bag, np.arange(n_candidates)
        return in_bag, np.sort(rng.choice(n_candidates, size, replace=False, shuffle=False))


def panel_size(max_features: MaxFeatures, n_candidates: int) -> int:
    """How many candidates a step sees."""
    if max_features is None:
        return n_candidates
    if max_features == "sqrt":
        return max(1, round(float(np.sqrt(n_candidates))))
    if isinstance(max_features, int):
        return min(max_features, n_candidates)
    return max(1, round(float(max_features) * n_candidates))


def nonzeros(n_nonzero: int | float, panel: int) -> int:
    """kappa: a number, or the paper's rho as a share of the panel."""
    if isinstance(n_nonzero, int):
        return min(n_nonzero, panel)
    return min(max(1, round(n_nonzero * panel)), panel)
