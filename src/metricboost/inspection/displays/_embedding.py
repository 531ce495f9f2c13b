"""``EmbeddingDisplay``: rows as the metric sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from ..._typing import Float
from ._classes import BESIDE_SOLID, RowClasses, legend, row_classes, scatter
from ._drawing import axes, check_model, percent, roomy

#: Rows that spread this many times as far along the first direction as along the second.
FLAT = 8.0


class EmbeddingDisplay:
    """Rows under the metric: the leading principal directions of ``model.transform(X)``.

    Distances between the points are distances under the metric, as far as two or three directions
    show them; the axes say how much of the variance that is.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, n_directions)
        Fewer directions than asked for where the embedding has no more.
    variance_shares : ndarray of shape (n_directions,)
        The directions' shares of the variance.
    rows : RowClasses or None
        The classes of the rows: ``names``, ``codes`` and whether they were ``predicted``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import EmbeddingDisplay
    >>> metric = SparseMetric([(0,), (1,)], np.diag([3.0, 1.0]), np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2))
    >>> X = [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]
    >>> display = EmbeddingDisplay.from_estimator(metric, X, ["a", "a", "b", "b"])
    >>> display.variance_shares
    array([0.9, 0.1])
    """

    def __init__(self, coordinates: Float, variance_shares: Float, rows: RowClasses | None) -> None:
        self.coordinates = coordinates
        self.variance_shares = variance_shares
        self.rows = rows

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        n_dimensions: int = 2,
        *,
        ax: Any = None,
        **options: Any,
    ) -> EmbeddingDisplay:
        """Draw rows under the metric.

        Parameters
        ----------
        model : SparseMetric, SDist, SDistClassifier, SDistClassifierCV, or one of the baselines
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Classes for the colours; the predicted ones by default, where the model predicts.
        n_dimensions : {2, 3}, default=2
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        check_model(model)
        if n_dimensions not in (2, 3):
            raise ValueError(f"n_dimensions={n_dimensions!r} must be 2 or 3.")
        embedding = np.asarray(model.transform(X), dtype=np.float64)
        _refuse_missing(embedding)
        rows = row_classes(model, X, y, len(embedding))
        coordinates, shares = principal_directions(embedding, n_dimensions)
        return cls(coordinates, shares, rows).plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> EmbeddingDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Of the projection "3d" for three dimensions; a new figure by default.
        **options
            To ``Axes.scatter``.

        Returns
        -------
        self
        """
        solid = self.coordinates.shape[1] == 3
        if solid and ax is not None and not hasattr(ax, "zaxis"):
            raise ValueError(
                "ax is flat, but there are three dimensions to draw: make it with "
                'projection="3d", or compute the display with n_dimensions=2.'
            )
        self.ax_ = axes(ax, 7.6, 5.2, **({"projection": "3d"} if solid else {}))
        self.figure_ = self.ax_.figure
        scatter(self.ax_, self._places(), self.rows, **options)
        self._label()
        legend(self.ax_, self.rows, **(BESIDE_SOLID if solid else {}))
        return self

    def _places(self) -> Float:
        """Where the points go: with a single direction, a strip for every class.

        Equal values would hide each other on a strip, so points are spread over its height, evenly
        and without chance: steps of the golden ratio leave no gaps.
        """
        if self.coordinates.shape[1] > 1:
            return self.coordinates
        n_rows = len(self.coordinates)
        strips = np.zeros(n_rows) if self.rows is None else self.rows.codes
        spread = (np.arange(n_rows) * 0.618034) % 1 - 0.5
        return np.column_stack([self.coordinates[:, 0], strips + 0.6 * spread])

    def _label(self) -> None:
        self.ax_.set_title("Rows under the metric", fontsize="medium")
        n_directions = len(self.variance_shares)
        what = " of variance" if n_directions == 3 else " of the variance"  # little room in 3-D
        for i, (axis, share) in enumerate(zip("xyz", self.variance_shares), 1):
            label = f"direction {i} ({percent(share)}{what})"
            getattr(self.ax_, f"set_{axis}label")(label)
            self.ax_.locator_params(axis=axis, nbins=6)
        if n_directions == 3:
            roomy(self.ax_)
            return
        self.ax_.grid(color="0.92")
        self.ax_.set_axisbelow(True)
        if n_directions == 1:
            self.ax_.set(yticks=[], ylabel="rows, spread by class" if self.rows else "rows, spread")
        else:
            self._scale()

    def _scale(self) -> None:
        """A unit as long on both axes, since distances are shown; where that leaves a thin line,
        the second is stretched, and the title says so.
        """
        width, height = np.ptp(self.coordinates, axis=0)
        if width <= FLAT * height:
            self.ax_.set_aspect("equal", adjustable="datalim")
        else:
            words = "the second direction is stretched: it hardly counts"
            self.ax_.set_title(f"Rows under the metric\n{words}", fontsize="medium")


def _refuse_missing(embedding: Float) -> None:
    if not len(embedding):
        raise ValueError("X has no rows: there is nothing to draw.")
    bad = np.flatnonzero(~np.isfinite(embedding).all(axis=1))
    if len(bad):
        raise ValueError(
            f"X gives no distances in {len(bad)} of {len(embedding)} rows, the first of them row "
            f"{bad[0]}: fill missing and infinite values, or use a model with "
            'missing="impute".'
        )


def principal_directions(embedding: Float, n_directions: int) -> tuple[Float, Float]:
    """Coordinates in the leading principal directions, and their shares of the variance.

    There is always at least one direction: zeros where all rows are alike.
    """
    n_directions = min(n_directions, *embedding.shape)
    spread = embedding - embedding.mean(axis=0)
    if not np.any(np.abs(spread) > 1e-12 * np.abs(embedding).max(initial=0.0)):
        return np.zeros((len(embedding), 1)), np.zeros(1)
    pca = PCA(n_directions, random_state=0)
    return pca.fit_transform(embedding), pca.explained_variance_ratio_
