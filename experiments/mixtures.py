"""Simulations with several pure interactions, none of which shows in a single column.

The class is drawn first, with equal odds. Given the class, every pair of informative columns is
drawn independently, as an exclusive or or as two rings. The log odds of a row are therefore the sum
of the log odds of its pairs, and every pair holds information about every row. The spreads are
wider than in the tables with a single pair, so that all pairs together have the Bayes error 0.15 of
these tables.

    python -m experiments.mixtures    # the Bayes errors, by simulation
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from metricboost.datasets._latent import Crossing, Latent, Rings

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """Pairs of columns that are independent given the class. `main` computes `bayes_error`."""

    pairs: tuple[Latent, ...]
    bayes_error: float

    def sample(
        self, n: int, p: int, seed: int
    ) -> tuple[Float, npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        """A table of p columns of deviation 1, its labels, and the columns of the pairs in turn."""
        rng = np.random.RandomState(seed)
        y = rng.permutation(np.arange(n) % 2).astype(np.int64)
        columns = rng.permutation(p)[: 2 * len(self.pairs)]
        X = rng.standard_normal((n, p))
        X[:, columns] = np.hstack([pair.sample(y, rng) for pair in self.pairs])
        return X, y, columns

    def posterior(self, points: Float) -> Float:
        """P(y = 1) given the informative columns, in the order in which `sample` names them."""
        planes = np.split(points, len(self.pairs), axis=1)
        shares = (pair.posterior(plane, 0.0) for pair, plane in zip(self.pairs, planes))
        return np.asarray(expit(sum(logit(np.clip(share, 1e-15, 1 - 1e-15)) for share in shares)))


#: The Bayes error of a single pair is 0.23 (exclusive or) or 0.24 (rings).
XOR_AND_RING = Mixture((Crossing(0.74, 0.67), Rings(0.82, 1.64, 0.57)), 0.150)
#: The Bayes error of one pair is 0.28, and that of two pairs 0.20.
THREE_XORS = Mixture((Crossing(0.69, 0.72),) * 3, 0.148)


def simulated_bayes_error(mixture: Mixture, n: int = 2_000_000) -> tuple[float, float]:
    """The mean probability of the less likely class over n draws, and its standard error."""
    X, _, columns = mixture.sample(n, 2 * len(mixture.pairs), seed=0)
    posterior = mixture.posterior(X[:, columns])
    wrong = np.minimum(posterior, 1 - posterior)
    return float(wrong.mean()), float(wrong.std() / np.sqrt(n))


def main() -> None:
    for name, mixture in (("XOR and ring", XOR_AND_RING), ("three XORs", THREE_XORS)):
        for count in range(len(mixture.pairs), 0, -1):
            part = Mixture(mixture.pairs[:count], np.nan)
            error, deviation = simulated_bayes_error(part)
            print(f"{name}, the first {count} of its pairs: {error:.4f} ({deviation:.4f})")


if __name__ == "__main__":
    main()
