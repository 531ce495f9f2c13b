"""Whether a model is as good as it says: out-of-fold errors against errors on new rows.

    python -m benchmarks.honesty pruning --seeds 0 12
    python -m benchmarks.honesty noise --seeds 0 20

``pruning`` fits simulated tables with the defaults and with ``prune=None``. It prints how far the
error on 2,000 new rows is above the out-of-fold error, and above the error without pruning.
``noise`` fits tables whose columns say nothing about the classes, and pure interactions beside
them. It prints the mean ``oob_score_`` and how many fits count as better than guessing.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from joblib import Parallel, delayed

from metricboost import SDistClassifier
from metricboost.datasets import fetch_madelon, make_double_ring, make_xor
from metricboost.selection.choosing import TO_BEAT_GUESSING

NEW_ROWS = 2000
#: Rows and columns of the simulated tables.
SHAPES = ((100, 100), (200, 50), (300, 200), (1000, 50))


def parity(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The class is the sign of a product of three columns at +-1, all columns with noise 0.4."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n, p))
    y = signs[:, rng.choice(p, 3, replace=False)].prod(axis=1) > 0
    return signs + 0.4 * rng.standard_normal((n, p)), y.astype(int)


SIMULATIONS: dict[str, Callable[[int, int, int], tuple[np.ndarray, np.ndarray]]] = {
    "pure XOR": lambda n, p, seed: make_xor(n, p, informative=2, random_state=seed),
    "pure rings": lambda n, p, seed: make_double_ring(n, p, informative=2, random_state=seed),
    "XOR": lambda n, p, seed: make_xor(n, p, random_state=seed),
    "rings": lambda n, p, seed: make_double_ring(n, p, random_state=seed),
    "parity of three": parity,
}
#: Simulations with the degree they are fitted with.
PRUNED = (
    ("pure XOR", 2), ("pure rings", 2), ("XOR", 2), ("rings", 2),
    ("pure XOR", 3), ("pure rings", 3), ("parity of three", 3),
)  # fmt: skip


def pruning_errors(name: str, degree: int, n: int, p: int, seed: int) -> list[float]:
    """Test error and out-of-fold error of the defaults, then of ``prune=None``."""
    X, y = SIMULATIONS[name](n + NEW_ROWS, p, seed)
    found = []
    for prune in ("auto", None):
        model = SDistClassifier(max_degree=degree, prune=prune, random_state=seed, n_jobs=1)
        model.fit(X[:n], y[:n])
        error = float(np.mean(model.predict(X[n:]) != y[n:]))
        found += [error, 1 - model.oob_score_, float((model.feature_importances_ > 0).sum())]
    return found


def compare_pruning(seeds: range, jobs: int) -> None:
    cases = [(name, d, n, p, s) for s in seeds for n, p in SHAPES for name, d in PRUNED]
    found = np.array(Parallel(jobs)(delayed(_quietly)(pruning_errors, *case) for case in cases))
    print(f"{len(cases)} tables")
    for title, (error, out_of_fold, variables) in zip(
        ("defaults", "prune=None"), (found[:, :3].T, found[:, 3:].T)
    ):
        gap = error - out_of_fold
        noise = 2 * np.sqrt(error * (1 - error) / np.array([n for _, _, n, _, _ in cases]))
        print(
            f"{title}: error {error.mean():.4f}, out of fold {out_of_fold.mean():.4f}, "
            f"{variables.mean():.1f} variables (median {np.median(variables):.0f}); error minus "
            f"out-of-fold error above 0.1 in {(gap > 0.1).sum()}, at most {gap.max():.3f}; above "
            "0.1 by more than two standard errors of the out-of-fold error in "
            f"{(gap > 0.1 + noise).sum()}"
        )
        for case, one in zip(cases, gap):
            if one > 0.1:
                print(f"  {case}: {one:.3f}")
    lost = found[:, 0] - found[:, 3]
    noise = 2 * np.sqrt((found[:, [0, 3]] * (1 - found[:, [0, 3]])).sum(axis=1) / NEW_ROWS)
    print(
        f"worse than prune=None by more than 0.05 in {(lost > 0.05).sum()}, by more than that and "
        f"two standard errors of the test errors in {(lost > 0.05 + noise).sum()}; at most "
        f"{lost.max():.3f}"
    )


def noise_tables(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    for n, p in ((300, 100), (60, 200), (200, 50)):
        yield f"noise {n} x {p}", rng.standard_normal((n, p)), rng.permutation(np.arange(n) % 2)
    if "METRICBOOST_DATA" in os.environ:
        madelon = fetch_madelon()
        columns = np.setdiff1d(np.arange(500), madelon.relevant)
        yield "Madelon's noise", madelon.data[:600, columns], rng.permutation(madelon.target[:600])
    for n, p in ((200, 200), (500, 500)):
        yield f"pure XOR {n} x {p}", *make_xor(n, p, informative=2, random_state=seed)


def noise_scores(seed: int) -> list[tuple[str, float, float]]:
    found = []
    for name, X, y in noise_tables(seed):
        model = SDistClassifier(random_state=seed, n_jobs=1).fit(X, y)
        found.append((name, model.oob_score_, model.oob_gain_))
    return found


def compare_noise(seeds: range, jobs: int) -> None:
    found = Parallel(jobs)(delayed(_quietly)(noise_scores, seed) for seed in seeds)
    for rows in zip(*found):
        scores, gains = (np.array([row[i] for row in rows]) for i in (1, 2))
        print(
            f"{rows[0][0]}: oob_score_ {scores.mean():.3f} "
            f"({scores.std(ddof=1) / np.sqrt(len(scores)):.3f}), gain {gains.mean():.1f} "
            f"({gains.min():.1f} to {gains.max():.1f}), better than guessing "
            f"{(gains >= TO_BEAT_GUESSING).sum()} of {len(gains)}"
        )


def _quietly(function: Callable[..., list], *arguments: object) -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("pruning", "noise"))
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 12), metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    compare = compare_pruning if arguments.what == "pruning" else compare_noise
    compare(range(*arguments.seeds), arguments.jobs)


if __name__ == "__main__":
    main()
