"""``InteractionDisplay``: the network of interacting variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import Float
from .._terms import Link, VariableShare
from ._circle import circle_order
from ._drawing import COLOURS, NOTHING_LEARNED, axes, fitting, percent
from ._given import check_count, explained

#: The most variables that are drawn if no variables interact.
MOST_ALONE = 20
#: With this many nodes or more, the names are written along the radius, because horizontal names
#: would overlap.
CROWDED = 13
#: The approximate width of a letter as a share of the font's size.
LETTER = 0.6
#: The longest name on the circle, in letters.
LONGEST = 22
#: The radius of the circle in a new figure, in inches.
RADIUS = 2.1
#: The least width of a new figure, in inches, so that the title fits.
NARROWEST = 5.0


class InteractionDisplay:
    """Variables on a circle, with lines between the variables that interact.

    The wider a line, the larger the share of the metric's weight in terms with both variables. The
    larger a node, the larger the share of its variable. The order around the circle is chosen so
    that few lines cross.

    Parameters
    ----------
    links : list of Link
        The links that are drawn, in order of decreasing share.
    variables : list of VariableShare
        The variables that are drawn, in their order on the circle.
    n_links, n_used : int
        The numbers of links of the metric and of variables that the metric uses.
    start_share : float, optional
        The share of the plain distance on all columns. None if it is unknown.

    Attributes
    ----------
    positions : ndarray of shape (n_variables, 2)
        The places of the variables.
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
        *,
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
        cls, estimator: Any, *, max_links: int = 30, ax: Any = None, **options: Any
    ) -> InteractionDisplay:
        """Draw the interactions of a metric or a fitted estimator.

        Parameters
        ----------
        estimator : estimator or SparseMetric
            A fitted SDist, SDistClassifier, SDistClassifierCV, TableClassifier, or one of
            ``metricboost.baselines``.
        max_links : int, default=30
            Number of links to draw: those with the largest shares.
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        InteractionDisplay
        """
        most = check_count("max_links", max_links)
        found = explained(estimator)
        links = found.links[:most]
        display = cls(
            links=links,
            variables=_ordered(found.variables, links),
            n_links=len(found.links),
            n_used=len(found.variables),
            start_share=found.start_share,
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> InteractionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default a new figure is made.
        **options
            For the nodes, to ``Axes.scatter``.

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
        """The lower left and the upper right corner of the picture, in units of the radius."""
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
        for link in reversed(self.links):  # the widest line is drawn last, on top of the others
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
    """The space of the picture.

    Attributes
    ----------
    radius : float
        The radius of the circle in inches.
    font : float
        The size of the font in points.
    letters : int
        The most letters of a name.
    """

    radius: float
    font: float
    letters: int

    @classmethod
    def of(cls, n_nodes: int, ax: Any) -> _Room:
        """The space in given axes, or in a new figure that is as large as the picture needs.

        Parameters
        ----------
        n_nodes : int
        ax : matplotlib Axes or None
        """
        font = float(np.clip(420 / max(n_nodes, 1), 6, 10))
        if ax is None:
            return cls(RADIUS, font, LONGEST)
        size = float(ax.get_window_extent().size.min() / ax.figure.dpi)
        font *= float(np.clip(size / 5, 0.7, 1))
        radius = size / 4.2
        letters = int((size / 2 - 1.2 * radius) / (LETTER * font / 72))
        return cls(radius, font, min(max(letters, 9), LONGEST))


def _ordered(variables: list[VariableShare], links: list[Link]) -> list[VariableShare]:
    """The variables of the links, in their order on the circle.

    The variable with the largest share comes first, which is the top of the circle. If there are no
    links, these are the variables with the largest shares.
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
    """Places clockwise from the top. Two nodes stand side by side, so that their names fit."""
    start = np.pi if n_nodes == 2 else np.pi / 2
    angles = start - 2 * np.pi * np.arange(n_nodes) / max(n_nodes, 1)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _curve(a: Float, b: Float) -> Float:
    """A line from a to b that bends towards the centre, away from the nodes between a and b."""
    t = np.linspace(0, 1, 40)[:, None]
    middle = 0.55 * (a + b) / 2
    result: Float = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
    return result


def _vertical(y: float) -> str:
    return "bottom" if y > 0.5 else "top" if y < -0.5 else "center"
