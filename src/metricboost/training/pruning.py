"""Pruning: the choice of the variables that stay in the metric after boosting.

Each step learns from its own bag of rows. A column that separates the classes is chosen in many
steps. A column that fits the noise of a bag is chosen once, even if the out-of-bag gate accepted
this step. By default, the variables that only one accepted step used are dropped, with all terms
that contain them. This rule needs no validation rows and no further fit.

If many columns contain the same information, steps may choose a different one each time, so that no
column recurs. The pruning is therefore undone if it increases the leave-one-out error on the
training rows by more than three standard errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .._typing import Float, Index
from ..engines import Engine
from ..model import Factor, Step, Term
from .leave_one_out import NEIGHBOR_CHOICES, leave_one_out_errors

#: A variable stays if at least this number of accepted steps used it.
RECURRENCES = 2
#: Pruning is undone if the leave-one-out error rises by more than this number of standard errors.
HARM = 3.0


def recurring(steps: Sequence[Step], terms: Sequence[Term]) -> set[int]:
    """The columns that at least ``RECURRENCES`` steps used."""
    uses: Counter[int] = Counter()
    for step in steps:
        uses.update({column for t in step.support for column in terms[t]})
    return {column for column, count in uses.items() if count >= RECURRENCES}


def heaviest(factor: Factor, terms: Sequence[Term], size: int) -> set[int]:
    """The ``size`` columns with the largest weight. A term divides its weight among its columns."""
    share: dict[int, float] = {}
    for t, weight in zip(factor.index, factor.weights()):
        columns = set(terms[t])
        for column in columns:
            share[column] = share.get(column, 0.0) + weight / len(columns)
    return set(sorted(share, key=lambda column: (-share[column], column))[:size])


def keep_only(factor: Factor, terms: Sequence[Term], columns: set[int]) -> Factor:
    """W on the terms that contain only the given columns. Without such terms W is unchanged."""
    keep = np.array([set(terms[t]) <= columns for t in factor.index], dtype=bool)
    return factor.restricted(keep).reduced() if keep.any() else factor


def harms(engine: Engine, before: Float, after: Float, labels: Index) -> bool:
    """Whether rows are classified clearly worse in the embedding ``after`` than in ``before``."""
    errors = []
    for embedding in (before, after):
        wrong = leave_one_out_errors(engine, embedding, labels, NEIGHBOR_CHOICES)
        errors.append(wrong[:, np.argmin(wrong.mean(axis=0))])
    rise = errors[1] - errors[0]
    return bool(rise.mean() > HARM * rise.std() / np.sqrt(len(rise)))
