"""Cross-fitting: several metrics, each learned without one fold of the rows, made into one.

Three things come from one round of fits:

- *One metric*: the average of the metrics of the fits. A sum of positive semi-definite matrices is
  positive semi-definite, and a column that only one fit chose has a small weight in the average.
- *Stability*: the share of the fits that use a variable. It says how many variables each fit is
  pruned to. It is no evidence against noise: the fits share most of their rows, so a noise column
  that one fit chose is often chosen by the others too.
- *Evidence out of fold*: every row can be classified by a metric that was learned without it. What
  is chosen or calibrated afterwards is chosen on this evidence (``choosing``), never on the
  training error.

A pruned fold metric, which is judged on the rows out of fold, and the pruned final metric come from
the same factors (``CrossFit.pruned``), so that the metric that is used is the one that was judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from joblib import delayed
from sklearn.model_selection import StratifiedKFold

from .._blocks import is_sparse
from .._processes import run_fits
from .._rounding import to_twelve_digits
from .._threads import one_blas_thread
from .._typing import Data, Float, Index
from ..boosting.learn import Known, Learned, LearningOptions, learn, table_scaling
from ..boosting.loop import Watch
from ..boosting.path import Factor, best_step
from ..boosting.pruning import heaviest, keep_only
from ..boosting.scaling import Scaling
from ..boosting.terms import Candidates, Term
from ..checkpoints import Checkpoints
from ..engines import Engine
from ..imputation import Imputation
from ..metric import SparseMetric
from .whole import Pool, Whole

#: Folds of the evidence where one metric was learned from all rows.
READOUT_FOLDS = 5
#: Rows that are embedded at a time for their variance.
EMBEDDED_ROWS = 2**17
#: Columns that only one of the pruned fits uses are dropped from the average of those fits if the
#: other columns hold at least this share of its weight. Below that share the final metric would
#: differ from the metrics that were judged out of fold. Measured by ``benchmarks.honesty pruning``.
AGREED = 0.9


@dataclass(frozen=True)
class Fold:
    """A metric, the rows that serve as its neighbours, and the rows that it classifies."""

    learned: Learned
    kept: Index
    left_out: Index


@dataclass(frozen=True)
class Variant:
    """One way to make a metric of the fits: none of it needs another fit.

    share
        Of the start metric (all columns alike) in the distance, from 0 to 1.
    recurrences
        Every fit is pruned to as many variables as occur in at least this number of fits.
    size
        The most variables that every fit is pruned to; None for no limit.
    steps, penalty
        Where the paths are cut: after so many accepted steps, or by the paper's criterion with
        this penalty; None for the fits' own stop.
    """

    share: float = 0.0
    recurrences: int = 1
    size: int | None = None
    steps: int | None = None
    penalty: float | None = None


@dataclass(frozen=True)
class CrossFit:
    """All folds over one table."""

    X: Data
    labels: Index
    weight: Float
    n_classes: int
    engine: Engine
    folds: list[Fold]
    scaling: Scaling
    #: All folds have the same metric, learned from all rows.
    one_fit: bool = False
    #: The fits learned from samples, and share the moments of terms over all rows.
    sampled: bool = False

    @property
    def fits(self) -> list[Learned]:
        """The different fits: one for each fold, or a single one for all."""
        return list({id(fold.learned): fold.learned for fold in self.folds}.values())

    def fold_metrics(self, variant: Variant) -> list[SparseMetric]:
        """The metric of every fold by itself, learned without the rows that the fold leaves out."""
        variances = self._plain_variances if variant.share > 0 else [None] * len(self.folds)
        made = {id(fit): factor for fit, factor in zip(self.fits, self.pruned(variant))}
        return [
            _assembled(fold.learned, made[id(fold.learned)], self.X, variant.share, variance)
            for fold, variance in zip(self.folds, variances)
        ]

    def pruned(self, variant: Variant) -> list[Factor]:
        """What every fit adds to the metric: the terms of its own heaviest columns.

        A fit must not be pruned to the columns that recur in the other fits, because those fits
        have seen the rows that this fit leaves out. It only takes the number of columns from them.
        """
        sizes = [variant.size] if variant.size is not None else []
        if variant.recurrences > 1:
            sizes.append(max(1, len(self.recurring(variant))))
        size = min(sizes) if sizes else None
        return [_heaviest(_cut(fit, variant), fit.terms, size) for fit in self.fits]

    @cached_property
    def _plain_variances(self) -> list[float | None]:
        """Of every fold's scaled columns."""
        known = {id(fit): fit.scaling.plain_variance(self.X) for fit in self.fits}
        return [known[id(fold.learned)] for fold in self.folds]

    def recurring(self, variant: Variant) -> set[int]:
        """The columns that enough fits use."""
        return _used_by([(fit, _cut(fit, variant)) for fit in self.fits], variant.recurrences)

    def metric(
        self,
        variant: Variant,
        names: Sequence[str] | None = None,
        imputation: Imputation | None = None,
        with_gamma: bool = True,
        most: int | None = None,
    ) -> SparseMetric:
        """The average of the fits' metrics, over terms standardised with all rows.

        ``most`` limits the number of variables of the average, and replaces the size of the
        variant. Computing gamma, the width of a kernel, takes longer than everything else here;
        ``with_gamma=False`` leaves it out.
        """
        parts = self._agreed(variant if most is None else replace(variant, size=None))
        terms = sorted({fit.terms[t] for fit, factor in parts for t in factor.index}, key=_order)
        place = {term: i for i, term in enumerate(terms)}
        blocks = [np.zeros((len(terms), 0))]
        for fit, factor in parts:
            unit = _unit(fit, factor, self.X) / np.sqrt(len(parts))
            block = np.zeros((len(terms), unit.shape[1]))
            block[[place[fit.terms[t]] for t in factor.index]] = unit
            blocks.append(block)
        whole = Factor(np.arange(len(terms)), np.hstack(blocks)).reduced()
        whole = _heaviest(whole, terms, most)
        learned = replace(
            self.fits[0], terms=terms, moments=self._moments(terms), scaling=self.scaling
        )
        metric = _assembled(learned, whole, self.X, variant.share)
        # Equal weights differ in their last digits: the order must not depend on the machine.
        weights = to_twelve_digits(np.array([term.weight for term in metric.terms]))
        order = np.argsort(-weights, kind="stable")
        columns = [metric.columns[t] for t in order]
        return SparseMetric(
            columns, metric.components[:, order], metric.center, metric.scale,
            metric.term_center[order], metric.term_scale[order], names, metric.diagonal[order],
            imputation, metric.median_gamma(self.X) if with_gamma else None,
            metric.clip, self._stability(columns, variant),
        )  # fmt: skip

    def _agreed(self, variant: Variant) -> list[tuple[Learned, Factor]]:
        """The fits as they are averaged. Where they are pruned: without columns of one fit only.

        Such columns stay if the others would hold less than ``AGREED`` of the weight.
        """
        parts = [(fit, own) for fit, own in zip(self.fits, self.pruned(variant)) if len(own.index)]
        if variant.recurrences == 1 and variant.size is None:
            return parts
        columns = _used_by(parts, 2)
        agreed = [(fit, _only(factor, fit.terms, columns)) for fit, factor in parts]
        shares = [new.weights().sum() / old.weights().sum()
                  for (_, new), (_, old) in zip(agreed, parts)]  # fmt: skip
        if not shares or np.mean(shares) < AGREED:
            return parts
        return [(fit, factor) for fit, factor in agreed if len(factor.index)]

    def _moments(self, terms: Sequence[Term]) -> Float:
        """Mean and deviation of the terms over all rows; a start metric keeps its own."""
        if self.one_fit or self.sampled:
            known = {t: m for fit in self.fits for t, m in zip(fit.terms, fit.moments)}
            return np.array([known[term] for term in terms]).reshape(-1, 2)
        degree = max((len(term) for term in terms), default=1)
        used = sorted({column for term in terms for column in term})
        inside = {column: i for i, column in enumerate(used)}
        own_columns = replace(self.scaling, kept=np.array(used, dtype=np.intp))
        candidates = Candidates(self.engine.rows(own_columns.transposed(self.X)), degree)
        own = [tuple(inside[column] for column in term) for term in terms]
        candidates.add(own)
        moments = candidates.moments(np.array([candidates.number(t) for t in own], dtype=np.intp))
        given = {fit.terms[t]: fit.moments[t] for fit in self.fits for t in fit.path.start.index}
        for i, term in enumerate(terms):
            moments[i] = given.get(term, moments[i])
        return moments

    def _stability(self, terms: Sequence[Term], variant: Variant) -> Float:
        """The share of the fits that use each term."""
        uses: Counter[Term] = Counter()
        for fit in self.fits:
            uses.update(fit.terms[t] for t in _cut(fit, variant).index)
        return np.array([uses[term] / len(self.fits) for term in terms])


def cross_fit(
    pool: Pool,
    engine: Engine,
    options: LearningOptions,
    n_averaged: int,
    n_jobs: int = 1,
    watch: Callable[[int, int], Watch] | None = None,
    checkpoints: Checkpoints | None = None,
) -> CrossFit:
    """Learn ``n_averaged`` metrics, each without one fold of the rows; 1 learns from all rows.

    One fit sees all rows where folds would leave a class fewer than two, or where only the rows of
    one fold vary.
    """
    X, labels, seed = pool.X, pool.labels, options.boosting.seed
    smallest, n_folds = int(np.bincount(labels).min()), affordable_folds(labels, n_averaged)
    everything = np.arange(len(labels))
    split = split_rows(labels, n_folds, seed) if n_folds > 1 else []
    whole = whole_of(pool, [kept for kept, _ in split] or [everything], options)
    if whole is None and not all(len(table_scaling(X, options, kept).kept) for kept, _ in split):
        split = []  # without some fold's rows nothing varies
    if not split:
        alone = watch(0, 1) if watch else None
        learned = learn_all(pool, whole, engine, options, alone, checkpoints)
        split = split_rows(labels, min(READOUT_FOLDS, smallest), seed)
        return over_folds(pool, whole, engine, options, split, [learned] * len(split))
    watches = [watch(j, n_folds) if watch and n_jobs == 1 else None for j in range(n_folds)]
    tasks = (
        delayed(learn_fold)(task, watches[j], checkpoints)
        for j, task in enumerate(fold_tasks(pool, whole, engine, options, split))
    )
    fits = run_fits(min(n_jobs, n_folds), tasks, checkpoints is not None)
    return over_folds(pool, whole, engine, options, split, fits)


def whole_of(pool: Pool, kept: Sequence[Index], options: LearningOptions) -> Whole | None:
    """What all rows say, if a fit on the ``kept`` rows of any fold learns from a sample of them."""
    needed = any(pool.needs_samples(len(rows)) for rows in kept)
    return Whole.of(pool, options) if needed else None


def learn_all(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    watch: Watch | None,
    checkpoints: Checkpoints | None,
) -> Learned:
    """One metric from all rows of the pool, or from a sample of them."""
    if whole is None:
        return learn(
            pool.X, pool.labels, pool.weight, engine, options, watch, checkpoints=checkpoints
        )
    rows, weight = whole.sample(np.arange(len(pool.labels)), 0, 1)
    known = whole.without(np.empty(0, dtype=np.intp))
    return learn(
        pool.X, pool.labels[rows], weight, engine, options, watch, rows, checkpoints, known
    )


@dataclass(frozen=True)
class FoldTask:
    """The rows of X that a fold's fit learns from, and what the other rows say."""

    X: Data
    rows: Index
    labels: Index
    weight: Float
    engine: Engine
    options: LearningOptions
    fold: int
    known: Known | None = None


def fold_tasks(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    split: Sequence[tuple[Index, Index]],
) -> Iterator[FoldTask]:
    """What the fit of every fold learns from."""
    for j, (kept, out) in enumerate(split):
        if whole is None:
            rows, weight, known = kept, fold_weights(pool.weight, kept), None
        else:
            rows, weight = whole.sample(kept, j, len(split))
            known = whole.without(out)
        yield FoldTask(pool.X, rows, pool.labels[rows], weight, engine, options, j, known)


def affordable_folds(labels: Index, n_averaged: int) -> int:
    """As many as there are to be, or as a class has rows; 1 where one would be left with one."""
    smallest = int(np.bincount(labels).min())
    n_folds = min(n_averaged, smallest)
    return n_folds if n_folds > 1 and smallest - -(-smallest // n_folds) >= 2 else 1


def over_folds(
    pool: Pool,
    whole: Whole | None,
    engine: Engine,
    options: LearningOptions,
    split: Sequence[tuple[Index, Index]],
    fits: Sequence[Learned],
) -> CrossFit:
    """Finished fits, one for each fold, together with the scaling of the whole table."""
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
    """The fits with the terms that they learned standardised by all rows, not by a sample."""
    known = whole.term_moments(term for fit in fits for term in fit.terms)
    made: dict[int, Learned] = {}
    for fit in fits:
        moments = np.array([known.get(t, m) for t, m in zip(fit.terms, fit.moments)])
        moments = moments.reshape(-1, 2)
        given = fit.path.start.index  # a start metric keeps its own
        moments[given] = fit.moments[given]
        made[id(fit)] = replace(fit, moments=moments)
    return [made[id(fit)] for fit in fits]


def split_rows(labels: Index, n_folds: int, seed: int) -> list[tuple[Index, Index]]:
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((len(labels), 1)), labels))


def learn_fold(
    task: FoldTask, watch: Watch | None = None, checkpoints: Checkpoints | None = None
) -> Learned:
    """A metric from the rows of a fold, with bags of its own.

    Nothing is pruned here: what recurs in the other fits says more than what recurs in one.
    """
    options = fold_options(task.options, task.fold)
    with one_blas_thread():  # also in a worker
        return learn(
            task.X, task.labels, task.weight, task.engine, options, watch, task.rows, checkpoints,
            task.known,
        )  # fmt: skip


def fold_weights(weight: Float, rows: Index) -> Float:
    """Of some rows, with a mean of 1."""
    own: Float = weight[rows] * (len(rows) / weight[rows].sum())
    return own


def fold_options(options: LearningOptions, fold: int) -> LearningOptions:
    """A seed of its own, and no pruning."""
    seed = int(np.random.SeedSequence((options.boosting.seed, fold)).generate_state(1)[0])
    return replace(options, prune=None, boosting=replace(options.boosting, seed=seed))


def _cut(fit: Learned, variant: Variant) -> Factor:
    """What a fit learned, up to where its path is cut; the start metric where nothing was."""
    if fit.best_iter == 0:
        return fit.path.factor(0)  # empty for a start from zero
    if variant.steps is not None:
        return fit.path.factor(min(variant.steps, len(fit.path)))
    if variant.penalty is not None:
        return fit.path.factor(best_step(fit.path, variant.penalty))
    return fit.factor


def _used_by(parts: Sequence[tuple[Learned, Factor]], least: int) -> set[int]:
    """The columns that occur in at least ``least`` of the factors, or in all of them."""
    uses: Counter[int] = Counter()
    for fit, factor in parts:
        uses.update({column for t in factor.index for column in fit.terms[t]})
    return {column for column, count in uses.items() if count >= min(least, len(parts))}


def _only(factor: Factor, terms: Sequence[Term], columns: set[int]) -> Factor:
    keep = np.array([set(terms[t]) <= columns for t in factor.index], dtype=bool)
    return factor.restricted(keep).reduced() if keep.any() else Factor.empty()


def _heaviest(factor: Factor, terms: Sequence[Term], size: int | None) -> Factor:
    """W on the terms of its ``size`` heaviest columns; all of it where size is None."""
    if size is None or not len(factor.index):
        return factor
    return keep_only(factor, terms, heaviest(factor, terms, size))


def _unit(fit: Learned, factor: Factor, X: Data) -> Float:
    """The factor scaled so that the rows have a total variance of 1 under its metric."""
    variance = _total_variance(fit.metric(factor, None), X)
    return factor.matrix / np.sqrt(variance) if variance > 0 else factor.matrix


def _total_variance(metric: SparseMetric, X: Data) -> float:
    """Of the embedded rows, which need not be in memory together."""
    X = X.tocsr() if is_sparse(X) else X
    counts, means, squares = [], [], []
    for start in range(0, X.shape[0], EMBEDDED_ROWS):
        z = metric.embedded(X[start : start + EMBEDDED_ROWS])
        counts.append(len(z))
        means.append(z.mean(axis=0))
        squares.append(len(z) * float(z.var(axis=0).sum()))
    shift = np.average(means, axis=0, weights=counts)
    between = ((np.array(means) - shift) ** 2).sum(axis=1)
    return (sum(squares) + float(np.array(counts) @ between)) / int(X.shape[0])


def _assembled(
    fit: Learned,
    factor: Factor,
    X: Data,
    share: float,
    plain_variance: float | None = None,
) -> SparseMetric:
    """``(1 - share) W + share I``, both scaled to a total variance of 1.

    Where nothing was learned it is the start metric alone.
    """
    if not len(factor.index):
        share = 1.0
    terms = [fit.terms[t] for t in factor.index] if share < 1 else []
    components = np.sqrt(1 - share) * _unit(fit, factor, X).T if share < 1 else np.empty((0, 0))
    moments = fit.moments[factor.index] if share < 1 else np.empty((0, 2))
    diagonal = np.zeros(len(terms))
    if share > 0:
        plain = fit.scaling.plain
        columns: list[Term] = [(int(c),) for c in plain if (int(c),) not in terms]
        diagonal = np.concatenate(
            [np.isin([t[0] if len(t) == 1 else -1 for t in terms], plain), np.ones(len(columns))]
        )
        variance = fit.scaling.plain_variance(X) if plain_variance is None else plain_variance
        diagonal *= share / variance if variance > 0 else 1.0
        components = np.hstack([components, np.zeros((len(components), len(columns)))])
        moments = np.vstack([moments, np.tile([0.0, 1.0], (len(columns), 1))])
        terms = terms + columns
    scaling = fit.scaling
    return SparseMetric(
        terms, components, scaling.center, scaling.scale, moments[:, 0], moments[:, 1],
        diagonal=diagonal, clip=scaling.clip,
    )  # fmt: skip


def _order(term: Term) -> tuple[int, Term]:
    return len(term), term
