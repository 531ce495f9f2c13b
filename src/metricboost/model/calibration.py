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
import numpy.typing as npt
from scipy.special import softmax

from .._typing import Float, Index

#: The strength of the regularisation towards slope 1 and offset 0, in rows. It matters only for
#: small tables.
PRIOR_ROWS = 1.0
#: Newton's method ends if no derivative of the mean loss is larger than TOLERANCE. It converges in
#: about six steps; MOST_STEPS and MOST_HALVINGS are never reached in practice.
TOLERANCE, MOST_STEPS, MOST_HALVINGS = 1e-11, 100, 40
#: The largest change of the logarithm of the slope in one step.
LONGEST = 2.0


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
    """Fit the slope and the offsets by a damped Newton method.

    Parameters
    ----------
    evidence : ndarray of shape (n_samples, n_classes)
        Evidence out of fold.
    labels : ndarray of int
    weight : ndarray
        The weights of the rows, with the sum n_samples.
    """
    loss = Loss(evidence, labels, weight)
    point, limits = loss.at(np.zeros(evidence.shape[1] + 1)), _limits(evidence.shape[1])
    for _ in range(MOST_STEPS):
        held = _held(point, limits)
        if np.abs(point.gradient[~held]).max(initial=0.0) <= TOLERANCE * loss.total:
            break
        following = _line_search(loss, point, _direction(point, held), limits)
        if following is None:
            break
        point = following
    return Calibration(float(np.exp(point.parameters[0])), point.parameters[1:])


@dataclass(frozen=True)
class Point:
    """The penalised loss at some parameters: the logarithm of the slope, and the offsets.

    Attributes
    ----------
    parameters : ndarray of shape (1 + n_classes,)
    value : float
    gradient : ndarray of shape (1 + n_classes,)
    hessian : ndarray of shape (1 + n_classes, 1 + n_classes)
    bend : float
        The part of ``hessian[0, 0]`` that is due to the logarithm and may be negative. Without a
        negative part the matrix is positive definite.
    """

    parameters: Float
    value: float
    gradient: Float
    hessian: Float
    bend: float


class Loss:
    """The weighted log loss of evidence, with the pull to slope 1 and offset 0."""

    def __init__(self, evidence: Float, labels: Index, weight: Float) -> None:
        n_classes = evidence.shape[1]
        self.total = max(float(weight.sum()), 1.0)
        self._evidence = np.ascontiguousarray(evidence.T)
        self._weight = weight
        self._target = weight * _targets(labels, n_classes, float(weight.sum())).T

    def at(self, parameters: Float) -> Point:
        slope, evidence, weight = float(np.exp(parameters[0])), self._evidence, self._weight
        scores = slope * evidence
        scores += parameters[1:, None]
        scores -= scores.max(axis=0)
        share = np.exp(scores)
        size = share.sum(axis=0)
        share /= size
        value = float(weight @ np.log(size)) - float(np.vdot(self._target, scores))
        weighted = weight * share
        residual = weighted - self._target
        bend = slope * float(np.vdot(residual, evidence))
        gradient = np.append(bend, residual.sum(axis=1)) + PRIOR_ROWS * parameters
        value += 0.5 * PRIOR_ROWS * float(parameters @ parameters)
        return Point(parameters, value, gradient, self._hessian(slope, share, weighted, bend), bend)

    def _hessian(self, slope: float, share: Float, weighted: Float, bend: float) -> Float:
        """The second derivatives. ``weighted`` has the shares times the weights of the rows."""
        away = slope * (self._evidence - np.einsum("cn,cn->n", share, self._evidence))
        mixed = weighted * away
        hessian = np.empty((len(share) + 1, len(share) + 1))
        hessian[0, 0] = float(np.vdot(mixed, away)) + bend
        hessian[0, 1:] = hessian[1:, 0] = mixed.sum(axis=1)
        hessian[1:, 1:] = -weighted @ share.T
        hessian.flat[:: len(hessian) + 1] += np.append(
            PRIOR_ROWS, weighted.sum(axis=1) + PRIOR_ROWS
        )
        return hessian


def _limits(n_classes: int) -> Float:
    """The largest absolute values of the parameters.

    For separable evidence the best slope is infinite. The slope is limited to e^7, which gives
    practically the same probabilities.
    """
    return np.append(7.0, np.full(n_classes, 50.0))


def _held(point: Point, limits: Float) -> npt.NDArray[np.bool_]:
    """Which parameters are at a limit that the loss would cross."""
    outwards = point.parameters * point.gradient < 0
    held: npt.NDArray[np.bool_] = outwards & (np.abs(point.parameters) >= limits)
    return held


def _direction(point: Point, held: npt.NDArray[np.bool_]) -> Float:
    """Newton's direction for the parameters that are not held, with a limited change of slope."""
    hessian = point.hessian.copy()
    try:
        np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        hessian[0, 0] -= min(point.bend, 0.0)
    hessian[held] = 0.0
    hessian[:, held] = 0.0
    hessian[held, held] = 1.0
    solved = np.linalg.solve(hessian, np.where(held, 0.0, -point.gradient))
    direction: Float = np.asarray(solved, dtype=np.float64)
    return direction * (LONGEST / max(abs(float(direction[0])), LONGEST))


def _line_search(loss: Loss, point: Point, direction: Float, limits: Float) -> Point | None:
    """The first of the halved steps with a sufficient decrease; None if rounding hides it."""
    rounding = 8 * np.finfo(float).eps * abs(point.value)
    for halvings in range(MOST_HALVINGS):
        parameters: Float = np.clip(point.parameters + 0.5**halvings * direction, -limits, limits)
        expected = float(point.gradient @ (parameters - point.parameters))
        following = loss.at(parameters)
        if following.value <= point.value + 1e-4 * min(expected, 0.0) + rounding:
            return following
    return None


def _targets(labels: Index, n_classes: int, n_rows: float) -> Float:
    """The target probabilities: 1 - 1/(n + 2) instead of 1 for the class of each row.

    If all of forty rows are classified correctly, the next row may still be wrong. Platt scaling
    uses a similar correction, with one row for each class.
    """
    doubt = 1 / (n_rows + 2)
    other = doubt / max(n_classes - 1, 1)
    return np.where(np.eye(n_classes, dtype=bool), 1 - doubt, other)[labels]
