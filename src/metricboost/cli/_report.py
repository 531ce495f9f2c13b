"""``metricboost report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from ._console import Voice
from ._models import check_output, read_data, read_model


def run_report(
    voice: Voice, model_path: Path, data: Path | None, output: Path, title: str | None, show: bool
) -> None:
    """Write the page of a model.

    Parameters
    ----------
    voice : Voice
    model_path : Path
    data : Path or None
        A file with rows to report on.
    output : Path
        The page to write.
    title : str or None
    show : bool
        Whether to open the page in a browser.
    """
    check_output(output, data, model_path)
    model = read_model(model_path)
    frame = None if data is None else read_data(voice, data)
    name = title or f"{model.target_ or 'Model'}: {model_path.stem}"
    with voice.hearing_warnings(), voice.working("writing the report"):
        page = model.report(frame, title=name)
        page.save(output)
    size = output.stat().st_size
    voice.result({"report": str(output), "bytes": size})
    voice.say(f"{output} written ({size / 1e6:.1f} MB). Open it in a browser.")
    if show:
        webbrowser.open(output.absolute().as_uri())
