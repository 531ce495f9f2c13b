"""Small charts as SVG: they scale, print, follow the page's colours and need no script.

Every chart has a title and a description for those who cannot see it; the tables beside them say
the same in numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

SIZE = 320
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40
#: Classes have a colour and a dash each (Okabe and Ito's colours, from the style sheet).
N_COLOURS = 8
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "12 4", "4 1", "10 2 2 2")


def unit_chart(title: str, description: str, axes: tuple[str, str], inner: str) -> str:
    """Axes from 0 to 1 in both directions, with the diagonal."""
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


def roc_chart(curves: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    lines = "".join(_curve(curve, len(curves) > 1) for curve in curves)
    areas = "; ".join(f"{names[curve['class']]}: area {curve['auc']:.3f}" for curve in curves)
    return unit_chart(
        "ROC curve", f"The share recognised against the share of false alarms. {areas}",
        ("false alarms", "recognised"), lines,
    )  # fmt: skip


def _curve(curve: dict[str, Any], several: bool) -> str:
    points = " ".join(f"{_x(a)},{_y(b)}" for a, b in curve["points"])
    number = curve["class"] % N_COLOURS if several else 1
    dash = DASHES[number] if several else ""
    return f'<polyline class="curve colour{number}" stroke-dasharray="{dash}" points="{points}"/>'


def calibration_chart(bins: Sequence[dict[str, float]]) -> str:
    said = " ".join(f"{_x(part['said'])},{_y(part['true'])}" for part in bins)
    marks = "".join(_mark(part) for part in bins)
    worst = max((abs(part["said"] - part["true"]) for part in bins), default=0.0)
    return unit_chart(
        "Calibration", f"What was said against what came true; apart by {worst:.2f} at most",
        ("probability said", "share that came true"),
        f'<polyline class="curve colour1" points="{said}"/>{marks}',
    )  # fmt: skip


def _mark(part: dict[str, float]) -> str:
    x = _x(part["said"])
    return (
        f'<line class="error colour1" x1="{x}" y1="{_y(part["low"])}" x2="{x}" '
        f'y2="{_y(part["high"])}"/><circle class="mark" cx="{x}" cy="{_y(part["true"])}" r="4"/>'
    )


def network_chart(links: Sequence[Any], variables: Sequence[Any], most: int = 24) -> str:
    """Variables on a circle, lines between those that interact; both as heavy as their shares."""
    shown = list(links)[:most]
    names = _around(shown)
    share = {variable.name: variable.share for variable in variables}
    width, radius = 560, 60 + 4 * min(len(names), 25)
    flat = len(names) == 2  # two ends of a line need no circle
    height = 60 if flat else 2 * radius + 60
    place = {
        name: (width / 2 + radius * math.cos(angle), height / 2 + radius * math.sin(angle), angle)
        for name, angle in ((name, 2 * math.pi * i / len(names)) for i, name in enumerate(names))
    }
    largest = shown[0].share
    lines = "".join(
        f'<line class="link" x1="{place[link.a][0]:.1f}" y1="{place[link.a][1]:.1f}" '
        f'x2="{place[link.b][0]:.1f}" y2="{place[link.b][1]:.1f}" '
        f'stroke-width="{1 + 7 * link.share / largest:.1f}"/>'
        for link in shown
    )
    nodes = "".join(_node(name, share.get(name, 0.0), *place[name]) for name in names)
    said = "; ".join(f"{link.a} with {link.b}: {link.share:.1%}" for link in shown[:8])
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" class="chart network">'
        f"<title>The network of interactions</title><desc>{escape(said)}</desc>{lines}{nodes}</svg>"
    )


def _around(links: Sequence[Any]) -> list[str]:
    """An order in which those that interact most sit side by side: heavy links are laid first."""
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


def _node(name: str, share: float, x: float, y: float, angle: float) -> str:
    radius = 4 + 12 * math.sqrt(min(share, 1.0))
    right = math.cos(angle) >= 0
    dx, dy = (radius + 4) * math.cos(angle), (radius + 4) * math.sin(angle)
    text = name if len(name) <= 22 else f"{name[:20]}…"
    return (
        f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        f'<text x="{x + dx:.1f}" y="{y + dy + 4:.1f}" '
        f'text-anchor="{"start" if right else "end"}">{escape(text)}</text>'
    )
