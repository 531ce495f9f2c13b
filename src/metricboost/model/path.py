"""The path: the accepted steps of a fit, the metric after each step, and the stopping rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._typing import Float, Index


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor of W: ``W = matrix @ matrix.T`` over the terms with the sorted numbers ``index``."""

    index: Index
    matrix: Float

    @classmethod
    def empty(cls) -> Factor:
        """The factor of W = 0."""
        return cls(np.empty(0, dtype=np.intp), np.empty((0, 0)))

    @classmethod
    def identity(cls, size: int) -> Factor:
        """The identity on the first terms.

        Parameters
        ----------
        size : int
            The number of terms.
        """
        return cls(np.arange(size), np.eye(size))

    def plus(self, support: Index, xi: Float, weight: float) -> Factor:
        """The factor of ``W + weight * xi xi'``.

        Parameters
        ----------
        support : ndarray of int
            The terms of ``xi``, in increasing order.
        xi : ndarray
        weight : float
        """
        index = np.union1d(self.index, support)
        matrix = np.zeros((len(index), self.matrix.shape[1] + 1))
        matrix[np.searchsorted(index, self.index), :-1] = self.matrix
        matrix[np.searchsorted(index, support), -1] = np.sqrt(weight) * xi
        return Factor(index, matrix)

    def reduced(self) -> Factor:
        """A factor of the same W with orthogonal columns, one for each dimension of its rank."""
        if not self.matrix.size:
            return self
        u, s, _ = np.linalg.svd(self.matrix, full_matrices=False)
        rank = max(1, int((s > s[0] * len(s) * np.finfo(float).eps).sum()))
        u = u[:, :rank]
        # The sign of a singular vector is arbitrary. Its largest entry is made positive.
        u = u * np.sign(u[np.argmax(np.abs(u), axis=0), np.arange(rank)])
        return Factor(self.index, u * s[:rank])

    def restricted(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Factor:
        """The factor of the principal submatrix of W on some terms.

        A principal submatrix of a positive semi-definite matrix is positive semi-definite.

        Parameters
        ----------
        keep : ndarray of bool
            One element for each term of W: whether the term is kept.
        """
        return Factor(self.index[keep], self.matrix[keep])

    def weights(self) -> Float:
        """The diagonal of W, which has the weight of each term."""
        result: Float = np.einsum("tm,tm->t", self.matrix, self.matrix)
        return result

    def complexity(self) -> float:
        """The paper's C_m: the trace of the symmetric square root of W.

        The trace is equal to the sum of the singular values of any factor of W.
        """
        if not self.matrix.size:
            return 0.0
        return float(np.linalg.svd(self.matrix, compute_uv=False).sum())


@dataclass(frozen=True, eq=False)
class Step:
    """One accepted step: ``W <- W + weight * xi xi'``."""

    attempt: int
    support: Index
    xi: Float
    weight: float
    loss: float
    refreshed: bool
    n_terms: int
    n_candidates: int


@dataclass(eq=False)
class Path:
    """The start metric and the accepted steps of a fit."""

    start: Factor
    steps: list[Step] = field(default_factory=list)
    n_attempts: int = 0

    def __len__(self) -> int:
        return len(self.steps)

    def last_accepted(self) -> int:
        """The number of the attempt that was the last accepted step; 0 without accepted steps."""
        return self.steps[-1].attempt if self.steps else 0

    def factor(self, m: int) -> Factor:
        """The factor of W after the first m accepted steps.

        Parameters
        ----------
        m : int
            The number of steps.
        """
        return self.separate(m).reduced()

    def separate(self, m: int) -> Factor:
        """As ``factor``, with the columns of the start metric and then one for each step.

        Parameters
        ----------
        m : int
            The number of steps.
        """
        steps = self.steps[:m]
        supports = [self.start.index, *(s.support for s in steps)]
        index = np.unique(np.concatenate(supports)).astype(np.intp)
        n_start = self.start.matrix.shape[1]
        matrix = np.zeros((len(index), n_start + len(steps)))
        matrix[np.searchsorted(index, self.start.index), :n_start] = self.start.matrix
        for column, step in enumerate(steps, start=n_start):
            matrix[np.searchsorted(index, step.support), column] = np.sqrt(step.weight) * step.xi
        return Factor(index, matrix)

    def comparable(self) -> list[int]:
        """The steps whose losses may be compared: the steps just after a refresh of the neighbours.

        The loss jumps at a refresh, so a loss between two refreshes is not comparable with a loss
        at a refresh. Without any refresh all steps have the same neighbours and are comparable.
        """
        refreshed = [m for m, step in enumerate(self.steps, 1) if step.refreshed]
        return refreshed or list(range(1, len(self) + 1))


def best_step(path: Path, complexity_penalty: float) -> int:
    """The stopping rule of sparse boosting: the step that minimises loss + penalty * complexity.

    Parameters
    ----------
    path : Path
    complexity_penalty : float
        The paper's lambda_C. Zero keeps every accepted step.

    Returns
    -------
    int
        The number of accepted steps to keep.
    """
    if complexity_penalty == 0 or not path.steps:
        return len(path)
    steps = path.comparable()
    criterion = [
        path.steps[m - 1].loss + complexity_penalty * path.factor(m).complexity() for m in steps
    ]
    return steps[int(np.argmin(criterion))]
