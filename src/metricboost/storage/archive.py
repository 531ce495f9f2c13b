"""The container of a model file: a zip archive of one JSON document and of plain arrays.

The document ``manifest.json`` declares the type, the shape and the SHA-256 of every array. The
members ``arrays/NAME.npy`` are in NumPy's format, so that other tools can open them. Reading never
extracts, imports or unpickles anything. Reading takes no more bytes from a member than the manifest
declares, and allocates no more memory than the file can fill. Writing is atomic, and the same model
gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .._files import replacing
from ..errors import ModelFileError

Array = npt.NDArray[Any]

FORMAT = "metricboost"
#: The version of the format. The number rises when older code could misread a file.
VERSION = 3
MANIFEST = "manifest.json"
#: The largest manifest. A manifest holds names and parameters, but no arrays.
MOST_MANIFEST_BYTES = 2**24
MOST_ARRAYS = 100_000
MOST_DIMENSIONS = 2
#: The highest compression ratio that Deflate can reach.
MOST_RATIO = 1032
DTYPES = {"<f8", "<i8", "|b1"}
NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")
CHUNK = 2**20
#: The date of every member. It is fixed, so that a file does not depend on the time of writing.
MOMENT = (1980, 1, 1, 0, 0, 0)
#: The errors that the standard library and NumPy raise on damaged files.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    RecursionError, ValueError, KeyError, IndexError, OverflowError, TypeError, MemoryError,
)  # fmt: skip


def write(
    path: str | os.PathLike[str], content: dict[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a model file. A file of that name is replaced when the new one is complete.

    Parameters
    ----------
    path : str or path
    content : dict
        Values for the manifest, which JSON can hold.
    arrays : mapping of str to ndarray
        The arrays by the names that the manifest gives them.
    """
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    if len(plain) >= MOST_ARRAYS:
        raise ValueError(
            f"This model has {len(plain)} arrays, but a model file holds fewer than {MOST_ARRAYS}."
        )
    declared = {name: _declaration(array) for name, array in plain.items()}
    manifest = {"format": FORMAT, "version": VERSION, "arrays": declared, **content}
    text = json.dumps(manifest, allow_nan=False).encode()
    if len(text) > MOST_MANIFEST_BYTES:
        raise ValueError(
            f"The names and parameters of this model take {len(text)} bytes, but a model file "
            f"holds at most {MOST_MANIFEST_BYTES} bytes of them."
        )
    with (
        replacing(path) as unfinished,
        zipfile.ZipFile(unfinished, "x", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
    ):
        archive.writestr(_info(MANIFEST), text)
        for name, array in plain.items():
            with archive.open(_info(_member(name)), "w", force_zip64=True) as member:
                member.write(_header(declared[name]) + array.tobytes())


def _plain(name: str, array: npt.ArrayLike) -> Array:
    """The array in one of the types that a file can hold."""
    result: Array = np.ascontiguousarray(array)
    kind = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}.get(result.dtype.kind)
    if kind is None or result.ndim > MOST_DIMENSIONS or not NAME.fullmatch(name):
        raise ValueError(
            f"A model file cannot hold the array {name} of type {result.dtype} and shape "
            f"{result.shape}."
        )
    return result.astype(kind)


def _declaration(array: Array) -> dict[str, Any]:
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, MOMENT)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def read(path: str | os.PathLike[str], max_bytes: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the manifest and the arrays of a model file.

    Parameters
    ----------
    path : str or path
    max_bytes : int
        The most memory that the arrays may take.

    Returns
    -------
    manifest : dict
    arrays : dict of str to ndarray

    Raises
    ------
    ModelFileError
        If the content is damaged, is no model file, or has another version of the format.
    OSError
        If the file cannot be opened.
    """
    with open(path, "rb") as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            raise ModelFileError(f"{path} is empty: it is not a model file.")
        try:
            with zipfile.ZipFile(stream) as archive:
                return _contents(archive, max_bytes)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None
        except (OSError, *DAMAGE) as error:
            raise ModelFileError(f"{path} is damaged or is not a model file: {error}.") from error


def _contents(archive: zipfile.ZipFile, max_bytes: int) -> tuple[dict[str, Any], dict[str, Array]]:
    members = _members(archive)
    manifest = _manifest(archive, members)
    declared = manifest.pop("arrays")
    _check_members(members, declared)
    total = sum(_n_bytes(name, part) for name, part in declared.items())
    if total > max_bytes:
        raise ModelFileError(
            f"the file declares {total} bytes of arrays, more than max_bytes={max_bytes}. Give "
            "load a larger max_bytes if you trust the file."
        )
    arrays = {
        name: _array(archive, members[_member(name)], name, part) for name, part in declared.items()
    }
    return manifest, arrays


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(infos) > MOST_ARRAYS or len(members) != len(infos):
        raise ModelFileError("the file has too many members, or has a member twice.")
    # The decoders of other methods may return more bytes than they are asked for.
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise ModelFileError("the file is compressed by a method that model files do not use.")
    return members


def _manifest(archive: zipfile.ZipFile, members: Mapping[str, Any]) -> dict[str, Any]:
    if MANIFEST not in members:
        raise ModelFileError(f"the file has no {MANIFEST}: it is not a model file.")
    with archive.open(MANIFEST) as member:
        text = member.read(MOST_MANIFEST_BYTES + 1)
    if len(text) > MOST_MANIFEST_BYTES:
        raise ModelFileError(f"the {MANIFEST} is larger than {MOST_MANIFEST_BYTES} bytes.")
    manifest = json.loads(text)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("the file is not a model file of metricboost.")
    _check_version(manifest.get("version"))
    if not isinstance(manifest.get("arrays"), dict):
        raise ModelFileError("the manifest declares no arrays.")
    return manifest


def _check_version(version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"the format version {version!r} is not a positive integer.")
    if version < VERSION:
        raise ModelFileError(
            f"the file has version {version} of the format. An earlier version of metricboost "
            f"wrote it, and this one reads only version {VERSION}: fit the model and save it again."
        )
    if version > VERSION:
        raise ModelFileError(
            f"the file has version {version} of the format, and this metricboost reads version "
            f"{VERSION}: install a newer metricboost."
        )


def _check_members(members: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    wrong = [name for name in declared if not NAME.fullmatch(name)]
    expected = {MANIFEST, *map(_member, declared)}
    wrong += sorted(set(members) ^ expected)
    if wrong:
        raise ModelFileError(f"the member {wrong[0]!r} is missing, not declared, or not allowed.")


def _n_bytes(name: str, part: Any) -> int:
    """The declared size of an array. The product of Python integers cannot overflow."""
    shape = part.get("shape") if isinstance(part, dict) else None
    if (
        not isinstance(shape, list)
        or len(shape) > MOST_DIMENSIONS
        or part.get("dtype") not in DTYPES
        or not isinstance(part.get("sha256"), str)
        or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
    ):
        raise ModelFileError(f"the array {name} is declared wrongly.")
    return math.prod(shape) * int(part["dtype"][-1])


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, part: Any) -> Array:
    size = _n_bytes(name, part)
    header = _header(part)
    if info.file_size != len(header) + size or info.file_size > MOST_RATIO * (
        info.compress_size + 1
    ):
        raise ModelFileError(f"the array {name} does not have the size that is declared.")
    with archive.open(info) as member:
        if member.read(len(header)) != header:
            raise ModelFileError(f"the array {name} is not of the type that is declared.")
        content = _exactly(member, size)
    if hashlib.sha256(content).hexdigest() != part["sha256"]:
        raise ModelFileError(f"the array {name} is damaged: its checksum is wrong.")
    return np.frombuffer(content, dtype=part["dtype"]).reshape(part["shape"])


def _header(part: Any) -> bytes:
    """The header of an array in NumPy's format 1.0, as ``write`` writes it."""
    shape = tuple(part["shape"])
    text = f"{{'descr': '{part['dtype']}', 'fortran_order': False, 'shape': {shape}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10  # the data start at a multiple of 64
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1).encode() + b"\n"
    )


def _exactly(member: IO[bytes], size: int) -> bytearray:
    """Exactly ``size`` bytes. Memory is allocated as bytes arrive, not as they are declared."""
    content = bytearray()
    while len(content) < size:
        chunk = member.read(min(CHUNK, size - len(content)))
        if not chunk:
            raise ModelFileError("an array is shorter than declared.")
        content += chunk
    if member.read(1):  # reading to the end also makes zipfile check the CRC
        raise ModelFileError("an array is longer than declared.")
    return content
