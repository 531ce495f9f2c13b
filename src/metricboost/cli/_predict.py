"""``metricboost predict``: chunk by chunk, so that a file may be larger than memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._files import replacing
from ..errors import TableError
from ..tables import TableClassifier, read_chunks
from ..tables._classifier import known_codes, unknown_class
from ..tables._encoder import WholeTable
from ..tables._reading import ENDINGS
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_output, read_model

CSV, PARQUET = ENDINGS["CSV"], ENDINGS["Parquet"]


def run_predict(
    voice: Voice,
    model_path: Path,
    data: Path,
    output: Path | None,
    copy: tuple[str, ...],
    rows: int,
) -> None:
    check_output(output, data, model_path)
    _check_ending(output)
    if output is None and voice.as_json:
        raise WrongUsageError("--json needs --output: predictions and summary would be one stream.")
    model = read_model(model_path)
    taken = {"prediction", *(f"p({name})" for name in model.classes_)} & set(copy)
    if taken:
        raise WrongUsageError(f"--copy {min(taken)}: the predictions have a column of that name.")
    tally = _Tally(model)
    with voice.hearing_warnings(), voice.working("classifying") as progress, _sink(output) as write:
        # Read twice: how a number is written shows in the whole file.
        whole = model.encoder_.look_over(part for part in read_chunks(data, rows) if len(part))
        for frame in read_chunks(data, rows):
            check_columns(frame, copy)
            if not len(frame):
                continue
            found = _predicted(model, frame, copy, whole)
            write(found)
            tally.add(frame, found)
            progress(f"{tally.rows} rows classified")
        if not tally.rows:
            raise TableError(f"{data} has no rows.")
        whole.judge()  # of the whole file, before it is written
    _say(voice, tally, output)


class _Tally:
    """How many rows there were and, of those whose class is known, how many were right."""

    def __init__(self, model: TableClassifier) -> None:
        self._model = model
        self.rows = self.right = self.known = 0
        self.strange: str | None = None

    def add(self, frame: Any, found: Any) -> None:
        self.rows += len(frame)
        if self.target not in frame.columns:
            return
        codes, strange = known_codes(frame[self.target], self._model.classes_)
        self.strange = self.strange or strange
        known = codes >= 0
        right = found["prediction"].to_numpy()[known] == self._model.classes_[codes[known]]
        self.right, self.known = self.right + int(right.sum()), self.known + int(known.sum())

    @property
    def target(self) -> str:
        return self._model.target_

    @property
    def error(self) -> float | None:
        return 1 - self.right / self.known if self.known else None


def _say(voice: Voice, tally: _Tally, output: Path | None) -> None:
    if tally.strange is not None:
        voice.warn(unknown_class(tally.target, tally.strange))
    summary = {"rows": tally.rows, "labelled": tally.known, "error": tally.error}
    voice.result({**summary, "output": str(output)})
    if output is not None:
        voice.say(f"{tally.rows} rows classified, {output} written.")
        if tally.known:
            voice.say(
                f"errors on the {tally.known} rows whose {tally.target} is known: {tally.error:.1%}"
            )


def _predicted(model: TableClassifier, frame: Any, copy: tuple[str, ...], whole: WholeTable) -> Any:
    import pandas as pd

    probabilities = model.model_.predict_proba(model.encoded(frame, whole))
    found = pd.DataFrame({name: frame[name].to_numpy() for name in copy})
    found["prediction"] = model.classes_[probabilities.argmax(axis=1)]
    for c, name in enumerate(model.classes_):
        found[f"p({name})"] = probabilities[:, c].round(6)
    return found


def _check_ending(output: Path | None) -> None:
    """Before any work: text in a file that calls itself something else helps nobody."""
    if output is None or output.suffix.lower() in ("", *CSV, *PARQUET):
        return
    raise WrongUsageError(
        f"{output} has an ending that predictions are not written with; known are "
        f"{', '.join((*CSV, *PARQUET))}."
    )


@contextmanager
def _sink(output: Path | None) -> Iterator[Any]:
    """Where chunks go: the output, or a file that appears when all of it is there."""
    if output is None:
        yield _CsvSink(sys.stdout)
        return
    ending = output.suffix.lower()
    with replacing(output) as unfinished:
        if ending in PARQUET:
            with _parquet_sink(unfinished) as write:
                yield write
        else:
            with open(unfinished, "w", encoding="utf-8", newline="") as stream:
                yield _CsvSink(stream, "\t" if ending == ".tsv" else ",")


class _CsvSink:
    def __init__(self, stream: Any, delimiter: str = ",") -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._header = True

    def __call__(self, found: Any) -> None:
        found.to_csv(self._stream, sep=self._delimiter, index=False, header=self._header)
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
