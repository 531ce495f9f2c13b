"""The additive readout: a logistic regression on the terms of the metric and on their thresholds.

The log odds are a sum of one function for each term: a line with steps at some quantiles of the
term. Distances change smoothly with every term. Steps describe classes with sharp borders, such as
"x is above 3 and z is between 1 and 2", from fewer rows.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..._ignoring import ignoring
from ..._rounding import to_twelve_digits
from ..._typing import Float, Index, Mask
from .base import Queries, Training
from .regression import Regression

#: The terms with the largest weights have steps, at most MOST_TERMS of them, at the borders between
#: PARTS parts with equally many rows.
MOST_TERMS, PARTS = 15, 20
#: The solver ends at this tolerance, or after MOST_STEPS. With the factor, it hardly shrinks the
#: offsets.
TOLERANCE, MOST_STEPS, OFFSET_FACTOR = 1e-2, 300, 10.0
#: Liblinear has one state of random numbers for the whole process. Fits that run at the same time
#: would change it for each other, and results would depend on the number of threads.
ONE_AT_A_TIME = threading.Lock()
#: The absolute penalty, which scikit-learn calls by another name from version 1.8 on.
ABSOLUTE_PENALTY: dict[str, Any] = (
    {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}
)


@dataclass(frozen=True)
class Additive(Regression):
    """A logistic regression with an absolute penalty, which keeps few of the steps.

    With several classes there is one regression for each class against the others.
    """

    name: ClassVar[str] = "additive"
    costs: ClassVar[tuple[float, ...]] = (0.3, 0.1)

    def fit(self, training: Training) -> FittedAdditive:
        steps = training.once("steps", lambda: Steps.of(training.rows))
        features = training.once("features with steps", lambda: steps.features(training.rows))
        if not features.shape[1]:
            none = np.zeros((0, training.n_classes))
            return FittedAdditive(none, np.zeros(training.n_classes), steps, [])
        if training.n_classes == 2:
            own, offset = self._against_others(features, training, 1)
            coefficients, offsets = np.stack([-own, own], axis=1), np.array([-offset, offset])
            return FittedAdditive.of(training.rows.shape[1], coefficients / 2, offsets / 2, steps)
        parts = [self._against_others(features, training, c) for c in range(training.n_classes)]
        coefficients = np.stack([own for own, _ in parts], axis=1)
        offsets = np.array([offset for _, offset in parts])
        return FittedAdditive.of(training.rows.shape[1], coefficients, offsets, steps)

    def _against_others(self, features: Any, training: Training, c: int) -> tuple[Float, float]:
        """The coefficients and the offset of the log odds of a class."""
        logistic = LogisticRegression(
            C=self.cost, solver="liblinear", tol=TOLERANCE, max_iter=MOST_STEPS,
            intercept_scaling=OFFSET_FACTOR, random_state=0, **ABSOLUTE_PENALTY,
        )  # fmt: skip
        with ignoring(ConvergenceWarning), ONE_AT_A_TIME:
            logistic.fit(features, training.labels == c, sample_weight=training.weight)
        return logistic.coef_[0], float(logistic.intercept_[0])


@dataclass(frozen=True, eq=False)
class Steps:
    """The places of the steps.

    Attributes
    ----------
    terms : list of int
        The terms that have steps.
    places : list of ndarray
        The places of the steps of each of these terms, in increasing order.
    """

    terms: list[int]
    places: list[Float]

    @classmethod
    def of(cls, rows: Float) -> Steps:
        """Steps between values of the training rows."""
        size = to_twelve_digits(rows.std(axis=0))  # weights may be equal up to rounding
        heaviest = np.argsort(-size, kind="stable")[:MOST_TERMS].tolist()
        places = {term: _borders(rows[:, term]) for term in heaviest}
        terms = [term for term in heaviest if len(places[term])]
        return cls(terms, [places[term] for term in terms])

    def features(self, rows: Float) -> Any:
        """The terms, and a column of zeros and ones for each step, as a sparse matrix.

        The column of a step is 1 below the step for the first half of the steps of a term, and 1
        above it for the others. Most of its values are then 0, which saves time and memory.
        """
        tables = [patterns(len(places)) for places in self.places]
        found = [table[part] for table, part in zip(tables, self.parts(rows))]
        return sparse.hstack(
            [sparse.csr_matrix(rows), *(sparse.csr_matrix(own.astype(float)) for own in found)],
            format="csr",
        )

    def parts(self, rows: Float) -> list[Index]:
        """For each term with steps, the number of steps below each row."""
        return [
            np.searchsorted(places, rows[:, term]) for term, places in zip(self.terms, self.places)
        ]


def patterns(n_steps: int) -> Mask:
    """The columns of the steps of a term, for rows with 0, 1, ..., ``n_steps`` steps below them."""
    part, step = np.arange(n_steps + 1)[:, None], np.arange(n_steps)
    result: Mask = np.where(2 * step < n_steps, part <= step, part > step)
    return result


def _borders(values: Float) -> Float:
    """The borders between PARTS parts of the values, each in the middle between two values."""
    distinct, counts = np.unique(to_twelve_digits(values), return_counts=True)
    shares = np.cumsum(counts) / len(values)
    last = np.unique(np.searchsorted(shares, np.arange(1, PARTS) / PARTS - 1e-9))
    last = last[last < len(distinct) - 1]
    result: Float = (distinct[last] + distinct[last + 1]) / 2
    return result


@dataclass(frozen=True, eq=False)
class FittedAdditive:
    """The log odds of the classes as a sum over the terms.

    Attributes
    ----------
    slopes : ndarray of shape (n_terms, n_classes)
    offsets : ndarray of shape (n_classes,)
    steps : Steps
    heights : list of ndarray of shape (n_steps + 1, n_classes)
        For each term with steps, what it adds in each part between its steps.
    """

    slopes: Float
    offsets: Float
    steps: Steps
    heights: list[Float]

    @classmethod
    def of(cls, n_terms: int, coefficients: Float, offsets: Float, steps: Steps) -> FittedAdditive:
        """From the coefficients of the columns of ``Steps.features``."""
        slopes, rest = coefficients[:n_terms], coefficients[n_terms:]
        ends = np.cumsum([len(places) for places in steps.places])
        own = np.split(rest, ends[:-1]) if len(ends) else []
        heights = [patterns(len(part)).astype(float) @ part for part in own]
        return cls(slopes, offsets, steps, heights)

    def evidence(self, queries: Queries) -> Float:
        result: Float = queries.rows @ self.slopes + self.offsets
        for height, part in zip(self.heights, self.steps.parts(queries.rows)):
            result += height[part]
        return result
