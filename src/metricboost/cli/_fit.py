"""``metricboost fit`` and ``metricboost tune``."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from .. import SDistClassifier, SDistClassifierCV
from ..training.checkpoints import claim
from ..errors import GuessingWarning
from ..estimators._scoring import OWN_SCORES
from ..estimators._warnings import guessing
from ..selection.choosing import TO_BEAT_GUESSING
from ..tables import TableClassifier
from ..tables._classifier import has_label, labels_of
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_output, check_target, read_data

#: Terms that are printed.
SHOWN = 10


@dataclass(frozen=True)
class FitOptions:
    target: str
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    tune: bool
    balanced: bool
    rows: bool
    seed: int
    jobs: int | None
    scoring: str = "brier"
    cv: int = 5
    n_iter: int | None = None

    @property
    def of_the_fit(self) -> dict[str, Any]:
        """What the model depends on."""
        return {name: value for name, value in asdict(self).items() if name not in ("rows", "jobs")}


def run_fit(
    voice: Voice, data: Path, output: Path, options: FitOptions, checkpoint: Path | None = None
) -> None:
    check_output(output, data)
    if options.jobs == 0:
        raise WrongUsageError("--jobs 0: give a number of processes, or -1 for all cores.")
    check_target(options.target, options.drop)
    _check_scoring(options.scoring)
    frame = read_data(voice, data)
    check_columns(frame, (options.target, *options.drop, *options.keep))
    if options.tune:
        _check_folds(options.cv, frame[options.target])
    if checkpoint is not None:
        claim(checkpoint, data, options.of_the_fit)
    start = time.perf_counter()
    estimator = _estimator(voice, options).set_params(checkpoint=checkpoint)
    model = TableClassifier(estimator, options.drop, options.keep)
    with voice.hearing_warnings():
        warnings.simplefilter("ignore", GuessingWarning)  # the first line of the result says it
        model.fit(frame, options.target)
    seconds = time.perf_counter() - start
    for problem in model.problems_:
        voice.warn(f"{problem.column} {problem.message}")
    model.save(output, options.rows)
    _say(voice, model, frame, output, seconds)


def _check_scoring(scoring: str) -> None:
    if scoring not in (*OWN_SCORES, *get_scorer_names()):
        raise WrongUsageError(
            f"--scoring {scoring}: give {', '.join(OWN_SCORES)}, or a scorer of scikit-learn, such "
            "as roc_auc."
        )


def _check_folds(cv: int, target: Any) -> None:
    """As the search would refuse it, but before anything is made of the table."""
    labels = labels_of(target[has_label(target)], str(target.name))
    most = int(np.unique(labels, return_counts=True)[1].max())
    if cv > most:
        raise WrongUsageError(
            f"--cv {cv}: the largest class has {most} rows, and there cannot be more folds."
        )


def _estimator(voice: Voice, options: FitOptions) -> Any:
    weight = "balanced" if options.balanced else None
    verbose = int(voice.shows_progress)
    base = SDistClassifier(missing="impute", class_weight=weight, random_state=options.seed)
    if not options.tune:
        return base.set_params(verbose=verbose, n_jobs=options.jobs)
    jobs = -1 if options.jobs is None else options.jobs
    return SDistClassifierCV(
        base, n_iter=options.n_iter, cv=options.cv, scoring=options.scoring,
        random_state=options.seed, n_jobs=jobs, verbose=verbose,
    )  # fmt: skip


def _say(voice: Voice, model: TableClassifier, frame: Any, output: Path, seconds: float) -> None:
    summary = _summary(model, frame, output, seconds)
    voice.result(summary)
    if summary["better_than_guessing"] is False:
        voice.say(guessing(summary["gain_over_guessing"]))
        voice.say()
    classes = ", ".join(f"{name} ({n})" for name, n in summary["classes"].items())
    voice.say(f"{summary['rows']} rows, {summary['columns']} columns; classes {classes}")
    voice.say()
    terms = model.explain().terms
    rows = [[t.name, t.kind, f"{t.share:.1%}", _stability(t.stability)] for t in terms[:SHOWN]]
    voice.table(["term", "kind", "share", "stability"], rows)
    if len(terms) > SHOWN:
        voice.say(f"and {len(terms) - SHOWN} more")
    voice.say()
    voice.say(f"errors out of fold        {summary['error_out_of_fold']:.1%}")
    if summary["error_plain_neighbors"] is not None:
        voice.say(f"plain nearest neighbours  {summary['error_plain_neighbors']:.1%}")
    voice.say(f"variables used            {summary['variables_used']} of {summary['columns']}")
    if "best_params" in summary:
        chosen = ", ".join(f"{name}={value}" for name, value in summary["best_params"].items())
        voice.say(f"chosen                    {chosen}")
    voice.say()
    voice.say(
        f"{output} written after {seconds:.0f} s. Next: metricboost report {output} --data ..."
    )


def _stability(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _summary(model: TableClassifier, frame: Any, output: Path, seconds: float) -> dict[str, Any]:
    inner = model.model_
    best = getattr(inner, "best_estimator_", inner)
    plain = best._plain_score
    gain = None if np.isnan(best.oob_gain_) else round(float(best.oob_gain_), 2)
    explanation = model.explain()
    summary = {
        "model": str(output),
        "rows": int(inner.class_count_.sum()),
        "columns": int(inner.n_features_in_),
        "classes": {str(c): int(n) for c, n in zip(inner.classes_, inner.class_count_)},
        "better_than_guessing": None if gain is None else bool(gain >= TO_BEAT_GUESSING),
        "gain_over_guessing": gain,
        "error_out_of_fold": 1 - best.oob_score_,
        "error_plain_neighbors": None if plain != plain else 1 - plain,
        "variables_used": len(explanation.variables),
        "terms": [vars(term) for term in explanation.terms],
        "problems": [vars(problem) for problem in model.problems_],
        "seconds": round(seconds, 2),
    }
    if isinstance(inner, SDistClassifierCV):
        chosen = {name: value for name, value in inner.best_params_.items() if value is not None}
        summary["best_params"] = {name: str(value) for name, value in chosen.items()}
        summary["best_score"] = inner.best_score_
    return summary
