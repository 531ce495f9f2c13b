"""``metricboost predict``: chunk by chunk, so that a file may be larger than memory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._files import replacing
from ..errors import TableError
from ..tables import TableClassifier, read_chunks
from ..tables._classifier import codes_of, has_label
from ..tables._encoder import WholeTable
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_output, read_model


def run_predict(
    voice: Voice,
    model_path: Path,
    data: Path,
    output: Path | None,
    copy: tuple[str, ...],
    rows: int,
) -> None:
    check_output(output, data, model_path)
    if output is None and voice.as_json:
        raise WrongUsageError("--json needs --output: predictions and summary would be one stream.")
    model = read_model(model_path)
    taken = {"prediction", *(f"p({name})" for name in model.classes_)} & set(copy)
    if taken:
        raise WrongUsageError(f"--copy {min(taken)}: the predictions have a column of that name.")
    done, right, known = 0, 0, 0
    with voice.hearing_warnings(), voice.working("classifying") as progress, _sink(output) as write:
        # Read twice: how a number is written shows in the whole file.
        whole = model.encoder_.look_over(part for part in read_chunks(data, rows) if len(part))
        for frame in read_chunks(data, rows):
            check_columns(frame, copy)
            if not len(frame):
                continue
            found = _predicted(model, frame, copy, whole)
            write(found)
            hits, labelled = _hits(model, frame, found)
            done, right, known = done + len(frame), right + hits, known + labelled
            progress(f"{done} rows classified")
        if not done:
            raise TableError(f"{data} has no rows.")
        whole.judge()  # of the whole file, before it is written
    summary = {"rows": done, "labelled": known, "error": 1 - right / known if known else None}
    voice.result({**summary, "output": str(output)})
    if output is not None:
        voice.say(f"{done} rows classified, {output} written.")
        if known:
            voice.say(
                f"errors on the {known} rows whose {model.target_} is known: {summary['error']:.1%}"
            )


def _predicted(model: TableClassifier, frame: Any, copy: tuple[str, ...], whole: WholeTable) -> Any:
    import pandas as pd

    probabilities = model.model_.predict_proba(model.encoded(frame, whole))
    found = pd.DataFrame({name: frame[name].to_numpy() for name in copy})
    found["prediction"] = model.classes_[probabilities.argmax(axis=1)]
    for c, name in enumerate(model.classes_):
        found[f"p({name})"] = probabilities[:, c].round(6)
    return found


def _hits(model: TableClassifier, frame: Any, found: Any) -> tuple[int, int]:
    """How many of the rows whose class is known are classified correctly."""
    if model.target_ not in frame.columns:
        return 0, 0
    codes = codes_of(frame[model.target_], model.classes_)
    strange = frame[model.target_][(codes < 0) & has_label(frame[model.target_])]
    if len(strange):
        example = str(strange.iloc[0])
        warnings.warn(
            f"{model.target_} has classes the model does not know, such as {example!r}: their rows "
            "are not scored.",
            stacklevel=2,
        )
    known = codes >= 0
    right = found["prediction"].to_numpy()[known] == model.classes_[codes[known]]
    return int(right.sum()), int(known.sum())


@contextmanager
def _sink(output: Path | None) -> Iterator[Any]:
    """Where chunks go: the output, or a file that appears when all of it is there."""
    if output is None:
        yield _CsvSink(sys.stdout)
        return
    with replacing(output) as unfinished:
        if output.suffix.lower() in (".parquet", ".pq"):
            with _parquet_sink(unfinished) as write:
                yield write
        else:
            with open(unfinished, "w", encoding="utf-8", newline="") as stream:
                yield _CsvSink(stream)


class _CsvSink:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._header = True

    def __call__(self, found: Any) -> None:
        found.to_csv(self._stream, index=False, header=self._header)
        self._header = False


@contextmanager
def _parquet_sink(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None

    def write(found: Any) -> None:
        nonlocal writer
        schema = None if writer is None else writer.schema
        table = pa.Table.from_pandas(found, schema, preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
