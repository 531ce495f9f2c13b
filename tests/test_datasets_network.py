"""Failing downloads, other sources, and a damaged cache of the real tables."""

from __future__ import annotations

import dataclasses
import io
import socket
import time
import zipfile

import datasets_server
import numpy as np
import pytest
from datasets_server import (
    FETCHERS,
    IONOSPHERE_PATH,
    body,
    lines,
    numbers,
    silence,
    status,
    trickle,
    uci_files,
)

from metricboost.datasets import _sources, _table, fetch_ionosphere, fetch_secom
from metricboost.datasets._cache import DatasetUnavailableError

# Fixtures must be names of the module in which they are used.
cache = datasets_server.cache
clean = datasets_server.clean
served = datasets_server.served
server = datasets_server.server
tables = datasets_server.tables


# --- failing downloads


def test_wrong_values(served, tables, cache):
    spoiled = _table.make_table(tables["ionosphere"].X + 1e-9, tables["ionosphere"].y)
    served.serve(IONOSPHERE_PATH, *uci_files("ionosphere", spoiled).values())
    with pytest.raises(DatasetUnavailableError, match=r"\(6, 34\).*SHA-256.*not"):
        fetch_ionosphere()
    assert not cache.exists()


def test_wrong_labels(served, tables):
    swapped = _table.make_table(tables["ionosphere"].X, tables["ionosphere"].y[::-1])
    served.serve(IONOSPHERE_PATH, *uci_files("ionosphere", swapped).values())
    with pytest.raises(DatasetUnavailableError, match="SHA-256"):
        fetch_ionosphere()


def test_missing_file_is_not_asked_for_twice(served):
    served.serve(IONOSPHERE_PATH, status(404))
    with pytest.raises(DatasetUnavailableError, match="HTTP status 404"):
        fetch_ionosphere()
    assert served.requests == [IONOSPHERE_PATH]


def test_busy_server_is_asked_again(served, tables):
    content = uci_files("ionosphere", tables["ionosphere"])[IONOSPHERE_PATH]
    served.serve(IONOSPHERE_PATH, status(503), content)
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)
    assert len(served.requests) == 2


def test_number_of_attempts_is_bounded(served):
    served.serve(IONOSPHERE_PATH, status(500))
    with pytest.raises(DatasetUnavailableError, match="HTTP status 500"):
        fetch_ionosphere()
    assert len(served.requests) == 2


def test_truncated_response(served, tables, cache):
    content = uci_files("ionosphere", tables["ionosphere"])[IONOSPHERE_PATH]
    served.serve(IONOSPHERE_PATH, body(content[:100], length=len(content)))
    with pytest.raises(DatasetUnavailableError, match=f"after 100 of {len(content)} bytes"):
        fetch_ionosphere()
    assert len(served.requests) == 2
    assert not cache.exists()


def test_truncated_once(served, tables):
    content = uci_files("ionosphere", tables["ionosphere"])[IONOSPHERE_PATH]
    served.serve(IONOSPHERE_PATH, body(content[:100], length=len(content)), content)
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)


def test_truncated_without_a_length_fails_the_fingerprint(served, tables):
    content = uci_files("ionosphere", tables["ionosphere"])[IONOSPHERE_PATH]
    shorter = content[: content.rindex(b"\n", 0, -1) + 1]
    served.serve(IONOSPHERE_PATH, body(shorter, length=False))
    with pytest.raises(DatasetUnavailableError, match=r"\(5, 34\).*SHA-256"):
        fetch_ionosphere()


def test_no_length_is_fine(served, tables):
    content = uci_files("ionosphere", tables["ionosphere"])[IONOSPHERE_PATH]
    served.serve(IONOSPHERE_PATH, body(content, length=False))
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)


@pytest.mark.parametrize("name", FETCHERS)
@pytest.mark.parametrize(
    "content", [b"<html><p>Moved, sorry.</p></html>\n", b"", b"7\n", b"\xff\xfe\x00", b"1,2\n3\n"]
)
def test_something_else_in_place_of_the_table(served, cache, name, content):
    for path in list(served.replies):
        served.serve(path, content)
    with pytest.raises(DatasetUnavailableError, match=f"The {name} data set"):
        FETCHERS[name]()
    assert not cache.exists()


def test_too_large(served, monkeypatch):
    limits = dataclasses.replace(_sources.LIMITS, max_bytes=1000)
    monkeypatch.setattr(_sources, "LIMITS", limits)
    served.serve(IONOSPHERE_PATH, body(b"1" * 200_000, length=False))
    with pytest.raises(DatasetUnavailableError, match="more than 1000 bytes"):
        fetch_ionosphere()
    assert len(served.requests) == 1


def test_silent_server(served, monkeypatch):
    limits = dataclasses.replace(_sources.LIMITS, silence_s=0.1)
    monkeypatch.setattr(_sources, "LIMITS", limits)
    served.serve(IONOSPHERE_PATH, silence(1.0))
    with pytest.raises(DatasetUnavailableError, match="timed out"):
        fetch_ionosphere()


def test_trickling_server(served, monkeypatch):
    limits = dataclasses.replace(_sources.LIMITS, total_s=0.1)
    monkeypatch.setattr(_sources, "LIMITS", limits)
    served.serve(IONOSPHERE_PATH, trickle)
    start = time.monotonic()
    with pytest.raises(DatasetUnavailableError, match=r"not done in 0\.1 s"):
        fetch_ionosphere()
    assert time.monotonic() - start < 2


def test_server_down(tables, cache, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    monkeypatch.setenv("METRICBOOST_DATA_URL", url)
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch_secom()
    message = str(caught.value)
    assert "METRICBOOST_DATA to a folder with secom.npz" in message
    assert f"{url}secom/secom.data" in message
    assert str(cache) in message
    assert "refused" in message
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("url", ["file:///etc/", "ftp://127.0.0.1/"])
def test_only_http(tables, monkeypatch, url):
    monkeypatch.setenv("METRICBOOST_DATA_URL", url)
    with pytest.raises(DatasetUnavailableError, match="only http and https"):
        fetch_ionosphere()


def test_address_that_cannot_be_parsed(tables, monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA_URL", "http://[not-an-address/")
    with pytest.raises(DatasetUnavailableError, match="not-an-address"):
        fetch_ionosphere()


# --- other sources


@pytest.fixture
def official(served, monkeypatch):
    """Redirect the three official addresses to the local server."""
    monkeypatch.delenv("METRICBOOST_DATA_URL")
    monkeypatch.setattr(_sources, "UCI_FILES", served.url)
    monkeypatch.setattr(_sources, "UCI_ARCHIVES", served.url + "archives/")
    monkeypatch.setattr(_sources, "OPENML", served.url + "openml/")
    return served


def archive_of(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in files.items():
            archive.writestr(path.split("/", 2)[2], file)
    return content.getvalue()


def arff_of(table):
    rows = [f"{row},{label}" for row, label in zip(numbers(table.X, ","), table.y)]
    head = ["% a comment", "@RELATION ionosphere", "@ATTRIBUTE a01 REAL", "@DATA", "% another", ""]
    return lines(head + rows)


@pytest.mark.parametrize("name", FETCHERS)
def test_archive_when_the_files_are_gone(official, tables, name):
    files = uci_files(name, tables[name], n_train=6)
    for path in files:
        official.serve(path, status(404))
    official.serve("/archives/" + getattr(_sources, name.upper()).archive, archive_of(files))
    np.testing.assert_array_equal(FETCHERS[name]().data, tables[name].X)


def test_openml_when_uci_is_gone(official, tables):
    official.serve(IONOSPHERE_PATH, status(404))
    official.serve("/archives/52/ionosphere.zip", b"not an archive")
    official.serve("/openml/59/dataset_59_ionosphere.arff", arff_of(tables["ionosphere"]))
    bunch = fetch_ionosphere()
    np.testing.assert_array_equal(bunch.data, tables["ionosphere"].X)
    assert bunch.target.tolist() == list("gbgggb")


def test_error_names_every_source(official):
    official.replies.clear()
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch_ionosphere()
    for path in ("ionosphere.data", "52/ionosphere.zip", "59/dataset_59_ionosphere.arff"):
        assert path in str(caught.value)


def test_archive_without_the_file(official, tables):
    official.serve(IONOSPHERE_PATH, status(404))
    official.serve("/archives/52/ionosphere.zip", archive_of({"/x/other.data": b"1"}))
    with pytest.raises(DatasetUnavailableError, match=r"ionosphere\.data"):
        fetch_ionosphere()


def test_archive_that_unpacks_to_too_much(official, monkeypatch):
    limits = dataclasses.replace(_sources.LIMITS, max_bytes=5000)
    monkeypatch.setattr(_sources, "LIMITS", limits)
    official.serve(IONOSPHERE_PATH, status(404))
    bomb = archive_of({IONOSPHERE_PATH: b"1" * 1_000_000})
    assert len(bomb) < 5000
    official.serve("/archives/52/ionosphere.zip", bomb)
    with pytest.raises(DatasetUnavailableError, match="1000000 bytes, more than the limit of 5000"):
        fetch_ionosphere()


def test_official_addresses():
    """The official addresses use https."""
    for base in (_sources.UCI_FILES, _sources.UCI_ARCHIVES, _sources.OPENML):
        assert base.startswith("https://")
        assert base.endswith("/")


# --- the cache


def damage(kind, path):
    content = path.read_bytes()
    if kind == "other values":
        with np.load(path) as arrays:
            X, y = arrays["X"], arrays["y"]
        np.savez(path, X=X + 1, y=y)
    elif kind == "other arrays":
        np.savez(path, other=np.zeros(3))
    elif kind == "one array":
        np.save(path.open("wb"), np.zeros((6, 34)))
    else:
        path.write_bytes({"garbage": b"nonsense", "empty": b"", "partial": content[:-200]}[kind])


@pytest.mark.parametrize(
    "kind", ["garbage", "empty", "partial", "other values", "other arrays", "one array"]
)
def test_damaged_cache_is_replaced(served, tables, cache, kind):
    fetch_ionosphere()
    damage(kind, cache / "ionosphere.npz")
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)
    assert len(served.requests) == 2
    fetch_ionosphere()
    assert len(served.requests) == 2


def test_damaged_cache_and_no_network(served, cache):
    fetch_ionosphere()
    damage("other values", cache / "ionosphere.npz")
    served.serve(IONOSPHERE_PATH, status(404))
    with pytest.raises(DatasetUnavailableError, match=r"ionosphere\.npz: its values.*status 404"):
        fetch_ionosphere()


def test_flipped_bytes_never_reach_the_user(served, tables, cache):
    fetch_ionosphere()
    path = cache / "ionosphere.npz"
    content = path.read_bytes()
    for position in np.random.RandomState(0).randint(0, len(content), 60):
        spoiled = bytearray(content)
        spoiled[position] ^= 0xFF
        path.write_bytes(spoiled)
        np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)


def test_interrupted_write_leaves_nothing(served, cache, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_ionosphere()
    assert list(cache.iterdir()) == []
