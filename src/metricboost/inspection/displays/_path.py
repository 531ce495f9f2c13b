"""``PathDisplay``: the path of boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._drawing import COLOURS, axes
from ._given import fitted_model

#: The axis of the loss is logarithmic if the largest loss is more than this many times the
#: smallest loss.
WIDE = 50.0


class PathDisplay:
    """The loss and the number of terms after each accepted step, as one line for every fit.

    Circles mark the steps that search for the neighbours again. The loss jumps at these steps,
    because it is measured with the new neighbours from there on, so only the losses at circles can
    be compared. All accepted steps are shown, also the steps after the one at which
    ``complexity_penalty`` stops.

    Parameters
    ----------
    path : structured ndarray
        ``path_`` of a fitted estimator.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The loss.
    terms_ax_ : matplotlib Axes
        The number of terms.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> from metricboost.inspection import PathDisplay
    >>> X, y = make_xor(n_samples=300, n_features=8, informative=2, random_state=0)
    >>> model = SDistClassifier(max_iter=20, n_averaged=2, random_state=0).fit(X, y)
    >>> display = PathDisplay.from_estimator(model)
    >>> len(display.path) == len(model.path_)
    True
    """

    def __init__(self, *, path: npt.NDArray[Any]) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> PathDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : SDist, SDistClassifier, SDistClassifierCV or TableClassifier
            Of a search, the path of ``best_estimator_`` is drawn.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        PathDisplay
        """
        return cls(path=fitted_model(estimator, "path").history.table()).plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> PathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Both panels are drawn inside these axes. By default a new figure is made.
        **options
            For the lines, to ``Axes.plot``.

        Returns
        -------
        self
        """
        room = axes(ax, 7.0, 5.5)
        self.figure_ = room.figure
        room.set_axis_off()
        self.ax_ = room.inset_axes((0, 0.42, 1, 0.58))
        self.terms_ax_ = room.inset_axes((0, 0, 1, 0.34), sharex=self.ax_)
        for number, fit in enumerate(self._fits()):
            self._draw_fit(fit, {"color": COLOURS[number % len(COLOURS)], "lw": 1.3, **options})
        self._label()
        return self

    def _fits(self) -> list[npt.NDArray[Any]]:
        return [self.path[self.path["fit"] == fit] for fit in np.unique(self.path["fit"])]

    def _draw_fit(self, fit: npt.NDArray[Any], options: dict[str, Any]) -> None:
        steps = np.arange(1, len(fit) + 1)
        anew = fit["refreshed"]
        self.ax_.plot(steps, fit["loss"], **options)
        self.ax_.plot(
            steps[anew], fit["loss"][anew], "o", ms=6, mew=1.3, mfc="white", mec=options["color"]
        )
        self.terms_ax_.plot(steps, fit["terms"], **options)

    def _label(self) -> None:
        self.ax_.set_title(self._title())
        self.ax_.set_ylabel("loss, summed over rows")
        self.ax_.tick_params(labelbottom=False)
        most = self.path["terms"].max(initial=1)
        self.terms_ax_.set(xlabel="accepted step", ylabel="terms", ylim=(0, 1.08 * most))
        for panel in (self.ax_, self.terms_ax_):
            panel.locator_params(axis="x", integer=True)
            panel.grid(color="0.92")
        self.terms_ax_.locator_params(axis="y", integer=True, nbins=5)
        loss = self.path["loss"]
        if len(loss) and loss.max() > WIDE * loss.min() > 0:
            self.ax_.set_yscale("log")
        if self.path["refreshed"].any():
            self._explain_marks()

    def _title(self) -> str:
        n_fits = len(self._fits())
        if not n_fits:
            return "No step was accepted: nothing was learned"
        return f"Path of boosting, {n_fits} averaged fits" if n_fits > 1 else "Path of boosting"

    def _explain_marks(self) -> None:
        mark = self.ax_.plot([], [], "o", ms=6, mew=1.3, mfc="white", mec="0.3")
        text = "new search for neighbours: the loss jumps"
        self.ax_.legend(mark, [text], loc="best", fontsize="small")
