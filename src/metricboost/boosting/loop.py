"""Algorithm 1: sDist, boosted sparse non-linear metric learning.

The paper's step letters stand beside the lines that do them. Symbols: u are the weights
``|r_i| = exp(-m_i)`` of the margins m, xi the sparse unit vector, w its weight, W the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float
from .draws import Draws, MaxFeatures, nonzeros
from .gate import t_statistic
from .graph import SignedGraph
from .line_search import step_weight
from .neighborhoods import class_neighborhoods
from .path import Factor, Path, Step
from .sparse_eigen import sparse_eigenvector
from .terms import Candidates


@dataclass(frozen=True)
class BoostingOptions:
    """The parameters of Algorithm 1 and of the paper's practical remarks."""

    max_iter: int
    n_neighbors: int
    n_nonzero: int | float
    learning_rate: float
    subsample: float
    max_features: MaxFeatures
    refresh_every: int | None
    oob_gate: float | None
    seed: int


Watch = Callable[[int, Path, float], None]


def boost(
    candidates: Candidates,
    positive: npt.NDArray[np.bool_],
    sample_weight: Float,
    start: Factor,
    options: BoostingOptions,
    watch: Watch | None = None,
) -> Path:
    """Learn a metric step by step from the start metric; the path of accepted steps."""
    draws = Draws(options.seed, len(positive), options.subsample, options.max_features)
    metric, path, selected = start, Path(start), list(start.index)  # 1)
    graph = _neighbors(candidates, positive, metric, options.n_neighbors)
    margins = graph.margins(_embed(candidates, metric))
    for attempt in range(1, options.max_iter + 1):  # 2)
        in_bag, panel = draws(attempt, len(candidates))
        u = _weights(margins, sample_weight)
        A = graph.form(panel, np.where(in_bag, u, 0.0))  # a, b
        support, xi = sparse_eigenvector(A, nonzeros(options.n_nonzero, len(panel)))  # c
        support = panel[support]
        z = candidates.columns(support) @ xi
        gain = graph.margins(z[:, None])  # d
        w = options.learning_rate * step_weight(u[in_bag], gain[in_bag])  # e
        path.n_attempts = attempt
        if w > 0 and _passes(options.oob_gate, graph, z, np.where(in_bag, 0.0, u)):
            margins = margins + w * gain  # f
            metric = metric.plus(support, xi, w)  # g
            selected += [t for t in support if t not in selected]
            candidates.expand(support, selected)
            refresh = bool(options.refresh_every) and (len(path) + 1) % options.refresh_every == 0
            if refresh:
                metric = metric.reduced()
                graph = _neighbors(candidates, positive, metric, options.n_neighbors)
                margins = graph.margins(_embed(candidates, metric))
            loss = _loss(margins, sample_weight)
            path.steps.append(
                Step(attempt, support, xi, w, loss, refresh, len(selected), len(candidates))
            )
        if watch is not None:
            watch(attempt, path, path.steps[-1].loss if path.steps else np.nan)
    return path


def _neighbors(
    candidates: Candidates, positive: npt.NDArray[np.bool_], metric: Factor, k: int
) -> SignedGraph:
    """The neighbours under the metric; Euclidean ones where it is still zero."""
    embedding = _embed(candidates, metric) if metric.matrix.size else candidates.X
    found = class_neighborhoods(candidates.engine, embedding, positive, k)
    return SignedGraph(candidates, candidates.engine.graph(found.same, found.other))


def _embed(candidates: Candidates, metric: Factor) -> Float:
    result: Float = candidates.columns(metric.index) @ metric.matrix
    return result


def _weights(margins: Float, sample_weight: Float) -> Float:
    """``exp(-m_i)``, up to a common factor, which changes nothing and would overflow."""
    result: Float = sample_weight * np.exp(margins.min() - margins)
    return result


def _loss(margins: Float, sample_weight: Float) -> float:
    """The summed exponential loss; margins far below zero count as e^500 rather than overflow."""
    return float(sample_weight @ np.exp(np.minimum(-margins, 500.0)))


def _passes(gate: float | None, graph: SignedGraph, z: Float, left_out: Float) -> bool:
    """The out-of-bag gate; off where it is None or no row was left out."""
    if gate is None or not left_out.any():
        return True
    return t_statistic(graph.graph.edge_shares(z, left_out)) > gate
