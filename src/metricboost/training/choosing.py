"""The choice of a variant of the metric and of a readout, by predictions out of fold.

A *candidate* is a variant with a readout. Its evidence for a row is out of fold: the metric was
learned without the row. The evidence is calibrated and scored by the Brier score, which for small
tables distinguishes candidates better than the number of errors. The candidate with the best score
is chosen, with three exceptions. A readout on the terms of the metric, or a ridge regression, is
chosen only if its score is clearly better than that of all readouts of distances. A share of the
plain distance is chosen only if the score is clearly better with it. Among the variants without the
plain distance, the sparsest one whose score is not clearly worse is chosen. The best candidates of
other kinds are then averaged with the chosen one, as far as the average has a smaller loss.

The best score of about fifty candidates is optimistic. The reported out-of-fold error is therefore
computed with a separate choice for each fold: the candidate for the rows of a fold is chosen and
calibrated with the rows of the other folds (``chosen``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import log_softmax, softmax

from .._tasks import run_tasks
from .._typing import Float, Index, Mask
from ..model import Calibration, SparseMetric, calibrate
from ..model.readouts import Readout, Training, evidence, in_span, rows_for_terms
from .fits import CrossFit, Variant
from .learn import Fold

#: The largest number of scored rows. With 2500 rows an error of 0.1 has the standard error 0.006.
MOST_SCORED = 2500
#: In tables with at least twice as many scored rows, all candidates are first scored on this number
#: of rows. Candidates that are worse than the best one by more than TO_DROP standard errors are
#: dropped.
FIRST_SCORED = 600
TO_DROP = 2.5
#: The number of standard errors by which the score must be better for a share of the plain
#: distance, and for a metric with more variables.
TO_TAKE_ALL = 1.5
TO_KEEP_MORE = 1.0
#: The number of standard errors by which the score must be better for a readout on the terms, and
#: by which it may be worse if further readouts on the terms are to be tried.
TO_TAKE_TERMS, TO_GIVE_UP = 2.0, 0.5
#: Readouts on the terms are not tried beside others if they can be fitted to a smaller share of the
#: rows, or if the number of rows times terms times classes is larger with more than two classes. In
#: both cases they take longer than everything else, and seldom win.
LEAST_SHARE, MOST_PRODUCTS = 0.25, 2**22
#: Whether the best readouts of different kinds may be averaged.
AVERAGES = True
#: The shares of the plain distance to choose from, apart from 0 and 1.
SHARES = (0.5, 0.8)


@dataclass(frozen=True)
class Candidate:
    """A variant and a readout with their calibration and their loss for every scored row."""

    variant: Variant
    readout: Readout
    calibration: Calibration
    losses: Float
    error: float
    #: The difference between the loss of predicting the class frequencies and the loss of the
    #: candidate, in standard errors. NaN if the metric was learned from the scored rows.
    gain: float = float("nan")
    #: The evidence for the scored rows, n x C, for other calibrations.
    evidence: Float | None = None

    @property
    def loss(self) -> float:
        return float(self.losses.mean())

    def better_than(self, other: Candidate, errors: float) -> bool:
        """Whether the loss is smaller by more than ``errors`` standard errors of the difference.

        The standard error is that of the mean of the differences of single rows.
        """
        gain = other.losses - self.losses
        return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def variants(n_fits: int) -> list[Variant]:
    """The variants to choose from, the sparsest first, those with the plain distance last."""
    needed = sorted({1, (n_fits + 1) // 2, n_fits}, reverse=True)
    majority = (n_fits + 1) // 2
    shared = [Variant(share, majority) for share in SHARES]
    return [*(Variant(0.0, least) for least in needed), *shared, Variant(1.0)]


def scored_rows(crossfit: CrossFit, most: int = MOST_SCORED) -> list[Index]:
    """The scored rows of each fold: the rows that it leaves out, at most ``most`` in total."""
    total = sum(len(fold.left_out) for fold in crossfit.folds)
    share = min(1.0, most / total)
    rows = []
    for fold in crossfit.folds:
        size = max(1, round(share * len(fold.left_out)))
        rows.append(fold.left_out[np.linspace(0, len(fold.left_out) - 1, size).astype(np.intp)])
    return rows


def out_of_fold(
    crossfit: CrossFit, variant: Variant, readouts: Sequence[Readout]
) -> tuple[Index, dict[Readout, Float]]:
    """The scored rows, and the evidence out of fold of each readout for these rows."""
    scored = scored_rows(crossfit)
    metrics = crossfit.fold_metrics(variant)
    found = [
        _of_fold(crossfit, fold, metric, rows, readouts)
        for fold, metric, rows in zip(crossfit.folds, metrics, scored)
    ]
    return np.concatenate(scored), _together(found)


def _of_fold(
    crossfit: CrossFit, fold: Fold, metric: SparseMetric, rows: Index, readouts: Sequence[Readout]
) -> dict[Readout, Float]:
    """The evidence for some rows that a fold leaves out."""
    X, n_classes = crossfit.X, crossfit.n_classes
    found: dict[Readout, Float] = {}
    for on_terms in (False, True):
        some = [readout for readout in readouts if readout.on_terms == on_terms]
        if some:
            if on_terms:
                kept = rows_for_terms(fold.kept, len(metric.columns), n_classes)
                embedded, queries = (metric.weighted_features(X, part) for part in (kept, rows))
            else:
                kept = fold.kept
                embedded, queries = _places(crossfit, fold, metric, rows)
            labels, weight = crossfit.labels[kept], crossfit.weight[kept]
            training = Training(embedded, labels, weight, n_classes)
            found |= evidence(crossfit.engine, training, queries, some)
    return {readout: found[readout] for readout in readouts}


def _places(
    crossfit: CrossFit, fold: Fold, metric: SparseMetric, rows: Index
) -> tuple[Float, Float]:
    """The positions of the rows that a fold keeps, and of some rows that the fold leaves out.

    If the metric has a share of the plain distance and the table has more columns than rows, the
    positions under the plain distance are those in the span of the kept rows. They are the same for
    all metrics of the fold but for their scale, and are computed once.
    """
    if np.count_nonzero(metric.diagonal) <= len(fold.kept):
        kept = metric.embedded(crossfit.X, fold.kept)
        return in_span(kept, metric.embedded(crossfit.X, rows))
    root, own = np.sqrt(metric.diagonal.max()), metric.without_diagonal()
    kept, left_out = crossfit.plain_places.of(fold, crossfit.X)
    plain = kept, left_out[np.searchsorted(fold.left_out, rows)]
    first, second = (
        np.hstack([own.embedded(crossfit.X, which), root * places])
        for which, places in zip((fold.kept, rows), plain)
    )
    return first, second


def _together(found: Sequence[dict[Readout, Float]]) -> dict[Readout, Float]:
    """The evidence of all folds."""
    return {one: np.vstack([part[one] for part in found]) for one in found[0]}


def candidates(
    crossfit: CrossFit, tried: Sequence[Variant], readouts: Sequence[Readout], n_threads: int = 1
) -> list[Candidate]:
    """The candidates for all pairs of a variant and a readout, in the order of the variants.

    In large tables all pairs are first scored on FIRST_SCORED rows. The pairs that are clearly
    worse than the best one are no candidates. If the first readout of a type on the terms is
    clearly worse than the best readout of distances, the others of the type are not tried.
    """
    metrics = dict(
        zip(tried, run_tasks(n_threads, [partial(crossfit.fold_metrics, one) for one in tried]))
    )
    few, rows = scored_rows(crossfit, FIRST_SCORED), scored_rows(crossfit)
    judged = partial(_judged, crossfit, metrics, n_threads=n_threads)
    alone = len({type(one) for one in readouts}) == 1  # the user has chosen it
    pairs = {
        variant: [
            one
            for one in readouts
            if not one.on_terms and (variant.share > 0 or alone or not one.only_with_plain_distance)
        ]
        for variant in tried
    }
    if sum(map(len, few)) < sum(map(len, rows)) / 2 and len(tried) * len(readouts) > 1:
        pairs = _promising(judged(pairs, few)) if any(pairs.values()) else pairs
    found = judged(pairs, rows)
    variant, best = _variant_of_terms(tried), _best(found) if found else None
    if best is not None and not _affordable(crossfit, metrics[variant]):
        return found
    for readout in dict.fromkeys(type(one) for one in readouts if one.on_terms):
        own = [one for one in readouts if type(one) is readout]
        found += judged({variant: own[:1]}, rows)
        if len(own) > 1 and (best is None or not best.better_than(found[-1], TO_GIVE_UP)):
            found += judged({variant: own[1:]}, rows)
    return found


def _variant_of_terms(tried: Sequence[Variant]) -> Variant:
    """The variant whose terms readouts on the terms use.

    Metrics that differ only in the share of the plain distance have the same terms, and readouts on
    the terms choose among the terms themselves. So a single variant is tried.
    """
    least = min(variant.share for variant in tried)
    sparse = [variant for variant in tried if variant.share == least]
    return sparse[len(sparse) // 2]


def _affordable(crossfit: CrossFit, metrics: Sequence[SparseMetric]) -> bool:
    """Whether readouts on the terms are tried beside readouts of distances."""
    n_classes = crossfit.n_classes
    for fold, metric in zip(crossfit.folds, metrics):
        n, n_terms = len(fold.kept), len(metric.columns)
        if n_classes > 2 and n * n_terms * n_classes > MOST_PRODUCTS:
            return False
        if len(rows_for_terms(fold.kept, n_terms, n_classes)) < LEAST_SHARE * n:
            return False
    return True


def _judged(
    crossfit: CrossFit,
    metrics: Mapping[Variant, Sequence[SparseMetric]],
    pairs: Mapping[Variant, Sequence[Readout]],
    scored: Sequence[Index],
    n_threads: int,
) -> list[Candidate]:
    """The candidates for some pairs, scored on some rows of each fold."""
    folds = range(len(scored))
    found = run_tasks(
        n_threads,
        [
            partial(_of_fold, crossfit, crossfit.folds[j], metrics[one][j], scored[j], readouts)
            for one, readouts in pairs.items()
            for j in folds
        ],
    )
    rows = np.concatenate(scored)
    labels, weight = crossfit.labels[rows], crossfit.weight[rows]
    weight = weight * (len(weight) / weight.sum())
    tasks = []
    for i, variant in enumerate(pairs):
        for one, values in _together(found[i * len(folds) : (i + 1) * len(folds)]).items():
            tasks.append(partial(calibrated, variant, one, values, labels, weight))
    return run_tasks(n_threads, tasks)


def _promising(found: Sequence[Candidate]) -> dict[Variant, list[Readout]]:
    """The pairs that are not clearly worse than the best, and the best with the plain distance.

    The best candidate with the plain distance alone is kept for ``plain_score``.
    """
    best = _best(found)
    kept = [one for one in found if not best.better_than(one, TO_DROP)]
    plain = [one for one in found if one.variant.share == 1]
    if plain:
        kept.append(_best(plain))
    pairs: dict[Variant, list[Readout]] = {}
    for one in found:
        if any(one is other for other in kept):
            pairs.setdefault(one.variant, []).append(one.readout)
    return pairs


def calibrated(
    variant: Variant, readout: Readout, values: Float, labels: Index, weight: Float
) -> Candidate:
    """A candidate from its evidence out of fold. ``weight`` must have a mean of 1."""
    calibration = calibrate(values, labels, weight)
    probabilities = calibration.probabilities(values)
    losses = weight * brier(probabilities, labels)
    error = float((weight * errors(probabilities, labels)).mean())
    gain = gain_over_guessing(losses, labels, weight)
    return Candidate(variant, readout, calibration, losses, error, gain, values)


def gain_over_guessing(losses: Float, labels: Index, weight: Float) -> float:
    """The mean gain over predicting the class frequencies, in standard errors of the mean."""
    frequencies = np.bincount(labels, weight) / weight.sum()
    gain = weight * brier(np.tile(frequencies, (len(labels), 1)), labels) - losses
    error = float(gain.std() / np.sqrt(len(gain)))
    return float(gain.mean()) / error if error > 0 else 0.0


def brier(probabilities: Float, labels: Index) -> Float:
    """The Brier score of each row: the squared distance of its probabilities from its class."""
    happened = np.eye(probabilities.shape[1])[labels]
    result: Float = ((probabilities - happened) ** 2).sum(axis=1)
    return result


def errors(probabilities: Float, labels: Index) -> Float:
    """The error of each row: 1 if another class is more probable than the class of the row.

    If the class of the row is tied for the most probable class among t classes, the error is
    1 - 1/t.
    """
    winners = probabilities == probabilities.max(axis=1, keepdims=True)
    right = winners[np.arange(len(labels)), labels]
    return np.where(right, 1 - 1 / winners.sum(axis=1), 1.0)


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen candidates, and predictions out of fold that also tell how good the choice is.

    Attributes
    ----------
    candidates : list of Candidate
        The best candidate and, if their average predicts better, candidates of other kinds. They
        have the error and the gain of the predictions.
    rows : ndarray of int
        The rows that have a prediction.
    log_odds : ndarray of shape (len(rows), n_classes)
        The log probabilities of the classes, up to a constant for each row.
    """

    candidates: list[Candidate]
    rows: Index
    log_odds: Float

    @property
    def best(self) -> Candidate:
        return self.candidates[0]


def chosen(crossfit: CrossFit, found: Sequence[Candidate]) -> Choice:
    """Choose one or several candidates, and predict the scored rows.

    For each fold, candidates are chosen and calibrated with the rows of the other folds. They then
    classify the rows of the fold.
    """
    scored = scored_rows(crossfit)
    rows, fold = np.concatenate(scored), np.repeat(np.arange(len(scored)), [len(s) for s in scored])
    labels, weight = crossfit.labels[rows], crossfit.weight[rows]
    weight = weight * (len(weight) / weight.sum())
    log_odds = np.empty((len(rows), crossfit.n_classes))
    for out in (fold == number for number in range(len(scored))):
        others = weight[~out] * (len(weight[~out]) / weight[~out].sum())
        parts = []
        for one in averaged_by(found, labels[~out], others, ~out):
            assert one.evidence is not None
            calibration = calibrate(one.evidence[~out], labels[~out], others)
            parts.append(log_softmax(calibration.log_odds(one.evidence[out]), axis=1))
        log_odds[out] = np.mean(parts, axis=0)
    probabilities = softmax(log_odds, axis=1)
    losses = weight * brier(probabilities, labels)
    error = float((weight * errors(probabilities, labels)).mean())
    gain = float("nan") if crossfit.one_fit else gain_over_guessing(losses, labels, weight)
    best = averaged_by(found, labels, weight)
    return Choice([replace(one, error=error, gain=gain, evidence=None) for one in best], rows,
                  log_odds)  # fmt: skip


def averaged_by(
    found: Sequence[Candidate], labels: Index, weight: Float, some: Mask | None = None
) -> list[Candidate]:
    """The candidates whose predictions are averaged: the best one, and perhaps others.

    The best candidate of every other kind is added, one after the other, if the average with it has
    a smaller loss.

    Parameters
    ----------
    found : sequence of Candidate
    labels, weight : ndarray
        Of the rows that decide.
    some : ndarray of bool, optional
        Which of the scored rows decide; all by default.
    """
    place = slice(None) if some is None else some
    judged = [replace(one, losses=one.losses[place]) for one in found]
    number = _number_of_choice(judged)
    leaders: dict[int, int] = {}
    for i in sorted(range(len(found)), key=lambda i: judged[i].loss):
        if kind(found[i]) != kind(found[number]):
            leaders.setdefault(kind(found[i]), i)
    chosen, loss = [found[number]], judged[number].loss
    parts = [_log_probabilities(found[number], place)]
    for i in leaders.values() if AVERAGES else ():
        more = [*parts, _log_probabilities(found[i], place)]
        losses = weight * brier(softmax(np.mean(more, axis=0), axis=1), labels)
        if losses.mean() < loss:
            chosen, parts, loss = [*chosen, found[i]], more, float(losses.mean())
    return chosen


def kind(candidate: Candidate) -> int:
    """0 for readouts of distances, 1 for readouts on the terms, 2 for other cautious readouts."""
    return 1 if candidate.readout.on_terms else 2 * int(candidate.readout.cautious)


def _log_probabilities(candidate: Candidate, place: slice | Mask) -> Float:
    assert candidate.evidence is not None
    log_odds = candidate.calibration.log_odds(candidate.evidence[place])
    result: Float = log_softmax(log_odds, axis=1)
    return result


def effective_rows(crossfit: CrossFit) -> float:
    """The number of new rows by which an error would be as precise as it is out of fold.

    The fits of the folds share rows, so the errors of the folds depend on each other, and the error
    of the final model differs from that of another table. The variance of the mean error of J folds
    is therefore that of independent rows times ``1 + J / (J - 1)`` (Nadeau and Bengio, 2003). Rows
    with different weights count as ``sum(w)^2 / sum(w^2)`` rows. NaN if one fit learned from all
    rows.
    """
    if crossfit.one_fit:
        return float("nan")
    scored, n_folds = scored_rows(crossfit), len(crossfit.folds)
    weight = crossfit.weight[np.concatenate(scored)]
    n = float(weight.sum() ** 2 / (weight**2).sum())
    return n / (1 + n_folds / (n_folds - 1))


def plain_score(crossfit: CrossFit, found: Sequence[Candidate]) -> float:
    """The share of the rows that plain nearest neighbours classify correctly out of fold.

    NaN if no candidate has the plain distance alone.
    """
    plain = [one for one in found if one.variant.share == 1 and not one.readout.cautious]
    return 1 - chosen(crossfit, plain).best.error if plain else float("nan")


def _number_of_choice(found: Sequence[Candidate]) -> int:
    best = choose(found)
    return next(i for i, candidate in enumerate(found) if candidate is best)


def choose(found: Sequence[Candidate]) -> Candidate:
    """The candidate with the smallest loss, or the sparsest one that is not clearly worse.

    A cautious readout is chosen only if it is clearly better than all readouts of distances.
    """
    best = _best(found)
    near = [candidate for candidate in found if not candidate.readout.cautious]
    if best.readout.cautious and near and not best.better_than(_best(near), TO_TAKE_TERMS):
        best = _best(near)
    plain = [candidate for candidate in found if candidate.variant.share == 0]
    if best.variant.share > 0:
        if not plain or best.better_than(_best(plain), TO_TAKE_ALL):
            return best
        best = _best(plain)
    for candidate in plain:  # the sparsest variants come first
        if candidate.readout == best.readout and not best.better_than(candidate, TO_KEEP_MORE):
            return candidate
    return best


def _best(found: Sequence[Candidate]) -> Candidate:
    return min(found, key=lambda candidate: candidate.loss)


def with_share(tried: Sequence[Variant], share: float) -> list[Variant]:
    """The variants, with a given share of the plain distance."""
    kept = [replace(v, share=share) for v in tried if v.share == 0.0]
    return kept if share < 1 else [Variant(1.0)]
