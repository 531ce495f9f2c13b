"""A fit over the rows of a cluster: the steps of ``boosting.learn``, with sums from the shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import Float, Index
from ..boosting.learn import (
    Learned,
    LearningOptions,
    finished,
    kept_boost,
    screening_limits,
    screens,
)
from ..boosting.loop import Watch
from ..boosting.screening import Screening, pairs_of_moments, screened_classes
from ..boosting.start import start_factor, start_scaling
from ..boosting.terms import Candidates
from ..checkpoints import Checkpoints
from ._rows import DaskRows
from ._shards import Shard
from ._table import Partitions

#: Moments of all pairs of so many columns come to the client at most.
MOST_SCREENED = 2000


def learn_distributed(
    partitions: Partitions,
    labels: Index,
    weight: Float,
    options: LearningOptions,
    kept: Index,
    watch: Watch | None = None,
    checkpoints: Checkpoints | None = None,
) -> tuple[Learned, dict[str, int]]:
    """A metric from some of the rows, and the bytes that travelled between workers for it."""
    file = None
    if checkpoints is not None:
        file = checkpoints.fit(labels, weight, kept, "dask", options)
    scaling = partitions.scaling(kept, options.standardize, options.clip)
    scaling = start_scaling(scaling, options.init)
    if not len(scaling.kept):
        raise ValueError("All columns are constant: there is nothing to learn a distance from.")
    rows = partitions.shards(kept, scaling)
    candidates = Candidates(rows, options.max_degree, options.max_candidates)
    start = start_factor(candidates, scaling, options.init)
    screening = None
    if screens(options):
        screening = _screened(rows, labels, options)
        candidates.add_useful(screening.pairs)
    path = kept_boost(file, candidates, labels, weight, start, options.boosting, watch)
    learned = finished(path, candidates, scaling, screening, replace(options, prune=None))
    counts = {"halo rows": rows.halo_rows, "attempts": rows.attempts}
    return learned, {**rows.exchanged, **counts}


def _screened(rows: DaskRows, labels: Index, options: LearningOptions) -> Screening:
    n_pairs, budget, margin = screening_limits(rows.n_columns, labels, options)
    groups = screened_classes(labels)
    counts = [len(group) for group in groups]
    codes = np.full(len(labels), -1, dtype=np.int16)
    for c, group in enumerate(groups):
        codes[group] = c
    own = [codes[numbers] for numbers in rows.numbers]
    columns = np.arange(rows.n_columns)
    most = min(int(np.sqrt(min(budget, 1e18) / len(labels))), MOST_SCREENED)
    sums = np.sum(rows.results(rows.each(_class_sums, rows.shards, own, len(counts))), axis=0)
    means = sums / np.array(counts)[:, None]
    if len(columns) > most:
        columns = _best_columns(rows, own, means, counts, max(most, 2))
    parts = rows.each(_class_products, rows.shards, own, means[:, columns], columns)
    products, squares = (np.sum(part, axis=0) for part in zip(*rows.results(parts)))
    n = np.array(counts, dtype=float)[:, None, None]
    product_means = products / n
    errors = np.maximum(squares / n - product_means**2, 0.0) / np.maximum(n - 1, 1)
    return pairs_of_moments(product_means, errors, counts, columns, n_pairs, margin)


def _best_columns(
    rows: DaskRows, own: list[Any], means: Float, counts: list[int], size: int
) -> Index:
    """Columns that differ most in mean or spread."""
    weight = np.array(counts, dtype=float)[:, None]
    center = (weight * means).sum(axis=0) / weight.sum()
    sums = np.sum(
        rows.results(rows.each(_class_powers, rows.shards, own, center, len(counts))), axis=0
    )
    powers = sums / weight[None]
    best = np.zeros(rows.n_columns)
    for first, second in ((0, 1), (1, 2)):
        moment = powers[first]
        errors = np.maximum(powers[second] - moment**2, 1e-300) / weight
        common = (moment / errors).sum(axis=0) / (1 / errors).sum(axis=0)
        best = np.maximum(best, np.sqrt(((moment - common) ** 2 / errors).sum(axis=0)))
    return np.sort(np.argsort(-best, kind="stable")[:size])


def _class_sums(shard: Shard, codes: Index, n_classes: int) -> Float:
    return np.stack([shard.Xt[:, codes == c].sum(axis=1) for c in range(n_classes)])


def _class_powers(shard: Shard, codes: Index, center: Float, n_classes: int) -> Float:
    """Sums of ``x - mean``, of its square and of its fourth power."""
    out = []
    for c in range(n_classes):
        centred = shard.Xt[:, codes == c] - center[:, None]
        square = centred**2
        out.append([centred.sum(axis=1), square.sum(axis=1), (square**2).sum(axis=1)])
    return np.array(out).transpose(1, 0, 2)


def _class_products(
    shard: Shard, codes: Index, means: Float, columns: Index
) -> tuple[Float, Float]:
    """Sums of the products of all pairs of columns, and of their squares, in every class."""
    products, squares = [], []
    for c, mean in enumerate(means):
        X = shard.Xt[np.ix_(columns, np.flatnonzero(codes == c))] - mean[:, None]
        products.append(X @ X.T)
        square = X * X
        squares.append(square @ square.T)
    return np.array(products), np.array(squares)
