"""The rows of each class. Classes are numbered 0, 1, ..., K - 1, and every class has rows."""

from __future__ import annotations

import numpy as np

from .._typing import Index


def members(labels: Index) -> list[Index]:
    """Row numbers of each class, in increasing order."""
    return [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
