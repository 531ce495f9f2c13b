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
from .forms import QuadraticForm, step_form
from .gate import trimmed
from .line_search import step_weight
from .neighborhoods import Multiclass, training_lists
from .resume import follow
from .selected import Selected
from .sparse_eigen import sparse_eigenvector
from .state import State, Weights
from .terms import Candidates

#: The loop ends after this many rejected attempts in a row.
PATIENCE = 30


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
    path, selected = Path(start), Selected(start.index)  # 1)
    if known is not None:
        path.steps, path.n_attempts = known.steps, known.n_attempts
    state = State(candidates.table, labels, sample_weight)
    state.embed(candidates.terms(start.index), start.matrix)
    more = path.n_attempts < options.max_iter and not _gave_up(path)
    follow(path, state, candidates, selected, lists, more)
    for attempt in range(path.n_attempts + 1, options.max_iter + 1):  # 2)
        if _gave_up(path):
            break
        in_bag, panel = draws(attempt, len(candidates))
        kappa = nonzeros(options.n_nonzero, len(panel))
        u = state.weights(in_bag)  # a
        A = step_form(state, u, candidates, panel, kappa)  # b
        support, xi = sparse_eigenvector(A, kappa)  # c
        t, support, xi = _gated(options.oob_gate, A, panel, support, xi, candidates, state, u)
        move = state.move(candidates.terms(support), xi)  # d
        w = options.learning_rate * step_weight(state.line(u, move))  # e
        path.n_attempts = attempt
        if w > 0 and t > _threshold(options.oob_gate):
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


def _gave_up(path: Path) -> bool:
    return path.n_attempts - path.last_accepted() >= PATIENCE


def _gated(
    gate: float | None,
    A: QuadraticForm,
    panel: Index,
    support: Index,
    xi: Float,
    candidates: Candidates,
    state: State,
    u: Weights,
) -> tuple[float, Index, Float]:
    """Trim xi on the out-of-bag rows.

    Returns the statistic of the gate, the support as candidate numbers, and the values of xi. If
    the gate is None or if all rows are in the bag, xi is not trimmed and the statistic is infinite.
    """
    chosen = panel[support]
    if gate is None or bool(u.in_bag.all()):
        return np.inf, chosen, xi
    terms, left_out = candidates.terms(chosen), state.left_out(u)
    t, kept, xi = trimmed(A, support, xi, state.table, terms, left_out)
    return t, chosen[kept], xi


def _threshold(gate: float | None) -> float:
    return -np.inf if gate is None else gate


def _due(refresh_every: int | None, n_accepted: int) -> bool:
    return refresh_every is not None and n_accepted % refresh_every == 0
