"""``SurfaceDisplay``: what is predicted over two variables, the others at their medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt

from ..._blocks import dense
from ..._typing import Float
from ...inputs import check_table
from ...model import Model
from ._classes import BESIDE_SOLID, RowClasses, colour, legend, legend_label, row_classes, scatter
from ._drawing import axes, check_count, fitted_model, fitting, roomy
from ._embedding import principal_directions
from ._grid import feature_columns, of_rows, value_grid, value_range

KINDS = ("contour", "surface")
#: Grid lines of a surface each way.
LINES = 40


class SurfaceDisplay:
    """The prediction over a grid of two variables, with rows as points in their classes.

    All other variables are held at their medians, so the picture is a section through the model,
    and points need not lie in the regions of their classes. Two classes are shown by the
    probability of the second, more by the regions in which each is predicted. As a surface in
    three dimensions it is the paper's figure: the height is the first principal direction of the
    embedded grid, so it shows how the metric bends the plane of the two variables. With a single
    variable, curves show the probabilities.

    Parameters
    ----------
    features : tuple of str
        The names of the two variables, or of the single one.
    values : list of ndarray
        The grid: the values of each variable.
    probabilities : ndarray of shape (n_values, n_values, n_classes)
        The first variable runs along the first axis. Shape (n_values, n_classes) for a single
        variable.
    height : ndarray of shape (n_values, n_values)
        The grid's first principal direction under the metric.
    classes : ndarray of shape (n_classes,)
    points : ndarray of shape (n_samples, n_variables)
        The rows' values of the variables.
    rows : RowClasses
        The classes of the rows: ``names``, ``codes`` and whether they were ``predicted``.
    n_held : int
        How many other variables are held at their medians.

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
    >>> display = SurfaceDisplay.from_estimator(model, X, features=("x2", "x7"), y=y)
    >>> display.probabilities.shape
    (80, 80, 2)
    """

    def __init__(
        self,
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
        model: Any,
        X: Any,
        features: Sequence[int | str] | None = None,
        y: Any = None,
        grid_resolution: int = 80,
        *,
        ax: Any = None,
        **options: Any,
    ) -> SurfaceDisplay:
        """Draw the predictions of a classifier over two variables.

        Parameters
        ----------
        model : SDistClassifier or SDistClassifierCV
        X : array-like of shape (n_samples, n_features)
            Rows: they are the points, and give the ranges and the medians.
        features : sequence of two str or int, optional
            Names or numbers of the variables. By default the two that weigh most in terms of
            either and of both. A single one is drawn as curves.
        y : array-like of shape (n_samples,), optional
            The classes of the points; predicted ones by default.
        grid_resolution : int, default=80
            Values of each variable.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        SurfaceDisplay
        """
        metric = _classifier(model).metric
        n_values = check_count("grid_resolution", grid_resolution, 2)
        missing = "error" if metric.imputation is None else "impute"
        table = dense(check_table(model, X, reset=False, missing=missing))
        columns = feature_columns(metric, features)
        values = [value_range(table[:, j], metric, j, n_values) for j in columns]
        grid, shape = value_grid(table, columns, values)
        probabilities = of_rows(model.predict_proba, grid).reshape(*shape, -1)
        height, _ = principal_directions(metric.transform(grid), 1)
        return cls(
            tuple(metric.feature_names[j] for j in columns),
            values,
            probabilities,
            height.reshape(shape),
            model.classes_,
            table[:, columns],
            _known(row_classes(model, X, y, len(table)), model.classes_),
            table.shape[1] - len(columns),
        ).plot(ax=ax, **options)

    def plot(self, ax: Any = None, kind: str = "contour", **options: Any) -> SurfaceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Of the projection "3d" for a surface; a new figure by default.
        kind : {"contour", "surface"}, default="contour"
            Flat, with the rows as points, or as a surface, without them: most do not lie on it.
        **options
            To ``Axes.scatter``, for the points.

        Returns
        -------
        self
        """
        solid = self._checked_kind(kind, ax) == "surface"
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

    def _checked_kind(self, kind: str, ax: Any) -> str:
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} must be one of {', '.join(map(repr, KINDS))}.")
        if kind == "surface" and len(self.features) == 1:
            raise ValueError("kind='surface' needs two features, but there is one: use 'contour'.")
        if kind == "surface" and ax is not None and not hasattr(ax, "zaxis"):
            raise ValueError("ax is flat, but kind='surface' needs projection=\"3d\".")
        return kind

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
        if ahead.min() < 0 < ahead.max():  # matplotlib warns of lines that are not there
            self.ax_.contour(*self.values, ahead, [0], colors="0.25", linewidths=1.0)

    def _name_region(self, code: int, inside: npt.NDArray[np.bool_]) -> None:
        """A class's name in its region, far from the edges: not all readers see colours."""
        depth = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        self.ax_.annotate(
            fitting(self.classes[code]), (self.values[0][row], self.values[1][column]),
            ha="center", va="center", zorder=4, annotation_clip=True,
            bbox={"boxstyle": "round", "fc": "white", "ec": "none", "alpha": 0.8},
        )  # fmt: skip

    def _ahead(self, code: int) -> Float:
        """By how much a class is more probable than the most probable other one."""
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
        """The probability of every class; below, the rows as ticks, class by class."""
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
            roomy(self.ax_)

    def _held(self) -> str:
        if self.n_held < 2:
            return "\nthe other variable at its median" if self.n_held else ""
        return f"\nthe other {self.n_held} variables at their medians"


def _classifier(model: Any) -> Model:
    best = fitted_model(model, "predict_proba")
    if best.reading is None:
        raise TypeError(
            f"model is an {type(model).__name__}, which has no predict_proba: fit an "
            "SDistClassifier."
        )
    return best


def _known(rows: RowClasses | None, classes: npt.NDArray[Any]) -> RowClasses:
    """The points must have the model's classes: the regions have their colours."""
    assert rows is not None  # probabilities were predicted, so classes can be
    strange = [name for name in rows.names.tolist() if name not in classes.tolist()]
    if strange:
        raise ValueError(
            f"y has the label {strange[0]!r}, but the model's classes are {classes.tolist()}: "
            "give labels as in fit, or leave y out."
        )
    return rows


def _between_classes() -> Any:
    """A colour map from the first class over white to the second."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = _tints(2, 0.6)
    return LinearSegmentedColormap.from_list("classes", [first, (1.0, 1.0, 1.0), second])


def _tints(n_classes: int, strength: float = 0.35) -> Float:
    """Pale versions of the classes' colours, on which their points stand out."""
    from matplotlib.colors import to_rgb

    return np.array(
        [strength * np.array(to_rgb(colour(c))) + 1 - strength for c in range(n_classes)]
    )
