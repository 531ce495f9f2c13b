"""The linear readout: a logistic regression on the terms of the metric.

The other readouts look at distances. The linear readout gives every term a direction: the sign of
its coefficient. Each standardised term is multiplied by the root of its share of the metric's
weight. The penalty is then smaller for a term with a larger weight. A term that only one of the
averaged fits uses has a small weight in their average, and is penalised more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..._ignoring import ignoring
from ..._typing import Float
from .base import Queries, Training
from .regression import Regression

#: The solver ends if no derivative of the loss is larger than TOLERANCE, or after MOST_STEPS.
TOLERANCE, MOST_STEPS = 1e-4, 1000


@dataclass(frozen=True)
class Linear(Regression):
    """A logistic regression with a squared penalty, multinomial for several classes."""

    name: ClassVar[str] = "linear"
    costs: ClassVar[tuple[float, ...]] = (30.0, 3.0, 300.0)

    def fit(self, training: Training) -> FittedLinear:
        if not training.rows.shape[1]:
            return FittedLinear(np.zeros((0, training.n_classes)), np.zeros(training.n_classes))
        logistic = LogisticRegression(C=self.cost, tol=TOLERANCE, max_iter=MOST_STEPS)
        with ignoring(ConvergenceWarning):
            logistic.fit(training.rows, training.labels, sample_weight=training.weight)
        coefficients, offsets = logistic.coef_.T, logistic.intercept_
        if training.n_classes == 2:
            coefficients = np.hstack([-coefficients, coefficients]) / 2
            offsets = np.concatenate([-offsets, offsets]) / 2
        return FittedLinear(coefficients, offsets)


@dataclass(frozen=True)
class FittedLinear:
    """The coefficients, n_terms x C, and the offset of each class."""

    coefficients: Float
    offsets: Float

    def evidence(self, queries: Queries) -> Float:
        result: Float = queries.rows @ self.coefficients + self.offsets
        return result
