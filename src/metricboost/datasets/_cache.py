"""Loading a dataset from the folder of the user, from the cache, or from the network."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from sklearn.datasets import get_data_home

from metricboost.datasets._sources import Spec, sources
from metricboost.datasets._table import Table, fingerprint, read_table, write_table

DATA_VARIABLE = "METRICBOOST_DATA"
HOME_VARIABLE = "METRICBOOST_HOME"


class DatasetUnavailableError(OSError):
    """A dataset is not on this machine and could not be downloaded, or has wrong values."""


def load(spec: Spec, data_home: str | os.PathLike[str] | None) -> Table:
    """Return the table of a dataset, after a check of its fingerprint."""
    folder = os.environ.get(DATA_VARIABLE)
    if folder and (path := Path(folder).expanduser() / f"{spec.name}.npz").exists():
        return _provided(spec, path)
    cache = _cache_file(spec, data_home)
    failures: list[str] = []
    table = _cached(spec, cache, failures) or _downloaded(spec, cache, failures)
    if table is None:
        raise DatasetUnavailableError(_advice(spec, cache, failures))
    return table


def _provided(spec: Spec, path: Path) -> Table:
    """Read the file in the folder of the user. A file with wrong values is an error."""
    try:
        return _checked(spec, read_table(path))
    except Exception as error:
        raise DatasetUnavailableError(
            f"{path} is not the {spec.name} data set: {_reason(error)}. The file must have the "
            "arrays X and y of the original table. Replace the file, or unset the environment "
            f"variable {DATA_VARIABLE} to download the data set."
        ) from error


def _cached(spec: Spec, path: Path, failures: list[str]) -> Table | None:
    if not path.exists():
        return None
    # A damaged file may raise any exception. In all cases the table is downloaded again.
    try:
        return _checked(spec, read_table(path))
    except Exception as error:
        failures.append(f"{path}: {_reason(error)}")
        return None


def _downloaded(spec: Spec, path: Path, failures: list[str]) -> Table | None:
    for source in sources(spec):
        # The content may be anything, for example an HTML page, and parsing may raise any
        # exception.
        try:
            table = _checked(spec, source.get())
        except Exception as error:
            text = _reason(error)
            failures.append(text if source.url in text else f"{source.url}: {text}")
        else:
            _keep(spec, path, table)
            return table
    return None


def _checked(spec: Spec, table: Table) -> Table:
    found = fingerprint(table)
    if found != spec.sha256:
        raise ValueError(
            f"its values, of shape {table.X.shape}, have SHA-256 {found}, not {spec.sha256}"
        )
    return table


def _keep(spec: Spec, path: Path, table: Table) -> None:
    try:
        write_table(path, table, list(spec.feature_names))
    except OSError as error:
        warnings.warn(
            f"The {spec.name} data set was downloaded, but could not be stored in {path.parent} "
            f"({error}). Set data_home or the environment variable {HOME_VARIABLE} to a writable "
            "folder.",
            stacklevel=5,
        )


def _cache_file(spec: Spec, data_home: str | os.PathLike[str] | None) -> Path:
    home = data_home or os.environ.get(HOME_VARIABLE)
    folder = Path(home).expanduser() if home else Path(get_data_home()) / "metricboost"
    return folder / f"{spec.name}.npz"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _advice(spec: Spec, cache: Path, failures: list[str]) -> str:
    urls = " or ".join(source.url for source in sources(spec))
    return (
        f"The {spec.name} data set is not on this machine and could not be downloaded. Set the "
        f"environment variable {DATA_VARIABLE} to a folder with {spec.name}.npz (arrays X and y), "
        f"or allow the download from {urls} into {cache.parent}. Failed attempts: "
        + "; ".join(failures)
    )
