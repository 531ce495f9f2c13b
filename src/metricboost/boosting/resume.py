"""Going on from a known path: its steps are taken again, without the search for them.

Bags and panels are drawn from the number of the attempt. So all that a step needs of the steps
before it are the candidates, the embedding, the margins and the neighbours. The neighbours are
searched for once, as of the last refresh. Every number has the bits that it would have had.
"""

from __future__ import annotations

from ..engines import NeighborLists
from ..errors import CheckpointError
from ..model import Path
from .selected import Selected
from .state import State
from .terms import Candidates


def follow(
    known: Path,
    state: State,
    candidates: Candidates,
    selected: Selected,
    lists: NeighborLists,
    to_go_on: bool,
) -> None:
    """Take the steps of a known path. The state is kept up only if the path is to go on."""
    refreshes = [m for m, step in enumerate(known.steps) if step.refreshed]
    last = refreshes[-1] if refreshes else -1
    if last < 0 and to_go_on:
        state.refresh(lists, len(selected))
    for m, step in enumerate(known.steps):
        if not len(step.support) or step.support.max() >= len(candidates):
            raise CheckpointError("The checkpoint has steps over terms that are no candidates.")
        if to_go_on:
            state.take_known(candidates.terms(step.support), step.xi, step.weight, m > last)
        candidates.expand(step.support.tolist(), selected.add(step.support))
        if to_go_on and m == last:
            state.refresh(lists, len(selected))
        elif to_go_on and step.refreshed:
            state.rotate(len(selected))
