"""``metricboost fit`` and ``metricboost tune``."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from .. import SDistClassifier, SDistClassifierCV
from ..errors import GuessingWarning
from ..model.guessing import guessing, no_better_than_guessing
from ..tables import TableClassifier
from ..tables.targets import has_label, labels_of
from ..training.checkpoints import claim
from ..training.scoring import OWN_SCORES
from ._console import Voice, WrongUsageError, stability_text
from ._models import check_columns, check_output, check_target, read_data

#: The most terms that are printed.
SHOWN = 10


@dataclass(frozen=True)
class FitOptions:
    """What the model depends on, besides the table.

    Attributes
    ----------
    target : str
    drop, keep : tuple of str
    tune : bool
        Whether the parameters are chosen by cross-validation.
    balanced : bool
        Whether all classes have the same weight.
    seed : int
    scoring : str
    cv : int
        The number of folds.
    n_iter : int or None
        The number of configurations to try; None tries all of them.
    """

    target: str
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    tune: bool
    balanced: bool
    seed: int
    scoring: str = "brier"
    cv: int = 5
    n_iter: int | None = None


@dataclass(frozen=True)
class FitRun:
    """What belongs to the run of the command. The model does not depend on it.

    Attributes
    ----------
    voice : Voice
    jobs : int or None
        The number of threads; -1 for all cores.
    checkpoint : Path or None
        The directory for intermediate results.
    """

    voice: Voice
    jobs: int | None = None
    checkpoint: Path | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of estimators that belong to the run."""
        return {
            "n_jobs": self.jobs,
            "checkpoint": self.checkpoint,
            "verbose": int(self.voice.shows_progress),
        }


def run_fit(data: Path, options: FitOptions, run: FitRun, output: Path, rows: bool) -> None:
    """Fit a model to a table and save it.

    Parameters
    ----------
    data : Path
        The file of the table.
    options : FitOptions
    run : FitRun
    output : Path
        The model file.
    rows : bool
        Whether the model file holds the training rows.
    """
    check_output(output, data)
    frame = _checked_table(data, options, run)
    start = time.perf_counter()
    model = TableClassifier(_estimator(options, run), options.drop, options.keep)
    with run.voice.hearing_warnings():
        warnings.simplefilter("ignore", GuessingWarning)  # the result begins with this message
        model.fit(frame, options.target)
    seconds = time.perf_counter() - start
    for problem in model.problems_:
        run.voice.warn(str(problem))
    model.save(output, rows)
    summary = _summary(model, output, seconds)
    run.voice.result(summary)
    _say(run.voice, model, summary)


def _checked_table(data: Path, options: FitOptions, run: FitRun) -> Any:
    """The table. Wrong arguments are refused before the fit."""
    if run.jobs == 0:
        raise WrongUsageError("--jobs 0: give a number of threads, or -1 for all cores.")
    check_target(options.target, options.drop)
    _check_scoring(options.scoring)
    frame = read_data(run.voice, data)
    check_columns(frame, (options.target, *options.drop, *options.keep))
    if options.tune:
        _check_folds(options.cv, frame[options.target])
    if run.checkpoint is not None:
        claim(run.checkpoint, data, asdict(options))
    return frame


def _check_scoring(scoring: str) -> None:
    if scoring not in (*OWN_SCORES, *get_scorer_names()):
        raise WrongUsageError(
            f"--scoring {scoring}: give {', '.join(OWN_SCORES)}, or a scorer of scikit-learn, such "
            "as roc_auc."
        )


def _check_folds(cv: int, target: Any) -> None:
    """Refuse more folds than the search can make, before the fit."""
    labels = labels_of(target[has_label(target)], str(target.name))
    most = int(np.unique(labels, return_counts=True)[1].max())
    if cv > most:
        raise WrongUsageError(
            f"--cv {cv}: the largest class has {most} rows, and there cannot be more folds."
        )


def _estimator(options: FitOptions, run: FitRun) -> Any:
    weight = "balanced" if options.balanced else None
    base = SDistClassifier(missing="impute", class_weight=weight, random_state=options.seed)
    if not options.tune:
        return base.set_params(**run.parameters)
    search = SDistClassifierCV(
        base, n_iter=options.n_iter, cv=options.cv, scoring=options.scoring,
        random_state=options.seed,
    )  # fmt: skip
    jobs = -1 if run.jobs is None else run.jobs
    return search.set_params(**{**run.parameters, "n_jobs": jobs})


def _summary(model: TableClassifier, output: Path, seconds: float) -> dict[str, Any]:
    """The result of a fit as plain values."""
    fitted = model.model_.model_.best
    reading, explanation = fitted.the_reading, model.explain()
    unknown = math.isnan(reading.gain)
    plain = reading.plain_score
    summary = {
        "model": str(output),
        "rows": int(fitted.class_count.sum()),
        "columns": len(model.encoder_.features_),
        "classes": {str(c): int(n) for c, n in zip(fitted.classes, fitted.class_count)},
        "better_than_guessing": None if unknown else not no_better_than_guessing(reading.gain),
        "gain_over_guessing": None if unknown else round(float(reading.gain), 2),
        "error_out_of_fold": 1 - reading.score,
        "error_interval": None if unknown else [1 - end for end in reversed(reading.interval)],
        "error_plain_neighbors": None if math.isnan(plain) else 1 - plain,
        "variables_used": len(explanation.variables),
        "terms": [vars(term) for term in explanation.terms],
        "problems": [vars(problem) for problem in model.problems_],
        "seconds": round(seconds, 2),
    }
    if isinstance(model.model_, SDistClassifierCV):
        best = model.model_.best_params_
        summary["best_params"] = {k: str(v) for k, v in best.items() if v is not None}
        summary["best_score"] = model.model_.best_score_
    return summary


def _say(voice: Voice, model: TableClassifier, summary: dict[str, Any]) -> None:
    if summary["better_than_guessing"] is False:
        voice.say(guessing(summary["gain_over_guessing"]))
        voice.say()
    classes = ", ".join(f"{name} ({n})" for name, n in summary["classes"].items())
    voice.say(f"{summary['rows']} rows, {summary['columns']} columns; classes {classes}")
    voice.say()
    terms = model.explain().terms
    rows = [[t.name, t.kind, f"{t.share:.1%}", stability_text(t.stability)] for t in terms[:SHOWN]]
    voice.table(["term", "kind", "share", "stability"], rows)
    if len(terms) > SHOWN:
        voice.say(f"and {len(terms) - SHOWN} more")
    voice.say()
    found = f"errors out of fold        {summary['error_out_of_fold']:.1%}"
    if summary["error_interval"] is not None:
        low, high = summary["error_interval"]
        found += f" (95% interval {low:.1%} to {high:.1%})"
    voice.say(found)
    if summary["error_plain_neighbors"] is not None:
        voice.say(f"plain nearest neighbours  {summary['error_plain_neighbors']:.1%}")
    voice.say(f"variables used            {summary['variables_used']} of {summary['columns']}")
    if "best_params" in summary:
        chosen = ", ".join(f"{name}={value}" for name, value in summary["best_params"].items())
        voice.say(f"chosen parameters         {chosen}")
    voice.say()
    output, seconds = summary["model"], summary["seconds"]
    voice.say(f"{output} written after {seconds:.0f} s.")
    voice.say(f"To see the model, run: metricboost report {output}")
