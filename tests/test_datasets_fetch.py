"""The real tables: from the user's folder, from a real HTTP server, from the cache, and not at all.

Most tests use small made-up tables whose fingerprint takes the place of the real one. Those on the
real values need the folder in ``METRICBOOST_DATA`` and are skipped without it.
"""

from __future__ import annotations

import dataclasses
import io
import os
import socket
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from metricboost.datasets import (
    _cache,
    _download,
    _fetch,
    _sources,
    _table,
    fetch_ionosphere,
    fetch_madelon,
    fetch_secom,
)
from metricboost.datasets._cache import DatasetUnavailableError

REAL_FOLDER = os.environ.get("METRICBOOST_DATA")
needs_data = pytest.mark.skipif(
    not REAL_FOLDER, reason="set METRICBOOST_DATA to a folder with the real tables"
)
FETCHERS = {"ionosphere": fetch_ionosphere, "secom": fetch_secom, "madelon": fetch_madelon}
IONOSPHERE_PATH = "/ionosphere/ionosphere.data"


# --- a server that can misbehave


class Server:
    """Serves `replies`, a list per path of which the last repeats, and keeps what was asked for."""

    def __init__(self):
        self.replies = {}
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                queue = server.replies.get(self.path, [status(404)])
                (queue.pop(0) if len(queue) > 1 else queue[0])(self)

            def log_message(self, *args):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/"
        threading.Thread(target=self.httpd.serve_forever, args=(0.01,), daemon=True).start()

    def serve(self, path, *replies):
        self.replies[path] = [body(r) if isinstance(r, bytes) else r for r in replies]

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


def body(content, length=None):
    """Answer with `content`; a `length` other than its own is a lie, False leaves it out."""

    def reply(handler):
        handler.send_response(200)
        if length is not False:
            handler.send_header("Content-Length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return reply


def status(code):
    return lambda handler: handler.send_error(code)


def silence(seconds):
    return lambda handler: time.sleep(seconds)


def trickle(handler):
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"1,")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        pass


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("METRICBOOST_DATA_URL", server.url)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """Nothing from this machine: no folder, no cache, no proxy, no network beyond it."""
    for name in ("METRICBOOST_DATA", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("METRICBOOST_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("METRICBOOST_DATA_URL", "http://127.0.0.1:9/")
    quick = _download.Limits(silence_s=5.0, total_s=20.0, attempts=2, pause_s=0.01)
    monkeypatch.setattr(_sources, "LIMITS", quick)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


# --- tables, and their files as UCI writes them


def small_tables():
    rng = np.random.RandomState(0)
    secom = rng.randn(9, 590).round(4)
    secom[rng.rand(9, 590) < 0.1] = np.nan
    signs = np.array([-1, 1, -1, -1, 1, -1, -1, 1, -1])
    return {
        "ionosphere": _table.make_table(rng.randn(6, 34).round(5), np.array(list("gbgggb"))),
        "secom": _table.make_table(secom, signs),
        "madelon": _table.make_table(rng.randint(400, 600, (9, 500)), signs),
    }


def lines(rows):
    return ("\n".join(rows) + "\n").encode()


def numbers(X, separator=" "):
    return [
        separator.join(
            "NaN" if v != v else f"{int(v)}" if v == int(v) else repr(float(v)) for v in row
        )
        for row in X
    ]


def uci_files(name, table, n_train=None):
    """Write the files of a table, by their path at UCI."""
    if name == "ionosphere":
        rows = [f"{row},{label}" for row, label in zip(numbers(table.X, ","), table.y)]
        return {IONOSPHERE_PATH: lines(rows)}
    if name == "secom":
        labels = [f'{label} "19/07/2008 11:55:00"' for label in table.y]
        return {
            "/secom/secom.data": lines(numbers(table.X)),
            "/secom/secom_labels.data": lines(labels),
        }
    train, valid = slice(n_train), slice(n_train, None)
    values, labels = [row + " " for row in numbers(table.X)], [str(label) for label in table.y]
    return {
        "/madelon/MADELON/madelon_train.data": lines(values[train]),
        "/madelon/MADELON/madelon_train.labels": lines(labels[train]),
        "/madelon/MADELON/madelon_valid.data": lines(values[valid]),
        "/madelon/madelon_valid.labels": lines(labels[valid]),
    }


def write_npz(folder, name, table):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", X=table.X, y=table.y, feature_names=np.array(["unused"]))


@pytest.fixture
def tables(monkeypatch):
    """Small tables in place of the real ones."""
    tables = small_tables()
    for name, table in tables.items():
        spec = getattr(_sources, name.upper())
        spec = dataclasses.replace(spec, sha256=_table.fingerprint(table))
        monkeypatch.setattr(_sources, name.upper(), spec)
    monkeypatch.setattr(_fetch, "_MADELON_TRAIN", 6)
    return tables


@pytest.fixture
def served(server, tables):
    for name, table in tables.items():
        for path, content in uci_files(name, table, n_train=6).items():
            server.serve(path, content)
    return server


def no_leftovers(cache):
    return not cache.exists() or not list(cache.glob("*.part")) + list(cache.glob(".*"))


# --- downloading


@pytest.mark.parametrize("name", FETCHERS)
def test_download(served, tables, cache, name):
    bunch = FETCHERS[name]()
    np.testing.assert_array_equal(bunch.data, tables[name].X)
    np.testing.assert_array_equal(bunch.target, tables[name].y)
    assert bunch.data.dtype == np.float64
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert len(bunch.target_names) == 2
    assert bunch.frame is None
    assert len(bunch.DESCR) > 200
    assert (cache / f"{name}.npz").exists()
    assert no_leftovers(cache)


@pytest.mark.parametrize("name", FETCHERS)
def test_second_call_asks_nobody(served, tables, name):
    FETCHERS[name]()
    n_requests = len(served.requests)
    again = FETCHERS[name]()
    assert len(served.requests) == n_requests == len(getattr(_sources, name.upper()).files)
    np.testing.assert_array_equal(again.data, tables[name].X)


def test_mirror_address_without_slash(served, monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA_URL", served.url.rstrip("/"))
    assert fetch_ionosphere().data.shape == (6, 34)


def test_cache_serves_as_data_folder(served, tables, cache, monkeypatch):
    fetch_secom()
    with np.load(cache / "secom.npz") as arrays:
        assert sorted(arrays) == ["X", "feature_names", "y"]
        assert arrays["feature_names"].tolist()[:2] == ["s000", "s001"]
    served.close()
    monkeypatch.setenv("METRICBOOST_HOME", str(cache / "elsewhere"))
    monkeypatch.setenv("METRICBOOST_DATA", str(cache))
    np.testing.assert_array_equal(fetch_secom().data, tables["secom"].X)


def test_data_home_argument(served, tmp_path, cache):
    fetch_ionosphere(data_home=tmp_path / "own" / "folder")
    assert (tmp_path / "own" / "folder" / "ionosphere.npz").exists()
    assert not cache.exists()


def test_default_home_is_in_scikit_learns(served, monkeypatch, tmp_path):
    monkeypatch.delenv("METRICBOOST_HOME")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sk"))
    fetch_ionosphere()
    assert (tmp_path / "sk" / "metricboost" / "ionosphere.npz").exists()


def test_home_that_cannot_be_written(served, tables, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="could not be kept.*METRICBOOST_HOME") as caught:
        bunch = fetch_ionosphere(data_home=tmp_path / "file")
    np.testing.assert_array_equal(bunch.data, tables["ionosphere"].X)
    assert caught[0].filename == __file__


def test_many_at_once(served, tables, cache):
    with ThreadPoolExecutor(4) as pool:
        results = [f.result() for f in [pool.submit(fetch_ionosphere) for _ in range(8)]]
    assert all(np.array_equal(bunch.data, tables["ionosphere"].X) for bunch in results)
    assert no_leftovers(cache)


# --- downloads that go wrong


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
    with pytest.raises(DatasetUnavailableError, match=f"the {name} data set"):
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
    """The three official addresses, all of them the local server."""
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
    with pytest.raises(DatasetUnavailableError, match="1000000 bytes, over 5000"):
        fetch_ionosphere()


def test_official_addresses():
    """Downloads are encrypted; the addresses below them are UCI's and OpenML's."""
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


# --- the user's folder


@pytest.mark.parametrize("name", FETCHERS)
def test_folder_comes_first(served, tables, tmp_path, cache, monkeypatch, name):
    write_npz(tmp_path / "data", name, tables[name])
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path / "data"))
    np.testing.assert_array_equal(FETCHERS[name]().data, tables[name].X)
    assert served.requests == []
    assert not cache.exists()


def test_folder_with_a_wrong_file_is_an_error(served, tables, tmp_path, monkeypatch):
    wrong = _table.make_table(tables["ionosphere"].X * 2, tables["ionosphere"].y)
    write_npz(tmp_path / "data", "ionosphere", wrong)
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetUnavailableError, match=r"ionosphere\.npz is not the ionosphere"):
        fetch_ionosphere()
    assert served.requests == []


def test_folder_without_the_file_falls_back(served, tables, tmp_path, monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path))
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)
    assert len(served.requests) == 1


def test_pickles_are_not_read(tables, tmp_path, monkeypatch):
    np.savez(tmp_path / "ionosphere.npz", X=np.array([{}], dtype=object), y=np.array([1]))
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match="allow_pickle"):
        fetch_ionosphere()


# --- what comes back


def test_return_x_y(served, tables):
    X, y = fetch_ionosphere(return_X_y=True)
    np.testing.assert_array_equal(X, tables["ionosphere"].X)
    np.testing.assert_array_equal(y, tables["ionosphere"].y)


@pytest.mark.parametrize("name", FETCHERS)
def test_as_frame(served, tables, name):
    pd = pytest.importorskip("pandas")
    bunch = FETCHERS[name](as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert bunch.target.name == "target"
    assert list(bunch.data.columns) == bunch.feature_names
    assert list(bunch.frame.columns) == [*bunch.feature_names, "target"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), tables[name].X)
    X, y = FETCHERS[name](as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)


def test_madelon_subsets(served, tables):
    everything = fetch_madelon()
    train, valid = fetch_madelon(subset="train"), fetch_madelon(subset="valid")
    assert everything.fold.tolist() == ["train"] * 6 + ["valid"] * 3
    np.testing.assert_array_equal(np.vstack([train.data, valid.data]), everything.data)
    assert set(valid.fold) == {"valid"}
    assert len(everything.relevant) == 20
    with pytest.raises(ValueError, match="'test'"):
        fetch_madelon(subset="test")


def test_rule_for_missing_values():
    X = np.ones((100, 6)) * np.arange(100)[:, None]
    X[:3, 1] = np.nan  # 3%: kept, and its rows go
    X[:4, 2] = np.nan  # 4%: goes
    X[:, 3] = 7.0  # constant: goes
    X[:, 4] = np.nan  # without values: goes
    X[50, 5], X[51:, 5], X[:50, 5] = np.nan, 2.0, 2.0  # constant apart from NaN: goes
    table, names = _fetch._without_missing(_table.make_table(X, np.arange(100)), tuple("abcdef"))
    assert names == ("a", "b")
    assert table.y.tolist() == list(range(3, 100))
    assert np.isfinite(table.X).all()


def test_secom_preprocessed(served):
    bunch = fetch_secom(preprocessed=True)
    assert np.isfinite(bunch.data).all()
    assert bunch.data.shape == (9, len(bunch.feature_names))


def test_arrays_are_the_callers_own(served, tables):
    fetch_ionosphere().data[:] = 0
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)


# --- the fingerprint


def test_fingerprint_ignores_the_form():
    X, y = np.array([[0.0, np.nan], [2.0, 3.0]]), np.array([-1, 1])
    other_nan = np.frombuffer(np.uint64(0xFFF8000000000123).tobytes())[0]
    expected = _table.fingerprint(_table.make_table(X, y))
    same = [
        (np.asfortranarray(X), y),
        (X.astype(np.float32), y.astype(np.int8)),
        (np.where(np.isnan(X), other_nan, X), y),
        (np.where(X == 0, -0.0, X), y),
        (X.tolist(), y.tolist()),
    ]
    for values, labels in same:
        assert _table.fingerprint(_table.make_table(values, labels)) == expected


def test_fingerprint_sees_every_change():
    X, y = np.arange(6.0).reshape(2, 3), np.array([-1, 1])
    tables = [
        (X, y),
        (np.nextafter(X, 9), y),
        (X, -y),
        (X[::-1], y),
        (X[:, ::-1], y),
        (X[:, :2], y),
        (np.where(X == 0, np.nan, X), y),
    ]
    assert len({_table.fingerprint(_table.make_table(*t)) for t in tables}) == len(tables)


def test_table_of_odd_shape():
    with pytest.raises(ValueError, match="labels of shape"):
        _table.make_table(np.zeros((3, 2)), np.zeros(2))


# --- the real tables

SHAPES = {"ionosphere": (351, 34), "secom": (1567, 590), "madelon": (2600, 500)}


@pytest.fixture
def real(monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA", str(REAL_FOLDER))


@needs_data
@pytest.mark.parametrize("name", FETCHERS)
def test_real_folder(real, name):
    bunch = FETCHERS[name]()
    assert bunch.data.shape == SHAPES[name]
    with np.load(Path(REAL_FOLDER) / f"{name}.npz") as arrays:
        np.testing.assert_array_equal(bunch.data, arrays["X"])
        np.testing.assert_array_equal(bunch.target, arrays["y"])
        assert bunch.feature_names == arrays["feature_names"].tolist()


@needs_data
@pytest.mark.parametrize("name", FETCHERS)
def test_real_values_through_uci_files(server, cache, name):
    table = _table.read_table(Path(REAL_FOLDER) / f"{name}.npz")
    for path, content in uci_files(name, table, n_train=2000).items():
        server.serve(path, content)
    for _ in range(2):
        bunch = FETCHERS[name]()
        np.testing.assert_array_equal(bunch.data, table.X)
        np.testing.assert_array_equal(bunch.target, table.y)
    assert len(server.requests) == len(getattr(_sources, name.upper()).files)
    assert (cache / f"{name}.npz").exists()


@needs_data
def test_real_ionosphere(real):
    bunch = fetch_ionosphere()
    assert np.unique(bunch.target, return_counts=True)[1].tolist() == [126, 225]
    assert np.flatnonzero(np.ptp(bunch.data, axis=0) == 0).tolist() == [1]
    assert "a02 is constant" in bunch.DESCR


@needs_data
def test_real_secom(real):
    raw, clean = fetch_secom(), fetch_secom(preprocessed=True)
    assert np.isnan(raw.data).sum() == 41951
    assert clean.data.shape == (1436, 414)
    assert not np.isnan(clean.data).any()
    assert (np.ptp(clean.data, axis=0) > 0).all()
    assert np.unique(clean.target, return_counts=True)[1].tolist() == [1336, 100]


@needs_data
def test_real_madelon(real):
    train, valid = fetch_madelon(subset="train"), fetch_madelon(subset="valid")
    assert (train.data.shape, valid.data.shape) == ((2000, 500), (600, 500))
    with np.load(Path(REAL_FOLDER) / "madelon.npz") as arrays:
        np.testing.assert_array_equal(np.append(train.fold, valid.fold), arrays["fold"])
    # The relevant columns are the only ones that correlate with others.
    correlation = np.abs(np.corrcoef(train.data.T)) - np.eye(500)
    assert np.flatnonzero(correlation.max(axis=0) > 0.2).tolist() == train.relevant.tolist()


def test_variables_are_what_the_messages_say():
    assert (_cache.DATA_VARIABLE, _cache.HOME_VARIABLE) == ("METRICBOOST_DATA", "METRICBOOST_HOME")
