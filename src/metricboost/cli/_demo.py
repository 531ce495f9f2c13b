"""``metricboost demo``: an interaction of 2 among 500 columns, found from 500 rows."""

from __future__ import annotations

from pathlib import Path

from .. import SDistClassifier
from ..datasets import make_xor
from ._bench import classifiers, measured, say_results
from ._console import Voice
from ._models import check_output

N_TRAIN, N_TEST, N_COLUMNS = 500, 2000, 500


def run_demo(voice: Voice, seed: int, output: Path) -> None:
    """Compare classifiers on a simulated table, and write a page about the model.

    Parameters
    ----------
    voice : Voice
    seed : int
    output : Path
        The page.
    """
    check_output(output)
    voice.say(
        f"The table has {N_TRAIN} training rows and {N_COLUMNS} columns. The class is the sign of "
        "the product of two of the columns. Each of the two has the same distribution in both "
        "classes. The labels are noisy: the smallest possible error is 14.8%."
    )
    voice.say()
    X, y = make_xor(N_TRAIN + N_TEST, N_COLUMNS, informative=2, random_state=seed)
    split = X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:]
    with voice.working("fitting") as progress:
        results = measured(lambda _: split, classifiers(False, seed), 1, progress)
        model = SDistClassifier(random_state=seed).fit(X[:N_TRAIN], y[:N_TRAIN])
        progress("writing the report")
        title = "An interaction of two among 500 columns"
        model.report(X[N_TRAIN:], y[N_TRAIN:], title=title).save(output)
    say_results(voice, f"errors on {N_TEST} new rows", results)
    terms = [(term.name, term.share) for term in model.explain().terms[:3]]
    heaviest = ", ".join(f"{name} ({share:.0%})" for name, share in terms)
    voice.say(f"The heaviest terms of metricboost: {heaviest}")
    voice.say(f"{output} written. Open it in a browser.")
    voice.result({"results": results, "terms": dict(terms), "report": str(output)})
