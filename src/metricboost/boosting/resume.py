"""Going on from a path that is known: its steps again, without the search for them.

Bags and panels are drawn from the attempt's number, so what a step needs of those before it are
the candidates, the embedding, the margins and the neighbours. Neighbours are searched once, as of
the last refresh. All of it has the bits that it would have had.
"""

from __future__ import annotations

from ..engines.base import NeighborLists
from ..errors import CheckpointError
from ..model.path import Path
from .selected import Selected
from .terms import Candidates


def follow(
    known: Path,
    candidates: Candidates,
    selected: Selected,
    lists: NeighborLists,
    to_go_on: bool,
) -> None:
    """Take the steps of a known path. The rows take part only if the path is to go on."""
    rows = candidates.rows
    refreshes = [m for m, step in enumerate(known.steps) if step.refreshed]
    last = refreshes[-1] if refreshes else -1
    if last < 0 and to_go_on:
        rows.refresh(lists, len(selected))
    for m, step in enumerate(known.steps):
        if not len(step.support) or step.support.max() >= len(candidates):
            raise CheckpointError("The checkpoint has steps over terms that are no candidates.")
        if to_go_on:
            rows.follow(candidates.terms(step.support), step.xi, step.weight, m > last)
        candidates.expand(step.support.tolist(), selected.add(step.support))
        if to_go_on and m == last:
            rows.refresh(lists, len(selected))
        elif to_go_on and step.refreshed:
            rows.rotate(len(selected))
