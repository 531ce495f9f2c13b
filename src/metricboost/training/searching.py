"""A search: the fits of all configurations, the scores of all candidates, and the blend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from .._counter import Counter
from .._tasks import run_tasks
from ..model import Blend
from .choosing import effective_rows, plain_score
from .finishing import finished, reading_of, rows_of
from .fits import CrossFit
from .folds import Split, fold_tasks, over_folds, whole_of
from .limits import refuse_far_rows
from .options import LearningOptions
from .pool import Pool
from .run import Run
from .tuning import (
    FoldScores,
    Limits,
    Scored,
    cheap_search,
    finalists,
    learn_timed,
    of_classifier,
    search_of_finalist,
    simplest_within_one_error,
    to_blend,
    usual_choice,
)

#: The choice of a fit without a search is blended if its loss is at most this multiple of the best.
MOST_LOSS = 2.0


@dataclass(frozen=True)
class Tried:
    """A configuration with its fits, one for each fold, and its scored candidates.

    Attributes
    ----------
    params : dict
        The parameters of the configuration.
    options : LearningOptions
    crossfit : CrossFit
    seconds : list of float
        The time that the fit of each fold took.
    found : list of Scored
        The scored candidates: variants of these fits with their readouts.
    """

    params: dict[str, Any]
    options: LearningOptions
    crossfit: CrossFit
    seconds: list[float]
    found: list[Scored]


@dataclass(frozen=True)
class Searched:
    """The candidates of a search, and their score.

    Attributes
    ----------
    classifier : str
        The readouts to try, as in ``SDistClassifier``.
    n_neighbors : int or None
        The number of neighbours of the readouts. None tries several numbers.
    limits : Limits
        Restricts the variants.
    fold_scores : callable
        Computes the score of each fold from probabilities.
    """

    classifier: str
    n_neighbors: int | None
    limits: Limits
    fold_scores: FoldScores


def search(
    pool: Pool,
    configurations: Sequence[tuple[dict[str, Any], LearningOptions]],
    splits: Sequence[Split],
    searched: Searched,
    run: Run,
    names: Sequence[str] | None = None,
) -> list[Tried]:
    """Fit every configuration on every fold, and score the candidates of each configuration.

    Parameters
    ----------
    pool : Pool
    configurations : sequence of (parameters, options)
    splits : sequence of (kept, left out)
    searched : Searched
    run : Run
    names : sequence of str, optional
        The names of the columns of the input.
    """
    options = [option for _, option in configurations]
    at_a_time = run.tasks_at_a_time(pool, len(options) * len(splits))
    crossfits, seconds = _fitted(pool, options, splits, run, at_a_time)
    for crossfit, option in zip(crossfits, options):
        refuse_far_rows(crossfit, option.max_degree, names)
    found = _scored(crossfits, searched, run.verbose, at_a_time)
    parts = zip(configurations, crossfits, seconds, found)
    return [
        Tried(params, option, crossfit, taken, scored)
        for (params, option), crossfit, taken, scored in parts
    ]


def _fitted(
    pool: Pool,
    options: Sequence[LearningOptions],
    splits: Sequence[Split],
    run: Run,
    at_a_time: int,
) -> tuple[list[CrossFit], list[list[float]]]:
    """The fits of each configuration, and their times in seconds."""
    engine, n = run.engine_for(at_a_time), len(splits)
    wholes = [whole_of(pool, [kept for kept, _ in splits], option) for option in options]
    with run.opened(pool) as opened:
        tasks = [
            partial(learn_timed, task, opened.checkpoints)
            for whole, option in zip(wholes, options)
            for task in fold_tasks(pool, whole, engine, option, splits)
        ]
        fits = run_tasks(at_a_time, tasks, Counter("fits") if run.verbose else None)
    crossfits, seconds = [], []
    for i, (whole, option) in enumerate(zip(wholes, options)):
        own = fits[i * n : (i + 1) * n]
        crossfits.append(over_folds(pool, whole, engine, option, splits, [fit for fit, _ in own]))
        seconds.append([taken for _, taken in own])
    return crossfits, seconds


def _scored(
    crossfits: list[CrossFit], searched: Searched, verbose: bool, at_a_time: int
) -> list[list[Scored]]:
    """The scored candidates of each configuration."""
    kind, k, scores = searched.classifier, searched.n_neighbors, searched.fold_scores
    found = run_tasks(
        at_a_time,
        [partial(cheap_search, part, kind, k, scores, searched.limits) for part in crossfits],
        Counter("configurations scored") if verbose else None,
    )
    chosen = finalists(found, kind, crossfits[0].X.shape[0])
    if chosen:
        more = run_tasks(
            at_a_time,
            [partial(search_of_finalist, crossfits[i], kind, k, found[i], scores) for i in chosen],
            Counter("finalists scored") if verbose else None,
        )
        for i, part in zip(chosen, more):
            found[i] = part
    return [of_classifier(part, kind) for part in found]


def best_of(tried: Sequence[Tried], mean: npt.NDArray[Any], one_standard_error: bool) -> int:
    """The index of the best entry of ``results``.

    Parameters
    ----------
    tried : sequence of Tried
    mean : ndarray
        The mean score of every entry.
    one_standard_error : bool
        Whether the candidate with the fewest variables whose score is within one standard error of
        the best score is chosen.
    """
    if not one_standard_error:
        return int(np.nanargmax(mean))
    found = [scored for one in tried for scored in one.found]
    return found.index(simplest_within_one_error(found))


def to_make(
    tried: Sequence[Tried],
    best: int,
    n_blended: int,
    one_standard_error: bool,
    usual: Mapping[str, Any],
) -> list[tuple[int, Scored]]:
    """The candidates whose models are created, with their configuration numbers, the best first.

    The second model is the one that a fit without a search would choose, unless it is much worse.
    ``usual`` has the parameters of this fit. Without it, the search would sometimes lose to the
    defaults in small tables, because it cannot tell its best candidates from chance.
    """
    numbered = [(i, scored) for i, one in enumerate(tried) for scored in one.found]
    first = numbered[best]
    if one_standard_error:
        return [first]
    chosen = [first, *to_blend([one.found for one in tried], n_blended)]
    for i, one in enumerate(tried):
        if all(usual[name] == value for name, value in one.params.items()):
            scored = usual_choice(one.found, len(one.crossfit.fits))
            most = MOST_LOSS * first[1].candidate.loss
            if scored is not None and scored.candidate.loss <= most:
                chosen.insert(1, (i, scored))
    different = {id(pair[1]): pair for pair in chosen}  # each candidate once, in this order
    return list(different.values())[:n_blended]


def blended(
    tried: Sequence[Tried],
    chosen: Sequence[tuple[int, Scored]],
    pool: Pool,
    classes: npt.NDArray[Any],
    names: Sequence[str] | None,
) -> Blend:
    """The blend of the chosen candidates. Its models share one copy of the training rows.

    Parameters
    ----------
    tried : sequence of Tried
    chosen : sequence of (number of a configuration, Scored)
        The result of ``to_make``.
    pool : Pool
    classes : ndarray
    names : sequence of str or None
        The names of the columns of the input.
    """
    models = []
    for i, scored in chosen:
        one = tried[i]
        starts_plain = isinstance(one.options.init, str) and one.options.init == "identity"
        most = one.options.prune if isinstance(one.options.prune, int) else None
        models.append(
            finished(one.crossfit, pool, scored.variant, classes, names, most, starts_plain)
        )
    rows = rows_of(pool, models)
    first = tried[min(i for i, _ in chosen)]
    plain = plain_score(first.crossfit, [scored.candidate for scored in first.found])
    n = effective_rows(first.crossfit)
    return Blend(
        tuple(
            replace(model, reading=reading_of(scored.candidate, rows, plain, n))
            for model, (_, scored) in zip(models, chosen)
        )
    )


def results(tried: Sequence[Tried]) -> dict[str, Any]:
    """``cv_results_``: one entry per configuration, variant and readout."""
    rows = [(one, scored) for one in tried for scored in one.found]
    scores = np.array([scored.scores for _, scored in rows])
    mean = scores.mean(axis=1)
    params = [_params(one, scored) for one, scored in rows]
    names = dict.fromkeys(name for part in params for name in part)
    times = np.array([one.seconds for one, _ in rows])
    return {
        "mean_fit_time": times.mean(axis=1),
        "std_fit_time": times.std(axis=1),
        **{f"param_{name}": _column(params, name) for name in names},
        "params": params,
        **{f"split{j}_test_score": scores[:, j] for j in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min").astype(int),
        "mean_n_variables": np.array([scored.n_variables for _, scored in rows]),
    }


def _params(tried: Tried, scored: Scored) -> dict[str, Any]:
    variant = scored.variant
    return {
        **tried.params,
        "start_share": variant.share,
        "recurrences": variant.recurrences,
        "size": variant.size,
        "steps": variant.steps,
        "penalty": variant.penalty,
        "readout": repr(scored.readout),
    }


def _column(params: list[dict[str, Any]], name: str) -> Any:
    values: Any = np.ma.masked_all(len(params), dtype=object)  # type: ignore[no-untyped-call]
    for i, part in enumerate(params):
        if name in part:
            values[i] = part[name]
    return values
