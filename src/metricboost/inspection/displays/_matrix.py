"""``MetricMatrixDisplay``: the matrix W over the heaviest terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._typing import Float
from ._drawing import axes, fitting_term, percent
from ._given import check_count, metric_of

#: Matrices over at most this many terms have their numbers in the cells.
FEW = 8


class MetricMatrixDisplay:
    """The matrix W of a metric as a heat map, over its heaviest terms.

    The diagonal has the weights of the terms. Each other entry belongs to two terms. If two rows
    differ in both terms in the same direction, a positive entry increases their distance and a
    negative entry decreases it.

    Parameters
    ----------
    matrix : ndarray of shape (n_shown, n_shown)
        W over the terms that are drawn, in order of decreasing weight.
    names : sequence of str
        The names of these terms.
    n_terms : int
        The number of terms of the metric.
    share : float
        The share of the metric's weight in the terms that are drawn.

    Attributes
    ----------
    image_ : matplotlib AxesImage
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import MetricMatrixDisplay
    >>> metric = SparseMetric([(0,), (1,)], [[1.0, -2.0]], np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2))
    >>> display = MetricMatrixDisplay.from_estimator(metric)
    >>> display.names
    ['x1', 'x0']
    >>> display.matrix
    array([[ 4., -2.],
           [-2.,  1.]])
    """

    def __init__(self, *, matrix: Float, names: Sequence[str], n_terms: int, share: float) -> None:
        self.matrix = matrix
        self.names = list(names)
        self.n_terms = n_terms
        self.share = share

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_terms: int = 30, ax: Any = None, **options: Any
    ) -> MetricMatrixDisplay:
        """Draw the matrix of a metric or of the metric of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or SparseMetric
            A fitted SDist, SDistClassifier, SDistClassifierCV, TableClassifier, or one of
            ``metricboost.baselines``.
        max_terms : int, default=30
            Number of terms to draw: those with the largest weights.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        MetricMatrixDisplay
        """
        metric = metric_of(estimator)
        most = check_count("max_terms", max_terms)
        weights = np.array([term.weight for term in metric.terms])
        order = np.argsort(-weights, kind="stable")
        shown = order[:most][weights[order[:most]] > 0]
        factor = metric.components[:, shown]  # W over all of 10,000 terms would take 800 MB
        display = cls(
            matrix=factor.T @ factor + np.diag(metric.diagonal[shown]),
            names=[metric.name(metric.columns[t]) for t in shown],
            n_terms=int(np.count_nonzero(weights)),
            share=float(weights[shown].sum() / (weights.sum() or 1.0)),
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> MetricMatrixDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default a new figure is made, as large as the terms need.
        **options
            To ``Axes.imshow``, such as another ``cmap``.

        Returns
        -------
        self
        """
        side = 2.8 + max(0.22 * len(self.names), 0.5 * min(len(self.names), FEW), 1.0)
        self.ax_ = axes(ax, side + 0.9, side)
        self.figure_ = self.ax_.figure
        limit = float(np.abs(self.matrix).max(initial=0.0)) or 1.0  # so that 0 is white
        look = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        self.image_ = self.ax_.imshow(self._drawable(), **{**look, **options})
        self.figure_.colorbar(self.image_, ax=self.ax_, label="entry of W", shrink=0.8)
        places = np.arange(len(self.names))
        labels = [fitting_term(name) for name in self.names]
        self.ax_.set_xticks(places, labels, rotation=90)
        self.ax_.set_yticks(places, labels)
        if len(places) > 12:
            self.ax_.tick_params(labelsize="small")
        if len(places) <= FEW:
            self._write_values()
        self.ax_.set_title(self._title(), fontsize="medium")
        return self

    def _write_values(self) -> None:
        largest = np.abs(self.matrix).max(initial=0.0)
        rounded = np.where(np.abs(self.matrix) > 1e-12 * largest, self.matrix, 0.0)
        for (row, column), value in np.ndenumerate(rounded):
            colour = "white" if abs(value) > 0.6 * largest else "black"
            style = {"ha": "center", "va": "center", "color": colour, "fontsize": "small"}
            self.ax_.text(column, row, f"{value:.2g}", **style)

    def _drawable(self) -> Float:
        """The matrix. A metric without weight has one white cell, because an image needs cells."""
        return self.matrix if self.matrix.size else np.zeros((1, 1))

    def _title(self) -> str:
        if not self.names:
            return "The metric has no weight: all rows are alike"
        noun = "term" if self.n_terms == 1 else "terms"
        if len(self.names) == self.n_terms:
            return f"W over all {self.n_terms} {noun}" if self.n_terms > 1 else "W over its term"
        share = percent(self.share)
        return f"W over {len(self.names)} of {self.n_terms} {noun}, {share} of the weight"
