"""``EmbeddingDisplay``: rows as the metric sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from ..._typing import Float
from ._classes import BESIDE_SOLID, RowClasses, legend, row_classes, scatter
from ._drawing import axes, make_room, percent
from ._given import check_estimator

#: The picture is flat if its width is more than this many times its height.
FLAT = 8.0


class EmbeddingDisplay:
    """Rows under the metric: the leading principal directions of ``estimator.transform(X)``.

    The distances between the points approximate the distances under the metric. The axes show each
    direction's share of the variance of the embedding.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, n_directions)
        There are fewer directions than ``n_dimensions`` if the embedding has fewer.
    variance_shares : ndarray of shape (n_directions,)
        The directions' shares of the variance.
    rows : RowClasses or None
        The classes of the rows: ``names``, ``codes`` and whether the classes are ``predicted``.
        None if the classes are unknown.

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

    def __init__(
        self, *, coordinates: Float, variance_shares: Float, rows: RowClasses | None = None
    ) -> None:
        self.coordinates = coordinates
        self.variance_shares = variance_shares
        self.rows = rows

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        n_dimensions: int = 2,
        ax: Any = None,
        **options: Any,
    ) -> EmbeddingDisplay:
        """Draw rows under the metric.

        Parameters
        ----------
        estimator : estimator or SparseMetric
            A fitted SDist, SDistClassifier, SDistClassifierCV, TableClassifier, or one of
            ``metricboost.baselines``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            The classes of the rows. By default they are predicted, if the estimator is a
            classifier.
        n_dimensions : {2, 3}, default=2
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        check_estimator(estimator)
        if n_dimensions not in (2, 3):
            raise ValueError(f"n_dimensions={n_dimensions!r} must be 2 or 3.")
        embedding = np.asarray(estimator.transform(X), dtype=np.float64)
        _refuse_missing(embedding)
        rows = row_classes(estimator, X, y, len(embedding))
        coordinates, shares = principal_directions(embedding, n_dimensions)
        display = cls(coordinates=coordinates, variance_shares=shares, rows=rows)
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> EmbeddingDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            With the projection "3d" for three dimensions. By default a new figure is made.
        **options
            For the points, to ``Axes.scatter``.

        Returns
        -------
        self
        """
        solid = self.coordinates.shape[1] == 3
        if solid and ax is not None and not hasattr(ax, "zaxis"):
            raise ValueError(
                "ax is flat, but the display has three dimensions: give axes with "
                'projection="3d", or make the display with n_dimensions=2.'
            )
        self.ax_ = axes(ax, 7.6, 5.2, **({"projection": "3d"} if solid else {}))
        self.figure_ = self.ax_.figure
        scatter(self.ax_, self._places(), self.rows, **options)
        self._label()
        legend(self.ax_, self.rows, **(BESIDE_SOLID if solid else {}))
        return self

    def _places(self) -> Float:
        """The places of the points. With a single direction, every class has a horizontal strip.

        The points of a strip have different heights, so that equal values do not hide each other.
        Multiples of the golden ratio modulo 1 spread the heights evenly.
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
        what = (
            " of variance" if n_directions == 3 else " of the variance"
        )  # short in 3-D, where space is scarce
        for i, (axis, share) in enumerate(zip("xyz", self.variance_shares), 1):
            label = f"direction {i} ({percent(share)}{what})"
            getattr(self.ax_, f"set_{axis}label")(label)
            self.ax_.locator_params(axis=axis, nbins=6)
        if n_directions == 3:
            make_room(self.ax_)
            return
        self.ax_.grid(color="0.92")
        self.ax_.set_axisbelow(True)
        if n_directions == 1:
            self.ax_.set(yticks=[], ylabel="rows, spread by class" if self.rows else "rows, spread")
        else:
            self._scale()

    def _scale(self) -> None:
        """Give both axes the same scale, because the picture shows distances.

        If the picture would be flat, the second axis is stretched, and the title says so.
        """
        width, height = np.ptp(self.coordinates, axis=0)
        if width <= FLAT * height:
            self.ax_.set_aspect("equal", adjustable="datalim")
        else:
            remark = "the second direction hardly counts, and its axis is stretched"
            self.ax_.set_title(f"Rows under the metric\n{remark}", fontsize="medium")


def _refuse_missing(embedding: Float) -> None:
    if not len(embedding):
        raise ValueError("X has no rows, so there is nothing to draw.")
    bad = np.flatnonzero(~np.isfinite(embedding).all(axis=1))
    if len(bad):
        raise ValueError(
            f"X has missing or infinite values in {len(bad)} of {len(embedding)} rows, the first "
            f"of them row {bad[0]}: fill these values, or use an estimator with "
            'missing="impute".'
        )


def principal_directions(embedding: Float, n_directions: int) -> tuple[Float, Float]:
    """Coordinates in the leading principal directions, and their shares of the variance.

    There is always at least one direction. If all rows are equal, its coordinates are zeros.

    Parameters
    ----------
    embedding : ndarray of shape (n_samples, rank)
    n_directions : int

    Returns
    -------
    coordinates : ndarray of shape (n_samples, n_directions)
    shares : ndarray of shape (n_directions,)
    """
    n_directions = min(n_directions, *embedding.shape)
    spread = embedding - embedding.mean(axis=0)
    if not np.any(np.abs(spread) > 1e-12 * np.abs(embedding).max(initial=0.0)):
        return np.zeros((len(embedding), 1)), np.zeros(1)
    pca = PCA(n_directions, random_state=0)
    return pca.fit_transform(embedding), pca.explained_variance_ratio_
