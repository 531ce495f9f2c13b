"""``PathDisplay``: the path of boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._drawing import COLOURS, axes, fitted_model

#: Where the largest loss is this many times the smallest, its axis is logarithmic.
WIDE = 50.0


class PathDisplay:
    """The loss and the number of terms after each accepted step, a line for every averaged fit.

    Steps after which neighbours were searched for anew are marked: the loss jumps there, since
    it is measured with the new neighbours from then on, and only losses at marks compare. All
    accepted steps are shown, also those beyond the place where ``complexity_penalty`` stops.

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

    def __init__(self, path: npt.NDArray[Any]) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, **options: Any) -> PathDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        model : SDist, SDistClassifier or SDistClassifierCV
            Of a search, the path of ``best_estimator_``.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        PathDisplay
        """
        return cls(fitted_model(model, "path").history.table()).plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> PathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Room for both panels; a new figure by default.
        **options
            To ``Axes.plot``, for the lines.

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
        n_fits = len(self._fits())
        self.ax_.set_title(
            "No step was accepted: nothing was learned" if not n_fits
            else f"Path of boosting, {n_fits} averaged fits" if n_fits > 1 else "Path of boosting"
        )  # fmt: skip
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

    def _explain_marks(self) -> None:
        mark = self.ax_.plot([], [], "o", ms=6, mew=1.3, mfc="white", mec="0.3")
        words = "neighbours searched anew: the loss jumps"
        self.ax_.legend(mark, [words], loc="best", fontsize="small")
