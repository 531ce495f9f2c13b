"""``metricboost report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from ._console import Voice
from ._models import check_output, read_data, read_model


def run_report(
    voice: Voice, model_path: Path, data: Path | None, output: Path, title: str | None, show: bool
) -> None:
    check_output(output, data, model_path)
    model = read_model(model_path)
    frame = None if data is None else read_data(voice, data)
    name = title or f"{model.target_}: {model_path.stem}"
    with voice.hearing_warnings(), voice.working("writing the report"):
        page = model.report(frame, name)
        page.save(output)
    voice.result({"report": str(output), "bytes": output.stat().st_size})
    voice.say(f"{output} written, {output.stat().st_size / 1e6:.1f} MB: open it in any browser.")
    if show:
        webbrowser.open(output.absolute().as_uri())
