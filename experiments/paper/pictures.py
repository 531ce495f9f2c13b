"""The figures of the page and their captions."""

from __future__ import annotations

from ..results import Cell, Results
from ..tables import REAL
from . import figures
from .columns import measured_rows
from .document import Block, Heading, Paragraph, Picture
from .studies import Extent


def _figure1(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    (row,) = next(iter(measured_rows(cells, results).values()))["sDist"]
    weights = ", ".join(f"x{i + 1} {value:.0%}" for i, value in enumerate(row["importances"]))
    caption = (
        "Figure 1. XOR of 200 rows on a tilted plane; x3 is a combination of x1 and x2. Right: the "
        "surface on which distances are taken, its height z the first principal component of "
        f"L φ(x). Importances: {weights}."
    )
    return [Heading("Figure 1"), Picture("figure1", figures.tilted_plane(row), caption)]


def _figure2(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = {source: methods["sDist"] for source, methods in measured_rows(cells, results).items()}
    caption = (
        "Figure 2. The first principal component of L φ(x) over the two informative of 50 "
        "columns. The other columns are at their means. The surfaces are those after the first, "
        "middle and last step: a parabola for the rings, and a saddle for the XOR."
    )
    return [Heading("Figure 2"), Picture("figure2", figures.surfaces(rows), caption)]


def _figure3(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    tables = measured_rows(cells, results)
    n_columns = {source: REAL[source].columns for source in tables}
    caption = (
        "Figure 3. Above: variables that each method uses, in percent of p. For sDist a dash marks "
        "the paper's count: selected terms among the candidates at the stop. Below: seconds of one "
        "fit."
    )
    picture = figures.selection_and_time(tables, n_columns)
    return [Heading("Figure 3"), Picture("figure3", picture, caption)]


def _figure4(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = measured_rows(cells, results)["Madelon"]
    repeats = min(len(found) for found in rows.values())
    caption = (
        f"Figure 4. Errors of sDist to the letter on Madelon, {_steps(cells)} steps, {repeats} "
        "repeats of five folds. Above: the number of steps between refreshes. Below: the bagging "
        "fraction and the sparsity."
    )
    return [Heading("Figure 4"), Picture("figure4", figures.sensitivity(rows), caption)]


def _steps(cells: list[Cell]) -> int:
    return int(cells[0].settings["max_iter"])


def _figure5(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    rows = measured_rows(cells, results)["Ionosphere"]
    repeats = min(len(found) for found in rows.values())
    caption = (
        "Figure 5. Errors of kNN and of the margin classifier under the same metrics on "
        f"Ionosphere, {repeats} repeats of five folds."
    )
    return [Heading("Figure 5"), Picture("figure5", figures.classifiers(rows), caption)]


def _figure6(cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    caption = (
        "Figure 6. Loss, complexity and error of 3-NN at the refreshed steps of the path, one line "
        f"for each of {extent.few()} repeats. The dotted error is that on the training rows, with "
        "each row left out. The other error is that on the test rows."
    )
    return [
        Heading("Figure 6"),
        Picture("figure6", figures.paths(measured_rows(cells, results)), caption),
    ]


FIGURES = {
    "figure1": _figure1,
    "figure2": _figure2,
    "figure3": _figure3,
    "figure4": _figure4,
    "figure5": _figure5,
    "figure6": _figure6,
}


def figure(name: str, cells: list[Cell], results: Results, extent: Extent) -> list[Block]:
    """A figure, or a note in its place if one of its curves has no result."""
    sources = measured_rows(cells, results).values()
    if all(rows for methods in sources for rows in methods.values()):
        return FIGURES[name](cells, results, extent)
    title = name.replace("figure", "Figure ")
    return [Heading(title), Paragraph("Not measured, or not all of it.")]
