"""Neighbours in SQL: rows embedded by a metric in PostgreSQL, searched by pgvector.

The Euclidean distance between embedded rows is the distance under the metric. A column of type
``vector`` is therefore enough for a search in the database, and rows come in the order of
``model.kneighbors``. The example needs a server with pgvector 0.5 or later. The table is temporary
and the transaction is rolled back, so nothing stays in the database.

    pip install "psycopg[binary]"
    DATABASE_URL=postgresql://user@host/database python examples/pgvector_search.py
"""

from __future__ import annotations

import os

import numpy as np

from metricboost import SDistClassifier
from metricboost.datasets import make_xor

try:
    import psycopg
except ImportError:
    raise SystemExit('This example needs psycopg: pip install "psycopg[binary]"') from None

N_ROWS, N_QUERIES, N_COLUMNS = 1000, 200, 100
N_NEIGHBORS = 5
NEAREST = "SELECT id FROM embedded ORDER BY embedding <-> %s::vector LIMIT %s"


def connected() -> psycopg.Connection:
    """A connection to the server in DATABASE_URL."""
    address = os.environ.get("DATABASE_URL")
    if not address:
        raise SystemExit("Set DATABASE_URL, such as postgresql://user@host/database.")
    try:
        return psycopg.connect(address)
    except psycopg.OperationalError as error:
        raise SystemExit(f"No connection to the server in DATABASE_URL: {error}") from None


def create_extension(connection: psycopg.Connection) -> None:
    """Create the extension pgvector. It must be installed, and may need an administrator."""
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise SystemExit(
            f"The extension vector cannot be created in this database: {error}\nInstall pgvector "
            "on the server (Debian: postgresql-NN-pgvector), or have an administrator run "
            "CREATE EXTENSION vector."
        ) from None


def text(row: np.ndarray) -> str:
    """An embedded row in the format of pgvector, such as ``[0.5, 1.0]``."""
    return str(row.tolist())


def fill(connection: psycopg.Connection, embedding: np.ndarray) -> None:
    """Create a table of row numbers and embeddings, with an index."""
    kind = f"vector({embedding.shape[1]})"
    connection.execute(
        f"CREATE TEMPORARY TABLE embedded (id integer PRIMARY KEY, embedding {kind})"
    )
    with connection.cursor().copy("COPY embedded (id, embedding) FROM STDIN") as copy:
        for i, row in enumerate(embedding):
            copy.write_row((i, text(row)))
    connection.execute("CREATE INDEX ON embedded USING hnsw (embedding vector_l2_ops)")
    # For a table of this size the planner would prefer to read all rows.
    connection.execute("SET LOCAL enable_seqscan = off")
    # The number of rows that a search considers. More rows give a more exact result.
    connection.execute("SET LOCAL hnsw.ef_search = 200")


def plan(connection: psycopg.Connection, embedded: np.ndarray) -> str:
    """The plan of the server for the search of a row."""
    lines = connection.execute(f"EXPLAIN (COSTS OFF) {NEAREST}", (text(embedded), N_NEIGHBORS))
    return next(line for (line,) in lines if "Scan" in line).strip(" ->")


def nearest(connection: psycopg.Connection, embedded: np.ndarray) -> list[int]:
    """The numbers of the rows nearest to an embedded one."""
    return [i for (i,) in connection.execute(NEAREST, (text(embedded), N_NEIGHBORS))]


def main() -> None:
    with connected() as connection, connection.transaction(force_rollback=True):
        create_extension(connection)
        X, y = make_xor(N_ROWS + N_QUERIES, N_COLUMNS, informative=0.1, random_state=0)
        X, y, queries = X[:N_ROWS], y[:N_ROWS], X[N_ROWS:]
        model = SDistClassifier(random_state=0).fit(X, y)
        fill(connection, model.metric_.transform(X))
        embedded = model.metric_.transform(queries)
        print(f"{N_ROWS} rows as vectors of {embedded.shape[1]} numbers")
        print(f"plan: {plan(connection, embedded[0])}")
        found = np.array([nearest(connection, row) for row in embedded])
    expected = model.kneighbors(queries, N_NEIGHBORS, return_distance=False)
    same = int((found == expected).all(axis=1).sum())
    print(f"{same} of {N_QUERIES} queries: the same {N_NEIGHBORS} rows as model.kneighbors")


if __name__ == "__main__":
    main()
