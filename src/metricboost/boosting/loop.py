"""Algorithm 1: sDist, boosted sparse non-linear metric learning.

The comments "1)", "2)" and "a" to "g" are the labels of the steps in the paper. Symbols: ``W`` is
the metric, ``xi`` the sparse unit vector of a step, ``w`` the weight of the step, and
``u_i = |r_i| = exp(-m_i)`` the weight of row i with margin ``m_i``. Arrays with one number per row
are kept in ``state.State``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index
from ..model import Factor, Path, Step
from .draws import Draws, MaxFeatures, nonzeros
from .forms import step_matrix
from .gate import trimmed
from .neighborhoods import Multiclass, training_lists
from .resume import follow
from .selected import Selected
from .sparse_eigen import sparse_eigenvector
from .state import State
from .terms import Candidates

#: The loop ends after PATIENCE rejected attempts in a row. If the attempts see random panels of the
#: candidates, it ends after PATIENCE_WITH_PANELS rejected attempts: a panel often has no candidate
#: that is worth a step. With ten rejections, rings with panels of the square root had an error of
#: 0.186 instead of 0.160.
PATIENCE, PATIENCE_WITH_PANELS = 10, 30


@dataclass(frozen=True)
class BoostingOptions:
    """Parameters of Algorithm 1, of the paper's practical remarks, and of the out-of-bag gate."""

    max_iter: int
    n_neighbors: int
    n_nonzero: int | float
    learning_rate: float
    subsample: float
    max_features: MaxFeatures
    refresh_every: int | None
    oob_gate: float | None
    seed: int
    multiclass: Multiclass = "common"


Watch = Callable[[int, Path], None]


def boost(
    candidates: Candidates,
    labels: Index,
    sample_weight: Float,
    start: Factor,
    options: BoostingOptions,
    watch: Watch | None = None,
    known: Path | None = None,
) -> Path:
    """Learn a metric step by step from the start metric.

    Parameters
    ----------
    candidates : Candidates
        The candidate terms over the table of the fit. Accepted steps add candidates.
    labels : ndarray of int
    sample_weight : ndarray
    start : Factor
        A factor of the start metric.
    options : BoostingOptions
    watch : callable, optional
        Called after every attempt with the number of the attempt and the path so far.
    known : Path, optional
        Accepted steps of an earlier, interrupted run of the same fit. Boosting continues after
        these steps.

    Returns
    -------
    Path
        The accepted steps.
    """
    table = candidates.table
    with table.engine.working(table.n_rows):
        return _boosted(candidates, labels, sample_weight, start, options, watch, known)


def _boosted(
    candidates: Candidates,
    labels: Index,
    sample_weight: Float,
    start: Factor,
    options: BoostingOptions,
    watch: Watch | None,
    known: Path | None,
) -> Path:
    lists = training_lists(labels, options.n_neighbors, options.multiclass)
    draws = Draws(options.seed, len(labels), options.subsample, options.max_features)
    gated = options.oob_gate is not None and draws.n_bag < len(labels)
    path, selected = Path(start), Selected(start.index)  # 1)
    if known is not None:
        path.steps, path.n_attempts = known.steps, known.n_attempts
    state = State(candidates.table, labels, sample_weight)
    state.embed(candidates.terms(start.index), start.matrix)
    patience = PATIENCE if options.max_features is None else PATIENCE_WITH_PANELS
    more = path.n_attempts < options.max_iter and not _gave_up(path, patience)
    follow(path, state, candidates, selected, lists, more)
    for attempt in range(path.n_attempts + 1, options.max_iter + 1):  # 2)
        if _gave_up(path, patience):
            break
        in_bag, panel = draws(attempt, len(candidates))
        kappa = nonzeros(options.n_nonzero, len(panel))
        u = state.weights(in_bag)  # a
        chosen, A = step_matrix(state, u, candidates, panel, kappa)  # b
        place, xi = sparse_eigenvector(candidates.table.engine, A, kappa)  # c
        support, t = chosen[place], np.inf
        if gated:
            A = A[np.ix_(place, place)]
            t, kept, xi = trimmed(A, xi, candidates.terms(support), state, u)
            support = support[kept]
        move = state.move(candidates.terms(support), xi)  # d
        w = options.learning_rate * state.step_weight(u, move)  # e
        path.n_attempts = attempt
        if w > 0 and (options.oob_gate is None or t > options.oob_gate):
            state.take(move, w)  # f, g: W + w xi xi'
            candidates.expand(support.tolist(), selected.add(support))
            refresh = _due(options.refresh_every, len(path) + 1)
            if refresh:
                state.refresh(lists, len(selected))
            sizes = len(selected), len(candidates)
            path.steps.append(Step(attempt, support, xi, w, state.loss(), refresh, *sizes))
        if watch is not None:
            watch(attempt, path)
    return path


def _gave_up(path: Path, patience: int) -> bool:
    return path.n_attempts - path.last_accepted() >= patience


def _due(refresh_every: int | None, n_accepted: int) -> bool:
    return refresh_every is not None and n_accepted % refresh_every == 0
