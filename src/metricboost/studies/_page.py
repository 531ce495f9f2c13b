"""The page: every table and figure beside what the paper has, and what the differences mean."""

from __future__ import annotations

from ._causes import Causes
from ._columns import columns
from ._document import Block, Heading, Paragraph
from ._experiments import EXPERIMENTS, SHORT_ROWS, Extent
from ._pictures import FIGURES, figure
from ._prose import prose
from ._results import Results
from ._tables import (
    KINDS,
    best_table,
    differences_table,
    excess_table,
    pure_table,
    real_tables,
    simulation_table,
)


def blocks(names: list[str], extent: Extent, results: Results) -> list[Block]:
    """The page of some tables and figures."""
    found: list[Block] = [Heading("The paper's tables and figures, computed again", 1)]
    found += prose("introduction")
    if extent.short:
        found.append(Paragraph(_shortened()))
    cells = {name: list(EXPERIMENTS[name](extent)) for name in names}
    simulated = [name for name in names if name in KINDS]
    for name in simulated:
        found += simulation_table(name, columns(cells[name], results))
    every = {s: c for name in simulated for s, c in columns(cells[name], results).items()}
    if every:
        found += excess_table(every)
    if "pure" in names:
        found += pure_table(columns(cells["pure"], results))
    if "table3" in names:
        real = columns(cells["table3"], results)
        found += real_tables(real, extent)
        every |= real
    if every:
        causes = Causes(columns(cells.get("causes", []), results))
        found += best_table(every) + causes.blocks() + differences_table(every, causes)
    for name in names:
        if name in FIGURES:
            found += figure(name, cells[name], results, extent)
    return [*found, Heading("What was run"), *prose("methods")]


def _shortened() -> str:
    return (
        f"**This is the short form**: 1 repeat, simulations up to N 500 and p 500, real tables cut "
        f'to {SHORT_ROWS} rows ("subsampled"), one value of what rivals tune, fewer steps to the '
        f"letter. It shows that everything runs; its numbers are not the study's."
    )
