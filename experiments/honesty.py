"""Compare out-of-fold errors with errors on new rows.

    python -m experiments.honesty pruning --seeds 0 12
    python -m experiments.honesty noise --seeds 0 20
    python -m experiments.honesty intervals --seeds 0 200

``pruning`` fits simulated tables with the defaults and with ``prune=None``. It prints how far the
error on 2,000 new rows is above the out-of-fold error, and above the error without pruning.
``noise`` fits tables whose columns hold no information about the classes, and, for comparison, pure
interactions. It prints the mean ``oob_score_`` and how many fits count as better than guessing.
``intervals`` counts how often ``oob_interval_`` covers the accuracy on 5,000 new rows, and how
often an interval for independent rows would.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from metricboost import SDistClassifier
from metricboost._intervals import interval
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.model.guessing import TO_BEAT_GUESSING

from .results import Cell, Results, Row, mean_and_error, measured, number
from .runner import measure_missing

NEW_ROWS = 2000
#: Rows and columns of the simulated tables.
SHAPES = ((100, 100), (200, 50), (300, 200), (1000, 50))
Table = tuple[np.ndarray, np.ndarray]


def parity(n: int, p: int, seed: int) -> Table:
    """The class is the sign of a product of three columns of +-1. All columns have noise 0.4."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n, p))
    y = signs[:, rng.choice(p, 3, replace=False)].prod(axis=1) > 0
    return signs + 0.4 * rng.standard_normal((n, p)), y.astype(int)


SIMULATIONS: dict[str, Callable[[int, int, int], Table]] = {
    "pure XOR": lambda n, p, seed: make_xor(n, p, informative=2, random_state=seed),
    "pure rings": lambda n, p, seed: make_double_ring(n, p, informative=2, random_state=seed),
    "XOR": lambda n, p, seed: make_xor(n, p, random_state=seed),
    "rings": lambda n, p, seed: make_double_ring(n, p, random_state=seed),
    "parity of three": parity,
}
#: Simulations, and the degree of their fits.
PRUNED = (
    ("pure XOR", 2), ("pure rings", 2), ("XOR", 2), ("rings", 2),
    ("pure XOR", 3), ("pure rings", 3), ("parity of three", 3),
)  # fmt: skip
PRUNE = {"defaults": "auto", "prune=None": None}


def noise(n: int, p: int, seed: int) -> Table:
    rng = np.random.default_rng((seed, n, p))
    return rng.standard_normal((n, p)), rng.permutation(np.arange(n) % 2)


def permuted_madelon(n: int, p: int, seed: int) -> Table:
    """Columns of Madelon with labels in random order."""
    rng, madelon = np.random.default_rng(seed), fetch_madelon()
    columns = rng.choice(madelon.data.shape[1], p, replace=False)
    return madelon.data[:n, columns], rng.permutation(madelon.target[:n])


NOISE: dict[str, tuple[Callable[[int, int, int], Table], int, int]] = {
    **{f"noise {n} x {p}": (noise, n, p) for n, p in ((300, 100), (60, 200), (200, 50))},
    "Madelon, labels permuted": (permuted_madelon, 600, 100),
    **{f"pure XOR {n} x {p}": (SIMULATIONS["pure XOR"], n, p) for n, p in ((200, 200), (500, 500))},
}


def balanced_noise(n: int, p: int, seed: int) -> Table:
    """The first rows of the table are balanced too."""
    return np.random.default_rng((seed, n, p)).standard_normal((n, p)), np.arange(n) % 2


def weak_signal(n: int, p: int, seed: int) -> Table:
    """The log odds are the sum of ten columns, each with the same small weight."""
    rng = np.random.default_rng((seed, n, p))
    X = rng.standard_normal((n, p))
    odds = 0.25 * X[:, :10].sum(axis=1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


#: Tables of 200 x 50, and the new rows that tell the accuracy.
INTERVALS = {
    "balanced noise": balanced_noise, "weak signal": weak_signal,
    "pure XOR": SIMULATIONS["pure XOR"],
}  # fmt: skip
COVERED_ROWS, LEARNED_ROWS, LEARNED_COLUMNS = 5000, 200, 50


def interval_cells(seeds: range) -> Iterator[Cell]:
    for seed in seeds:
        for name in INTERVALS:
            yield Cell("honesty", f"interval, {name}", "defaults", seed, {"name": name}, "interval")


def pruning_cells(seeds: range) -> Iterator[Cell]:
    for seed in seeds:
        for n, p in SHAPES:
            for name, degree in PRUNED:
                settings = {"name": name, "degree": degree, "n": n, "p": p}
                for model in PRUNE:
                    table = f"{name}, degree {degree}, {n} x {p}"
                    yield Cell("honesty", table, model, seed, settings, "pruning")


def noise_cells(seeds: range) -> Iterator[Cell]:
    for seed in seeds:
        for name in NOISE:
            yield Cell("honesty", name, "defaults", seed, {}, "noise")


def measured_interval(make: Callable[[int, int, int], Table], seed: int) -> Row:
    X, y = make(LEARNED_ROWS + COVERED_ROWS, LEARNED_COLUMNS, seed)
    learned, new = slice(LEARNED_ROWS), slice(LEARNED_ROWS, None)
    model = SDistClassifier(random_state=seed, n_jobs=1).fit(X[learned], y[learned])
    low, high = model.oob_interval_
    return {
        "oob_score": model.oob_score_, "score": model.score(X[new], y[new]),
        "low": low, "high": high,
    }  # fmt: skip


def measure(cell: Cell) -> Row:
    if cell.task == "interval":
        return measured_interval(INTERVALS[cell.settings["name"]], cell.seed)
    if cell.task == "noise":
        make, n, p = NOISE[cell.table]
        model = SDistClassifier(random_state=cell.seed, n_jobs=1).fit(*make(n, p, cell.seed))
        return {"oob_score": model.oob_score_, "gain": model.oob_gain_}
    n, given = cell.settings["n"], cell.settings
    X, y = SIMULATIONS[given["name"]](n + NEW_ROWS, given["p"], cell.seed)
    prune = PRUNE[cell.model]
    model = SDistClassifier(
        max_degree=given["degree"], prune=prune, random_state=cell.seed, n_jobs=1
    ).fit(X[:n], y[:n])
    return {
        "rows": n,
        "error": float(np.mean(model.predict(X[n:]) != y[n:])),
        "out_of_fold": 1 - model.oob_score_,
        "variables": int((model.feature_importances_ > 0).sum()),
    }


def show_pruning(results: Results, cells: Sequence[Cell]) -> None:
    rows = {name: results.rows(c for c in cells if c.model == name) for name in PRUNE}
    for name, found in rows.items():
        values = {key: np.array([row[key] for row in found]) for key in found[0] if key in KEYS}
        error, gap = values["error"], values["error"] - values["out_of_fold"]
        spread = 2 * np.sqrt(error * (1 - error) / values["rows"])
        print(
            f"{name}: {len(found)} tables, error {error.mean():.4f}, out of fold "
            f"{values['out_of_fold'].mean():.4f}, {values['variables'].mean():.1f} variables "
            f"(median {np.median(values['variables']):.0f}); error minus out-of-fold error above "
            f"0.1 in {(gap > 0.1).sum()}, at most {gap.max():.3f}; above 0.1 by more than two "
            f"standard errors of the out-of-fold error in {(gap > 0.1 + spread).sum()}"
        )
    errors = np.array([[row["error"] for row in found] for found in rows.values()])
    lost, spread = errors[0] - errors[1], 2 * np.sqrt((errors * (1 - errors)).sum(0) / NEW_ROWS)
    print(
        f"worse than prune=None by more than 0.05 in {(lost > 0.05).sum()}, by more than that and "
        f"two standard errors of the test errors in {(lost > 0.05 + spread).sum()}; at most "
        f"{lost.max():.3f}"
    )


KEYS = ("rows", "error", "out_of_fold", "variables")


def show_noise(results: Results, cells: Sequence[Cell]) -> None:
    for name in NOISE:
        rows = results.rows(cell for cell in cells if cell.table == name)
        gains = np.array(list(measured(rows, "gain").values()))
        score = number(*mean_and_error(measured(rows, "oob_score").values()))
        better = (gains >= TO_BEAT_GUESSING).sum()
        print(
            f"{name}: oob_score_ {score}, gain {gains.mean():.1f} ({gains.min():.1f} to "
            f"{gains.max():.1f}), better than guessing {better} of {len(gains)}"
        )


def show_intervals(results: Results, cells: Sequence[Cell]) -> None:
    for name in INTERVALS:
        rows = list(results.rows(cell for cell in cells if cell.settings["name"] == name))
        of = {key: np.array([row[key] for row in rows]) for key in ("oob_score", "score")}
        covered = sum(row["low"] <= row["score"] <= row["high"] for row in rows)
        independent = [interval(LEARNED_ROWS * score, LEARNED_ROWS) for score in of["oob_score"]]
        also = sum(low <= score <= high for (low, high), score in zip(independent, of["score"]))
        means = (number(*mean_and_error(dict(enumerate(one)).values())) for one in of.values())
        width = np.mean([row["high"] - row["low"] for row in rows])
        print(
            f"{name}: oob_score_ and accuracy {', '.join(means)}; covered in {covered} of "
            f"{len(rows)} tables, by the interval of independent rows in {also}; width {width:.3f}"
        )


TASKS = {
    "pruning": (pruning_cells, show_pruning),
    "noise": (noise_cells, show_noise),
    "intervals": (interval_cells, show_intervals),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=TASKS)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 12), metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--print-only", action="store_true")
    arguments, results = parser.parse_args(), Results()
    seeds = range(*arguments.seeds)
    cells_of, show = TASKS[arguments.what]
    cells = list(cells_of(seeds))
    if not arguments.print_only:
        measure_missing(cells, results, measure, jobs=arguments.jobs)
    if not results.rows(cells):
        raise SystemExit("No cell is measured yet.")
    show(results, cells)


if __name__ == "__main__":
    main()
