"""Two-dimensional structures with a known posterior: two rings, and four clusters.

A structure is observed as ``w = z + noise * e``: ``z`` the latent point, ``e`` standard normal in
the plane, ``noise`` possibly zero. Both classes have prior 1/2. Each structure knows ``P(y = 1 |
w)`` and the Bayes error, so that a classifier's error can be read against the best there is.
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
    """What a simulation needs to know about its two-dimensional structure."""

    def sample(self, y: Labels, rng: np.random.RandomState) -> Float:
        """Draw one latent point per label."""

    def posterior(self, plane: Float, noise: float) -> Float:
        """Give ``P(y = 1 | w)`` for the observed points ``plane`` (n x 2)."""

    def bayes_error(self, noise: float) -> float:
        """Give the error of the rule that predicts the likelier class."""


@dataclass(frozen=True)
class Rings:
    """Class 0 around radius ``inner``, class 1 around ``outer``; radial deviation ``spread``."""

    inner: float
    outer: float
    spread: float

    def sample(self, y: Labels, rng: np.random.RandomState) -> Float:
        angle = rng.uniform(0.0, 2.0 * np.pi, size=y.size)
        ring = np.where(y == 1, self.outer, self.inner)
        radius = ring + self.spread * rng.standard_normal(y.size)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def posterior(self, plane: Float, noise: float) -> Float:
        # The angle carries nothing, so the posterior given the point is the one given its radius.
        radius = np.hypot(plane[:, 0], plane[:, 1])
        log_outer = _log_radial(radius, self.outer, self.spread, noise)
        return np.asarray(expit(log_outer - _log_radial(radius, self.inner, self.spread, noise)))

    def bayes_error(self, noise: float) -> float:
        deviation = np.hypot(self.spread, noise)
        radius = np.linspace(0.0, self.outer + 10.0 * deviation, 8001)
        # `_log_radial` leaves out what the classes share; the quadrature needs it back.
        shared = radius / noise if noise > 0 else 1.0 / np.sqrt(2.0 * np.pi)
        logs = [_log_radial(radius, r, self.spread, noise) for r in (self.inner, self.outer)]
        return float(0.5 * trapezoid(shared * np.exp(np.minimum(*logs)) / deviation, radius))


@dataclass(frozen=True)
class Crossing:
    """Four normal clusters at (+-centre, +-centre); class 1 where the two signs differ."""

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
        # The best rule is the sign of the product: it errs where exactly one sign is wrong.
        wrong = float(ndtr(-self.centre / np.hypot(self.spread, noise)))
        return 2.0 * wrong * (1.0 - wrong)


def _log_radial(radius: Float, ring: float, spread: float, noise: float) -> Float:
    """Log density of the observed radius R, up to what does not depend on the ring.

    The latent radius is abs(rho) with rho ~ N(ring, spread^2), and rho of either sign counts, so
    the density is a sum over both signs of the ring (Rice's law, averaged over rho; without noise
    a folded normal law).
    """
    parts = [_log_signed(radius, sign * ring, spread, noise) for sign in (1.0, -1.0)]
    return np.asarray(np.logaddexp(*parts))


def _log_signed(radius: Float, ring: float, spread: float, noise: float) -> Float:
    """Log of the part of the density that comes from rho on the side of `ring`.

    With z = R rho / noise^2, Rice's law is proportional to ``exp(-(R^2 + rho^2) / (2 noise^2))
    I0(z)`` and ``I0(z) = (exp(z) + exp(-z)) a(z)`` with ``a(z) = I0(z) / (2 cosh z)``, even and
    slowly varying: the two terms belong to the two signs. Each leaves a product of two normal
    densities in rho, ``N(R; ring, spread^2 + noise^2)`` times that of rho given R, over which a
    Gauss-Hermite rule averages a(z).
    """
    variance = spread**2 + noise**2
    log_normal = -((radius - ring) ** 2) / (2.0 * variance)
    if noise == 0.0:
        return np.asarray(log_normal)
    centre = (radius * spread**2 + ring * noise**2) / variance
    rho = centre[:, None] + spread * noise / np.sqrt(variance) * _NODES
    z = radius[:, None] * rho / noise**2
    return np.asarray(log_normal + np.log((i0e(z) / (1.0 + np.exp(-2.0 * np.abs(z)))) @ _WEIGHTS))
