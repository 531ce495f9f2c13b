"""Convex problems over positive semi-definite W, solved by accelerated proximal gradient steps.

A step is a gradient step of the smooth part, followed by the proximal operator of the penalty on
the cone of positive semi-definite matrices (Beck and Teboulle 2009). The momentum is reset if the
objective increases (O'Donoghue and Candes 2015). Every step needs at least one eigendecomposition,
so this solver is slower than L-BFGS on a factor. Its advantages are that the optimum does not
depend on the start, and that eigenvalues or columns removed by a penalty are exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .._typing import Float
from ._descent import Descent, Objective

#: The solver has converged after this number of consecutive iterations with a gain below ``tol``.
PATIENCE = 10
#: The step length is multiplied by LONGER after each step, and by MUCH_LONGER as long as no step
#: has been too long. MUCH_LONGER is used in the first LONGEST iterations only, because the step
#: length would have no limit for a loss without a minimum.
LONGER, MUCH_LONGER = 1.2, 4.0
LONGEST = 20
#: Dual iterations for the column penalty in a step. They start at the dual of the last step.
PASSES = 5


class Penalty(Protocol):
    """A penalty that is added to the smooth part of the objective."""

    def __call__(self, W: Float) -> float: ...

    def shrunk(self, W: Float, step: float) -> Float:
        """The positive semi-definite V that minimises ``|V - W|^2 / 2 + step * penalty(V)``."""


class TracePenalty:
    """A multiple of the trace. It lowers all eigenvalues, and sets small eigenvalues to zero."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, W: Float) -> float:
        return self.weight * float(np.trace(W))

    def shrunk(self, W: Float, step: float) -> Float:
        return in_cone(W, step * self.weight)


class ColumnPenalty:
    """A multiple of the sum of the norms of the columns. It sets columns to zero.

    On the cone, the proximal operator of this penalty has no closed form. Its dual problem has one
    vector of norm at most 1 per column, and is solved by accelerated projected gradient steps.
    """

    def __init__(self, weight: float, p: int) -> None:
        self.weight = weight
        self._dual = np.zeros((p, p))

    def __call__(self, W: Float) -> float:
        return self.weight * float(np.sqrt((W**2).sum(axis=1)).sum())

    def shrunk(self, W: Float, step: float) -> Float:
        amount = step * self.weight
        dual, ahead, momentum = self._dual, self._dual, 1.0
        for _ in range(PASSES):
            V = in_cone(W - amount * ahead)
            new = _short_rows(ahead + V / amount)
            after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / after * (new - dual)
            dual, momentum = new, after
        self._dual = dual
        return in_cone(W - amount * dual)


def _short_rows(M: Float) -> Float:
    return np.asarray(M / np.maximum(1.0, np.sqrt((M**2).sum(axis=1)))[:, None])


def in_cone(W: Float, less: float = 0.0) -> Float:
    """The symmetric part of W with all eigenvalues reduced by ``less``, and at least zero."""
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    kept = values > less
    root = vectors[:, kept] * np.sqrt(values[kept] - less)
    result: Float = root @ root.T
    return result


def minimise_over_cone(
    smooth: Objective,
    penalty: Penalty,
    start: Float,
    tol: float,
    max_iter: int,
    watch: Callable[[Any], None] | None = None,
) -> Descent:
    """Minimise ``smooth(W) + penalty(W)`` over positive semi-definite W.

    Parameters
    ----------
    smooth : callable
        The value and the gradient of the smooth part at W.
    penalty : Penalty
    start : ndarray of shape (p, p)
        A positive semi-definite matrix.
    tol : float
        The relative gain below which an iteration counts as idle.
    max_iter : int
    watch : callable, optional
        Called with W after every iteration.
    """
    W, step = start, _first_step(smooth, start)
    best = smooth(W)[0] + penalty(W)
    ahead, momentum, idle, growing = W, 1.0, 0, True
    for n_iter in range(1, max_iter + 1):
        tried = step
        new, value, step = _step(smooth, penalty, ahead, tried)
        growing = growing and step == tried and n_iter < LONGEST and bool((new != ahead).any())
        if watch is not None:
            watch(W)
        if value > best and momentum > 1:  # reset the momentum
            ahead, momentum = W, 1.0
            continue
        idle = idle + 1 if best - value <= tol * abs(best) and not growing else 0
        after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / after * (new - W)
        W, best, momentum = new, min(value, best), after
        step *= MUCH_LONGER if growing else LONGER
        if idle >= PATIENCE:
            return Descent(W, best, n_iter, True)
    return Descent(W, best, max_iter, False)


def _first_step(smooth: Objective, W: Float) -> float:
    """The length of the first step: the gradient step is as large as W."""
    size = float(np.linalg.norm(smooth(W)[1]))
    return max(float(np.linalg.norm(W)), 1e-8) / size if size > 0 else 1.0


def _step(smooth: Objective, penalty: Penalty, W: Float, step: float) -> tuple[Float, float, float]:
    """A proximal gradient step with sufficient decrease, its objective, and its length."""
    value, gradient = smooth(W)
    while True:
        new = penalty.shrunk(W - step * gradient, step)
        change = new - W
        reached = smooth(new)[0]
        promised = value + float((gradient * change).sum()) + float((change**2).sum()) / (2 * step)
        if reached <= promised + 1e-12 * abs(value) or step < 1e-300 or not change.any():
            return new, reached + penalty(new), step
        step /= 2
