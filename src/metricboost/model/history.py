"""The history of a model: the paths of the averaged fits, and the metric after each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from .averaging import Plain, assembled, averaged, ordered_by_weight
from .metric import SparseMetric
from .path import Path
from .products import Term


@dataclass(frozen=True, eq=False)
class FoldFit:
    """One of the averaged fits.

    Attributes
    ----------
    path : Path
        The path. Its steps refer to terms by their position in ``History.terms``.
    best_iter : int
        The number of accepted steps in the metric of the fit.
    spread : ndarray of shape (1 + n_steps,)
        The total variance of the training rows under the start metric, and under each step alone.
        Columns and terms are standardised with the rows of this fit. With these numbers, any metric
        on the path can be scaled to a total variance of 1 without the training rows.
    spread_of_all : ndarray of shape (1 + n_steps,)
        As ``spread``, but with columns and terms standardised with all rows.
    columns : ndarray of int
        The columns of the table that the metric of the fit uses.
    metric : SparseMetric
        The metric of the fit, over these columns. This metric was scored out of fold.
    """

    path: Path
    best_iter: int
    spread: Float
    spread_of_all: Float
    columns: Index
    metric: SparseMetric


@dataclass(frozen=True, eq=False)
class History:
    """The averaged fits of a model.

    Attributes
    ----------
    fits : tuple of FoldFit
    terms : list of tuple of int
        All terms of the paths.
    moments : ndarray of shape (n_terms, 2)
        The mean and the deviation of each term over all rows.
    share : float
        The share of the plain distance in the metric of the model.
    plain : Plain
    """

    fits: tuple[FoldFit, ...]
    terms: list[Term]
    moments: Float
    share: float
    plain: Plain

    @property
    def n_steps(self) -> int:
        """The number of accepted steps of the longest path."""
        return max(len(fit.path) for fit in self.fits)

    def metric_after(self, m: int, like: SparseMetric) -> SparseMetric:
        """The average of the metrics of the fits after m accepted steps, without pruning.

        If a fit has fewer than m accepted steps, its metric after the last step is used.

        Parameters
        ----------
        m : int
            The number of accepted steps.
        like : SparseMetric
            The metric of the model. The result has its column constants, names and imputation.
        """
        parts, total = [], 0.0
        for fit in self.fits:
            steps = min(m, len(fit.path)) if fit.best_iter else 0
            factor = fit.path.factor(steps)
            if not len(factor.index):
                continue
            own, of_all = (_spread(values, steps) for values in (fit.spread, fit.spread_of_all))
            parts.append((factor, own))
            total += of_all / own if own > 0 else of_all
        index, matrix = averaged(parts)
        metric = assembled(
            [self.terms[t] for t in index], matrix, self.moments[index],
            total / max(len(parts), 1), self.share, self.plain, like,
        )  # fmt: skip
        metric = metric.replaced(feature_names=like.feature_names, imputation=like.imputation)
        return ordered_by_weight(metric)

    def metrics(self, like: SparseMetric) -> Iterator[SparseMetric]:
        """The metrics after 1, 2, ... accepted steps.

        Parameters
        ----------
        like : SparseMetric
            As in :meth:`metric_after`.
        """
        return (self.metric_after(m, like) for m in range(1, self.n_steps + 1))

    def losses(self) -> Float:
        """The loss after each step, averaged over the fits.

        A fit with fewer steps has the loss of its last step.
        """
        paths = [fit.path for fit in self.fits if len(fit.path)]
        longest = max(len(path) for path in paths)
        losses = [[step.loss for step in path.steps] for path in paths]
        padded = [line + line[-1:] * (longest - len(line)) for line in losses]
        result: Float = np.mean(padded, axis=0)
        return result

    def table(self) -> npt.NDArray[np.void]:
        """A structured array with one row for each accepted step of each fit."""
        fields = [
            ("fit", np.int64), ("attempt", np.int64), ("weight", np.float64), ("loss", np.float64),
            ("complexity", np.float64), ("rank", np.int64), ("terms", np.int64),
            ("refreshed", np.bool_),
        ]  # fmt: skip
        rows = []
        for number, fit in enumerate(self.fits):
            for m, step in enumerate(fit.path.steps, 1):
                factor = fit.path.factor(m)
                rows.append((
                    number, step.attempt, step.weight, step.loss, factor.complexity(),
                    factor.matrix.shape[1], step.n_terms, step.refreshed,
                ))  # fmt: skip
        return np.array(rows, dtype=fields)


def _spread(values: Float, steps: int) -> float:
    """The total variance after some steps, which is a sum because the variance is linear in W."""
    return float(values[: steps + 1].sum())
