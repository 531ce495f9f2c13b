"""The fits of all folds: the rows from which each fit learns, and the execution of the fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .._tasks import end_if_cancelled, run_tasks
from .._typing import Data, Float, Index
from ..boosting.loop import Watch
from ..engines import Engine
from ..model import Path
from .checkpoints import Checkpoints
from .fits import CrossFit
from .learn import Fold, Known, Learned, learn, table_scaling
from .options import LearningOptions
from .pool import Pool
from .run import Run
from .whole import Whole

#: The number of folds for the evidence if a single metric was learned from all rows.
READOUT_FOLDS = 5

Split = tuple[Index, Index]


@dataclass(frozen=True)
class FoldTask:
    """The input of the fit of a fold: its rows of X, and the summaries of all rows (``known``)."""

    X: Data
    rows: Index
    labels: Index
    weight: Float
    engine: Engine
    options: LearningOptions
    fold: int
    known: Known | None = None


def cross_fit(
    pool: Pool,
    options: LearningOptions,
    n_averaged: int,
    run: Run,
    watch: Callable[[int, int], Watch] | None = None,
) -> CrossFit:
    """Learn ``n_averaged`` metrics, each without one fold of the rows.

    A single fit learns from all rows if ``n_averaged`` is 1, if a fold would keep fewer than two
    rows of a class, or if all columns are constant among the rows that a fold keeps.
    """
    labels, seed = pool.labels, options.boosting.seed
    smallest, n_folds = int(np.bincount(labels).min()), affordable_folds(labels, n_averaged)
    split = split_rows(labels, n_folds, seed) if n_folds > 1 else []
    kept_rows = [kept for kept, _ in split] or [np.arange(len(labels))]
    whole = whole_of(pool, kept_rows, options)
    varies = (len(table_scaling(pool.X, options, kept).kept) > 0 for kept, _ in split)
    if whole is None and not all(varies):
        split = []  # all columns are constant without the rows of some fold
    if not split:
        engine, alone = run.engine_for(1), watch(0, 1) if watch else None
        learned = _learn_all(pool, whole, engine, options, alone, run.checkpoints)
        split = split_rows(labels, min(READOUT_FOLDS, smallest), seed)
        return over_folds(pool, whole, engine, options, split, [learned] * len(split))
    at_a_time = run.fits_at_a_time(pool, n_folds)
    engine = run.engine_for(at_a_time)
    tasks = [
        partial(learn_fold, task, watch(task.fold, n_folds) if watch else None, run.checkpoints)
        for task in fold_tasks(pool, whole, engine, options, split)
    ]
    fits = run_tasks(at_a_time, tasks)
    return over_folds(pool, whole, engine, options, split, fits)


def whole_of(pool: Pool, kept: Sequence[Index], options: LearningOptions) -> Whole | None:
    """The summaries of all rows, if the fit of any fold learns from a sample of its kept rows."""
    needed = any(pool.needs_samples(len(rows)) for rows in kept)
    return Whole.of(pool, options) if needed else None


def _learn_all(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    watch: Watch | None,
    checkpoints: Checkpoints | None,
) -> Learned:
    """One metric from all rows of the pool, or from a sample of them."""
    X, labels = pool.X, pool.labels
    if whole is None:
        return learn(X, labels, pool.weight, engine, options, watch, checkpoints=checkpoints)
    rows, weight = whole.sample(np.arange(len(labels)), 0, 1)
    known = whole.without(np.empty(0, dtype=np.intp))
    return learn(X, labels[rows], weight, engine, options, watch, rows, checkpoints, known)


def fold_tasks(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    split: Sequence[Split],
) -> Iterator[FoldTask]:
    """The input of the fit of each fold."""
    for j, (kept, out) in enumerate(split):
        if whole is None:
            rows, weight, known = kept, fold_weights(pool.weight, kept), None
        else:
            rows, weight = whole.sample(kept, j, len(split))
            known = whole.without(out)
        yield FoldTask(pool.X, rows, pool.labels[rows], weight, engine, options, j, known)


def learn_fold(
    task: FoldTask, watch: Watch | None = None, checkpoints: Checkpoints | None = None
) -> Learned:
    """The fit of a fold, with its own seed for the bags.

    The fit is not pruned here. Variables are pruned later by their recurrence in all fits, which is
    more reliable than their recurrence in the steps of a single fit.
    """

    def watched(attempt: int, path: Path) -> None:
        end_if_cancelled()
        if watch is not None:
            watch(attempt, path)

    options = fold_options(task.options, task.fold)
    return learn(
        task.X, task.labels, task.weight, task.engine, options, watched, task.rows, checkpoints,
        task.known,
    )  # fmt: skip


def affordable_folds(labels: Index, n_averaged: int) -> int:
    """Number of folds: ``n_averaged``, but at most the size of the smallest class.

    The number is 1 (a single fit) if a fold would leave a class with one row.
    """
    smallest = int(np.bincount(labels).min())
    n_folds = min(n_averaged, smallest)
    return n_folds if n_folds > 1 and smallest - -(-smallest // n_folds) >= 2 else 1


def over_folds(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    split: Sequence[Split],
    fits: Sequence[Learned],
) -> CrossFit:
    """Combine the finished fits, one for each fold, with the scaling of the whole table."""
    one_fit = len({id(fit) for fit in fits}) == 1
    if whole is None:
        scaling = table_scaling(pool.X, options)
    else:
        scaling, fits = whole.scaling, _with_moments_of_all_rows(whole, fits)
    folds = [Fold(fit, pool.among_references(kept), out) for fit, (kept, out) in zip(fits, split)]
    return CrossFit(
        pool.X, pool.labels, pool.weight, int(pool.labels.max()) + 1, engine, folds, scaling,
        one_fit, whole is not None,
    )  # fmt: skip


def _with_moments_of_all_rows(whole: Whole, fits: Sequence[Learned]) -> list[Learned]:
    """The fits, with the moments of their terms computed from all rows instead of a sample."""
    known = whole.term_moments(term for fit in fits for term in fit.terms)
    made: dict[int, Learned] = {}
    for fit in fits:
        moments = np.array([known.get(t, m) for t, m in zip(fit.terms, fit.moments)])
        moments = moments.reshape(-1, 2)
        given = fit.path.start.index  # the terms of a start metric keep their moments
        moments[given] = fit.moments[given]
        made[id(fit)] = replace(fit, moments=moments)
    return [made[id(fit)] for fit in fits]


def split_rows(labels: Index, n_folds: int, seed: int) -> list[Split]:
    """Stratified folds."""
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((len(labels), 1)), labels))


def fold_weights(weight: Float, rows: Index) -> Float:
    """The weights of some rows, with a mean of 1."""
    own: Float = weight[rows] * (len(rows) / weight[rows].sum())
    return own


def fold_options(options: LearningOptions, fold: int) -> LearningOptions:
    """The options of the fit of a fold: its own seed, and no pruning."""
    seed = int(np.random.SeedSequence((options.boosting.seed, fold)).generate_state(1)[0])
    return replace(options, prune=None, boosting=replace(options.boosting, seed=seed))
