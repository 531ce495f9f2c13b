"""Find an interaction of 2 among 500 columns from 500 rows, and draw a picture of it.

The class is the sign of the product of two columns. Neither column differs between the classes by
itself. The script fits metricboost, common classifiers, and an ablation of metricboost (pair
screening followed by logistic regression). It prints the test errors and the selected terms, and
writes a picture.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from metricboost import SDistClassifier
from metricboost.datasets import make_xor
from metricboost.inspection import ScreenedPairs

N_TRAIN, N_TEST, N_COLUMNS = 500, 2000, 500


def rivals(seed: int) -> dict[str, object]:
    """Common classifiers, and the ablation last."""
    return {
        "3 nearest neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
        "NCA + 3-NN": make_pipeline(
            StandardScaler(),
            NeighborhoodComponentsAnalysis(n_components=10, random_state=seed),
            KNeighborsClassifier(3),
        ),
        "RBF-SVM": make_pipeline(StandardScaler(), SVC()),
        "random forest": RandomForestClassifier(300, random_state=seed, n_jobs=-1),
        "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
        "pair screening + logistic": make_pipeline(
            ScreenedPairs(), StandardScaler(), LogisticRegression(max_iter=1000)
        ),
    }


def error_and_seconds(model, train, test) -> tuple[float, float]:
    """The test error, and the seconds of the fit."""
    start = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - start
    return 1 - model.score(*test), seconds


def draw(model, X, y, informative, path: Path) -> None:
    """Draw the classes and the predictions over the two columns, and the terms of the metric."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    score = model.decision_function(X)
    left, middle, right = plt.figure(figsize=(13, 4.2), layout="constrained").subplots(1, 3)
    names = [f"x{j}" for j in informative]
    for ax, values, title in (
        (left, y, "the classes"),
        (middle, (score > 0).astype(int), "what metricboost predicts"),
    ):
        ax.scatter(*X[:, informative].T, c=np.where(values == 1, "#d1495b", "#2e4057"), s=9)
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
        ax.axvline(0, color="0.8", lw=0.8, zorder=0)
        ax.set(xlabel=names[0], ylabel=names[1], title=title, aspect="equal")
    terms = model.metric_.terms[:8]
    right.barh([t.name for t in terms][::-1], [t.weight for t in terms][::-1], color="#66a182")
    right.set(title="the terms of the metric", xlabel="weight")
    plt.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("metricboost-demo.png"))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")

    X, y, info = make_xor(
        N_TRAIN + N_TEST, N_COLUMNS, informative=2, return_info=True, random_state=arguments.seed
    )
    train, test = (X[:N_TRAIN], y[:N_TRAIN]), (X[N_TRAIN:], y[N_TRAIN:])
    truth = " and ".join(f"x{j}" for j in info.informative)
    print(f"{N_TRAIN} rows, {N_COLUMNS} columns; the class is the sign of the product of {truth}.")
    print(
        "Neither column differs between the classes by itself. "
        f"The best possible error is {info.bayes_error:.3f}.\n"
    )
    print(f"{'':28}{'test error':>10}{'seconds':>10}")
    for name, rival in rivals(arguments.seed).items():
        error, seconds = error_and_seconds(rival, train, test)
        print(f"{name:28}{error:10.3f}{seconds:10.2f}", flush=True)
    model = SDistClassifier(random_state=arguments.seed)
    error, seconds = error_and_seconds(model, train, test)
    print(f"{'metricboost':28}{error:10.3f}{seconds:10.2f}\n")

    print(
        f"Terms with the largest weights, after {model.n_iter_} attempts "
        f"and {model.best_iter_} accepted steps:"
    )
    for term in model.metric_.terms[:5]:
        print(f"  {term.name:20} weight {term.weight:.3f}")
    share = model.feature_importances_[info.informative].sum()
    print(f"The importance shares of {truth} sum to {share:.0%}.")
    draw(model, *test, info.informative, arguments.picture)
    print(f"\nThe picture is in {arguments.picture}.")


if __name__ == "__main__":
    main()
