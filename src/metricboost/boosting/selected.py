"""The terms that the accepted steps have selected."""

from __future__ import annotations

from .._typing import Index


class Selected:
    """The terms selected so far, in the order of their first selection."""

    def __init__(self, start: Index) -> None:
        self._terms = dict.fromkeys(int(t) for t in start)

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, support: Index) -> list[int]:
        """Add the terms of a step, and return all selected terms."""
        self._terms.update(dict.fromkeys(int(t) for t in support))
        return list(self._terms)
