"""``InteractionDisplay``: the network of interacting variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Float
from .._terms import Link, VariableShare, explain_model
from ._circle import circle_order
from ._drawing import COLOURS, NOTHING_LEARNED, axes, check_count, check_model, fitting, percent

#: Variables that are drawn where none interact.
MOST_ALONE = 20
#: From so many nodes on, labels stand along the radius: upright ones would overlap.
CROWDED = 13
#: The width of a letter as a share of the font's size, roughly.
LETTER = 0.6
#: The longest name on the circle, in letters.
LONGEST = 22
#: Of the circle in a figure of its own, in inches.
RADIUS = 2.1
#: Of a figure of its own, in inches: the title needs it.
NARROWEST = 5.0


class InteractionDisplay:
    """Variables on a circle, joined where they interact.

    The wider a line, the larger the share of the metric's weight in terms with both variables; the
    larger a node, the larger the share of its variable. The order around the circle is one in
    which few lines cross.

    Parameters
    ----------
    links : list of Link
        Those that are drawn.
    variables : list of VariableShare
        Those that are drawn, in their order on the circle.
    n_links, n_used : int
        How many links the metric has, and how many variables it uses.
    start_share : float, optional
        Share of the plain distance on all columns in the metric.

    Attributes
    ----------
    positions : ndarray of shape (n_variables, 2)
        Where the variables stand.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import InteractionDisplay
    >>> metric = SparseMetric([(0,), (0, 1)], np.diag([1.0, 1.0]), np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2), feature_names=["age", "income"])
    >>> InteractionDisplay.from_estimator(metric).links
    [Link(a='age', b='income', share=0.5)]
    """

    def __init__(
        self,
        links: list[Link],
        variables: list[VariableShare],
        n_links: int,
        n_used: int,
        start_share: float | None = None,
    ) -> None:
        self.links = links
        self.variables = variables
        self.n_links = n_links
        self.n_used = n_used
        self.start_share = start_share
        self.positions = _circle(len(variables))

    @classmethod
    def from_estimator(
        cls, model: Any, max_links: int = 30, *, ax: Any = None, **options: Any
    ) -> InteractionDisplay:
        """Draw the interactions of a metric or a fitted estimator.

        Parameters
        ----------
        model : SparseMetric, SDist, SDistClassifier, SDistClassifierCV, or one of the baselines
        max_links : int, default=30
            The most links to draw, the heaviest.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        InteractionDisplay
        """
        check_model(model)
        most = check_count("max_links", max_links)
        found = explain_model(model)
        links = found.links[:most]
        variables = _ordered(found.variables, links)
        return cls(
            links, variables, len(found.links), len(found.variables), found.start_share
        ).plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> InteractionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **options
            To ``Axes.scatter``, for the nodes.

        Returns
        -------
        self
        """
        room = _Room.of(len(self.variables), ax)
        names = [fitting(variable.name, room.letters) for variable in self.variables]
        low, high = self._limits(names, room)
        width, height = RADIUS * (high - low)
        self.ax_ = axes(ax, max(width, NARROWEST), height + 0.9)
        self.figure_ = self.ax_.figure
        self._draw_links(room.radius / RADIUS)
        self._draw_nodes(room.radius / RADIUS, options)
        self._write(names, room.font)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        self.ax_.set_axis_off()
        self.ax_.set_title(self._title(), fontsize="medium", pad=14)
        return self

    def _limits(self, names: list[str], room: _Room) -> tuple[Float, Float]:
        """The lower left and the upper right corner of nodes and names; the circle has radius 1."""
        lengths = np.array([len(name) for name in names]) * LETTER * room.font / 72 / room.radius
        outwards = self.positions if self._crowded() else np.sign(self.positions.round(6)) * [1, 0]
        ends = 1.2 * self.positions + lengths[:, None] * outwards
        corners = np.vstack([ends, self.positions]) if len(ends) else np.zeros((1, 2))
        return corners.min(axis=0) - 0.2, corners.max(axis=0) + 0.2

    def _crowded(self) -> bool:
        return len(self.variables) >= CROWDED

    def _draw_links(self, scale: float) -> None:
        place = {variable.name: i for i, variable in enumerate(self.variables)}
        largest = max((link.share for link in self.links), default=1.0)
        for link in reversed(self.links):  # the heaviest on top
            weight = link.share / largest
            ends = self.positions[[place[link.a], place[link.b]]]
            self.ax_.plot(
                *_curve(*ends).T, color=COLOURS[1], lw=0.6 + 6 * scale * weight,
                alpha=0.35 + 0.5 * weight, solid_capstyle="butt", zorder=1,
            )  # fmt: skip

    def _draw_nodes(self, scale: float, options: dict[str, Any]) -> None:
        largest = max((variable.share for variable in self.variables), default=1.0)
        most = scale**2 * min(420.0, 9000 / max(len(self.variables), 1))
        sizes = [15 + most * variable.share / largest for variable in self.variables]
        look = {"color": COLOURS[0], "edgecolor": "white", "zorder": 2, "clip_on": False}
        self.ax_.scatter(*self.positions.T, s=sizes, **{**look, **options})

    def _write(self, names: list[str], font: float) -> None:
        upright = not self._crowded()
        for name, (x, y) in zip(names, self.positions):
            left = x < -1e-9
            turn = np.degrees(np.arctan2(y, x)) + 180 * left
            self.ax_.text(
                1.11 * x, 1.11 * y, name, fontsize=font,
                rotation=0 if upright else turn, rotation_mode="anchor",
                ha="center" if upright and abs(x) < 0.2 else "right" if left else "left",
                va=_vertical(y) if upright else "center",
            )  # fmt: skip

    def _title(self) -> str:
        if not self.links:
            some = f": {len(self.variables)} of {self.n_used} variables"
            title = f"No interactions{some if len(self.variables) < self.n_used else ''}"
            return f"{title}\n{NOTHING_LEARNED}" if self.start_share == 1 else title
        count = "1 interaction" if self.n_links == 1 else f"{self.n_links} interactions"
        if len(self.links) < self.n_links:
            count = f"the heaviest {len(self.links)} of {count}"
        share = percent(self.links[0].share)
        return f"{count[0].upper()}{count[1:]}\nwidest line: {share} of the metric's weight"


@dataclass(frozen=True)
class _Room:
    """The radius of the circle in inches, the font's size, and the most letters of a name."""

    radius: float
    font: float
    letters: int

    @classmethod
    def of(cls, n_nodes: int, ax: Any) -> _Room:
        """A figure of its own is made as large as it needs to be; axes are as they are."""
        font = float(np.clip(420 / max(n_nodes, 1), 6, 10))
        if ax is None:
            return cls(RADIUS, font, LONGEST)
        size = float(ax.get_window_extent().size.min() / ax.figure.dpi)
        font *= float(np.clip(size / 5, 0.7, 1))
        radius = size / 4.2
        letters = int((size / 2 - 1.2 * radius) / (LETTER * font / 72))
        return cls(radius, font, min(max(letters, 9), LONGEST))


def _ordered(variables: list[VariableShare], links: list[Link]) -> list[VariableShare]:
    """The variables of the links in their order on the circle; the heaviest where there are none.

    The heaviest comes first, which is on top.
    """
    if not links:
        return variables[:MOST_ALONE]
    linked = {name for link in links for name in (link.a, link.b)}
    shown = [variable for variable in variables if variable.name in linked]
    number = {variable.name: i for i, variable in enumerate(shown)}
    order = circle_order(len(shown), [(number[link.a], number[link.b]) for link in links])
    first = order.index(0)
    return [shown[i] for i in order[first:] + order[:first]]


def _circle(n_nodes: int) -> Float:
    """Places clockwise from the top; two beside each other, so that their names have room."""
    start = np.pi if n_nodes == 2 else np.pi / 2
    angles = start - 2 * np.pi * np.arange(n_nodes) / max(n_nodes, 1)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _curve(a: Float, b: Float) -> Float:
    """A line from a to b that bends towards the centre, away from the nodes between them."""
    t = np.linspace(0, 1, 40)[:, None]
    middle = 0.55 * (a + b) / 2
    result: Float = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
    return result


def _vertical(y: float) -> str:
    return "bottom" if y > 0.5 else "top" if y < -0.5 else "center"
