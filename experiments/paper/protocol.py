"""sDist as the paper tunes it: rho and lambda_C by cross-validation, then 3 nearest neighbours.

The penalty lambda_C only determines the step at which a path ends, so one path serves all values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import check_random_state

from metricboost import SDist
from metricboost._typing import Float, Index
from metricboost.engines import get_engine
from metricboost.model import SparseMetric, best_step
from metricboost.sources import InMemory
from metricboost.training.learn import Learned, learn
from metricboost.training.leave_one_out import margin_score
from metricboost.training.options import learning_options
from metricboost.training.pool import RowLimits, pooled

#: The paper's candidates.
RHOS = (0.05, 0.1, 0.2)
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: The neighbours of the final classifier.
K = 3
#: The parameters of the paper: no gate, no screening, no clipping.
TO_THE_LETTER: dict[str, Any] = {
    "n_neighbors": 3, "max_features": "sqrt", "subsample": 0.5, "refresh_every": 50,
    "max_degree": 4, "learning_rate": 0.05, "oob_gate": None, "screen_pairs": 0, "prune": None,
    "n_averaged": 1, "clip": None,
}  # fmt: skip
#: The paper's panels and degrees, with the package's gate and pair screening.
REFINED: dict[str, Any] = {
    "n_neighbors": 10, "max_features": "sqrt", "subsample": 0.5, "refresh_every": 10,
    "max_degree": 4, "learning_rate": 0.1, "oob_gate": 2.0, "screen_pairs": "auto", "prune": None,
    "n_averaged": 1, "clip": 3.0,
}  # fmt: skip
#: The bound on the number of candidates. The size of a panel is the root of their number.
MOST_CANDIDATES = 4096


class PaperSDist(ClassifierMixin, BaseEstimator):
    """sDist with rho and lambda_C chosen by the error of 3-NN in five folds.

    Parameters
    ----------
    parameters : dict
        Parameters of `SDist` except `n_nonzero` (rho) and `complexity_penalty` (lambda_C).
    max_iter : int, default=2000
        The paper's M.
    max_candidates : int or None, default=4096
        The bound on the number of candidates, or twice the number of columns if this is more. None
        for no bound.
    rhos, complexity_penalties : sequence of float
    n_folds : int, default=5
    margin_neighbors : int, default=10
        The k of the margin classifier. The studies use the k of the learning.
    random_state : int, default=0

    Attributes
    ----------
    metric_ : SparseMetric
    rho_, complexity_penalty_ : float
        The values that were chosen.
    n_steps_, n_candidates_ : int
        Accepted steps up to the stop, and candidate terms there.
    refit_time_ : float
        Seconds of the last fit, after the tuning.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] = REFINED,
        max_iter: int = 2000,
        max_candidates: int | None = MOST_CANDIDATES,
        rhos: Sequence[float] = RHOS,
        complexity_penalties: Sequence[float] = PENALTIES,
        n_folds: int = 5,
        margin_neighbors: int = 10,
        random_state: int = 0,
    ) -> None:
        self.parameters = parameters
        self.max_iter = max_iter
        self.max_candidates = max_candidates
        self.rhos = rhos
        self.complexity_penalties = complexity_penalties
        self.n_folds = n_folds
        self.margin_neighbors = margin_neighbors
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PaperSDist:
        X = np.ascontiguousarray(X, dtype=np.float64)
        self.classes_, labels = np.unique(y, return_inverse=True)
        errors = self._errors(X, labels)
        r, c = divmod(int(errors.argmin()), errors.shape[1])
        self.rho_, self.complexity_penalty_ = self.rhos[r], self.complexity_penalties[c]
        start = time.perf_counter()
        self.learned_ = self.learned(X, labels, self.rho_)
        self.n_steps_ = best_step(self.learned_.path, self.complexity_penalty_)
        self.metric_ = metric_after(self.learned_, self.n_steps_)
        self.refit_time_ = time.perf_counter() - start
        steps = self.learned_.path.steps
        self.n_candidates_ = steps[self.n_steps_ - 1].n_candidates if self.n_steps_ else X.shape[1]
        self._training, self._labels = self.metric_.transform(X), labels
        return self

    def _errors(self, X: Float, labels: Index) -> Float:
        """Errors in all folds, for every rho and lambda_C. A single pair needs no folds."""
        errors = np.zeros((len(self.rhos), len(self.complexity_penalties)))
        if errors.size == 1:
            return errors
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.random_state)
        for training, held_out in folds.split(X, labels):
            for r, rho in enumerate(self.rhos):
                learned = self.learned(X[training], labels[training], rho)
                for c, metric in enumerate(self._stopped(learned)):
                    near = KNeighborsClassifier(K)
                    near.fit(metric.transform(X[training]), labels[training])
                    wrong = near.predict(metric.transform(X[held_out])) != labels[held_out]
                    errors[r, c] += wrong.sum()
        return errors

    def _stopped(self, learned: Learned) -> Iterator[SparseMetric]:
        """The metrics at the steps where each lambda_C stops the path."""
        known: dict[int, SparseMetric] = {}
        for penalty in self.complexity_penalties:
            m = best_step(learned.path, penalty)
            if m not in known:
                known[m] = metric_after(learned, m)
            yield known[m]

    def learned(self, X: Float, labels: Index, rho: float) -> Learned:
        """One path of steps."""
        model = SDist(
            max_iter=self.max_iter, n_nonzero=rho, random_state=self.random_state,
            **self.parameters,
        )  # fmt: skip
        source = InMemory(X, labels, np.ones(len(labels)))
        pool = pooled(source, RowLimits(None, None, None), impute=False, seed=0)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        most = None if self.max_candidates is None else max(self.max_candidates, 2 * X.shape[1])
        options = learning_options(model.get_params(deep=False), pool, seed)
        options = replace(options, max_candidates=most)
        return learn(pool.X, pool.labels, pool.weight, get_engine("auto"), options)

    def predict(self, X: Any) -> Any:
        near = KNeighborsClassifier(K).fit(self._training, self._labels)
        return self.classes_[near.predict(self.metric_.transform(X))]

    def details(self, split: Any) -> dict[str, Any]:
        """The values of a fit that the page shows besides the error with 3 neighbours."""
        wrong = self.predict_by_margin(split.X_test) != split.y_test
        return {
            "best_params": {"rho": self.rho_, "lambda_C": self.complexity_penalty_},
            "one_fit_seconds": self.refit_time_,
            "steps": self.n_steps_,
            "candidates": self.n_candidates_,
            "terms": len(self.metric_.terms),
            "margin_error": float(np.mean(wrong)),
        }

    def predict_by_margin(self, X: Any) -> Any:
        """The paper's classifier f_W."""
        embedded, k = self.metric_.transform(X), self.margin_neighbors
        return self.classes_[by_margin(self._training, self._labels, embedded, k)]


def by_margin(training: Float, labels: Index, queries: Float | None, k: int) -> Index:
    """The classes by the paper's f_W. Without queries, those of each training row left out."""
    evidence = margin_score(get_engine("auto"), training, labels, [k], queries)
    chosen: Index = evidence[:, :, 0].argmax(axis=1)
    return chosen


def metric_after(learned: Learned, m: int) -> SparseMetric:
    """The metric after the first m steps. With m = 0 all columns have equal weight."""
    return learned.metric(learned.path.factor(m) if m else learned.factor)
