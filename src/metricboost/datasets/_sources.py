"""The sources of the real tables, and the parsers of their files."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metricboost.datasets._download import Limits, download
from metricboost.datasets._table import Table, make_table

UCI_FILES = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
UCI_ARCHIVES = "https://archive.ics.uci.edu/static/public/"
OPENML = "https://www.openml.org/data/download/"
MIRROR_VARIABLE = "METRICBOOST_DATA_URL"

LIMITS = Limits()

Parser = Callable[[list[bytes]], Table]


@dataclass(frozen=True)
class Spec:
    """The definition of a dataset.

    Attributes
    ----------
    name : str
    files : tuple of str
        The paths of the files at UCI.
    archive : str
        The path of the archive with the same files at UCI.
    parse : callable
        The parser of the contents of the files.
    sha256 : str
        The fingerprint of the table.
    feature_names : tuple of str
    arff : str, optional
        The path at OpenML, for tables that OpenML has with the same rows in the same order.
    """

    name: str
    files: tuple[str, ...]
    archive: str
    parse: Parser
    sha256: str
    feature_names: tuple[str, ...]
    arff: str | None = None


@dataclass(frozen=True)
class Source:
    """A source of a table: the address for messages, and the function that downloads the table."""

    url: str
    get: Callable[[], Table]


def sources(spec: Spec) -> Iterator[Source]:
    """Yield the sources of a table, in the order in which they are tried."""
    mirror = os.environ.get(MIRROR_VARIABLE)
    base = mirror.rstrip("/") + "/" if mirror else UCI_FILES
    yield Source(base + spec.files[0], lambda: _from_files(spec, base))
    if mirror:
        return
    yield Source(UCI_ARCHIVES + spec.archive, lambda: _from_archive(spec))
    if spec.arff is not None:
        url = OPENML + spec.arff
        yield Source(url, lambda: parse_arff(download(url, LIMITS)))


def _from_files(spec: Spec, base: str) -> Table:
    return spec.parse([download(base + path, LIMITS) for path in spec.files])


def _from_archive(spec: Spec) -> Table:
    content = download(UCI_ARCHIVES + spec.archive, LIMITS)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return spec.parse([_member(archive, path) for path in spec.files])


def _member(archive: zipfile.ZipFile, path: str) -> bytes:
    """Unpack a file. Its path in the archive is its path at UCI without the first folder."""
    inside = path.partition("/")[2]
    size = archive.getinfo(inside).file_size
    if size > LIMITS.max_bytes:
        raise ValueError(
            f"{inside} in the archive has {size} bytes, more than the limit of {LIMITS.max_bytes}"
        )
    return archive.read(inside)


def parse_ionosphere(files: list[bytes]) -> Table:
    """Read rows of comma-separated numbers with the label at the end."""
    return _labelled_rows(files[0].decode("ascii").split())


def parse_secom(files: list[bytes]) -> Table:
    """Read a file of numbers, and a file with a label and a quoted time per row."""
    labels = [
        int(line.split()[0]) for line in files[1].decode("ascii").splitlines() if line.strip()
    ]
    return make_table(_numbers(files[0]), labels)


def parse_madelon(files: list[bytes]) -> Table:
    """Read training values and labels, then validation values and labels."""
    values = np.vstack([_numbers(files[0]), _numbers(files[2])])
    labels = np.concatenate([_numbers(files[1]).ravel(), _numbers(files[3]).ravel()])
    return make_table(values, labels.astype(np.int64))


def parse_arff(content: bytes) -> Table:
    """Read the rows after ``@data``, with the label at the end."""
    lines = [line.strip() for line in content.decode("utf-8").splitlines()]
    start = [line.lower() for line in lines].index("@data") + 1
    return _labelled_rows([line for line in lines[start:] if line and not line.startswith("%")])


def _labelled_rows(lines: list[str]) -> Table:
    rows = [line.rpartition(",") for line in lines]
    values = _numbers("\n".join(row[0] for row in rows).encode(), delimiter=",")
    return make_table(values, [row[2].strip("'\" ") for row in rows])


def _numbers(content: bytes, delimiter: str | None = None) -> npt.NDArray[np.float64]:
    if not content.strip():
        raise ValueError("the file is empty")
    return np.loadtxt(io.BytesIO(content), delimiter=delimiter, ndmin=2)


IONOSPHERE = Spec(
    name="ionosphere",
    files=("ionosphere/ionosphere.data",),
    archive="52/ionosphere.zip",
    parse=parse_ionosphere,
    sha256="747bdfb6e16d2ec78de7813b919f7818b86520d641ad609b24d554fe24adfe18",
    feature_names=tuple(f"a{i:02d}" for i in range(1, 35)),
    arff="59/dataset_59_ionosphere.arff",
)
SECOM = Spec(
    name="secom",
    files=("secom/secom.data", "secom/secom_labels.data"),
    archive="179/secom.zip",
    parse=parse_secom,
    sha256="dbc3a7ea884f2cb5317992e43fa8b8b6127d997db2af635d2f26b5e239f96a28",
    feature_names=tuple(f"s{i:03d}" for i in range(590)),
)
MADELON = Spec(
    name="madelon",
    files=(
        "madelon/MADELON/madelon_train.data",
        "madelon/MADELON/madelon_train.labels",
        "madelon/MADELON/madelon_valid.data",
        "madelon/madelon_valid.labels",
    ),
    archive="171/madelon.zip",
    parse=parse_madelon,
    sha256="1cb2da1ab227fec4f81c8dd70c3083183d132163248c22f05612ac98b1e981a8",
    feature_names=tuple(f"f{i}" for i in range(500)),
)
