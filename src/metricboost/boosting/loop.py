"""Algorithm 1: sDist, boosted sparse non-linear metric learning.

The paper's step letters stand beside the lines that do them. Symbols: u are the weights
``|r_i| = exp(-m_i)`` of the margins m, xi the sparse unit vector, w its weight, W the metric.
What has one number a row stays with the rows, wherever the engine keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from .draws import Draws, MaxFeatures, nonzeros
from .forms import QuadraticForm, step_form
from .gate import trimmed
from .line_search import step_weight
from .neighborhoods import Multiclass, training_lists
from ..model.path import Factor, Path, Step
from .resume import follow
from .selected import Selected
from .sparse_eigen import sparse_eigenvector
from .terms import Candidates

#: Attempts that may fail in a row before the loop ends: nothing is left that the gate admits.
PATIENCE = 30


@dataclass(frozen=True)
class BoostingOptions:
    """The parameters of Algorithm 1, of the paper's practical remarks, and of the gate."""

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
    """Learn a metric step by step from the start metric; the path of accepted steps.

    Goes on from the steps of a path that is known.
    """
    rows, lists = candidates.rows, training_lists(labels, options.n_neighbors, options.multiclass)
    draws = Draws(options.seed, rows.n_rows, options.subsample, options.max_features)
    path, selected = Path(start), Selected(start.index)  # 1)
    if known is not None:
        path.steps, path.n_attempts = known.steps, known.n_attempts
    rows.begin(labels, sample_weight)
    rows.embed(candidates.terms(start.index), start.matrix)
    more = path.n_attempts < options.max_iter and not _gave_up(path)
    follow(path, candidates, selected, lists, more)
    for attempt in range(path.n_attempts + 1, options.max_iter + 1):  # 2)
        if _gave_up(path):
            break
        in_bag, panel = draws(attempt, len(candidates))
        kappa = nonzeros(options.n_nonzero, len(panel))
        rows.weigh(in_bag)  # a: u
        A = step_form(candidates, panel, kappa)  # b
        support, xi = sparse_eigenvector(A, kappa)  # c
        t, support, xi = _gated(options.oob_gate, A, panel, support, xi, candidates, in_bag)
        line = rows.line(candidates.terms(support), xi)  # d
        w = options.learning_rate * step_weight(line)  # e
        path.n_attempts = attempt
        if w > 0 and t > _threshold(options.oob_gate):
            rows.take(w)  # f, g: W + w xi xi^T
            candidates.expand(support.tolist(), selected.add(support))
            refresh = _due(options.refresh_every, len(path) + 1)
            if refresh:
                rows.refresh(lists, len(selected))
            sizes = len(selected), len(candidates)
            path.steps.append(Step(attempt, support, xi, w, rows.loss(), refresh, *sizes))
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
    in_bag: npt.NDArray[np.bool_],
) -> tuple[float, Index, Float]:
    """(t, support as candidates, xi), trimmed to what the rows left out support.

    The gate is off where it is None or no row was left out.
    """
    chosen = panel[support]
    if gate is None or in_bag.all():
        return np.inf, chosen, xi
    t, kept, xi = trimmed(A, support, xi, candidates.rows, candidates.terms(chosen))
    return t, chosen[kept], xi


def _threshold(gate: float | None) -> float:
    return -np.inf if gate is None else gate


def _due(refresh_every: int | None, n_accepted: int) -> bool:
    return refresh_every is not None and n_accepted % refresh_every == 0
