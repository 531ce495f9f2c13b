"""Algorithm 1: sDist, boosted sparse non-linear metric learning.

The paper's step letters stand beside the lines that do them. Symbols: u are the weights
``|r_i| = exp(-m_i)`` of the margins m, xi the sparse unit vector, w its weight, W the metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from .draws import Draws, MaxFeatures, nonzeros
from .embedding import Embedding, Selected
from .gate import trimmed
from .graph import QuadraticForm, SignedGraph
from .line_search import step_weight
from .neighborhoods import Multiclass, Neighborhoods, class_neighborhoods
from .path import Factor, Path, Step
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
    approximate: bool = False


Watch = Callable[[int, Path], None]


def boost(
    candidates: Candidates,
    labels: Index,
    sample_weight: Float,
    start: Factor,
    options: BoostingOptions,
    watch: Watch | None = None,
) -> Path:
    """Learn a metric step by step from the start metric; the path of accepted steps."""
    draws = Draws(options.seed, len(labels), options.subsample, options.max_features)
    path, selected = Path(start), Selected(start.index)  # 1)
    embedding = Embedding(candidates, start)
    graph, margins = _neighbors(candidates, labels, embedding, selected, options)
    for attempt in range(1, options.max_iter + 1):  # 2)
        in_bag, panel = draws(attempt, len(candidates))
        u = _weights(margins, sample_weight)
        A = graph.form(panel, np.where(in_bag, u, 0.0))  # a, b
        support, xi = sparse_eigenvector(A, nonzeros(options.n_nonzero, len(panel)))  # c
        t, support, xi, z = _gated(options.oob_gate, A, panel, support, xi, graph, u, in_bag)
        gain = graph.margins(z[:, None])  # d
        w = options.learning_rate * step_weight(u[in_bag], gain[in_bag])  # e
        path.n_attempts = attempt
        if w > 0 and t > _threshold(options.oob_gate):
            margins = margins + w * gain  # f
            embedding.append(np.sqrt(w) * z)  # g: W + w xi xi^T
            candidates.expand(support.tolist(), selected.add(support))
            refresh = _due(options.refresh_every, len(path) + 1)
            if refresh:
                graph, margins = _neighbors(
                    candidates, labels, embedding, selected, options, graph.neighborhoods
                )
            loss, recall = _loss(margins, sample_weight), graph.neighborhoods.recall
            path.steps.append(
                Step(attempt, support, xi, w, loss, refresh, len(selected), len(candidates), recall)
            )
        if watch is not None:
            watch(attempt, path)
        if attempt - path.last_accepted() >= PATIENCE:
            break
    return path


def _neighbors(
    candidates: Candidates,
    labels: Index,
    embedding: Embedding,
    selected: Selected,
    options: BoostingOptions,
    previous: Neighborhoods | None = None,
) -> tuple[SignedGraph, Float]:
    """The neighbours under W, Euclidean ones where it is still zero, and the margins under W."""
    rows = embedding.columns(len(selected))
    place = rows if rows.shape[1] else candidates.plain()
    k, multiclass, approximate = options.n_neighbors, options.multiclass, options.approximate
    found = class_neighborhoods(
        candidates.engine, place, labels, k, multiclass, previous, approximate
    )
    graph = SignedGraph(candidates, found, place)
    return graph, graph.margins(rows)


def _weights(margins: Float, sample_weight: Float) -> Float:
    """``exp(-m_i)``, up to a common factor, which changes nothing and would overflow."""
    result: Float = sample_weight * np.exp(margins.min() - margins)
    return result


def _loss(margins: Float, sample_weight: Float) -> float:
    """The summed exponential loss; margins far below zero count as e^500 rather than overflow."""
    return float(sample_weight @ np.exp(np.minimum(-margins, 500.0)))


def _gated(
    gate: float | None,
    A: QuadraticForm,
    panel: Index,
    support: Index,
    xi: Float,
    graph: SignedGraph,
    u: Float,
    in_bag: npt.NDArray[np.bool_],
) -> tuple[float, Index, Float, Float]:
    """(t, support as candidates, xi, Phi xi), trimmed to what the rows left out support.

    The gate is off where it is None or no row was left out.
    """
    columns = graph.candidates.columns(panel[support])
    t = np.inf
    if gate is not None and not in_bag.all():
        t, kept, xi = trimmed(A, support, xi, columns, graph, np.where(in_bag, 0.0, u))
        support, columns = support[kept], columns[:, kept]
    return t, panel[support], xi, columns @ xi


def _threshold(gate: float | None) -> float:
    return -np.inf if gate is None else gate


def _due(refresh_every: int | None, n_accepted: int) -> bool:
    return refresh_every is not None and n_accepted % refresh_every == 0
