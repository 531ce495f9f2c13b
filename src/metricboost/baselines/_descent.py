"""Minimising over arrays of any shape: L-BFGS, and the widths of a smoothed loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from .._typing import Float

#: What a method minimises: the value at an array, and the gradient there.
Objective = Callable[[Float], tuple[float, Float]]

#: Widths go down by this factor from 1, the margin, where the loss is easy to minimise.
NARROWER = 0.03
NARROWEST = 1e-10
#: What objectives start from: large, for SciPy's tolerances are relative only above 1.
LARGE = 1e6
#: A single iteration may gain little by bad luck: a fresh start must gain less than so many times.
FRESH = 5
#: The share of the objective that smoothing may take away at the end, in units of ``tol``.
SMOOTHED_AWAY = 3


@dataclass(frozen=True)
class Descent:
    """Where a descent ended."""

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
    """L-BFGS until an iteration gains less than ``tol``, relatively, and a fresh start no more.

    With ``once`` there is no fresh start.

    Values and arrays are brought to a common size first: SciPy's first step and its tolerances are
    absolute.
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
    """Widths from the margin down, each with the gain of an iteration that is worth its while."""
    width = 1.0
    while width > NARROWEST:
        yield width, tol * width
        width *= NARROWER


def sharp(exact: float, smooth: float, tol: float) -> bool:
    """Whether the smoothed loss is near enough to the loss itself."""
    return exact - smooth <= SMOOTHED_AWAY * tol * abs(exact)
