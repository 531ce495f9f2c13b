"""Calibration: from evidence to probabilities, fitted on rows that did not give the evidence.

``P(c | x) = softmax(t e_c(x) + b_c)``: one slope and one offset per class, fitted by weighted
log loss. The offsets are the thresholds of the classifier: where classes are rare or weighted they
move the boundary, and the prediction is the most probable class. So probabilities, decision
function and predictions always agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .._typing import Float, Index

#: Strength of the pull towards slope 1 and equal offsets, in rows: it decides where there are few.
PRIOR_ROWS = 1.0


@dataclass(frozen=True)
class Calibration:
    """A slope for the evidence and an offset for every class."""

    slope: float
    offsets: Float

    @classmethod
    def none(cls, n_classes: int) -> Calibration:
        """The calibration that leaves evidence as it is.

        Parameters
        ----------
        n_classes : int
        """
        return cls(1.0, np.zeros(n_classes))

    def log_odds(self, evidence: Float) -> Float:
        """``t e_c + b_c``: up to a constant of the row, the log probabilities.

        Parameters
        ----------
        evidence : ndarray of shape (n_samples, n_classes)
        """
        return self.slope * evidence + self.offsets

    def probabilities(self, evidence: Float) -> Float:
        """The probability of every class.

        Parameters
        ----------
        evidence : ndarray of shape (n_samples, n_classes)
        """
        result: Float = softmax(self.log_odds(evidence), axis=1)
        return result


def calibrate(evidence: Float, labels: Index, weight: Float) -> Calibration:
    """Fit slope and offsets.

    Parameters
    ----------
    evidence : ndarray of shape (n_samples, n_classes)
        Of rows that did not take part in what gives the evidence.
    labels : ndarray of int
    weight : ndarray
        With the sum n_samples.
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
    """What was seen, with the doubt of one row: 1 - 1/(n + 2) for the class, not 1.

    Forty rows that are all told apart do not show that the next one will be (Platt doubts one row
    of each class).
    """
    doubt = 1 / (n_rows + 2)
    other = doubt / max(n_classes - 1, 1)
    return np.where(np.eye(n_classes, dtype=bool), 1 - doubt, other)[labels]


def _bounds(n_classes: int) -> list[tuple[float, float]]:
    """Separable evidence has no finite slope; e^7 is as good as infinite."""
    return [(-7.0, 7.0)] + [(-50.0, 50.0)] * n_classes
