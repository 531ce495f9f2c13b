"""The parts of a search: its tasks, its configurations and its table of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel
from scipy.stats import rankdata

from ..boosting import LearningOptions
from ..selection.crossfit import CrossFit
from ..selection.tuning import Scored
from ._progress import Counter


@dataclass(frozen=True)
class Configuration:
    """Parameters with their fits, one for each fold, and all that was read off them."""

    params: dict[str, Any]
    options: LearningOptions
    crossfit: CrossFit
    seconds: list[float]
    found: list[Scored]


class Tasks:
    """Runs tasks in processes; their results in order, counted as they end where named."""

    def __init__(self, n_jobs: int, name: str | None) -> None:
        self._n_jobs = n_jobs
        self._counter = None if name is None else Counter(name)

    def __call__(self, tasks: Iterable[Any]) -> list[Any]:
        tasks = list(tasks)
        found = []
        for result in Parallel(self._n_jobs, return_as="generator")(tasks):
            found.append(result)
            if self._counter is not None:
                self._counter(len(found), len(tasks))
        return found


def results(tried: list[Configuration]) -> dict[str, Any]:
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


def _params(configuration: Configuration, scored: Scored) -> dict[str, Any]:
    variant = scored.variant
    return {
        **configuration.params,
        "start_share": variant.share,
        "recurrences": variant.recurrences,
        "size": variant.size,
        "steps": variant.steps,
        "penalty": variant.penalty,
        "rule": repr(scored.rule),
    }


def _column(params: list[dict[str, Any]], name: str) -> Any:
    values = np.ma.masked_all(len(params), dtype=object)
    for i, part in enumerate(params):
        if name in part:
            values[i] = part[name]
    return values
