"""The examples that search elsewhere: in a vector index, and in a PostgreSQL with pgvector."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
#: A server refuses to run as root; Debian's package comes with this user.
OTHER_USER = "postgres"
WITHOUT = "import runpy, sys; sys.modules[{!r}] = None; runpy.run_path({!r}, run_name='__main__')"


def run_example(name, **environment):
    """What an example prints."""
    done = run([str(EXAMPLES / name)], **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(arguments, **environment):
    variables = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return subprocess.run(
        [sys.executable, *arguments], env=variables | environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip


def figures(printed, name):
    """Dimensions, recall and error of a line."""
    (found,) = re.findall(rf"^{name} +(\d+) +([\d.]+) +([\d.]+)$", printed, re.MULTILINE)
    return [float(text) for text in found]


def test_vector_index():
    pytest.importorskip("usearch")
    printed = run_example("vector_index.py")
    _, _, error_raw = figures(printed, "raw columns")
    dimensions, recall, error = figures(printed, "under the metric")
    assert dimensions < 100
    assert recall > 0.98
    assert error < 0.19 < 0.23 < error_raw


@pytest.mark.parametrize(
    ("name", "module", "advice"),
    [
        ("vector_index.py", "usearch.index", "pip install usearch"),
        ("pgvector_search.py", "psycopg", 'pip install "psycopg[binary]"'),
    ],
)
def test_what_to_install(name, module, advice):
    done = run(["-c", WITHOUT.format(module, str(EXAMPLES / name))])
    assert done.returncode == 1
    assert advice in done.stderr
    assert "Traceback" not in done.stderr


class Cluster:
    """A throwaway PostgreSQL that only its own folder's socket reaches."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.identity = {}
        if os.geteuid() == 0:
            shutil.chown(folder, OTHER_USER, OTHER_USER)
            self.identity = {"user": OTHER_USER, "group": OTHER_USER, "extra_groups": []}

    def run(self, program, *arguments):
        subprocess.run(
            [self.programs / program, "-D", self.folder / "data", *arguments],
            cwd=self.folder, check=True, stdout=subprocess.DEVNULL, timeout=60, **self.identity,
        )  # fmt: skip

    def start(self):
        self.run("initdb", "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C", "-E", "UTF8")
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self.run("pg_ctl", "-w", "-l", self.folder / "log", "-o", options, "start")

    def stop(self):
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    @property
    def address(self):
        return f"postgresql://postgres@/postgres?host={self.folder}"


def programs():
    """The folder of initdb, which Debian keeps off the path; None where there is no server."""
    on_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = [Path(on_path).resolve()] if on_path else debian
    return found[-1].parent if found else None


@pytest.fixture(scope="module")
def server():
    """The address of a running server with pgvector."""
    psycopg = pytest.importorskip("psycopg")
    if os.name != "posix" or (folder_of_programs := programs()) is None:
        pytest.skip("no PostgreSQL server is installed")
    if os.geteuid() == 0 and os.path.expanduser(f"~{OTHER_USER}").startswith("~"):
        pytest.skip("a PostgreSQL server does not run as root")
    # Not in tmp_path: paths of sockets must be short, and another user's server must get there.
    with tempfile.TemporaryDirectory(prefix="metricboost-pg-") as folder:
        cluster = Cluster(Path(folder), folder_of_programs)
        cluster.start()
        try:
            with psycopg.connect(cluster.address) as connection:
                query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
                if not connection.execute(query).fetchall():
                    pytest.skip("the server has no pgvector")
            yield cluster.address
        finally:
            cluster.stop()


def test_pgvector_search(server):
    """The rows are those of ``kneighbors``, by way of the index, and nothing stays behind."""
    import psycopg

    printed = run_example("pgvector_search.py", DATABASE_URL=server)
    assert "Index Scan using embedded_embedding_idx" in printed
    (same,) = re.findall(r"^(\d+) of 200 queries", printed, re.MULTILINE)
    assert int(same) >= 198  # the index is approximate
    with psycopg.connect(server) as connection:
        query = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
        assert connection.execute(query).fetchall() == []


def test_pgvector_search_without_the_right_to_create_it(server):
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute("CREATE ROLE visitor LOGIN")
    done = run(
        [str(EXAMPLES / "pgvector_search.py")],
        DATABASE_URL=server.replace("postgres@", "visitor@"),
    )
    assert done.returncode == 1
    assert "administrator" in done.stderr
    assert "Traceback" not in done.stderr


def test_pgvector_search_without_a_server(tmp_path):
    pytest.importorskip("psycopg")
    path = str(EXAMPLES / "pgvector_search.py")
    assert "Set DATABASE_URL" in run([path]).stderr
    nowhere = run([path], DATABASE_URL=f"postgresql://postgres@/postgres?host={tmp_path}")
    assert nowhere.returncode == 1
    assert "No connection" in nowhere.stderr
