"""The time of the command: fits of a wide and of a long CSV file, and the help.

    python -m experiments.command            # all measurements
    python -m experiments.command help fit   # some of them

Every measurement is a process of its own. The seconds are the smallest of several runs: wall-clock
seconds, and the CPU seconds of the process, which depend less on other work of the machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

#: Rows and columns of the files.
SHAPES = ((40, 30_000), (100_000, 100))
MAIN = "from metricboost.cli import main; main()"
IMPORT = "import sklearn.neighbors, sklearn.metrics"


def written(folder: Path, n_rows: int, n_columns: int) -> Path:
    """A file of normal columns. The product of the first two determines the classes."""
    values = np.random.default_rng(0).standard_normal((n_rows, n_columns))
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    target = np.where(values[:, 0] * values[:, 1] > 0, "a", "b")
    path = folder / f"{n_rows}x{n_columns}.csv"
    pd.concat([frame, pd.Series(target, name="target")], axis=1).to_csv(
        path, index=False, float_format="%.6g"
    )
    return path


def seconds(code: str, *arguments: str | Path) -> tuple[float, float]:
    """Wall-clock seconds and CPU seconds of a process that runs Python code."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", code, *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, repeats: int, code: str, *arguments: str | Path) -> None:
    runs = [seconds(code, *arguments) for _ in range(repeats)]
    wall, cpu = (min(run[i] for run in runs) for i in (0, 1))
    print(f"{name:<45} {wall:6.2f} s, {cpu:6.2f} CPU seconds", flush=True)


def measure_help(repeats: int) -> None:
    measure("Python that imports scikit-learn", repeats, IMPORT)
    measure("Python that imports metricboost", repeats, "from metricboost import SDistClassifier")
    measure("metricboost --help", repeats, MAIN, "--help")


def measure_file(parts: Sequence[str], repeats: int, folder: Path, shape: tuple[int, int]) -> None:
    path, name = written(folder, *shape), "{} x {}".format(*shape)
    model = folder / f"{path.stem}.mbz"
    code = "import sys, pandas; pandas.read_csv(sys.argv[1])"
    measure(f"pandas reads {name}", repeats, code, path)
    measure(f"metricboost fit, {name}", repeats, MAIN, "fit", path, "-t", "target", "-o", model)
    if "use" in parts:
        output = folder / "output.csv"
        measure(f"metricboost predict, {name}", repeats, MAIN, "predict", model, path, "-o", output)
        measure(f"metricboost explain, {name}", repeats, MAIN, "explain", model, "--data", path)
        measure(
            f"metricboost report, {name}", repeats,
            MAIN, "report", model, "--data", path, "-o", folder / "report.html",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="help, fit, use (also fits)")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    parts = arguments.parts or ("help", "fit", "use")
    if "help" in parts:
        measure_help(arguments.repeats)
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES if {"fit", "use"} & set(parts) else ():
            measure_file(parts, arguments.repeats, Path(folder), shape)


if __name__ == "__main__":
    main()
