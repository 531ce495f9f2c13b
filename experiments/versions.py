"""Errors and times of the defaults of this version and of another version, on the same splits.

    git worktree add /tmp/other COMMIT
    pip install --no-deps --target /tmp/other-package /tmp/other
    python -m experiments.versions measure other --package /tmp/other-package
    python -m experiments.versions measure this
    python -m experiments.versions show other this

The tables are those of ``experiments.quality``. A version is a name for results. Its package is
in the given directory, or is the installed one. Every table is fitted in a process of its own, with
one thread. Standard errors over splits of one table carry Nadeau and Bengio's correction.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .results import Results, measured, paired, record
from .tables import BINARY, INTERACTIONS, MULTICLASS, load, overlap

TABLES = (*BINARY, *MULTICLASS, *INTERACTIONS)

#: Reads the names of files with splits, and prints the error and the seconds of each fit.
WORKER = """
import json, sys, time, warnings
sys.meta_path = [f for f in sys.meta_path if "Editable" not in f"{f}" and "Redirect" not in f"{f}"]
sys.path.insert(0, sys.argv[1]) if sys.argv[1] else None
import numpy as np
from metricboost import SDistClassifier
warnings.simplefilter("ignore")
for line in sys.stdin:
    split = np.load(line.strip())
    start = time.perf_counter()
    model = SDistClassifier(random_state=0, n_jobs=1).fit(split["X_train"], split["y_train"])
    seconds = time.perf_counter() - start
    error = float((model.predict(split["X_test"]) != split["y_test"]).mean())
    print(json.dumps({"error": error, "seconds": seconds}), flush=True)
"""


def measure(version: str, package: str, tables: Sequence[str], seeds: Sequence[int]) -> None:
    """Measure the splits that have no result yet."""
    known = Results()
    for table in tables:
        done = {row["seed"] for row in known.seeds("versions", table, version)}
        missing = [seed for seed in seeds if seed not in done]
        if missing:
            _measure_table(version, package, table, missing)


def _measure_table(version: str, package: str, table: str, seeds: Sequence[int]) -> None:
    worker = WORKER if package else WORKER.replace("sys.meta_path =", "_ =")
    limits = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", worker, package], text=True, cwd=folder,
            env={**os.environ, **limits}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for seed in seeds:
            split, path = load(table, seed), Path(folder) / "split.npz"
            np.savez(
                path, X_train=split.X_train, y_train=split.y_train, X_test=split.X_test,
                y_test=split.y_test,
            )  # fmt: skip
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
            record("versions", table, version, seed, **found)
        process.stdin.close()
        process.wait()
    print(f"{version}, {table}: done", flush=True)


def show(first: str, second: str) -> None:
    """Print the errors of two versions and the paired differences of the second to the first."""
    results, differences = Results(), []
    print(
        f"{'table':32}{'splits':>7}{first:>10}{second:>10}{'difference':>12}{'(s.e.)':>9}{'time':>7}"
    )
    for table in TABLES:
        rows = [results.seeds("versions", table, version) for version in (first, second)]
        errors = [measured(one) for one in rows]
        if not errors[0] or errors[0].keys() != errors[1].keys():
            continue
        mean, error = paired(errors[1], errors[0], overlap(table))
        times = [np.mean([row["seconds"] for row in one]) for one in rows]
        differences.append(mean)
        means = "".join(f"{np.mean(list(one.values())):10.4f}" for one in errors)
        print(
            f"{table:32}{len(errors[0]):7}{means}{mean:+12.4f}{error:9.4f}"
            f"{times[1] / times[0]:7.2f}"
        )
    print(f"mean difference {np.mean(differences):+.4f} over {len(differences)} tables")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("measure")
    run.add_argument("version")
    run.add_argument("--package", default="", metavar="DIRECTORY")
    run.add_argument("--tables", nargs="+", default=TABLES, metavar="TABLE")
    run.add_argument("--seeds", nargs=2, type=int, default=(0, 20), metavar=("FROM", "TO"))
    print_only = commands.add_parser("show")
    print_only.add_argument("versions", nargs=2, metavar="VERSION")
    given = parser.parse_args()
    if given.command == "show":
        show(*given.versions)
    else:
        measure(given.version, given.package, given.tables, range(*given.seeds))


if __name__ == "__main__":
    main()
