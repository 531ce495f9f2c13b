"""One fit, from a table and its classes to a metric: scale, screen, boost, stop, prune."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .._typing import Data, Float, Index
from ..boosting.levels import Levels
from ..boosting.loop import BoostingOptions, Watch, boost
from ..boosting.scaling import Scaling, informed
from ..boosting.screening import BUDGET, MARGIN, MARGIN_BEFORE_GATE, Screening, screen_pairs
from ..boosting.start import start_factor, start_scaling
from ..boosting.terms import Candidates
from ..engines import Engine
from ..model import Factor, Path, SparseMetric, Step, Term, best_step
from ..sources import draw_among, least_sample
from .checkpoints import Checkpoints, FitFile
from .options import LearningOptions
from .pruning import harms, heaviest, keep_only, recurring

#: If the screening of a sample is too expensive, its rows are reduced to this number before columns
#: are left out.
LEAST_SCREENED_ROWS = 2000


@dataclass(frozen=True)
class Learned:
    """A finished fit: the path, and the factor at the best step.

    The steps refer to terms by their position in ``terms``. The columns of ``terms`` are those of
    the original table.
    """

    path: Path
    terms: list[Term]
    moments: Float
    scaling: Scaling
    screening: Screening | None
    best_iter: int
    factor: Factor

    def metric(self, factor: Factor) -> SparseMetric:
        """The metric with a given factor over the terms of this fit."""
        return SparseMetric(
            [self.terms[t] for t in factor.index],
            factor.matrix.T,
            self.scaling.center,
            self.scaling.scale,
            self.moments[factor.index, 0],
            self.moments[factor.index, 1],
            clip=self.scaling.clip,
        )


@dataclass(frozen=True)
class Fold:
    """A fold: the fit, the rows that it keeps as neighbours, and the rows that it leaves out."""

    learned: Learned
    kept: Index
    left_out: Index


@dataclass(frozen=True)
class Known:
    """Results for a fit on a sample that were computed from all rows that its fold keeps.

    If ``screening`` is None, the pairs are screened on the rows of the sample.
    """

    scaling: Scaling
    screening: Screening | None


def learn(
    X: Data,
    labels: Index,
    sample_weight: Float,
    engine: Engine,
    options: LearningOptions,
    watch: Watch | None = None,
    rows: Index | None = None,
    checkpoints: Checkpoints | None = None,
    known: Known | None = None,
) -> Learned:
    """Learn a metric that separates the classes. ``labels`` are class numbers from 0.

    The fit learns from the rows of X with the numbers ``rows``, or from all rows. ``labels`` and
    ``sample_weight`` have one element for each of these rows. If the rows are a sample, ``known``
    has the results that were computed from more rows.
    """
    kept = None
    if checkpoints is not None:
        kept = checkpoints.fit(labels, sample_weight, rows, engine.signature, options, known)
    if known is None:
        scaling = informed(table_scaling(X, options, rows), X, labels, rows)
    else:
        scaling = known.scaling
    if not len(scaling.kept):
        raise ValueError("All columns are constant: there is nothing to learn a distance from.")
    Xt = scaling.transposed(X, rows)
    table = engine.table(Xt, len(scaling.plain))
    candidates = Candidates(table, options.max_degree, options.max_candidates, Levels(Xt))
    start = start_factor(candidates, scaling, options.init)
    screening = None
    if screens(options):
        screening = None if known is None else known.screening
        if screening is None:
            screening = _screened(Xt, labels, engine, options, known is not None)
        candidates.add_useful(screening.pairs)
    path = kept_boost(kept, candidates, labels, sample_weight, start, options.boosting, watch)
    learned = finished(path, candidates, scaling, screening, options)
    if learned.best_iter > 0 and options.prune is not None:
        return pruned(learned, X, rows, labels, engine, options.prune)
    return learned


def _screened(
    Xt: Float, labels: Index, engine: Engine, options: LearningOptions, sampled: bool
) -> Screening:
    """The pairs whose means differ between the classes, on the rows of the fit.

    If the screening of a sample is too expensive, rows are left out before columns are.
    """
    n_pairs, budget, margin = screening_limits(len(Xt), labels, options)
    if sampled:
        affordable = int(min(budget, 2**60) / max(len(Xt), 1) ** 2)
        affordable = max(affordable, LEAST_SCREENED_ROWS, least_sample(np.bincount(labels)))
        rows = draw_among(np.arange(len(labels)), labels, affordable, options.boosting.seed)
        if len(rows) < len(labels):
            Xt, labels = Xt[:, rows], labels[rows]
    return screen_pairs(Xt.T, labels, n_pairs, budget, margin=margin, engine=engine)


def kept_boost(
    kept: FitFile | None,
    candidates: Candidates,
    labels: Index,
    weight: Float,
    start: Factor,
    options: BoostingOptions,
    watch: Watch | None,
) -> Path:
    """Run Algorithm 1. With a checkpoint, continue from its steps and store the new steps."""
    if kept is None:
        return boost(candidates, labels, weight, start, options, watch)

    def both(attempt: int, path: Path) -> None:
        if watch is not None:
            watch(attempt, path)
        kept(attempt, path)

    path = boost(candidates, labels, weight, start, options, both, kept.known())
    kept.write(path)
    return path


def finished(
    path: Path,
    candidates: Candidates,
    scaling: Scaling,
    screening: Screening | None,
    options: LearningOptions,
) -> Learned:
    """Choose the best step of a path, and express terms in the columns of the whole table."""
    path, terms, moments = _in_original_columns(path, candidates, scaling)
    best = best_step(path, options.complexity_penalty)
    factor = path.factor(best)
    if best == 0 and not len(factor.index):  # nothing was learned: use the plain distance
        terms = [(int(column),) for column in scaling.plain]
        moments = np.tile([0.0, 1.0], (len(terms), 1))
        factor = Factor.identity(len(terms))
    return Learned(path, terms, moments, scaling, screening, best, factor)


def table_scaling(X: Data, options: LearningOptions, rows: Index | None = None) -> Scaling:
    """The scaling of a table. The columns of a start metric have the constants of that metric."""
    scaling = Scaling.of(X, options.standardize, options.clip, options.n_indicators, rows)
    return start_scaling(scaling, options.init)


def screens(options: LearningOptions) -> bool:
    return options.max_degree > 1 and options.screen_pairs != 0


def screening_limits(
    n_columns: int, labels: Index, options: LearningOptions
) -> tuple[int, float, float]:
    """The largest number of pairs (by default the number of columns), the budget, the margin."""
    auto = options.screen_pairs == "auto"
    n_pairs = n_columns if auto else int(options.screen_pairs)
    gated = options.boosting.oob_gate is not None and labels.max() == 1
    return n_pairs, BUDGET if auto else np.inf, MARGIN_BEFORE_GATE if gated else MARGIN


def _in_original_columns(
    path: Path, candidates: Candidates, scaling: Scaling
) -> tuple[Path, list[Term], Float]:
    """The path over the terms that it uses only, with these terms and their moments.

    The returned terms refer to the columns of the whole table.
    """
    supports = [path.start.index, *(step.support for step in path.steps)]
    used = np.unique(np.concatenate(supports)).astype(np.intp)
    terms = [tuple(int(scaling.kept[j]) for j in candidates.term(t)) for t in used]
    steps = [_renumbered(step, used) for step in path.steps]
    start = Factor(np.searchsorted(used, path.start.index), path.start.matrix)
    return Path(start, steps, path.n_attempts), terms, candidates.moments(used)


def _renumbered(step: Step, used: Index) -> Step:
    return replace(step, support=np.searchsorted(used, step.support))


def pruned(
    learned: Learned,
    X: Data,
    rows: Index | None,
    labels: Index,
    engine: Engine,
    prune: int | Literal["auto"],
) -> Learned:
    factor, terms, path = learned.factor, learned.terms, learned.path
    if prune != "auto":
        return replace(learned, factor=keep_only(factor, terms, heaviest(factor, terms, prune)))
    from_start = {column for t in path.start.index for column in terms[t]}
    kept = recurring(path.steps[: learned.best_iter], terms) | from_start
    smaller = keep_only(factor, terms, kept)
    if len(smaller.index) == len(factor.index):
        return learned
    before, after = (learned.metric(f).embedded(X, rows) for f in (factor, smaller))
    return learned if harms(engine, before, after, labels) else replace(learned, factor=smaller)
