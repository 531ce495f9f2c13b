"""Algorithm 2: the truncated power method for the largest sparse eigenvector of A_m.

Each iteration applies A, keeps the kappa largest entries and normalises. If the objective
``xi' A xi`` decreases, the iteration is undone and A is replaced by ``A + lambda I``, where lambda
grows tenfold each time, as described in the paper. (A is not positive semi-definite, and with a
large enough shift every iteration increases the objective.) The all-ones start of the paper is poor
on sparse signals. The method starts from the coordinates with the largest diagonal entries instead,
and keeps the best result. Once the support repeats or the objective hardly increases, further
iterations would only converge to the leading eigenvector of A on the support. The iterations then
stop, and the eigenvector is computed directly.
"""

from __future__ import annotations

import numpy as np

from .._rounding import largest, to_twelve_digits
from .._typing import Float, Index
from ..engines import Engine

N_STARTS = 5


def sparse_eigenvector(engine: Engine, A: Float, n_nonzero: int) -> tuple[Index, Float]:
    """The sorted support (at most ``n_nonzero`` indices) and the values of the unit vector xi."""
    kappa, diagonal = min(n_nonzero, len(A)), A.diagonal()
    if kappa == 1:
        return np.array([np.argmax(to_twelve_digits(diagonal))]), np.ones(1)
    starts = largest(diagonal[None, :], min(N_STARTS, len(A)))[0]
    supports = engine.truncated_powers(A, starts, kappa)
    values, vectors = engine.leading_eigenvectors(A, list(supports))
    best = int(np.argmax(to_twelve_digits(values)))
    return _without_zeros(supports[best], vectors[best, supports[best]])


def _without_zeros(support: Index, values: Float) -> tuple[Index, Float]:
    """Drop the entries that are zero up to rounding."""
    real = np.abs(values) > 1e-12
    return support[real], values[real]
