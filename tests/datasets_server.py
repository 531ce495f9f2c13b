"""A local HTTP server, small tables and fixtures for the tests of ``metricboost.datasets``.

A test file assigns the fixtures it uses to names of its own. The fixture ``clean`` then applies to
every test of the file.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from metricboost.datasets import (
    _download,
    _fetch,
    _sources,
    _table,
    fetch_ionosphere,
    fetch_madelon,
    fetch_secom,
)

FETCHERS = {"ionosphere": fetch_ionosphere, "secom": fetch_secom, "madelon": fetch_madelon}
IONOSPHERE_PATH = "/ionosphere/ionosphere.data"


# --- a server with configurable replies


class Server:
    """A local HTTP server.

    ``replies`` has a list of replies for every path. They are used one after the other, and the
    last one is repeated. ``requests`` records the requested paths.
    """

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
    """A reply with ``content``.

    ``length`` is the declared length. By default it is the true length. If it is False, no length
    is declared.
    """

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
    """Isolate a test: no data folder, an empty cache, no proxy, and no access to the network."""
    for name in ("METRICBOOST_DATA", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("METRICBOOST_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("METRICBOOST_DATA_URL", "http://127.0.0.1:9/")
    quick = _download.Limits(silence_s=5.0, total_s=20.0, attempts=2, pause_s=0.01)
    monkeypatch.setattr(_sources, "LIMITS", quick)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


# --- small tables, and their files in the format of UCI


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
    """The files of a table as at UCI, by their path.

    ``n_train`` is the number of training rows of Madelon.
    """
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
    """Replace the real tables by small tables."""
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
