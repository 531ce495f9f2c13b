"""Pruning: which variables stay, once the boosting is over.

Every step learns from its own bag of rows. A column that matters is chosen again and again; one
that fits the noise of a bag is not, even where the out-of-bag gate let it pass once. So by default
the variables that only one accepted step ever used are dropped, with all terms made of them. It
needs no validation rows and no further fit.

Where many columns say the same, steps may choose another one each time, and none recurs. So the
pruning is taken back where it raises the leave-one-out error on the training rows by more than
three standard errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .._typing import Float, Index
from ..engines import Engine
from ..model import Factor, Step, Term
from .leave_one_out import NEIGHBOR_CHOICES, leave_one_out_errors

#: Accepted steps that must have used a variable for it to stay.
RECURRENCES = 2
#: Standard errors by which the leave-one-out error may rise before pruning counts as harm.
HARM = 3.0


def recurring(steps: Sequence[Step], terms: Sequence[Term]) -> set[int]:
    """The columns that at least ``RECURRENCES`` steps used."""
    uses: Counter[int] = Counter()
    for step in steps:
        uses.update({column for t in step.support for column in terms[t]})
    return {column for column, count in uses.items() if count >= RECURRENCES}


def heaviest(factor: Factor, terms: Sequence[Term], size: int) -> set[int]:
    """The ``size`` columns with the largest share of the metric."""
    share: dict[int, float] = {}
    for t, weight in zip(factor.index, factor.weights()):
        columns = set(terms[t])
        for column in columns:
            share[column] = share.get(column, 0.0) + weight / len(columns)
    return set(sorted(share, key=lambda column: (-share[column], column))[:size])


def keep_only(factor: Factor, terms: Sequence[Term], columns: set[int]) -> Factor:
    """W on the terms made of the given columns alone; unchanged where none is."""
    keep = np.array([set(terms[t]) <= columns for t in factor.index], dtype=bool)
    return factor.restricted(keep).reduced() if keep.any() else factor


def harms(engine: Engine, before: Float, after: Float, labels: Index) -> bool:
    """Whether the rows embedded as ``after`` are classified clearly worse than as ``before``."""
    errors = []
    for embedding in (before, after):
        wrong = leave_one_out_errors(engine, embedding, labels, NEIGHBOR_CHOICES)
        errors.append(wrong[:, np.argmin(wrong.mean(axis=0))])
    rise = errors[1] - errors[0]
    return bool(rise.mean() > HARM * rise.std() / np.sqrt(len(rise)))
