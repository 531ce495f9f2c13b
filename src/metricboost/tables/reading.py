"""Reading CSV, Parquet, Arrow/Feather and npz files, whole or a chunk of rows at a time."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TableError

DELIMITERS = ",;\t|"
#: Text is looked at this far to find out how a file separates its values, or as far as its header
#: reaches, up to the second.
HEAD_BYTES, MOST_HEAD_BYTES = 2**16, 2**26
#: Rows whose number of values is compared with that of the names.
HEAD_ROWS = 50
#: Rows of a chunk.
CHUNK = 10_000
#: What readers raise on files that are not what their ending says.
DAMAGE = (
    ValueError, KeyError, TypeError, zipfile.BadZipFile, csv.Error, EOFError, zlib.error,
    gzip.BadGzipFile,
)  # fmt: skip


def read_table(path: str | os.PathLike[str]) -> Any:
    """A file as a DataFrame.

    Parameters
    ----------
    path : str or path
        A CSV (``.csv``, ``.tsv``, ``.txt``, also gzipped), Parquet, Arrow/Feather or npz file. An
        npz has the arrays ``X`` and, where there are labels, ``y``; ``columns`` may name the
        columns.

    Returns
    -------
    pandas.DataFrame
    """
    import pandas as pd

    parts = list(read_chunks(path, rows=None))
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    if not len(frame):
        raise TableError(f"{path} has no rows.")
    return frame


def read_chunks(path: str | os.PathLike[str], rows: int | None = CHUNK) -> Iterator[Any]:
    """A file as DataFrames of so many rows, one after the other; None reads it whole.

    Memory is that of a chunk for CSV, Parquet and Arrow files; an npz is always read whole.
    """
    path = Path(path)
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        for frame in READERS[kind](path, rows):
            yield _checked(frame, path)
    except TableError:
        raise
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text ({error}): save it as UTF-8.") from error
    except DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path} cannot be read as {kind}: {reason}") from error


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    for kind, endings in ENDINGS.items():
        if name.endswith(endings):
            return kind
    known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
    raise TableError(f"{path} has an ending that is not known; known are {known}.")


def _checked(frame: Any, path: Path) -> Any:
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_twins(list(frame.columns), path)
    return frame


def _refuse_twins(names: list[str], path: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{path} has two columns called {twice[0]!r}: rename one of them.")


def _csv(path: Path, rows: int | None) -> Iterator[Any]:
    """Everything as text: what a column is must not depend on the rows that were read with it."""
    import pandas as pd

    head = _head(path)
    delimiter = _delimiter(head)
    _check_header(head, delimiter, path)
    options: dict[str, Any] = {
        "sep": delimiter, "encoding": "utf-8-sig", "dtype": str, "keep_default_na": False,
        "na_values": [""], "skipinitialspace": True, "index_col": False,
    }  # fmt: skip
    if rows is None:
        yield pd.read_csv(path, **options)
        return
    with pd.read_csv(path, chunksize=rows, **options) as reader:
        yield from reader


def _check_header(head: str, delimiter: str, path: Path) -> None:
    """No two columns of a name, and no more values in the first rows than there are names."""
    rows = list(_first_rows(head, delimiter))
    names = [name.strip() for name in rows[0]]
    _refuse_twins(names, path)  # pandas would rename one silently
    for row in rows[1:-1]:  # the last line may be cut
        if any(value.strip() for value in row[len(names) :]):
            raise TableError(
                f"{path} cannot be read as CSV: a row has {len(row)} values, the header "
                f"{len(names)} names."
            )


def _first_rows(head: str, delimiter: str) -> Iterator[list[str]]:
    """The header and some rows; as far as the csv module goes, which takes no very long values."""
    rows = _records(io.StringIO(head, newline=""), delimiter)
    yield next(rows)
    with suppress(csv.Error):
        yield from itertools.islice(rows, HEAD_ROWS)


def _records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Those of a CSV file that are not blank."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    return (row for row in reader if len(row) > 1 or "".join(row).strip())


def _head(path: Path) -> str:
    """The beginning of a file: the whole header, however long, and some rows."""
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as stream:
        text: bytes = stream.read(HEAD_BYTES)
        while not _has_header(text, path) and (more := stream.read(len(text))):
            text += more
    head = _decoded(text)
    if not head.strip():
        raise TableError(f"{path} is empty.")
    return head


def _decoded(text: bytes) -> str:
    """A character that is cut at the end is left out."""
    return codecs.getincrementaldecoder("utf-8-sig")().decode(text)


def _has_header(text: bytes, path: Path) -> bool:
    """Whether a header ends before the text does."""
    if b"\0" in text:
        raise TableError(f"{path} is not a text file, so no CSV.")
    head = _decoded(text)
    lines = io.StringIO(head, newline="")
    try:
        named = next(_records(lines, _delimiter(head)), None) is not None
    except csv.Error as error:
        raise TableError(
            f"{path} has a header that cannot be read ({error}): is a quote not closed, or do "
            f"other characters than {' '.join(map(repr, DELIMITERS))} part its names?"
        ) from error
    if not named or lines.tell() >= len(head):
        if len(text) < MOST_HEAD_BYTES:
            return False
        raise TableError(f"{path} has no header in its first {len(text) >> 20} MiB: is it CSV?")
    return True


def _delimiter(head: str) -> str:
    """What divides the first line most, outside quotes."""
    bare = io.StringIO(re.sub(r'"[^"]*"', "", head), newline="")
    first = next((line for line in bare if line.strip(" \r\n")), "")
    best = max(DELIMITERS, key=first.count)
    return best if best in first else ","


def _parquet(path: Path, rows: int | None) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        if rows is None:
            yield file.read().to_pandas()
            return
        for batch in file.iter_batches(batch_size=rows):
            yield batch.to_pandas()


def _arrow(path: Path, rows: int | None) -> Iterator[Any]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            with pa.ipc.open_file(source) as file:
                batches = [file.get_batch(i) for i in range(file.num_record_batches)]
                table = pa.Table.from_batches(batches, file.schema)
        except pa.ArrowInvalid:
            source.seek(0)
            with pa.ipc.open_stream(source) as stream:
                table = stream.read_all()
        if rows is None:
            yield table.to_pandas()
            return
        for start in range(0, len(table), rows):
            yield table.slice(start, rows).to_pandas()


def _npz(path: Path, rows: int | None) -> Iterator[Any]:
    import pandas as pd

    with np.load(path, allow_pickle=False) as file:
        arrays = {name: _plain(file, name, path) for name in ("X", "y", "columns") if name in file}
        if "X" not in arrays or arrays["X"].ndim != 2:
            raise TableError(f"{path} has no two-dimensional array X.")
        X = arrays["X"]
        names = arrays["columns"] if "columns" in arrays else [f"x{j}" for j in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=[str(name) for name in names])
        if "y" in arrays:
            _refuse_twins([*frame.columns, "y"], path)
            frame["y"] = arrays["y"]
    for start in range(0, len(frame), rows or max(len(frame), 1)):
        yield frame.iloc[start : start + (rows or len(frame))].reset_index(drop=True)


def _plain(file: Any, name: str, path: Path) -> Any:
    """An array of an npz; objects would have to be unpickled, which may run anything."""
    try:
        return file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        kind = "float" if name == "X" else "str"
        raise TableError(
            f"{path} has an array {name} of objects, which is not read: save {name}.astype({kind})."
        ) from error


READERS = {"CSV": _csv, "Parquet": _parquet, "Arrow": _arrow, "npz": _npz}
ENDINGS = {
    "CSV": (".csv", ".tsv", ".txt"),
    "Parquet": (".parquet", ".pq"),
    "Arrow": (".feather", ".arrow", ".ipc"),
    "npz": (".npz",),
}
