"""Convex problems over positive semi-definite W: accelerated proximal gradient steps.

A step goes down the gradient of the smooth part and then to the nearest point that the penalty and
the cone together prefer (Beck and Teboulle 2009). Momentum is given up where it leads uphill
(O'Donoghue and Candes 2015). Every step takes an eigendecomposition or several, so this is the slow
way; its optimum does not depend on the start, and what a penalty makes zero is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .._typing import Float
from ._descent import Descent, Objective

#: Iterations in a row that gain too little.
PATIENCE = 10
#: A step that was short enough is tried longer by this factor, or the other before any was not.
LONGER, MUCH_LONGER = 1.2, 4.0
#: Steps that may grow much longer: a loss that falls for ever has no longest.
LONGEST = 20
#: Passes over the columns' penalty in a step; it goes on where the last step left it.
PASSES = 5


class Penalty(Protocol):
    """What is added to the smooth part."""

    def __call__(self, W: Float) -> float: ...

    def shrunk(self, W: Float, step: float) -> Float:
        """The positive semi-definite V with the least ``|V - W|^2 / 2 + step * penalty(V)``."""


class TracePenalty:
    """A multiple of the trace; it shortens eigenvalues, those of little use to zero."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, W: Float) -> float:
        return self.weight * float(np.trace(W))

    def shrunk(self, W: Float, step: float) -> Float:
        return in_cone(W, step * self.weight)


class ColumnPenalty:
    """A multiple of the sum of the columns' norms; columns of little use become zero.

    The nearest point has no formula, because of the cone. In its dual every column has a vector of
    norm at most 1, and accelerated projected gradient steps find them.
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
    """The symmetric part with its eigenvalues less an amount, none below zero."""
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
    """``smooth(W) + penalty(W)`` over positive semi-definite W, from such a one."""
    W, step = start, _first_step(smooth, start)
    best = smooth(W)[0] + penalty(W)
    ahead, momentum, idle, growing = W, 1.0, 0, True
    for n_iter in range(1, max_iter + 1):
        tried = step
        new, value, step = _step(smooth, penalty, ahead, tried)
        growing = growing and step == tried and n_iter < LONGEST and bool((new != ahead).any())
        if watch is not None:
            watch(W)
        if value > best and momentum > 1:  # the momentum led uphill
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
    """As long as the metric is large."""
    size = float(np.linalg.norm(smooth(W)[1]))
    return max(float(np.linalg.norm(W)), 1e-8) / size if size > 0 else 1.0


def _step(smooth: Objective, penalty: Penalty, W: Float, step: float) -> tuple[Float, float, float]:
    """A step that goes down as far as the gradient promises, its value, and its length."""
    value, gradient = smooth(W)
    while True:
        new = penalty.shrunk(W - step * gradient, step)
        change = new - W
        reached = smooth(new)[0]
        promised = value + float((gradient * change).sum()) + float((change**2).sum()) / (2 * step)
        if reached <= promised + 1e-12 * abs(value) or step < 1e-300 or not change.any():
            return new, reached + penalty(new), step
        step /= 2
