"""Reads CSV, Parquet, Arrow/Feather and npz files, whole or a chunk of rows at a time."""

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

#: The characters that may separate the values of a CSV file.
DELIMITERS = ",;\t|"
#: Bytes at the beginning of a CSV file that are examined for its delimiter and its names. A longer
#: header is examined as a whole.
HEAD_BYTES = 2**16
#: The longest header. A file without a line end in this many bytes is refused.
MOST_HEAD_BYTES = 2**26
#: Rows in which the number of values is compared with the number of names.
HEAD_ROWS = 50
#: A CSV file with more columns than this is read in one piece. pandas reads a file in small pieces
#: by default, and joining the pieces of very many columns takes most of the time.
WIDE = 1000
#: Rows of a chunk by default.
CHUNK = 10_000
#: The errors that readers raise if the content of a file does not fit its ending.
DAMAGE = (
    ValueError, KeyError, TypeError, zipfile.BadZipFile, csv.Error, EOFError, zlib.error,
    gzip.BadGzipFile,
)  # fmt: skip


def read_table(path: str | os.PathLike[str]) -> Any:
    """Read a file as a DataFrame.

    Parameters
    ----------
    path : str or path
        A CSV (``.csv``, ``.tsv``, ``.txt``, also gzipped), Parquet, Arrow/Feather or npz file. An
        npz file holds the array ``X``, may hold labels ``y``, and may hold the names of the columns
        as ``columns``.

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
    """Read a file as DataFrames, a chunk of rows at a time.

    Only one chunk of a CSV, Parquet or Arrow file is in memory. An npz file is always read whole.

    Parameters
    ----------
    path : str or path
        As in :func:`read_table`.
    rows : int or None, default=10,000
        The number of rows of a chunk. None reads the file as one chunk.

    Yields
    ------
    pandas.DataFrame
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
        raise TableError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8 text.") from error
    except DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path} cannot be read as {kind}: {reason}") from error


def _kind(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    for kind, endings in ENDINGS.items():
        if name.endswith(endings):
            return kind
    known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
    raise TableError(f"{path} has an unknown ending. The known endings are {known}.")


def _checked(frame: Any, path: Path) -> Any:
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_duplicates(list(frame.columns), path)
    return frame


def _refuse_duplicates(names: list[str], path: Path) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableError(f"{path} has two columns named {duplicates[0]!r}. Rename one of them.")


def _csv(path: Path, rows: int | None) -> Iterator[Any]:
    """A CSV file with all values as texts.

    The encoder decides what a column is. Otherwise the type of a column would depend on the chunk.
    """
    head = head_of(path)
    delimiter = _delimiter(head)
    n_columns = _check_header(head, delimiter, path)
    options: dict[str, Any] = {
        "sep": delimiter, "encoding": "utf-8-sig", "dtype": str, "keep_default_na": False,
        "na_values": [""], "skipinitialspace": True, "index_col": False,
        "low_memory": n_columns <= WIDE,
    }  # fmt: skip
    if n_columns <= WIDE:
        yield from _frames(path, rows, options)
        return
    for frame in _frames(path, rows, {**options, "dtype": object}):
        yield frame.copy()  # with a single array in place of one for each column


def _frames(path: Path, rows: int | None, options: dict[str, Any]) -> Iterator[Any]:
    import pandas as pd

    if rows is None:
        yield pd.read_csv(path, **options)
        return
    with pd.read_csv(path, chunksize=rows, **options) as reader:
        yield from reader


def _check_header(head: str, delimiter: str, path: Path) -> int:
    """The number of names. Duplicate names are refused, and so are rows near the beginning that
    have more values than names.
    """
    rows = list(_first_rows(head, delimiter))
    names = [name.strip() for name in rows[0]]
    _refuse_duplicates(names, path)  # pandas would rename one of them
    for row in rows[1:-1]:  # the last row may be cut off
        if any(value.strip() for value in row[len(names) :]):
            raise TableError(
                f"{path} cannot be read as CSV: a row has {len(row)} values, but the header has "
                f"{len(names)} names."
            )
    return len(names)


def _first_rows(head: str, delimiter: str) -> Iterator[list[str]]:
    """The header and some rows, up to the first value that is too long for the csv module."""
    rows = _records(io.StringIO(head, newline=""), delimiter)
    yield next(rows)
    with suppress(csv.Error):
        yield from itertools.islice(rows, HEAD_ROWS)


def _records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The rows of a CSV file that are not blank."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    return (row for row in reader if len(row) > 1 or "".join(row).strip())


def head_of(path: Path, most_bytes: int = MOST_HEAD_BYTES) -> str:
    """The beginning of a CSV file: the whole header and some rows.

    Parameters
    ----------
    path : Path
    most_bytes : int
        The longest header. A file without a line end in this many bytes is refused.
    """
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as stream:
        text: bytes = stream.read(HEAD_BYTES)
        while not _has_header(text, path, most_bytes) and (more := stream.read(len(text))):
            text += more
    head = _decoded(text)
    if not head.strip():
        raise TableError(f"{path} is empty.")
    return head


def _decoded(text: bytes) -> str:
    """UTF-8 text, without a character that is cut off at the end."""
    return codecs.getincrementaldecoder("utf-8-sig")().decode(text)


def _has_header(text: bytes, path: Path, most_bytes: int) -> bool:
    """Whether the text holds the whole header."""
    if b"\0" in text:
        raise TableError(
            f"{path} contains null bytes, so it is not UTF-8 text. Save it as UTF-8 text, or give "
            "it the ending of its format."
        )
    head = _decoded(text)
    lines = io.StringIO(head, newline="")
    try:
        named = next(_records(lines, _delimiter(head)), None) is not None
    except csv.Error as error:
        raise TableError(
            f"The header of {path} cannot be read ({error}). Check that every quote is closed, and "
            f"that one of {' '.join(map(repr, DELIMITERS))} separates the names."
        ) from error
    if not named or lines.tell() >= len(head):
        if len(text) < most_bytes:
            return False
        raise TableError(
            f"The header of {path} does not end in the first {len(text) / 2**20:.3g} MiB. Check "
            "that it is a CSV file and that every quote is closed."
        )
    return True


def _delimiter(head: str) -> str:
    """The delimiter that is most frequent in the first line, outside quotes."""
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
            raise TableError(f"{path} has no two-dimensional array named X.")
        X = arrays["X"]
        names = arrays["columns"] if "columns" in arrays else [f"x{j}" for j in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=[str(name) for name in names])
        if "y" in arrays:
            _refuse_duplicates([*frame.columns, "y"], path)
            frame["y"] = arrays["y"]
    for start in range(0, len(frame), rows or max(len(frame), 1)):
        yield frame.iloc[start : start + (rows or len(frame))].reset_index(drop=True)


def _plain(file: Any, name: str, path: Path) -> Any:
    """An array of an npz file. Arrays of objects are refused: unpickling them could run code."""
    try:
        return file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        kind = "float" if name == "X" else "str"
        raise TableError(
            f"The array {name} of {path} holds Python objects, and reading them could run code. "
            f"Save {name}.astype({kind}) instead."
        ) from error


READERS = {"CSV": _csv, "Parquet": _parquet, "Arrow": _arrow, "npz": _npz}
ENDINGS = {
    "CSV": (".csv", ".tsv", ".txt"),
    "Parquet": (".parquet", ".pq"),
    "Arrow": (".feather", ".arrow", ".ipc"),
    "npz": (".npz",),
}
