"""Errors for values that are so large that distances would overflow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._blocks import row_blocks
from .._typing import Data
from ..inputs import listed
from .fits import CrossFit


def check_scales(X: Data, standardize: bool, max_degree: int) -> None:
    """Raise an error if squared distances between products of unscaled columns would overflow."""
    if not standardize:
        largest = max(float(np.abs(block).max()) for _, block in row_blocks(X))
        refuse_large(largest, max_degree)


def refuse_large(largest: float, max_degree: int) -> None:
    limit = 10.0 ** (300 / (2 * max_degree + 2))
    if largest > limit:
        raise ValueError(
            f"X has values up to {largest:.3g}, and standardize=False: products overflow. Set "
            "standardize=True or rescale the columns."
        )


def refuse_far_rows(crossfit: CrossFit, max_degree: int, names: Sequence[str] | None) -> None:
    """Raise an error if distances under the metric of a fold would overflow for some row.

    This happens if a row that the fold leaves out is extremely far from the rows that it keeps.

    Parameters
    ----------
    crossfit : CrossFit
    max_degree : int
    names : sequence of str or None
        The names of the columns of the input, if they have names.
    """
    limit = 10.0 ** (140 / max_degree)
    for fit in crossfit.fits:
        if fit.scaling.clip is not None and fit.scaling.clip < limit:
            continue
        for _, block in row_blocks(crossfit.X):
            with np.errstate(over="ignore"):
                away = np.abs(block - fit.scaling.center).max(axis=0)
            far = away[fit.scaling.kept] / limit > fit.scaling.scale[fit.scaling.kept]
            if far.any():
                numbers = fit.scaling.kept[far]
                columns = listed([f"x{j}" if names is None else names[j] for j in numbers])
                raise ValueError(
                    f"Column {columns} has values so far from those of other rows that distances "
                    "overflow: check these values, or set clip to a number."
                )
