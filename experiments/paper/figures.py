"""The paper's figures from the rows of their cells, as SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from metricboost.inspection.displays._drawing import COLOURS, pyplot

from ..results import Row, mean_and_error, measured

#: method or source to its rows
Grouped = dict[str, list[Row]]


def drawn(figure: Any) -> str:
    """A figure as SVG. The same numbers give the same text."""
    plt = pyplot()
    text = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "metricboost", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def tilted_plane(row: Row) -> str:
    """Figure 1: the rows in their plane, and on the learned surface."""
    figure = pyplot().figure(figsize=(10, 4.6), layout="constrained")
    points, classes = np.array(row["points"]), np.array(row["classes"])
    before = figure.add_subplot(1, 2, 1, projection="3d")
    _points(before, points, classes)
    before.set(title="before", xlabel="x1", ylabel="x2", zlabel="x3")
    after = figure.add_subplot(1, 2, 2, projection="3d")
    _surface(after, row["sides"], row["surface"])
    heights = np.array(row["heights"])
    _points(after, np.column_stack([points[:, :2], heights]), classes)
    after.set(title="after", xlabel="x1", ylabel="x2", zlabel="z")
    return drawn(figure)


def surfaces(rows: Grouped) -> str:
    """Figure 2: for every simulation, the surfaces after the first, middle and last step."""
    figure = pyplot().figure(figsize=(12, 3.6 * len(rows)), layout="constrained")
    for i, (source, found) in enumerate(rows.items()):
        row = found[0]
        flat = figure.add_subplot(len(rows), 4, 4 * i + 1)
        _points(flat, np.array(row["points"]), np.array(row["classes"]))
        flat.set(title=source.split(",")[0], xlabel="first column", ylabel="second column")
        flat.set_aspect("equal")
        for j, (place, step) in enumerate(zip(("first", "middle", "last"), row["steps"])):
            ax = figure.add_subplot(len(rows), 4, 4 * i + j + 2, projection="3d")
            _surface(ax, row["sides"], row[place])
            ax.set(title=f"{place} step ({step})")
            ax.tick_params(labelsize=6)
    return drawn(figure)


def _points(ax: Any, places: Any, classes: Any) -> None:
    for code, marker in enumerate("o^"):
        chosen = places[classes == code]
        ax.scatter(*chosen.T, s=10, marker=marker, color=COLOURS[code], label=f"class {code}")


def _surface(ax: Any, sides: Sequence[float], heights: Sequence[Sequence[float]]) -> None:
    a, b = np.meshgrid(sides, sides, indexing="ij")
    ax.plot_surface(
        a, b, np.array(heights), cmap="viridis", alpha=0.6, linewidth=0.2, edgecolor="0.3"
    )


def selection_and_time(tables: dict[str, Grouped], shape: dict[str, int]) -> str:
    """Figure 3: the share of the variables each method uses, and the seconds of one fit."""
    methods = [name for name in next(iter(tables.values())) if name not in ("kNN", "LightGBM")]
    figure, axes = pyplot().subplots(2, 1, figsize=(11, 8), layout="constrained", sharex=True)
    width = 0.8 / len(tables)
    for i, (source, rows) in enumerate(tables.items()):
        places = np.arange(len(methods)) + (i - (len(tables) - 1) / 2) * width
        used = [mean_and_error(measured(rows[m], "variables").values())[0] for m in methods]
        share = 100 * np.array(used) / shape[source]
        axes[0].bar(places, share, width, color=COLOURS[i], label=source)
        terms = [_share_of_candidates(rows[m]) for m in methods]
        axes[0].plot(places, terms, "_", color="black", markersize=10)
        seconds = [_one_fit(rows[m]) for m in methods]
        axes[1].bar(places, seconds, width, color=COLOURS[i])
    axes[0].plot([], [], "_", color="black", label="terms among the candidates at the stop")
    axes[0].set(ylabel="variables used, % of p", ylim=(0, 105))
    figure.legend(loc="outside upper center", ncols=4)
    axes[1].set(ylabel="seconds of one fit", yscale="log")
    axes[1].set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    return drawn(figure)


def _share_of_candidates(rows: list[Row]) -> float:
    """The share as the paper counts it: selected terms among the candidates at the stop."""
    shares = [100 * row["terms"] / row["candidates"] for row in rows if "candidates" in row]
    return float(np.mean(shares)) if shares else np.nan


def _one_fit(rows: list[Row]) -> float:
    seconds = [row.get("one_fit_seconds", row.get("cpu_seconds")) for row in rows]
    return float(np.mean([value for value in seconds if value is not None] or [np.nan]))


def sensitivity(rows: Grouped) -> str:
    """Figure 4: errors against the refresh frequency, and against eta for every rho."""
    figure, axes = pyplot().subplots(2, 2, figsize=(10, 7.5), layout="constrained", sharey="row")
    refreshes = [name for name in rows if name.startswith("refresh")]
    sparsities = list(dict.fromkeys(n.split(",")[0] for n in rows if n.startswith("rho")))
    for column, classifier in enumerate(("3-NN", "margin")):
        ax = axes[0, column]
        for style, part in (("--", "training"), ("-", "validation")):
            _line(ax, refreshes, rows, f"{part}, {classifier}", style, COLOURS[0], part)
        labels = [name.removeprefix("refresh ") for name in refreshes]
        ax.set_xticks(range(len(labels)), labels)
        ax.set(title=classifier, xlabel="steps between refreshes", ylabel="error")
        ax.legend(fontsize=8, handlelength=3)
        ax = axes[1, column]
        for i, rho in enumerate(sparsities):
            names = [name for name in rows if name.startswith(f"{rho},")]
            for style, part in (("--", "training"), ("-", "validation")):
                _line(ax, names, rows, f"{part}, {classifier}", style, COLOURS[i], f"{rho}, {part}")
        labels = [name.split("eta ")[1] for name in names]
        ax.set_xticks(range(len(labels)), labels)
        ax.set(xlabel="bagging fraction eta", ylabel="error")
        ax.legend(fontsize=7, ncols=3, loc="upper center", handlelength=3)
    axes[1, 0].set_ylim(0, 1.2 * axes[1, 0].get_ylim()[1])  # room for the legends
    return drawn(figure)


def _line(
    ax: Any, names: list[str], rows: Grouped, key: str, style: str, colour: str, label: str
) -> None:
    found = [mean_and_error(row[key][0] for row in rows[name]) for name in names]
    means, errors = (np.array(values) for values in zip(*found))
    errors = np.nan_to_num(errors)
    ax.errorbar(range(len(names)), means, errors, fmt=style, color=colour, label=label, marker=".")


def classifiers(rows: Grouped) -> str:
    """Figure 5: validation errors of 3-NN and of the margin classifier over k."""
    figure, axes = pyplot().subplots(
        1, len(rows), figsize=(10, 4), layout="constrained", sharey=True
    )
    for ax, (name, found) in zip(np.atleast_1d(axes), rows.items()):
        for i, classifier in enumerate(("3-NN", "margin")):
            errors = np.array([row[f"validation, {classifier}"] for row in found])
            spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0
            label = "kNN" if classifier == "3-NN" else "margin classifier"
            ax.errorbar(
                found[0]["ks"],
                errors.mean(axis=0),
                spread,
                marker=".",
                color=COLOURS[i],
                label=label,
            )
        ax.set(title=name, xlabel="k", ylabel="validation error")
        ax.legend()
    return drawn(figure)


def paths(rows: dict[str, Grouped]) -> str:
    """Figure 6: loss, complexity and errors against the step, one column for every source."""
    shape = (3, len(rows))
    figure, axes = pyplot().subplots(*shape, figsize=(11, 8), layout="constrained", squeeze=False)
    for column, (source, methods) in enumerate(rows.items()):
        for i, (name, found) in enumerate(methods.items()):
            for row in found:
                _path_lines(axes[:, column], row, COLOURS[i], name if row is found[0] else None)
        axes[0, column].set(title=source, ylabel="loss a row")
        axes[1, column].set(ylabel="complexity")
        axes[2, column].set(ylabel="error of 3-NN", xlabel="accepted steps m")
        axes[0, column].legend(fontsize=8)
    return drawn(figure)


def _path_lines(axes: Any, row: Row, colour: str, label: str | None) -> None:
    style = {"color": colour, "linewidth": 0.9}
    axes[0].plot(row["step"], row["loss"], label=label, **style)
    axes[1].plot(row["step"], row["complexity"], **style)
    axes[2].plot(row["step"], row["test"], **style)
    axes[2].plot(row["step"], row["training"], linestyle=":", **style)
