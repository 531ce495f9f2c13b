"""Tuning: a search over many variants and readouts of the same fits.

A fit does not depend on the step or the penalty that cuts its path, on the number of variables that
stay, on the share of the plain distance, or on the readout. All candidates of a configuration are
therefore derived from one fit per fold, and the cost of a candidate is the classification of the
rows that the folds leave out.

Cheap readouts are tried first. All variants are scored with the margin for a few numbers of
neighbours, the best variants with flats, and the best configurations with mixtures, logistic
regressions and support vector machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._threads import one_blas_thread
from .._typing import Float, Index
from ..model import best_step
from ..model.readouts import READOUTS, Margin, Readout
from .checkpoints import Checkpoints
from .choosing import (
    SHARES,
    TO_DROP,
    Candidate,
    calibrated,
    choose,
    out_of_fold,
    scored_rows,
    variants,
    with_share,
)
from .fits import CrossFit, Variant
from .folds import FoldTask, learn_fold
from .learn import Learned

#: The paper's grid of lambda_C.
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: The numbers of variables to which a metric may be pruned.
SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)
#: The number of equal parts into which the places of cuts divide the longest path.
CUTS = 8
#: The number of configurations (finalists) that are tried with the readouts for finalists.
FINALISTS = 2
#: For tables with more rows, the readouts for finalists are only tried if ``classifier`` names one:
#: the time and memory of a support vector machine grow with the square of the number of rows.
MOST_ROWS_OF_FINALISTS = 6000

#: Computes the score of each fold from the probabilities of the rows. Larger scores are better.
FoldScores = Callable[[Float, Index, Float, Sequence[int]], Float]


@dataclass(frozen=True, eq=False)  # the fields are arrays, which == compares element by element
class Scored:
    """A candidate with its out-of-fold score for each fold."""

    candidate: Candidate
    scores: Float
    n_variables: float

    @property
    def variant(self) -> Variant:
        return self.candidate.variant

    @property
    def readout(self) -> Readout:
        return self.candidate.readout

    @property
    def score(self) -> float:
        """The mean score over the folds; minus infinity if the score of a fold is undefined."""
        mean = float(np.mean(self.scores))
        return -np.inf if np.isnan(mean) else mean


@dataclass(frozen=True)
class Limits:
    """The restrictions of the variants by parameters; "auto" is no restriction."""

    start_share: float | str = "auto"
    prune: int | str | None = "auto"

    def keep_to(self, tried: Sequence[Variant]) -> list[Variant]:
        """The variants that satisfy the restrictions, without duplicates.

        A given number of variables replaces ``recurrences`` and ``size`` of each variant.
        """
        numbered = self.prune is not None and self.prune != "auto"
        if self.start_share != "auto" or numbered:
            share = 0.0 if self.start_share == "auto" else float(self.start_share)
            tried = with_share(tried, share)
        if self.prune is None:
            tried = [v for v in tried if v.recurrences == 1 and v.size is None]
        elif self.prune != "auto":
            tried = [replace(v, recurrences=1, size=int(self.prune)) for v in tried]
        return list(dict.fromkeys(tried))


def learn_timed(task: FoldTask, checkpoints: Checkpoints | None) -> tuple[Learned, float]:
    """The fit of a fold, and its time in seconds."""
    start = time.perf_counter()
    learned = learn_fold(task, checkpoints=checkpoints)
    return learned, time.perf_counter() - start


def cheap_variants(crossfit: CrossFit, limits: Limits) -> list[Variant]:
    """The variants that are tried with the margin, a few dozen."""
    n_fits = len(crossfit.fits)
    majority = (n_fits + 1) // 2
    found = [Variant(0.0, least) for least in sorted({1, majority, n_fits})]
    found += [Variant(steps=steps) for steps in _cuts(crossfit)]
    found += [Variant(penalty=penalty) for penalty in _penalties(crossfit)]
    found += [Variant(size=size) for size in SIZES if size < len(crossfit.recurring(Variant()))]
    found += [Variant(share, majority) for share in SHARES]
    found += [*(Variant(share) for share in SHARES), Variant(1.0)]
    return limits.keep_to(found)


def _cuts(crossfit: CrossFit) -> list[int]:
    longest = max(len(fit.path) for fit in crossfit.fits)
    places = np.unique(np.ceil(longest * np.arange(1, CUTS) / CUTS).astype(int))
    return [int(place) for place in places if 0 < place < longest]


def _penalties(crossfit: CrossFit) -> list[float]:
    """The penalties that cut some path at another step than no penalty and smaller penalties do."""
    seen = {tuple(len(fit.path) for fit in crossfit.fits)}
    found = []
    for penalty in PENALTIES:
        cut = tuple(best_step(fit.path, penalty) for fit in crossfit.fits)
        if cut not in seen:
            seen.add(cut)
            found.append(penalty)
    return found


@one_blas_thread()
def score_variants(
    crossfit: CrossFit,
    tried: Iterable[Variant],
    readouts: Sequence[Readout],
    fold_scores: FoldScores,
) -> list[Scored]:
    """The candidates for every variant and readout, calibrated and scored out of fold."""
    found = []
    sizes = [len(part) for part in scored_rows(crossfit)]
    for variant in tried:
        rows, evidence = out_of_fold(crossfit, variant, readouts)
        labels, weight = crossfit.labels[rows], crossfit.weight[rows]
        weight = weight * (len(weight) / weight.sum())
        size = _n_variables(crossfit, variant)
        for readout, values in evidence.items():
            candidate = calibrated(variant, readout, values, labels, weight)
            p = candidate.calibration.probabilities(values)
            scores = fold_scores(p, labels, weight, sizes)
            if variant.share < 1:  # ``plain_score`` needs the evidence under the plain distance
                candidate = replace(candidate, evidence=None)
            found.append(Scored(candidate, scores, size))
    return found


def _n_variables(crossfit: CrossFit, variant: Variant) -> float:
    """The mean number of variables in the metrics of the folds."""
    counts = [len({j for t in m.columns for j in t}) for m in crossfit.fold_metrics(variant)]
    return float(np.mean(counts))


@one_blas_thread()
def cheap_search(
    crossfit: CrossFit,
    classifier: str,
    n_neighbors: int | None,
    fold_scores: FoldScores,
    limits: Limits,
) -> list[Scored]:
    """Score all variants with the cheap readouts, then the best variants with more readouts."""
    everywhere = _kinds(classifier, "everywhere") or [Margin]
    found: list[Scored] = []
    for kind in everywhere:
        tried = cheap_variants(crossfit, limits)
        found += score_variants(crossfit, tried, kind.grid(n_neighbors), fold_scores)
    return _searched(crossfit, found, _kinds(classifier, "best"), n_neighbors, fold_scores)


def search_of_finalist(
    crossfit: CrossFit,
    classifier: str,
    n_neighbors: int | None,
    found: list[Scored],
    fold_scores: FoldScores,
) -> list[Scored]:
    """The candidates found so far, and the best variants with the readouts for finalists."""
    kinds = _kinds(classifier, "finalists")
    return _searched(crossfit, found, kinds, n_neighbors, fold_scores)


def finalists(found: Sequence[Sequence[Scored]], classifier: str, n_rows: int) -> list[int]:
    """The numbers of the configurations that are tried with the readouts for finalists."""
    if not _kinds(classifier, "finalists"):
        return []
    by_score = sorted(range(len(found)), key=lambda i: -max(scored.score for scored in found[i]))
    if classifier != "auto":
        return by_score
    return by_score[:FINALISTS] if n_rows <= MOST_ROWS_OF_FINALISTS else []


def _kinds(classifier: str, searched: str) -> list[type[Readout]]:
    """The readouts that ``classifier`` allows, for a stage of the search (``Readout.searched``)."""
    return [
        kind
        for kind in READOUTS.values()
        if kind.searched == searched
        and (kind.searched_by_default if classifier == "auto" else kind.name == classifier)
    ]


@one_blas_thread()
def _searched(
    crossfit: CrossFit,
    found: list[Scored],
    kinds: Sequence[type[Readout]],
    n_neighbors: int | None,
    fold_scores: FoldScores,
) -> list[Scored]:
    """The candidates found so far, and the best variants with further readouts."""
    for kind in kinds:
        tried = [v for v in best_variants(found) if kind.with_plain_distance or v.share == 0]
        if kind.only_with_plain_distance and len(kinds) > 1:
            tried = [v for v in tried if v.share > 0]
        found = found + score_variants(crossfit, tried, kind.grid(n_neighbors), fold_scores)
    return found


def best_variants(found: Sequence[Scored]) -> list[Variant]:
    """The best variant without the plain distance, with a share of it, and with it alone.

    A variant that is clearly worse than the best one is left out.
    """
    groups: dict[int, Scored] = {}
    for scored in found:
        group = _columns_group(scored.variant)
        if group not in groups or scored.score > groups[group].score:
            groups[group] = scored
    best = max(groups.values(), key=lambda scored: scored.score).candidate
    close = [g for g in sorted(groups) if not best.better_than(groups[g].candidate, TO_DROP)]
    return [groups[group].variant for group in close]


def _columns_group(variant: Variant) -> int:
    """0 without the plain distance, 1 with a share of it, 2 with the plain distance alone."""
    return 0 if variant.share == 0 else 2 if variant.share == 1 else 1


def of_classifier(found: Sequence[Scored], classifier: str) -> list[Scored]:
    """The candidates whose readout ``classifier`` allows."""
    return [s for s in found if classifier in ("auto", s.readout.name)]


def simplest_within_one_error(found: Sequence[Scored]) -> Scored:
    """The candidate with the fewest variables within one standard error of the best score."""
    close = _within_one_error(found)
    return min(close, key=lambda scored: (scored.n_variables, -scored.score))


def usual_choice(found: Sequence[Scored], n_fits: int) -> Scored | None:
    """The candidate that a fit without a search would choose; None if no candidate is one of it."""
    tried = set(variants(n_fits))
    own = [s for s in found if s.variant in tried and type(s.readout).automatic]
    if not own:
        return None
    best = choose([scored.candidate for scored in own])
    return next(scored for scored in own if scored.candidate is best)


def to_blend(found: Sequence[Sequence[Scored]], most: int) -> list[tuple[int, Scored]]:
    """The best candidate of each kind within one standard error of the best score.

    The candidates are returned with the numbers of their configurations, at most ``most`` of them.
    ``found`` has one list per configuration. A kind is a configuration, a type of readout, and no
    share, a partial share or the full share of the plain distance. Candidates of the same kind make
    similar errors. Candidates of different kinds make different errors, so their average is better.
    """
    close = {id(scored) for scored in _within_one_error([s for part in found for s in part])}
    numbered = [(i, scored) for i, part in enumerate(found) for scored in part]
    leaders: dict[tuple[int, type, int], tuple[int, Scored]] = {}
    for i, scored in sorted(numbered, key=lambda pair: -pair[1].score):
        kind = i, type(scored.readout), _columns_group(scored.variant)
        if id(scored) in close:
            leaders.setdefault(kind, (i, scored))
    return list(leaders.values())[:most]


def _within_one_error(found: Sequence[Scored]) -> list[Scored]:
    """The candidates within one standard error of the best score."""
    best = max(found, key=lambda scored: scored.score)
    error = float(np.std(best.scores, ddof=1)) / np.sqrt(len(best.scores))
    return [scored for scored in found if scored.score >= best.score - error]
