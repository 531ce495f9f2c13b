"""The positions of the rows of each fold under the plain distance, in tables with many columns.

If a table has more columns than rows, distances are computed in the span of the rows that a fold
keeps (``in_span``), which has fewer dimensions. All metrics of a fold that have a share of the
plain distance use the same span.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from .._typing import Data, Float
from ..model import Plain, SparseMetric, assembled
from ..model.readouts import in_span
from .learn import Fold


class PlainPlaces:
    """The positions for each fold over one table, computed when they are first needed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Fold, tuple[Float, Float]]] = {}
        self._locks: dict[int, Lock] = {}

    def of(self, fold: Fold, X: Data) -> tuple[Float, Float]:
        """The positions of the rows that a fold keeps, and of those that the fold leaves out.

        All calls have the same table.
        """
        with self._locks.setdefault(id(fold), Lock()):
            if id(fold) not in self._known:
                plain = _plain_metric(fold)
                places = in_span(plain.embedded(X, fold.kept), plain.embedded(X, fold.left_out))
                self._known[id(fold)] = fold, places
            return self._known[id(fold)][1]


def _plain_metric(fold: Fold) -> SparseMetric:
    """The plain distance: the scaled columns of the fold, each with the weight 1."""
    scaling, nothing = fold.learned.scaling, np.empty((0, 2))
    return assembled([], nothing, nothing, 1.0, 1.0, Plain(scaling.plain), scaling)
