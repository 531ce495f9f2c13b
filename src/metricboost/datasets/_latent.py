"""Two-dimensional structures with a known posterior: two rings, and four clusters.

A structure is observed as ``w = z + noise * e``, where ``z`` is the latent point, ``e`` is standard
normal in the plane, and ``noise`` may be zero. Both classes have the prior 1/2. Each structure
provides the posterior ``P(y = 1 | w)`` and the Bayes error, so that the error of a classifier can
be compared with the smallest possible error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid
from scipy.special import expit, i0e, ndtr

Float = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
RandomState = int | np.random.RandomState | None

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Latent(Protocol):
    """The interface of a two-dimensional structure."""

    def sample(self, y: Labels, rng: np.random.RandomState) -> Float:
        """Draw one latent point per label."""

    def posterior(self, plane: Float, noise: float) -> Float:
        """Return ``P(y = 1 | w)`` for the observed points ``plane`` (n x 2)."""

    def bayes_error(self, noise: float) -> float:
        """Return the error of the rule that predicts the more probable class."""


@dataclass(frozen=True)
class Rings:
    """Two rings with deviation ``spread``: class 0 at radius ``inner``, class 1 at ``outer``."""

    inner: float
    outer: float
    spread: float

    def sample(self, y: Labels, rng: np.random.RandomState) -> Float:
        angle = rng.uniform(0.0, 2.0 * np.pi, size=y.size)
        ring = np.where(y == 1, self.outer, self.inner)
        radius = ring + self.spread * rng.standard_normal(y.size)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def posterior(self, plane: Float, noise: float) -> Float:
        # The angle is independent of the class, so the posterior depends on the radius only.
        radius = np.hypot(plane[:, 0], plane[:, 1])
        log_outer = _log_radial(radius, self.outer, self.spread, noise)
        return np.asarray(expit(log_outer - _log_radial(radius, self.inner, self.spread, noise)))

    def bayes_error(self, noise: float) -> float:
        deviation = np.hypot(self.spread, noise)
        radius = np.linspace(0.0, self.outer + 10.0 * deviation, 8001)
        # `_log_radial` omits the factor that is common to both classes, which the integral needs.
        shared = radius / noise if noise > 0 else 1.0 / np.sqrt(2.0 * np.pi)
        logs = [_log_radial(radius, r, self.spread, noise) for r in (self.inner, self.outer)]
        return float(0.5 * trapezoid(shared * np.exp(np.minimum(*logs)) / deviation, radius))


@dataclass(frozen=True)
class Crossing:
    """Four normal clusters at (+-centre, +-centre). The signs of the centre differ in class 1."""

    centre: float
    spread: float

    def sample(self, y: Labels, rng: np.random.RandomState) -> Float:
        first = rng.choice([-1.0, 1.0], size=y.size)
        signs = np.column_stack([first, np.where(y == 1, -first, first)])
        return np.asarray(self.centre * signs + self.spread * rng.standard_normal((y.size, 2)))

    def posterior(self, plane: Float, noise: float) -> Float:
        # cosh(u - v) / (cosh(u - v) + cosh(u + v)) with u, v the scaled coordinates.
        scaled = np.tanh(plane * self.centre / (self.spread**2 + noise**2))
        return np.asarray(0.5 * (1.0 - scaled[:, 0] * scaled[:, 1]))

    def bayes_error(self, noise: float) -> float:
        # The best rule is the sign of the product, which is wrong if exactly one sign is wrong.
        wrong = float(ndtr(-self.centre / np.hypot(self.spread, noise)))
        return 2.0 * wrong * (1.0 - wrong)


def _log_radial(radius: Float, ring: float, spread: float, noise: float) -> Float:
    """Log density of the observed radius R, up to a term that does not depend on the ring.

    The latent radius is abs(rho) with rho ~ N(ring, spread^2). Since rho may have either sign, the
    density is a sum over both signs of the ring. It is Rice's law averaged over rho, or a folded
    normal law without noise.
    """
    parts = [_log_signed(radius, sign * ring, spread, noise) for sign in (1.0, -1.0)]
    return np.asarray(np.logaddexp(*parts))


def _log_signed(radius: Float, ring: float, spread: float, noise: float) -> Float:
    """Log of the part of the density that is due to rho with the sign of `ring`.

    With z = R rho / noise^2, Rice's law is proportional to ``exp(-(R^2 + rho^2) / (2 noise^2))
    I0(z)`` and ``I0(z) = (exp(z) + exp(-z)) a(z)``, where ``a(z) = I0(z) / (2 cosh z)`` is even and
    varies slowly. The two terms belong to the two signs. Each term is a product of two normal
    densities in rho, ``N(R; ring, spread^2 + noise^2)`` and the density of rho given R. The average
    of a(z) over the latter is computed by a Gauss-Hermite rule.
    """
    variance = spread**2 + noise**2
    log_normal = -((radius - ring) ** 2) / (2.0 * variance)
    if noise == 0.0:
        return np.asarray(log_normal)
    centre = (radius * spread**2 + ring * noise**2) / variance
    rho = centre[:, None] + spread * noise / np.sqrt(variance) * _NODES
    z = radius[:, None] * rho / noise**2
    return np.asarray(log_normal + np.log((i0e(z) / (1.0 + np.exp(-2.0 * np.abs(z)))) @ _WEIGHTS))
