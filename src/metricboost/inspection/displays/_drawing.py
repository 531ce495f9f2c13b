"""What the displays share for drawing: matplotlib, axes, colours and texts that fit on axes."""

from __future__ import annotations

from typing import Any

#: Okabe and Ito's colours, which colour-blind readers can tell apart (without yellow, which is too
#: pale on white), and three of Paul Tol's colours.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
    "#882255", "#999933", "#332288",
)  # fmt: skip
#: The longest name of a variable and of a term on an axis, in letters. The attributes of a display
#: have the whole names.
LONGEST = 28
LONGEST_TERM = 34
NOTHING_LEARNED = "nothing was learned: the plain distance on all columns"


def pyplot() -> Any:
    """``matplotlib.pyplot``. It is imported only to draw, because matplotlib is optional."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "metricboost[plot]".'
        ) from error
    return plt


def axes(ax: Any, width: float, height: float, **options: Any) -> Any:
    """The axes that were given, or the axes of a new figure.

    Parameters
    ----------
    ax : matplotlib Axes or None
    width, height : float
        The size of a new figure in inches.
    **options
        For the axes of a new figure.
    """
    plt = pyplot()
    if ax is not None:
        return ax
    size = (width, height)
    return plt.subplots(figsize=size, layout="constrained", subplot_kw=options)[1]


def make_room(ax: Any) -> None:
    """Move the labels of three-dimensional axes away from the numbers and from the figure's edge.

    Parameters
    ----------
    ax : matplotlib Axes
        Of the projection "3d".
    """
    ax.set_box_aspect(None, zoom=0.88)
    ax.title.set_y(0.93)  # above the corners of the cube, there is much empty space
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.labelpad = 9


def fitting(name: Any, longest: int = LONGEST) -> str:
    """A name as a label: one line, without the middle of a long name, and with literal dollars.

    The middle is left out because the names of many columns mostly differ at the beginning or at
    the end.

    Parameters
    ----------
    name : object
    longest : int
        The most letters.
    """
    text = " ".join(str(name).split())
    if len(text) > longest:
        tail = longest // 2
        text = f"{text[: longest - tail - 1]}…{text[-tail:]}"
    return text.replace("$", r"\$")


def fitting_term(name: str) -> str:
    """The name of a term as a label. Each variable of the term keeps its beginning and its end."""
    parts = name.split("*")
    return "*".join(fitting(part, max(LONGEST_TERM // len(parts) - 1, 5)) for part in parts)


def percent(share: float) -> str:
    """A share in whole percent. Only a share of 0 reads as 0%, and only a share of 1 as 100%."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 - 1e-9 else f"{share:.0%}"
