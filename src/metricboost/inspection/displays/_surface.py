"""``SurfaceDisplay``: predictions over two variables, with the others at their medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt

from ..._blocks import dense
from ..._typing import Float
from ...inputs import check_table
from ...model import Blend, Model
from ._classes import BESIDE_SOLID, RowClasses, colour, legend, legend_label, row_classes, scatter
from ._drawing import axes, fitting, make_room
from ._embedding import principal_directions
from ._given import check_count, fitted_model
from ._grid import feature_columns, value_grid, value_range

KINDS = ("contour", "surface")
#: Number of grid lines of a surface in each direction.
LINES = 40


class SurfaceDisplay:
    """The prediction over a grid of two variables, with rows as points in their classes.

    All other variables are held at their medians, so the picture is a section through the model,
    and a point may lie outside the region of its class. With two classes, colours show the
    probability of the second class. With more classes, colours show the regions in which each class
    is predicted. The surface in three dimensions is the paper's figure: the height is the first
    principal direction of the embedded grid, so the surface shows how the metric bends the plane of
    the two variables. With a single variable, curves show the probabilities.

    Parameters
    ----------
    features : tuple of str
        The names of the one or two variables.
    values : list of ndarray
        The values of each variable on the grid.
    probabilities : ndarray of shape (n_values, n_values, n_classes)
        The first axis belongs to the first variable. With a single variable the shape is
        (n_values, n_classes).
    height : ndarray of shape (n_values, n_values)
        The coordinate of every point of the grid in the first principal direction of the embedded
        grid.
    classes : ndarray of shape (n_classes,)
    points : ndarray of shape (n_samples, n_variables)
        The values of the variables in the rows.
    rows : RowClasses
        The classes of the rows: ``names``, ``codes`` and whether the classes are ``predicted``.
    n_held : int
        The number of other variables, which are held at their medians.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> from metricboost.inspection import SurfaceDisplay
    >>> X, y = make_xor(n_samples=300, n_features=8, informative=2, random_state=0)
    >>> model = SDistClassifier(max_iter=20, n_averaged=2, random_state=0).fit(X, y)
    >>> display = SurfaceDisplay.from_estimator(model, X, y, features=("x2", "x7"))
    >>> display.probabilities.shape
    (80, 80, 2)
    """

    def __init__(
        self,
        *,
        features: tuple[str, ...],
        values: list[Float],
        probabilities: Float,
        height: Float,
        classes: npt.NDArray[Any],
        points: Float,
        rows: RowClasses,
        n_held: int,
    ) -> None:
        self.features = features
        self.values = values
        self.probabilities = probabilities
        self.height = height
        self.classes = classes
        self.points = points
        self.rows = rows
        self.n_held = n_held

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Sequence[int | str] | int | str | None = None,
        grid_resolution: int = 80,
        ax: Any = None,
        **options: Any,
    ) -> SurfaceDisplay:
        """Draw the predictions of a classifier over two variables.

        Parameters
        ----------
        estimator : SDistClassifier or SDistClassifierCV
        X : array-like of shape (n_samples, n_features)
            Rows to draw as points. They also give the ranges and the medians.
        y : array-like of shape (n_samples,), optional
            The classes of the rows. By default they are predicted.
        features : sequence of one or two str or int, optional
            Names or numbers of the variables. By default, the two variables with the largest weight
            in the terms that have no other variable.
        grid_resolution : int, default=80
            Number of values of each variable.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        SurfaceDisplay
        """
        model = _classifier(estimator)
        metric = model.best.metric
        n_values = check_count("grid_resolution", grid_resolution, 2)
        missing = "error" if metric.imputation is None else "impute"
        table = dense(check_table(estimator, X, reset=False, missing=missing))
        columns = feature_columns(metric, features)
        values = [value_range(table[:, j], metric, j, n_values) for j in columns]
        grid, shape = value_grid(table, columns, values)
        height, _ = principal_directions(metric.transform(grid), 1)
        display = cls(
            features=tuple(metric.feature_names[j] for j in columns),
            values=values,
            probabilities=model.probabilities(grid).reshape(*shape, -1),
            height=height.reshape(shape),
            classes=model.classes,
            points=table[:, columns],
            rows=_known(row_classes(estimator, X, y, len(table)), model.classes),
            n_held=table.shape[1] - len(columns),
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, *, kind: str = "contour", **options: Any) -> SurfaceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            With the projection "3d" for a surface. By default a new figure is made.
        kind : {"contour", "surface"}, default="contour"
            A contour plot is flat and has the rows as points. A surface has no points, because most
            rows do not lie on it.
        **options
            For the points, to ``Axes.scatter``.

        Returns
        -------
        self
        """
        self._check_kind(kind, ax)
        solid = kind == "surface"
        self.ax_ = axes(ax, 7.6, 5.6, **({"projection": "3d"} if solid else {}))
        self.figure_ = self.ax_.figure
        if solid:
            self._draw_surface()
        elif len(self.features) == 1:
            self._draw_curves()
        else:
            self._draw_probability() if len(self.classes) == 2 else self._draw_regions()
            look = {"edgecolors": "0.15", "linewidths": 0.4}
            scatter(self.ax_, self.points, self.rows, **{**look, **options})
            legend(self.ax_, self.rows)
        self._label(solid)
        return self

    def _check_kind(self, kind: str, ax: Any) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} must be one of {', '.join(map(repr, KINDS))}.")
        if kind == "surface" and len(self.features) == 1:
            raise ValueError("kind='surface' needs two features, but there is one: use 'contour'.")
        if kind == "surface" and ax is not None and not hasattr(ax, "zaxis"):
            raise ValueError("ax is flat, but kind='surface' needs axes with projection=\"3d\".")

    def _draw_probability(self) -> None:
        a, b = self.values
        second = self.probabilities[:, :, 1].T
        levels = np.linspace(0, 1, 11)
        self._colour_bar(self.ax_.contourf(a, b, second, levels, cmap=_between_classes()))
        self._draw_boundary(second - 0.5)

    def _draw_regions(self) -> None:
        a, b = self.values
        tints = _tints(len(self.classes))
        codes = self.probabilities.argmax(axis=2)
        self.ax_.pcolormesh(a, b, tints[codes.T], shading="nearest", rasterized=True)
        for code in np.unique(codes).tolist():
            ahead = self._ahead(code).T
            self.ax_.contourf(a, b, ahead, [0, 2], colors=[tints[code]])  # smooth edges
            self._draw_boundary(ahead)
            self._name_region(code, codes == code)

    def _draw_boundary(self, ahead: Float) -> None:
        if ahead.min() < 0 < ahead.max():  # matplotlib warns if there is no such line
            self.ax_.contour(*self.values, ahead, [0], colors="0.25", linewidths=1.0)

    def _name_region(self, code: int, inside: npt.NDArray[np.bool_]) -> None:
        """Write the name of a class into its region, for readers who cannot tell the colours.

        The name stands where the distance to the edge of the region is largest.
        """
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        self.ax_.annotate(
            fitting(self.classes[code]), (self.values[0][row], self.values[1][column]),
            ha="center", va="center", zorder=4, annotation_clip=True,
            bbox={"boxstyle": "round", "fc": "white", "ec": "none", "alpha": 0.8},
        )  # fmt: skip

    def _ahead(self, code: int) -> Float:
        """The probability of a class minus the largest probability of another class."""
        others = np.delete(self.probabilities, code, axis=-1)
        result: Float = self.probabilities[..., code] - others.max(axis=-1)
        return result

    def _draw_surface(self) -> None:
        a, b = np.meshgrid(*self.values, indexing="ij")
        if len(self.classes) == 2:
            from matplotlib.cm import ScalarMappable

            colours = _between_classes()(self.probabilities[:, :, 1])
            self._colour_bar(ScalarMappable(cmap=_between_classes()))
        else:
            tints, codes = _tints(len(self.classes), 0.65), self.probabilities.argmax(axis=2)
            colours = tints[codes]
            self._name_colours(tints, np.unique(codes).tolist())
        self.ax_.plot_surface(
            a, b, self.height, facecolors=colours, rcount=LINES, ccount=LINES, shade=False,
            edgecolor="0.35", linewidth=0.25,
        )  # fmt: skip

    def _name_colours(self, tints: Float, codes: list[int]) -> None:
        from matplotlib.patches import Patch

        patches = [
            Patch(color=tints[code], label=legend_label(self.classes[code])) for code in codes
        ]
        self.ax_.legend(handles=patches, title="predicted class", **BESIDE_SOLID)

    def _draw_curves(self) -> None:
        """Draw the probability of every class. The ticks below are the rows, class by class."""
        for code, name in enumerate(self.classes):
            own = self.points[self.rows.codes == code, 0]
            line = {"color": colour(code), "label": legend_label(name)}
            self.ax_.plot(self.values[0], self.probabilities[:, code], **line)
            height = -0.02 - 0.08 * (1 + code) / len(self.classes)
            self.ax_.plot(own, np.full(len(own), height), "|", color=colour(code), ms=5)
        self.ax_.legend(title="class")

    def _colour_bar(self, filled: Any) -> None:
        self.figure_.colorbar(
            filled, ax=self.ax_, label=f"probability of class {fitting(self.classes[1])}",
            orientation="horizontal", aspect=35, shrink=0.8,
        )  # fmt: skip

    def _label(self, solid: bool) -> None:
        names = [fitting(name) for name in self.features]
        self.ax_.set(xlabel=names[0], ylabel=[*names, "probability"][1])
        what = "Predicted class" if len(self.classes) > 2 and len(names) == 2 else "Probability"
        self.ax_.set_title(f"{what} over {' and '.join(names)}{self._held()}", fontsize="medium")
        if solid:
            self.ax_.set_zlabel("first direction of the metric")
            make_room(self.ax_)

    def _held(self) -> str:
        if self.n_held < 2:
            return "\nthe other variable at its median" if self.n_held else ""
        return f"\nthe other {self.n_held} variables at their medians"


def _classifier(estimator: Any) -> Model | Blend:
    """The model of a classifier. X cannot be checked without the classifier itself."""
    best = fitted_model(estimator, "predict_proba")
    model = getattr(estimator, "model_", None)
    if not isinstance(model, Model | Blend):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}, but must be an SDistClassifier or "
            "SDistClassifierCV. Of a TableClassifier, give its model_, and encoded(X) as the rows."
        )
    if best.reading is None:
        raise TypeError(
            f"estimator is an {type(estimator).__name__}, which has no predict_proba: fit an "
            "SDistClassifier."
        )
    return model


def _known(rows: RowClasses | None, classes: npt.NDArray[Any]) -> RowClasses:
    """Refuse points of other classes than the model's, because the regions have these colours."""
    assert rows is not None  # the estimator predicts, so there are classes
    strange = [name for name in rows.names.tolist() if name not in classes.tolist()]
    if strange:
        raise ValueError(
            f"y has the label {strange[0]!r}, but the classes of the model are {classes.tolist()}: "
            "give these labels, or leave y out."
        )
    return rows


def _between_classes() -> Any:
    """A colour map from the first class over white to the second."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = _tints(2, 0.6)
    return LinearSegmentedColormap.from_list("classes", [first, (1.0, 1.0, 1.0), second])


def _tints(n_classes: int, strength: float = 0.35) -> Float:
    """Pale versions of the colours of the classes, as a background for their points."""
    from matplotlib.colors import to_rgb

    return np.array(
        [strength * np.array(to_rgb(colour(c))) + 1 - strength for c in range(n_classes)]
    )
