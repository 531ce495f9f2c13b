"""The page: every table and figure with those of the paper, and the causes of differences."""

from __future__ import annotations

from collections import Counter

from ..results import Cell, Results, Row
from .causes import Causes
from .columns import columns
from .document import Block, Grid, Heading, Items, Paragraph
from .pictures import FIGURES, figure
from .prose import paragraphs, prose
from .studies import SHORT_ROWS, STUDIES, Extent, line_of
from .tables import (
    KINDS,
    best_table,
    differences_table,
    excess_table,
    pure_table,
    real_in_short,
    real_tables,
    simulation_table,
)


def blocks(names: list[str], extent: Extent, results: Results) -> list[Block]:
    """The page of some tables and figures, with the summaries first."""
    cells = {name: list(STUDIES[name](extent)) for name in names}
    short, found = _tables(cells, extent, results)
    for name in names:
        if name in FIGURES:
            found += figure(name, cells[name], results, extent)
    page: list[Block] = [Heading("The paper's tables and figures, computed again", 1)]
    page += prose("introduction")
    if extent.short:
        page.append(Paragraph(_shortened()))
    if short:
        page += [Heading("In short"), Items(short)]
    return [*page, *found, Heading("What was run"), *prose("methods"), *_code(cells, results)]


def _code(cells: dict[str, list[Cell]], results: Results) -> list[Block]:
    """The code behind the cells, and the methods whose parameters have changed since."""
    counts = {name: Counter(r["code"] for r in results.rows(own)) for name, own in cells.items()}
    codes = list(dict.fromkeys(code for count in counts.values() for code in count))
    rows = [[name, *(str(count[code] or "") for code in codes)] for name, count in counts.items()]
    every = [cell for own in cells.values() for cell in own]
    older = [line_of(cell) for cell in every if _is_older(cell, results.row(cell))]
    blocks: list[Block] = [Heading("The code"), *prose("code"), Grid(["", *codes], rows)]
    if older:
        told = f"{paragraphs('older')[0]} {'; '.join(dict.fromkeys(older))}."
        blocks.append(Paragraph(told))
    return blocks


def _is_older(cell: Cell, row: Row | None) -> bool:
    return row is not None and row.get("settings") != cell.fingerprint


def _tables(
    cells: dict[str, list[Cell]], extent: Extent, results: Results
) -> tuple[list[str], list[Block]]:
    """The summaries of the tables, and the tables."""
    columns_of = {name: columns(own, results) for name, own in cells.items() if name not in FIGURES}
    simulated = {name: own for name, own in columns_of.items() if name in KINDS}
    every = {source: column for own in simulated.values() for source, column in own.items()}
    short: list[str] = []
    found: list[Block] = []
    for name, own in simulated.items():
        found += simulation_table(name, own)
    if every:
        text, table = excess_table(every)
        short.append(text)
        found += table
    if "pure" in columns_of:
        found += pure_table(columns_of["pure"])
    if "table3" in columns_of:
        short.append(real_in_short(columns_of["table3"]))
        found += real_tables(columns_of["table3"], extent)
        every |= columns_of["table3"]
    if every:
        text, table = best_table(every)
        short.append(text)
        causes = Causes(columns_of.get("causes", {}))
        found += table + causes.blocks() + differences_table(every, causes)
    return short, found


def _shortened() -> str:
    return (
        f"**This is the short form**: 1 repeat, simulations up to N 500 and p 500, real tables cut "
        f'to {SHORT_ROWS} rows ("subsampled"), one value of what rivals tune, fewer steps to the '
        f"letter. It shows that everything runs; its numbers are not the study's."
    )
