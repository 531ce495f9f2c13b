"""The long runs: many bad tables, many kills, many fits in one process.

    python tests/soak.py bad --cases 10000      # in process, under a limit of memory
    python tests/soak.py command --cases 200    # as real processes
    python tests/soak.py kills --cases 200      # SIGKILL at random moments, two engines
    python tests/soak.py flat --cases 2000      # fits and loads: the memory must not grow

``make soak`` runs them all. Each prints what it tried and found, and ends with 1 where anything
went wrong.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bad_tables
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from test_checkpoints import SCRIPT, killed_and_resumed

import metricboost
from metricboost import SDistClassifier
from metricboost.datasets import make_double_ring

#: Bytes of memory, beyond what the imports take, that no case of a bad table may need.
BOUND = 2**30
#: Processes at a time.
AT_ONCE = 2
#: Megabytes that 2000 fits and loads may add.
FLAT = 5.0


def _settings(cases: int) -> Any:
    return settings(
        max_examples=cases, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def bad(cases: int, number: int) -> int:
    """In processes of their own, so that two cores are used and a crash is seen."""
    parts = [cases // 2, cases - cases // 2]
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(_bad_part, [(part, number + i) for i, part in enumerate(parts)])
    total, wrong = sum((f[0] for f in found), Counter()), [w for f in found for w in f[1]]
    print(f"bad tables: {sum(total.values())} cases in {time.perf_counter() - start:.0f} s, "
          f"{len(wrong)} failures: {bad_tables.summary(total)}")  # fmt: skip
    for line in wrong[:20]:
        print("  ", line)
    return len(wrong)


def _bad_part(cases: int, number: int) -> tuple[Counter[str], list[str]]:
    found: Counter[str] = Counter()
    wrong: list[str] = []
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + BOUND, used + BOUND))

    @seed(number)
    @_settings(cases)
    @given(bad_tables.cases())
    def each(case: dict[str, Any]) -> None:
        try:
            with bad_tables.within(bad_tables.LIMIT):
                found[bad_tables.outcome(case)] += 1
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            found["failure"] += 1
            wrong.append(f"{type(error).__name__}: {str(error)[:200]} for {case}")

    each()
    return found, wrong


def command(cases: int, number: int) -> int:
    """Each as a process, with a limit of time and of memory."""
    drawn: list[dict[str, Any]] = []
    start = time.perf_counter()

    @seed(number)
    @_settings(cases)
    @given(bad_tables.files())
    def each(file: dict[str, Any]) -> None:
        drawn.append(file)

    each()
    with ThreadPoolExecutor(AT_ONCE) as at_once:
        ended = list(at_once.map(_command_on, drawn))
    found = Counter(f"exit {code}" for code, _ in ended)
    wrong = [f"{problem} for {file}" for (_, problem), file in zip(ended, drawn) if problem]
    print(f"command: {len(drawn)} processes in {time.perf_counter() - start:.0f} s, "
          f"{len(wrong)} failures: {bad_tables.summary(found)}")  # fmt: skip
    for line in wrong[:20]:
        print("  ", line)
    return len(wrong)


def _command_on(file: dict[str, Any]) -> tuple[int | str, str | None]:
    """The exit status, and what was not as promised."""
    program = [sys.executable, "-c", "from metricboost.cli import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run(
                [*program, *bad_tables.arguments(file, Path(folder))], capture_output=True,
                text=True, timeout=bad_tables.LIMIT, preexec_fn=_bounded, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "none", f"longer than {bad_tables.LIMIT} s"
    clean = run.returncode in (0, 1, 2) and "Traceback" not in run.stderr
    lines = [line for line in run.stderr.splitlines() if not line.startswith("warning")]
    one = run.returncode != 1 or sum("error" in line for line in lines) == 1
    if clean and one and "bug in metricboost" not in run.stderr:
        return run.returncode, None
    return run.returncode, f"exit {run.returncode}, {run.stderr[-300:]!r}"


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 * BOUND, 8 * BOUND))


def kills(cases: int, number: int) -> int:
    """The bytes of a model that was killed on the way must be those of one that was not."""
    random.seed(number)
    moments = [random.uniform(0.0, 0.6) for _ in range(cases)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as at_once:
        folder = Path(name)
        (folder / "fit.py").write_text(SCRIPT)
        whole = {}
        for engine in ("native", "numpy"):
            path = folder / f"{engine}.mbz"
            subprocess.run([sys.executable, folder / "fit.py", engine, "", path], check=True)
            whole[engine] = path.read_bytes()

        def one(case: int) -> tuple[str, bool, bool]:
            engine, own = ("native", "numpy")[case % 2], folder / str(case)
            own.mkdir()
            found, killed = killed_and_resumed(engine, moments[case], own)
            return engine, killed, found != whole[engine]

        done = list(at_once.map(one, range(cases)))
    died = Counter(engine for engine, killed, _ in done if killed)
    lost = sum(other for *_, other in done)
    print(f"kills: {cases} fits, killed {dict(died)}, {lost} not the same bytes, "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    return lost


def flat(cases: int, number: int) -> int:
    """Megabytes after a warm-up of a tenth, and at the end."""
    X, y = make_double_ring(100, 12, random_state=number)[:2]
    sizes = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mbz"
        for case in range(cases):
            model = SDistClassifier(max_iter=4, n_averaged=1, random_state=case).fit(X, y)
            model.save(path)
            again = metricboost.load(path)
            assert np.array_equal(again.predict(X), model.predict(X))
            if case % max(cases // 20, 1) == 0:
                gc.collect()
                sizes.append(_megabytes())
    gc.collect()
    sizes.append(_megabytes())
    grown = sizes[-1] - sizes[2]
    print(f"flat: {cases} fits and loads in {time.perf_counter() - start:.0f} s, {sizes[2]:.1f} MB "
          f"after a tenth, {sizes[-1]:.1f} at the end: {grown:+.1f}")  # fmt: skip
    return int(grown > FLAT)


def _megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    runs: dict[str, Callable[[int, int], int]] = {
        "bad": bad, "command": command, "kills": kills, "flat": flat,
    }  # fmt: skip
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", choices=runs)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    sys.exit(bool(runs[chosen.run](chosen.cases, chosen.seed)))
