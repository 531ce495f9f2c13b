"""Time and memory of fits on Madelon (1820 x 500), as ratios within one run.

    python -m benchmarks.speed

Wall seconds, best of three; one BLAS thread in metricboost, whatever the library takes in NCA.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.boosting.draws import Draws, nonzeros
from metricboost.boosting.forms import step_form
from metricboost.boosting.gate import trimmed
from metricboost.boosting.line_search import step_weight
from metricboost.boosting.neighborhoods import training_lists
from metricboost.boosting.scaling import Scaling
from metricboost.boosting.sparse_eigen import sparse_eigenvector
from metricboost.boosting.terms import Candidates
from metricboost.engines import get_engine

from .tables import load

SEED = 100
#: The paper's configuration. rho = 0.05 of the first panel of 22 columns is one nonzero.
PAPER = {
    "max_iter": 500, "n_neighbors": 3, "n_nonzero": 1, "max_features": "sqrt", "subsample": 0.5,
    "refresh_every": 50, "max_degree": 4, "oob_gate": None, "screen_pairs": 0, "prune": None,
    "n_averaged": 1, "clip": None, "learning_rate": 0.05, "random_state": 0,
}  # fmt: skip


def best_of_three(run: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def fits() -> None:
    split = load("Madelon", SEED)
    X, y = split.X_train, split.y_train
    standard = StandardScaler().fit_transform(X)
    nca = NeighborhoodComponentsAnalysis(n_components=10, random_state=0)
    rows = {
        "paper's configuration, 1 nonzero": lambda: SDist(**PAPER).fit(X, y),
        "the same, rho = 0.05 of growing panels": lambda: SDist(**{**PAPER, "n_nonzero": 0.05}).fit(
            X, y
        ),
        "the first with n_jobs=2": lambda: SDist(**PAPER, n_jobs=2).fit(X, y),
        "defaults": lambda: SDistClassifier(random_state=0).fit(X, y),
        "defaults, n_jobs=2": lambda: SDistClassifier(random_state=0, n_jobs=2).fit(X, y),
        "defaults, one fit (n_averaged=1)": lambda: SDistClassifier(
            random_state=0, n_averaged=1
        ).fit(X, y),
        "the same, NumPy engine": lambda: SDistClassifier(
            random_state=0, n_averaged=1, engine="numpy"
        ).fit(X, y),
        "scikit-learn NCA, 10 components": lambda: nca.fit(standard, y),
    }
    seconds = {name: best_of_three(run) for name, run in rows.items()}
    reference = seconds["scikit-learn NCA, 10 components"]
    print(f"Madelon, {X.shape[0]} x {X.shape[1]}{'seconds':>31}{'NCA = 1':>10}")
    for name, value in seconds.items():
        print(f"  {name:42}{value:8.2f}{value / reference:10.2f}")


class Stopwatch:
    """Adds up the seconds of named parts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def __call__(self, name: str, run: Callable[[], object]):
        start = time.perf_counter()
        result = run()
        self.seconds[name] += time.perf_counter() - start
        return result


def one_step(watch, draws, attempt, candidates, kappa, gate) -> None:
    """One attempt of the loop, its parts timed."""
    rows = candidates.rows
    in_bag, panel = watch("draws", lambda: draws(attempt, len(candidates)))
    watch("weights", lambda: rows.weigh(in_bag))
    kappa = nonzeros(kappa, len(panel))
    form = watch("panel, graph", lambda: step_form(candidates, panel, kappa))
    support, xi = watch("sparse eigenvector", lambda: sparse_eigenvector(form, kappa))
    chosen = candidates.terms(panel[support])
    if gate:
        _, kept, xi = watch("gate", lambda: trimmed(form, support, xi, rows, chosen))
        chosen = chosen[kept]
    line = watch("margins", lambda: rows.line(chosen, xi))
    watch("step weight", lambda: step_weight(line))


def floor_of_a_step(candidates, panel, in_bag) -> float:
    """The panel's gemm, and one gather of the neighbour rows of the bag."""
    phi, graph = candidates.rows.columns(candidates.terms(panel)), candidates.rows.graph
    rows = np.hstack([graph.same, graph.other])[in_bag]
    gemm = best_of_three(lambda: phi.T @ phi)
    gather = best_of_three(lambda: phi[rows])
    print(f"    floor: gemm {gemm * 1e3:.2f} ms + gather {gather * 1e3:.2f} ms")
    return gemm + gather


def steps(title: str, k: int, max_features, kappa: int, gate: bool, n_steps: int = 40) -> None:
    split = load("Madelon", SEED)
    Xt = Scaling.of(split.X_train, True).transposed(split.X_train)
    engine, labels = get_engine("native"), (split.y_train == 1).astype(np.intp)
    rows = engine.rows(Xt)
    candidates = Candidates(rows, max_degree=2)
    rows.begin(labels, np.ones(len(labels)))
    rows.refresh(training_lists(labels, k, "common"), 0)
    draws = Draws(0, len(labels), 0.5, max_features)
    watch, (in_bag, panel) = Stopwatch(), draws(1, len(candidates))
    rows.weigh(in_bag)
    rows.diagonal(candidates.terms(np.arange(len(candidates))))  # once per refresh, not per step
    for attempt in range(1, n_steps + 1):
        one_step(watch, draws, attempt, candidates, kappa, gate)
    total = sum(watch.seconds.values()) / n_steps
    print(f"  {title}: {total * 1e3:.2f} ms a step")
    for name, value in watch.seconds.items():
        print(f"    {name:20}{value / n_steps * 1e3:8.2f} ms")
    print(f"    step / floor = {total / floor_of_a_step(candidates, panel, in_bag):.2f}")


def memory() -> None:
    """Peak memory of a fit above the interpreter with its imports, in a process of its own."""
    code = "from benchmarks.speed import print_peak; print_peak()"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    print(output.stdout, end="")


def print_peak() -> None:
    """Linux only: the high-water mark of resident memory, reset after the imports."""
    import benchmarks.quality  # noqa: F401  (all imports first)

    def peak() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    split = load("Madelon", SEED)
    SDistClassifier(random_state=0).fit(split.X_train, split.y_train)
    print(f"Peak memory: imports {before:.0f} MB, loading and fit {peak():.0f} MB: "
          f"{peak() - before:.0f} MB above the imports")  # fmt: skip


def search() -> None:
    """The whole default cross-validation beside one fit, both in two processes."""
    split = load("Madelon", SEED)
    seconds = []
    SDistClassifier(max_iter=1, n_jobs=2).fit(split.X_train[:, :5], split.y_train)  # starts them
    for model in (
        SDistClassifier(random_state=0, n_jobs=2),
        SDistClassifierCV(random_state=0, n_jobs=2),
    ):
        start = time.perf_counter()
        model.fit(split.X_train, split.y_train)
        seconds.append(time.perf_counter() - start)
    print(f"Default cross-validation, 2 processes: {seconds[1]:.1f} s, one fit {seconds[0]:.1f} s")


def main() -> None:
    search()
    fits()
    print("One native step (mean of 40, no refresh):")
    with threadpool_limits(1, user_api="blas"):
        steps("defaults, all 500 columns", 20, None, 16, gate=True)
        steps("paper, 22 of 500 columns", 3, "sqrt", 1, gate=False)
    memory()


if __name__ == "__main__":
    main()
