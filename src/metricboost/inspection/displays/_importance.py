"""``ImportanceDisplay``: how much each variable counts, alone and in interactions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._terms import VariableShare
from ._drawing import COLOURS, NOTHING_LEARNED, axes, fitting, percent
from ._given import check_count, explained


class ImportanceDisplay:
    """The variables' shares of the metric's weight, as bars in decreasing order.

    A bar has two parts: the share from the variable itself and its powers, and the share from its
    products with other variables. The stability of the variable, which is the share of the averaged
    fits that use it, stands to the right of the bar.

    Parameters
    ----------
    variables : list of VariableShare
        The variables that are drawn.
    n_used : int
        The number of variables that the metric uses.
    start_share : float, optional
        The share of the plain distance on all columns. None if it is unknown.

    Attributes
    ----------
    ax_ : matplotlib Axes
    stability_ax_ : matplotlib Axes or None
        The axis with the stabilities. None if they are unknown.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import ImportanceDisplay
    >>> metric = SparseMetric([(0,), (0, 1)], np.diag([1.0, 1.0]), np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2), feature_names=["age", "income"])
    >>> display = ImportanceDisplay.from_estimator(metric)
    >>> [(v.name, v.alone, v.together) for v in display.variables]
    [('age', 0.5, 0.25), ('income', 0.0, 0.25)]
    """

    def __init__(
        self, *, variables: list[VariableShare], n_used: int, start_share: float | None = None
    ) -> None:
        self.variables = variables
        self.n_used = n_used
        self.start_share = start_share

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_variables: int = 20, ax: Any = None, **options: Any
    ) -> ImportanceDisplay:
        """Draw the variables of a metric or a fitted estimator.

        Parameters
        ----------
        estimator : estimator or SparseMetric
            A fitted SDist, SDistClassifier, SDistClassifierCV, TableClassifier, or one of
            ``metricboost.baselines``.
        max_variables : int, default=20
            Number of variables to draw: those with the largest shares.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        ImportanceDisplay
        """
        most = check_count("max_variables", max_variables)
        found = explained(estimator)
        display = cls(
            variables=found.variables[:most],
            n_used=len(found.variables),
            start_share=found.start_share,
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> ImportanceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default a new figure is made, as high as the bars need.
        **options
            For the bars, to ``Axes.barh``.

        Returns
        -------
        self
        """
        self.ax_ = axes(ax, 7.0, 1.8 + 0.27 * max(len(self.variables), 3))
        self.figure_ = self.ax_.figure
        self.stability_ax_: Any = None
        self.ax_.set_title(self._title(), fontsize="medium", pad=26)
        self.ax_.set_xlabel("share of the metric's weight")
        places = np.arange(len(self.variables))
        self._draw_bars(places, options)
        self.ax_.set_yticks(places, [fitting(variable.name) for variable in self.variables])
        self.ax_.set_ylim(max(len(places), 3) - 0.4, -0.6)  # the largest share is on top
        if places.size:
            # The legend stands above the bars, because long bars leave no room beside them.
            self.ax_.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2, frameon=False)
            self._write_stability(places)
        return self

    def _draw_bars(self, places: Any, options: dict[str, Any]) -> None:
        alone = np.array([variable.alone for variable in self.variables])
        together = np.array([variable.together for variable in self.variables])
        parts = ((alone, 0, "alone"), (together, alone, "in interactions"))
        for (width, left, label), colour in zip(parts, COLOURS):
            look = {"color": colour, "height": 0.7, "label": label}
            self.ax_.barh(places, width, left=left, **{**look, **options})
        self.ax_.xaxis.set_major_formatter(lambda share, _: f"{share:.3g}")

    def _write_stability(self, places: Any) -> None:
        stability = [variable.stability for variable in self.variables]
        known = [value for value in stability if value is not None]
        if len(known) < len(stability):
            return
        self.stability_ax_ = self.ax_.secondary_yaxis("right")
        self.stability_ax_.set_yticks(places, [percent(value) for value in known])
        self.stability_ax_.tick_params(length=0)
        self.stability_ax_.set_ylabel("stability\n(share of the fits)", fontsize="small")

    def _title(self) -> str:
        if not self.variables:
            return "The metric has no variables: all rows are alike"
        noun = "variable" if self.n_used == 1 else "variables"
        title = f"{self.n_used} {noun} in the metric"
        if len(self.variables) < self.n_used:
            share = percent(sum(variable.share for variable in self.variables))
            title = f"{len(self.variables)} of {self.n_used} {noun}, {share} of the weight"
        if self.start_share == 1:
            return f"{title}\n{NOTHING_LEARNED}"
        if self.start_share:
            return f"{title}\n{percent(self.start_share)} is the plain distance on all columns"
        return title
