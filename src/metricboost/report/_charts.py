"""Small charts as SVG: they scale, print, follow the colours of the page and need no script.

Every chart has a title and a description for readers who cannot see it. The tables beside the
charts have the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..inspection import Link, VariableShare
from ._quality import Bin, RocCurve

SIZE = 320
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40
#: Classes have a colour (Okabe and Ito's colours, from the style sheet) and a dash pattern each.
N_COLOURS = 8
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "12 4", "4 1", "10 2 2 2")
#: The longest name beside a node of the network, in letters.
LONGEST = 22
#: Width of the network chart, and number of links in its description.
NETWORK_WIDTH = 560
DESCRIBED_LINKS = 8


def unit_chart(title: str, description: str, axes: tuple[str, str], inner: str) -> str:
    """Axes from 0 to 1 in both directions, with the diagonal.

    Parameters
    ----------
    title, description : str
    axes : (str, str)
        The labels of the axes.
    inner : str
        What is drawn, as SVG.
    """
    ticks = "".join(_tick(value) for value in (0, 0.25, 0.5, 0.75, 1))
    x, y = axes
    middle = (LEFT + SIZE - RIGHT) / 2
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" role="img" class="chart">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{ticks}"
        f'<line class="diagonal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>{inner}'
        f'<text x="{middle}" y="{SIZE - 6}" text-anchor="middle">{escape(x)}</text>'
        f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{escape(y)}'
        "</text></svg>"
    )


def _tick(value: float) -> str:
    label = f"{value:g}"
    return (
        f'<line class="grid" x1="{_x(value)}" y1="{_y(0)}" x2="{_x(value)}" y2="{_y(1)}"/>'
        f'<line class="grid" x1="{_x(0)}" y1="{_y(value)}" x2="{_x(1)}" y2="{_y(value)}"/>'
        f'<text class="tick" x="{_x(value)}" y="{_y(0) + 14}" text-anchor="middle">{label}</text>'
        f'<text class="tick" x="{_x(0) - 6}" y="{_y(value) + 4}" text-anchor="end">{label}</text>'
    )


def _x(value: float) -> float:
    return round(LEFT + value * (SIZE - LEFT - RIGHT), 2)


def _y(value: float) -> float:
    return round(SIZE - BOTTOM - value * (SIZE - TOP - BOTTOM), 2)


def roc_chart(curves: Sequence[RocCurve], names: Sequence[str]) -> str:
    """ROC curves.

    Parameters
    ----------
    curves : sequence of RocCurve
    names : sequence of str
        The names of all classes.
    """
    lines = "".join(_curve(curve, len(curves) > 1) for curve in curves)
    areas = "; ".join(f"{names[curve.code]}: area {curve.area:.3f}" for curve in curves)
    return unit_chart(
        "ROC curve", f"True positive rate against false positive rate. {areas}",
        ("false positive rate", "true positive rate"), lines,
    )  # fmt: skip


def _curve(curve: RocCurve, several: bool) -> str:
    points = " ".join(f"{_x(a)},{_y(b)}" for a, b in curve.points)
    number = curve.code % N_COLOURS if several else 1
    dash = DASHES[number] if several else ""
    return f'<polyline class="curve colour{number}" stroke-dasharray="{dash}" points="{points}"/>'


def calibration_chart(bins: Sequence[Bin]) -> str:
    """The calibration curve, with the intervals of the observed frequencies."""
    line = " ".join(f"{_x(part.predicted)},{_y(part.observed)}" for part in bins)
    marks = "".join(_mark(part) for part in bins)
    worst = max((abs(part.predicted - part.observed) for part in bins), default=0.0)
    return unit_chart(
        "Calibration",
        "Predicted probability against observed frequency. "
        f"Largest deviation {worst:.2f}.",
        ("predicted probability", "observed frequency"),
        f'<polyline class="curve colour1" points="{line}"/>{marks}',
    )  # fmt: skip


def _mark(part: Bin) -> str:
    x = _x(part.predicted)
    return (
        f'<line class="error colour1" x1="{x}" y1="{_y(part.low)}" x2="{x}" '
        f'y2="{_y(part.high)}"/><circle class="mark" cx="{x}" cy="{_y(part.observed)}" r="4"/>'
    )


def network_chart(links: Sequence[Link], variables: Sequence[VariableShare]) -> str:
    """Variables on a circle, with lines between the variables that interact.

    Lines are as wide as the shares of the links, and nodes as large as the shares of the variables.

    Parameters
    ----------
    links : sequence of Link
        At least one, in order of decreasing share.
    variables : sequence of VariableShare
        All variables of the metric.
    """
    names = _around(links)
    share = {variable.name: variable.share for variable in variables}
    radius = 60 + 4 * min(len(names), 25)
    # Two variables lie on a line and need no height.
    height = 60 if len(names) == 2 else 2 * radius + 60
    angles = {name: 2 * math.pi * i / len(names) for i, name in enumerate(names)}
    place = {
        name: (
            NETWORK_WIDTH / 2 + radius * math.cos(angle),
            height / 2 + radius * math.sin(angle),
        )
        for name, angle in angles.items()
    }
    widest = links[0].share
    lines = "".join(_link(place[k.a], place[k.b], 1 + 7 * k.share / widest) for k in links)
    nodes = "".join(_node(name, share.get(name, 0.0), place[name], angles[name]) for name in names)
    description = "; ".join(
        f"{link.a} with {link.b}: {link.share:.1%}" for link in links[:DESCRIBED_LINKS]
    )
    return (
        f'<svg viewBox="0 0 {NETWORK_WIDTH} {height}" role="img" class="chart network">'
        f"<title>The network of interactions</title><desc>{escape(description)}</desc>"
        f"{lines}{nodes}</svg>"
    )


def _around(links: Sequence[Link]) -> list[str]:
    """An order around the circle in which variables that interact strongly are neighbours.

    The links are visited in order of decreasing share, and each one extends a chain of variables.
    """
    chains: list[list[str]] = []
    for link in links:
        a, b = (next((c for c in chains if name in c), None) for name in (link.a, link.b))
        if a is None and b is None:
            chains.append([link.a, link.b])
        elif a is None and b is not None:
            b.insert(0 if b[0] == link.b else len(b), link.a)
        elif b is None and a is not None:
            a.insert(0 if a[0] == link.a else len(a), link.b)
    return [name for chain in chains for name in chain]


def _link(start: tuple[float, float], end: tuple[float, float], width: float) -> str:
    return (
        f'<line class="link" x1="{start[0]:.1f}" y1="{start[1]:.1f}" '
        f'x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke-width="{width:.1f}"/>'
    )


def _node(name: str, share: float, place: tuple[float, float], angle: float) -> str:
    x, y = place
    radius = 4 + 12 * math.sqrt(min(share, 1.0))
    anchor = "start" if math.cos(angle) >= 0 else "end"
    dx, dy = (radius + 4) * math.cos(angle), (radius + 4) * math.sin(angle)
    text = name if len(name) <= LONGEST else f"{name[: LONGEST - 2]}…"
    return (
        f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        f'<text x="{x + dx:.1f}" y="{y + dy + 4:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )
