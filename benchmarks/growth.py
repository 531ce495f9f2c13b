"""Growth curves: time per step, neighbour searches and memory against rows, columns, k and steps.

    python -m benchmarks.growth                  # measures what is missing, writes docs/growth
    python -m benchmarks.growth rows             # one curve, and its exponents
    python -m benchmarks.growth --fresh          # measures all points again

One fit (``n_averaged=1``) of all rows (``max_rows=None``) of rings in 2 of the columns, without
screening and, so that every step has the same candidates, without products; all else at its
defaults. Every point is measured in a process of its own. A step is an attempt without a search:
the median of those before the first refresh, whose neighbours are the plain ones, and of those
after it. Memory is what the process has at most above what it had with the table loaded.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from metricboost import SDist
from metricboost._threads import one_blas_thread
from metricboost.boosting.learn import LearningOptions
from metricboost.datasets import make_double_ring
from metricboost.engines import get_engine
from metricboost.estimators._rows import Table
from metricboost.estimators._workers import threads
from metricboost.selection.crossfit import CrossFit, cross_fit

from .scale import peak_memory

FOLDER = Path(__file__).parent.parent / "docs" / "growth"


@dataclass(frozen=True)
class Point:
    n: int
    p: int
    k: int = 20
    attempts: int = 25

    def name(self) -> str:
        return f"{self.n} x {self.p}, k {self.k}, {self.attempts}"


@dataclass(frozen=True)
class Curve:
    against: str
    title: str
    points: tuple[Point, ...]

    def sizes(self) -> list[int]:
        return [getattr(point, self.against) for point in self.points]


CURVES = {
    "rows": Curve("n", "rows, 20 columns", tuple(Point(n * 50_000, 20) for n in (1, 2, 4, 8, 16))),
    "columns": Curve(
        "p", "columns, 500 rows", tuple(Point(500, p) for p in (100, 1000, 10_000, 100_000))
    ),
    "neighbours": Curve(
        "k", "neighbours k, 20,000 x 50", tuple(Point(20_000, 50, k) for k in (5, 10, 20, 40, 80))
    ),
    "steps": Curve(
        "attempts",
        "attempts, 2000 x 100",
        tuple(Point(2000, 100, attempts=m) for m in (25, 50, 100, 200, 400)),
    ),
}


class Watched(SDist):
    """Notes the time of every attempt."""

    def _cross_fit(self, table: Table, options: LearningOptions) -> CrossFit:
        self.marks: list[tuple[float, int]] = [(time.perf_counter(), 0)]

        def mark(_: int, path: Any) -> None:
            self.marks.append((time.perf_counter(), sum(s.refreshed for s in path.steps)))

        engine = get_engine(self.engine, threads(self.n_jobs))
        with one_blas_thread():
            return cross_fit(table.pool, engine, options, 1, watch=lambda *_: mark)


def measured(point: Point) -> dict[str, float]:
    X, y = make_double_ring(point.n, point.p, informative=2, random_state=0)[:2]
    # No gate would accept 400 steps on rings: the curve of steps is to have as many as it says.
    model = Watched(
        max_iter=point.attempts, n_neighbors=point.k, n_averaged=1, max_degree=1, prune=None,
        start_share=0.0, oob_gate=2.0 if point.attempts == 25 else None, max_rows=None,
        random_state=0,
    )  # fmt: skip
    with peak_memory() as peak:
        start = time.perf_counter()
        model.fit(X, y)
        return {
            **steps_and_searches(model.marks),
            "fit": time.perf_counter() - start,
            "megabytes": peak(),
            "table": X.nbytes / 1e6,
        }


def steps_and_searches(marks: list[tuple[float, int]]) -> dict[str, float]:
    """Medians of the attempts without a search; what those with one take more."""
    gaps = [(b[0] - a[0], a[1], b[1]) for a, b in pairwise(marks)]
    first, rest = gaps[0][0], gaps[1:]
    plain = [gap for gap, before, after in rest if before == after == 0]
    later = [gap for gap, before, after in rest if before == after > 0]
    refreshes = [gap for gap, before, after in rest if before < after]
    step = float(np.median(plain))
    found = {"step": step, "first search": max(first - step, 0.0)}
    if later:
        found["step after a refresh"] = float(np.median(later))
    if refreshes:
        found["refresh"] = max(float(np.median(refreshes)) - step, 0.0)
    return found


def measure(names: list[str], fresh: bool) -> dict[str, dict[str, float]]:
    """All points of some curves; what is known already is not measured again."""
    file = FOLDER / "points.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        print(CURVES[name].title, flush=True)
        for point in CURVES[name].points:
            if fresh or point.name() not in known:
                # A process of its own: memory that an earlier point left behind does not count.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    known[point.name()] = {**asdict(point), **pool.submit(measured, point).result()}
                FOLDER.mkdir(exist_ok=True)
                file.write_text(json.dumps(known, indent=1))
            print("  " + point.name(), *_told(known[point.name()]), sep="  ", flush=True)
        for what, slope in exponents(CURVES[name], known):
            print(f"  {what} grows with the power {slope:.2f}", flush=True)
    return known


def _told(found: dict[str, float]) -> Iterator[str]:
    for name, value in found.items():
        if name in ("megabytes", "table"):
            yield f"{name} {value:.0f}"
        elif name not in ("n", "p", "k", "attempts"):
            yield f"{name} {value:.4f}"


def exponents(curve: Curve, known: dict[str, dict[str, float]]) -> Iterator[tuple[str, float]]:
    rows = [known[point.name()] for point in curve.points]
    names = ("fit",) if curve.against == "attempts" else ("step", "step after a refresh")
    for name in names:
        if all(row.get(name, 0) > 0 for row in rows):
            values = np.log([row[name] for row in rows])
            yield name, float(np.polyfit(np.log(curve.sizes()), values, 1)[0])


# --- the page


def write_page(known: dict[str, dict[str, float]]) -> None:
    """Tables and a picture, which ``docs/scale.md`` takes in."""
    done = {
        name: curve
        for name, curve in CURVES.items()
        if all(point.name() in known for point in curve.points)
    }
    parts = [_table(curve, known) for curve in done.values()]
    (FOLDER / "tables.md").write_text("\n\n".join(parts) + "\n")
    _draw(list(done.values()), known)


def _table(curve: Curve, known: dict[str, dict[str, float]]) -> str:
    head = (
        f"| {curve.title} | a step, s | after a refresh, s | first search, s | a refresh, s "
        "| the fit, s | memory above the table, MB | table, MB |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for size, point in zip(curve.sizes(), curve.points):
        row = known[point.name()]
        cells = [
            *(
                row.get(name)
                for name in ("step", "step after a refresh", "first search", "refresh")
            ),
            row["fit"],
        ]
        numbers = " | ".join("" if cell is None else f"{cell:.3g}" for cell in cells)
        lines.append(f"| {size:,} | {numbers} | {row['megabytes']:.0f} | {row['table']:.0f} |")
    slopes = ", ".join(f"{name}: {slope:.2f}" for name, slope in exponents(curve, known))
    return "\n".join(lines) + f"\n\nPower of growth: {slopes}."


def _draw(curves: list[Curve], known: dict[str, dict[str, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "growth", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(curves), figsize=(3.4 * len(curves), 5.6), squeeze=False)
    for (above, below), curve in zip(axes.T, curves):
        rows = [known[point.name()] for point in curve.points]
        sizes = np.array(curve.sizes(), dtype=float)
        name = "fit" if curve.against == "attempts" else "step"
        times = np.array([row[name] for row in rows])
        above.loglog(sizes, times, "o-", color="#1f6f8b", label="measured")
        paper = times[0] * _paper(curve) / _paper(curve)[0]
        above.loglog(sizes, paper, ":", color="#888888", label="the paper's formula")
        above.set_title(curve.title, fontsize=9)
        above.set_ylabel(f"seconds a {name}" if name == "step" else "seconds", fontsize=8)
        below.loglog(sizes, [row["megabytes"] for row in rows], "o-", color="#1f6f8b")
        below.loglog(sizes, [row["table"] for row in rows], "--", color="#888888", label="table")
        below.set_ylabel("megabytes", fontsize=8)
        below.set_xlabel(curve.title.split(",")[0], fontsize=8)
    axes[0, 0].legend(fontsize=7, frameon=False)
    axes[1, 0].legend(["memory above the table", "table"], fontsize=7, frameon=False)
    for axes_of_curve, curve in zip(axes.T, curves):
        for axis in axes_of_curve:
            axis.set_xticks(curve.sizes(), [_short(size) for size in curve.sizes()])
            axis.minorticks_off()
            axis.tick_params(labelsize=7)
            axis.set_ylim(*_decades(axis.get_ylim()))
            axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(FOLDER / "growth.svg", metadata={"Date": None})
    plt.close(figure)


def _short(size: int) -> str:
    return f"{size // 1000}k" if size >= 10_000 else str(size)


def _decades(limits: tuple[float, float]) -> tuple[float, float]:
    """Whole powers of ten around them: an axis then has numbers at both ends."""
    low, high = np.floor(np.log10(limits[0])), np.ceil(np.log10(limits[1]))
    return float(10**low), float(10**high)


def _paper(curve: Curve) -> np.ndarray:
    """The paper's cost of a fit, kappa 16, up to a constant."""
    costs = []
    for point in curve.points:
        kappa = 16
        step = kappa * (kappa + 1) * point.p * np.log(point.p) + point.n * point.p**2
        costs.append(step * (point.attempts if curve.against == "attempts" else 1))
    return np.array(costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("curves", nargs="*", help=f"of {', '.join(CURVES)}; all by default")
    parser.add_argument("--fresh", action="store_true", help="measure known points again")
    arguments = parser.parse_args()
    unknown = set(arguments.curves) - set(CURVES)
    if unknown:
        parser.error(f"no such curve: {', '.join(sorted(unknown))}")
    write_page(measure(arguments.curves or list(CURVES), arguments.fresh))


if __name__ == "__main__":
    main()
