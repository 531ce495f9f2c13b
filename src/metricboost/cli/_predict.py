"""``metricboost predict``: a chunk at a time, so that a file may be larger than memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from .._files import replacing
from ..errors import TableError
from ..tables import TableClassifier, TableScan, read_chunks
from ..tables.reading import ENDINGS
from ..tables.targets import known_codes, unknown_class
from ._console import Voice, WrongUsageError
from ._models import check_columns, check_output, read_model

CSV, PARQUET = ENDINGS["CSV"], ENDINGS["Parquet"]
#: A function that writes the predictions of a chunk.
Sink = Callable[[Any], None]


def run_predict(
    voice: Voice,
    model_path: Path,
    data: Path,
    output: Path | None,
    copy: tuple[str, ...],
    rows: int,
) -> None:
    """Classify the rows of a file.

    Parameters
    ----------
    voice : Voice
    model_path : Path
    data : Path
        The file of the table.
    output : Path or None
        Where predictions are written; None means standard output.
    copy : tuple of str
        Columns of the table that are copied.
    rows : int
        The number of rows of a chunk.
    """
    check_output(output, data, model_path)
    _check_ending(output)
    if output is None and voice.as_json:
        raise WrongUsageError(
            "--json needs --output. Otherwise the predictions and the summary would both go to "
            "standard output."
        )
    model = read_model(model_path)
    taken = {"prediction", *(f"p({name})" for name in model.classes_)} & set(copy)
    if taken:
        raise WrongUsageError(f"--copy {min(taken)}: the predictions have a column of this name.")
    tally = Tally(model)
    with voice.hearing_warnings(), voice.working("classifying") as progress, _sink(output) as write:
        # Only the whole file shows how its numbers are written. A file of several chunks is
        # therefore read twice.
        chunks = read_chunks(data, rows)
        first = list(islice(chunks, 2))
        scan = model.encoder_.scan(part for part in chain(first, chunks) if len(part))
        for frame in first if len(first) < 2 else read_chunks(data, rows):
            check_columns(frame, copy)
            if not len(frame):
                continue
            predictions = _predicted(model, frame, copy, scan)
            write(predictions)
            tally.add(frame, predictions)
            progress(f"{tally.rows} rows classified")
        if not tally.rows:
            raise TableError(f"{data} has no rows.")
        scan.check_texts()  # an error leaves no output file
    _say(voice, tally, output)


class Tally:
    """Counts the rows, the rows whose class is known, and the correct predictions among these.

    Parameters
    ----------
    model : TableClassifier
    """

    def __init__(self, model: TableClassifier) -> None:
        self._classes, self.target = model.classes_, model.target_
        self.rows = self.right = self.known = 0
        self.unknown: str | None = None

    def add(self, frame: Any, predictions: Any) -> None:
        """Count a chunk.

        Parameters
        ----------
        frame : pandas.DataFrame
            The chunk as it was read.
        predictions : pandas.DataFrame
            The predictions of its rows.
        """
        self.rows += len(frame)
        if self.target not in frame.columns:
            return
        codes, unknown = known_codes(frame[self.target], self._classes)
        self.unknown = self.unknown or unknown
        known = codes >= 0
        right = predictions["prediction"].to_numpy()[known] == self._classes[codes[known]]
        self.right, self.known = self.right + int(right.sum()), self.known + int(known.sum())

    @property
    def error(self) -> float | None:
        """The share of wrong predictions; None if no class is known."""
        return 1 - self.right / self.known if self.known else None


def _say(voice: Voice, tally: Tally, output: Path | None) -> None:
    if tally.unknown is not None:
        voice.warn(unknown_class(tally.target, tally.unknown))
    summary = {"rows": tally.rows, "labelled": tally.known, "error": tally.error}
    voice.result({**summary, "output": str(output)})
    if output is not None:
        voice.say(f"{tally.rows} rows classified, {output} written.")
        if tally.known:
            voice.say(
                f"errors on the {tally.known} rows whose {tally.target} is known: {tally.error:.1%}"
            )


def _predicted(model: TableClassifier, frame: Any, copy: tuple[str, ...], scan: TableScan) -> Any:
    import pandas as pd

    probabilities = model.model_.predict_proba(model.encoded(frame, scan))
    found = pd.DataFrame({name: frame[name].to_numpy() for name in copy})
    found["prediction"] = model.classes_[probabilities.argmax(axis=1)]
    for c, name in enumerate(model.classes_):
        found[f"p({name})"] = probabilities[:, c].round(6)
    return found


def _check_ending(output: Path | None) -> None:
    """Refuse an ending of a format that predictions are not written in."""
    if output is None or output.suffix.lower() in ("", *CSV, *PARQUET):
        return
    raise WrongUsageError(
        f"{output}: predictions are not written in the format of this ending. The known endings "
        f"are {', '.join((*CSV, *PARQUET))}."
    )


@contextmanager
def _sink(output: Path | None) -> Iterator[Sink]:
    """Where chunks are written: standard output, or a file that appears when it is complete."""
    if output is None:
        yield CsvSink(sys.stdout)
        return
    ending = output.suffix.lower()
    with replacing(output) as unfinished:
        if ending in PARQUET:
            with _parquet_sink(unfinished) as write:
                yield write
        else:
            with open(unfinished, "w", encoding="utf-8", newline="") as stream:
                yield CsvSink(stream, "\t" if ending == ".tsv" else ",")


class CsvSink:
    """Writes chunks as CSV, with one header.

    Parameters
    ----------
    stream : text file
    delimiter : str, default=","
    """

    def __init__(self, stream: TextIO, delimiter: str = ",") -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._header = True

    def __call__(self, predictions: Any) -> None:
        predictions.to_csv(self._stream, sep=self._delimiter, index=False, header=self._header)
        self._header = False


@contextmanager
def _parquet_sink(path: Path) -> Iterator[Sink]:
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None

    def write(predictions: Any) -> None:
        nonlocal writer
        schema = None if writer is None else writer.schema
        table = pa.Table.from_pandas(predictions, schema, preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
