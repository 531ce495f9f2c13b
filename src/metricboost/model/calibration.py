"""Calibration: from evidence to probabilities.

``P(c | x) = softmax(t e_c(x) + b_c)``, where e_c is the evidence for class c. There is one slope t
for all classes, and one offset b_c for each class. Slope and offsets minimise the weighted log loss
of evidence out of fold. The offsets move the boundary between the classes if a class is rare or has
another weight. The prediction is the most probable class, so probabilities, decision function and
predictions always agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .._typing import Float, Index

#: The strength of the regularisation towards slope 1 and offset 0, in rows. It matters only for
#: small tables.
PRIOR_ROWS = 1.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """A slope for the evidence, and an offset for each class."""

    slope: float
    offsets: Float

    @classmethod
    def none(cls, n_classes: int) -> Calibration:
        """The calibration that does not change the evidence.

        Parameters
        ----------
        n_classes : int
        """
        return cls(1.0, np.zeros(n_classes))

    def log_odds(self, evidence: Float) -> Float:
        """``t e_c + b_c``, the log probabilities up to a constant for each row.

        Parameters
        ----------
        evidence : ndarray of shape (n_samples, n_classes)
        """
        return self.slope * evidence + self.offsets

    def probabilities(self, evidence: Float) -> Float:
        """The probability of each class.

        Parameters
        ----------
        evidence : ndarray of shape (n_samples, n_classes)
        """
        result: Float = softmax(self.log_odds(evidence), axis=1)
        return result


def calibrate(evidence: Float, labels: Index, weight: Float) -> Calibration:
    """Fit the slope and the offsets.

    Parameters
    ----------
    evidence : ndarray of shape (n_samples, n_classes)
        Evidence out of fold.
    labels : ndarray of int
    weight : ndarray
        The weights of the rows, with the sum n_samples.
    """
    n_classes = evidence.shape[1]
    target = _targets(labels, n_classes, float(weight.sum()))

    def loss(parameters: Float) -> tuple[float, Float]:
        slope, offsets = np.exp(parameters[0]), parameters[1:]
        log_p = log_softmax(slope * evidence + offsets, axis=1)
        residual = weight[:, None] * (np.exp(log_p) - target)
        pull = PRIOR_ROWS * parameters
        value = -float(weight @ (log_p * target).sum(axis=1)) + 0.5 * float(pull @ parameters)
        slope_gradient = slope * float((residual * evidence).sum())
        return value, np.concatenate([[slope_gradient], residual.sum(axis=0)]) + pull

    start = np.zeros(n_classes + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=_bounds(n_classes))
    return Calibration(float(np.exp(found.x[0])), found.x[1:])


def _targets(labels: Index, n_classes: int, n_rows: float) -> Float:
    """The target probabilities: 1 - 1/(n + 2) instead of 1 for the class of each row.

    If all of forty rows are classified correctly, the next row may still be wrong. Platt scaling
    uses a similar correction, with one row for each class.
    """
    doubt = 1 / (n_rows + 2)
    other = doubt / max(n_classes - 1, 1)
    return np.where(np.eye(n_classes, dtype=bool), 1 - doubt, other)[labels]


def _bounds(n_classes: int) -> list[tuple[float, float]]:
    """The bounds of the parameters.

    For separable evidence the best slope is infinite. The slope is limited to e^7, which gives
    practically the same probabilities.
    """
    return [(-7.0, 7.0)] + [(-50.0, 50.0)] * n_classes
