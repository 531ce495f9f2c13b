"""Classes are numbers 0, 1, ..., K - 1, every one of them with rows."""

from __future__ import annotations

import numpy as np

from .._typing import Index


def members(labels: Index) -> list[Index]:
    """The rows of every class, in order."""
    return [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
