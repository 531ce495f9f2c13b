"""Tuning: many metrics and readouts read off the same fits.

The step at which a path is cut, the penalty that cuts it, how many variables stay, the share of the
start metric and the readout never feed back into a fit. So one fit per fold and configuration
serves them all, and a search over them costs what it costs to classify the rows left out.

The search goes from cheap to dear: all variants with the margin of a few numbers of neighbours,
then the best of them with flats and mixtures, then the best configurations with support vector
machines.
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
from .choosing import SHARES, Candidate, calibrated, out_of_fold, scored_rows, with_share
from .fits import CrossFit, Variant
from .folds import FoldTask, learn_fold
from .learn import Learned

#: The paper's grid of lambda_C.
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Sizes a metric may be pruned to.
SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)
#: Places at which paths are cut.
CUTS = 8
#: Configurations that are tried with the readouts for finalists.
FINALISTS = 3
#: Tables with more rows are not tried with these, unless the classifier asks for them: a support
#: vector machine takes time and memory that grow with the square of the rows.
MOST_ROWS_OF_FINALISTS = 6000

#: Scores of every fold, larger for better, from the rows' probabilities.
FoldScores = Callable[[Float, Index, Float, Sequence[int]], Float]


@dataclass(frozen=True, eq=False)  # each is its own: arrays have no single truth value
class Scored:
    """A candidate with its score out of every fold."""

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
        """The mean over the folds; the worst there is where a fold has none."""
        mean = float(np.mean(self.scores))
        return -np.inf if np.isnan(mean) else mean


@dataclass(frozen=True)
class Limits:
    """What of a metric is given rather than searched; "auto" for nothing."""

    start_share: float | str = "auto"
    prune: int | str | None = "auto"

    def keep_to(self, tried: Sequence[Variant]) -> list[Variant]:
        """The variants within the limits, each once; a given number of variables is one."""
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
    """The metric of a fold, and the seconds that learning took."""
    start = time.perf_counter()
    learned = learn_fold(task, checkpoints=checkpoints)
    return learned, time.perf_counter() - start


def cheap_variants(crossfit: CrossFit, limits: Limits) -> list[Variant]:
    """All variants that are tried with the margin, a few dozen."""
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
    """The penalties that cut anywhere but where no penalty or another one does."""
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
    """Every variant with every readout, calibrated and scored on rows out of fold."""
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
            if variant.share < 1:  # the plain distance is judged once more, by ``plain_score``
                candidate = replace(candidate, evidence=None)
            found.append(Scored(candidate, scores, size))
    return found


def _n_variables(crossfit: CrossFit, variant: Variant) -> float:
    """The mean number of variables in the folds' metrics."""
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
    """The readouts that are tried everywhere on all variants, then others on the best of them."""
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
    """What was found, and the readouts for finalists on the best variants."""
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
    """The readouts that the classifier may use and that are searched at this place."""
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
    """What was found, and more readouts on the best variants."""
    for kind in kinds:
        tried = [v for v in best_variants(found) if kind.with_plain_distance or v.share == 0]
        found = found + score_variants(crossfit, tried, kind.grid(n_neighbors), fold_scores)
    return found


def best_variants(found: Sequence[Scored]) -> list[Variant]:
    """The best variant without, with some and with nothing but the start metric."""
    groups: dict[int, Scored] = {}
    for scored in found:
        group = _columns_group(scored.variant)
        if group not in groups or scored.score > groups[group].score:
            groups[group] = scored
    return [groups[group].variant for group in sorted(groups)]


def _columns_group(variant: Variant) -> int:
    """0 for the learned columns alone, 1 for all of them beside, 2 for all of them alike."""
    return 0 if variant.share == 0 else 2 if variant.share == 1 else 1


def of_classifier(found: Sequence[Scored], classifier: str) -> list[Scored]:
    """Those whose readout the classifier may use."""
    kind = READOUTS.get(classifier, Readout)
    return [scored for scored in found if isinstance(scored.readout, kind)]


def simplest_within_one_error(found: Sequence[Scored]) -> Scored:
    """The fewest variables among those not worse than the best by more than a standard error."""
    close = _within_one_error(found)
    return min(close, key=lambda scored: (scored.n_variables, -scored.score))


def to_blend(found: Sequence[Sequence[Scored]], most: int) -> list[tuple[int, Scored]]:
    """The best of each kind that is within one standard error of the best of all, with its number.

    ``found`` has one list per configuration. A kind is a configuration, a sort of readout and
    whether all columns are in: candidates of one kind make much the same errors, those of different
    kinds do not, so that averaging them helps.
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
    """Those not worse than the best by more than the standard error of its score."""
    best = max(found, key=lambda scored: scored.score)
    error = float(np.std(best.scores, ddof=1)) / np.sqrt(len(best.scores))
    return [scored for scored in found if scored.score >= best.score - error]
