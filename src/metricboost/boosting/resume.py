"""Continuation of a known path, for example from a checkpoint.

The known steps are applied to the state again, without computing their directions and weights. Bags
and panels depend only on the number of the attempt. The state before a new step therefore consists
of the candidates, the embedding, the margins and the neighbours. Neighbours are searched for only
once, at the last refresh of the known path. The continued path is bit for bit equal to the path of
an uninterrupted fit.
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
    """Apply the steps of a known path.

    If boosting does not continue after the path (``to_go_on`` is false), only the candidates and
    the selected terms are updated.
    """
    refreshes = [m for m, step in enumerate(known.steps) if step.refreshed]
    last = refreshes[-1] if refreshes else -1
    if last < 0 and to_go_on:
        state.refresh(lists, len(selected))
    for m, step in enumerate(known.steps):
        if not len(step.support) or step.support.max() >= len(candidates):
            raise CheckpointError(
                f"Step {m + 1} of the checkpoint has terms that are not candidates of this fit. "
                "Delete the checkpoint and start the fit again."
            )
        if to_go_on:
            state.take_known(candidates.terms(step.support), step.xi, step.weight, m > last)
        candidates.expand(step.support.tolist(), selected.add(step.support))
        if to_go_on and m == last:
            state.refresh(lists, len(selected))
        elif to_go_on and step.refreshed:
            state.rotate(len(selected))
