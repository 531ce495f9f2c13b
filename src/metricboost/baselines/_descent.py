"""Minimisation over arrays of any shape by L-BFGS, and the sequence of smoothing widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from .._typing import Float

#: An objective returns its value and its gradient at an array.
Objective = Callable[[Float], tuple[float, Float]]

#: Smoothing widths start at 1 (the margin), where the loss is easy to minimise, and are multiplied
#: by NARROWER down to NARROWEST.
NARROWER = 0.03
NARROWEST = 1e-10
#: Objectives are scaled to start at this value, because tolerances of SciPy are relative only for
#: values above 1.
LARGE = 1e6
#: A single L-BFGS iteration may have a small gain by chance. The descent has converged if a restart
#: gains less than FRESH * tol.
FRESH = 5
#: Largest relative difference between the loss and the smoothed loss at the end, in units of
#: ``tol``.
SMOOTHED_AWAY = 3


@dataclass(frozen=True)
class Descent:
    """The result of a descent: the array, the objective, and the number of iterations."""

    at: Float
    value: float
    n_iter: int
    converged: bool


def descend(
    objective: Objective,
    start: Float,
    tol: float,
    max_iter: int,
    watch: Callable[[Any], None] | None = None,
    bounds: Bounds | None = None,
    once: bool = False,
) -> Descent:
    """Minimise an objective by L-BFGS.

    Values and arrays are scaled first, because the first step and the tolerances of SciPy are
    absolute.

    Parameters
    ----------
    objective : callable
    start : ndarray
    tol : float
        L-BFGS stops if an iteration has a relative gain below ``tol``. It is then restarted until a
        restart has a small gain, too.
    max_iter : int
    watch : callable, optional
        Called after every iteration.
    bounds : scipy.optimize.Bounds, optional
    once : bool, default=False
        Whether to stop without restarts.
    """
    size, unit = _size(start), _size(np.array(objective(start)[0])) / LARGE

    def flat(x: Float) -> tuple[float, Float]:
        value, gradient = objective(x.reshape(start.shape) * size)
        return value / unit, gradient.ravel() * (size / unit)

    x, value, n_iter, settled = start.ravel() / size, np.inf, 0, False
    while not settled and n_iter < max_iter:
        left = max_iter - n_iter
        found = minimize(
            flat, x, jac=True, method="L-BFGS-B", callback=watch, bounds=bounds,
            options={"maxiter": left, "maxfun": 20 * left, "ftol": tol, "gtol": 0},
        )  # fmt: skip
        gained = value - float(found.fun) > FRESH * tol * abs(float(found.fun))
        settled = found.nit < left and (once or not gained)
        x, value, n_iter = found.x, float(found.fun), n_iter + max(1, int(found.nit))
    return Descent(x.reshape(start.shape) * size, value * unit, n_iter, settled)


def _size(array: Float) -> float:
    largest = float(np.abs(array).max(initial=0.0))
    return largest if largest > 0 else 1.0


def widths(tol: float) -> Iterator[tuple[float, float]]:
    """The smoothing widths in decreasing order, each with the tolerance for its minimisation."""
    width = 1.0
    while width > NARROWEST:
        yield width, tol * width
        width *= NARROWER


def sharp(exact: float, smooth: float, tol: float) -> bool:
    """Whether the smoothed loss is close enough to the exact loss."""
    return exact - smooth <= SMOOTHED_AWAY * tol * abs(exact)
