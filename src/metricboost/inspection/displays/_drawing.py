"""What the displays share: matplotlib where it is installed, axes, and words that fit on them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...model import Model, SparseMetric

#: Okabe and Ito's colours, which colour-blind readers tell apart (without yellow, too pale on
#: white), and three of Paul Tol's.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
    "#882255", "#999933", "#332288",
)  # fmt: skip
#: The longest text on an axis, in letters; the attributes of a display keep the whole names.
LONGEST = 28
LONGEST_TERM = 34
NOTHING_LEARNED = "nothing was learned: the plain distance on all columns"


def pyplot() -> Any:
    """``matplotlib.pyplot``; it is imported here only, because it is optional."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "metricboost[plot]".'
        ) from error
    return plt


def axes(ax: Any, width: float, height: float, **options: Any) -> Any:
    """The axes that were given, or those of a new figure of this size in inches."""
    plt = pyplot()
    if ax is not None:
        return ax
    size = (width, height)
    return plt.subplots(figsize=size, layout="constrained", subplot_kw=options)[1]


def roomy(ax: Any) -> None:
    """Three-dimensional axes whose labels neither touch their numbers nor the figure's edge."""
    ax.set_box_aspect(None, zoom=0.88)
    ax.title.set_y(0.93)  # the corners of the cube leave much room above it
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.labelpad = 9


def fitting(name: Any, longest: int = LONGEST) -> str:
    """A name as a label: in one line, without its middle where it is long, dollars as they are.

    The middle goes because names of many columns mostly differ at one of their ends.
    """
    text = " ".join(str(name).split())
    if len(text) > longest:
        tail = longest // 2
        text = f"{text[: longest - tail - 1]}…{text[-tail:]}"
    return text.replace("$", r"\$")


def fitting_term(name: str) -> str:
    """The name of a term as a label: each of its variables keeps its ends."""
    parts = name.split("*")
    return "*".join(fitting(part, max(LONGEST_TERM // len(parts) - 1, 5)) for part in parts)


def percent(share: float) -> str:
    """A share in whole percent; what is there never reads as 0%, a part never as all."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 - 1e-9 else f"{share:.0%}"


def check_model(model: Any) -> None:
    """Refuse an object without a metric, and an estimator that is not fitted."""
    if isinstance(model, SparseMetric):
        return
    if hasattr(model, "pair_distance"):
        check_is_fitted(model)
    if not hasattr(model, "metric_"):
        raise TypeError(
            f"model is a {type(model).__name__}, but must be an SDist, SDistClassifier, "
            "SDistClassifierCV, SparseMetric or one of metricboost.baselines. Of a pipeline, give "
            "the last step; of a TableClassifier, its model_ and the rows as encoded(frame); of "
            "another estimator with components_, a ComponentsMetric of it."
        )


def fitted_model(model: Any, what: str) -> Model:
    """The fitted model of an estimator; the best one of a search.

    Parameters
    ----------
    model : object
        What a user gave to a display.
    what : str
        What the display needs, for the error about an object without it.
    """
    check_model(model)
    fitted = getattr(model, "model_", None)
    if fitted is None:
        advice = ": give the estimator it came from" if isinstance(model, SparseMetric) else ""
        raise TypeError(f"model is a {type(model).__name__}, which has no {what}{advice}.")
    best: Model = fitted.best
    return best


def metric_of(model: Any) -> SparseMetric:
    """The metric of a metric, or of a fitted estimator."""
    check_model(model)
    metric: SparseMetric = model if isinstance(model, SparseMetric) else model.metric_
    return metric


def check_count(name: str, value: Any, least: int = 1) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    return int(value)
