"""``metricboost demo``: an interaction between 2 of 500 columns, found from 500 rows."""

from __future__ import annotations

from pathlib import Path

from .. import SDistClassifier
from ..datasets import make_xor
from ._bench import _measured, _models, _say
from ._console import Voice
from ._models import check_output

N_TRAIN, N_TEST, N_COLUMNS = 500, 2000, 500


def run_demo(voice: Voice, seed: int, output: Path) -> None:
    check_output(output)
    voice.say(
        f"{N_TRAIN} rows, {N_COLUMNS} columns. The class is the sign of the product of two of "
        "them; neither differs between the classes by itself. No method errs less than 14.8%."
    )
    voice.say()
    X, y = make_xor(N_TRAIN + N_TEST, N_COLUMNS, informative=2, random_state=seed)
    split = X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:]
    with voice.working("fitting") as progress:
        results = _measured(lambda _: split, _models(False, seed), 1, progress)
        model = SDistClassifier(random_state=seed).fit(X[:N_TRAIN], y[:N_TRAIN])
        progress("writing the report")
        model.report(X[N_TRAIN:], y[N_TRAIN:], "Two of 500 columns, and only together").save(output)
    _say(voice, {"table": f"errors on {N_TEST} new rows", "results": results})
    terms = [(term.name, term.share) for term in model.explain().terms[:3]]
    voice.say("found: " + ", ".join(f"{name} ({share:.0%})" for name, share in terms))
    voice.say(f"{output} written: open it in any browser.")
    voice.result({"results": results, "terms": dict(terms), "report": str(output)})
