"""The small computations of a step on the host: truncated power iterations and eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._rounding import largest
from .._typing import Float, Index

MAX_ITER = 50
#: The iterations from a start end if an iteration increases the objective by at most this share.
TOLERANCE = 1e-4


def truncated_powers(A: Float, starts: Index, kappa: int) -> Index:
    """The supports at the end of the truncated power iterations, see ``Engine``."""
    index = np.repeat(starts[:, None], kappa, axis=1)
    coef = np.zeros(index.shape)
    coef[:, 0] = 1.0
    image = A[starts]
    value = image[np.arange(len(starts)), starts]
    first_shift = 0.1 * np.abs(image).max()
    shift = np.zeros(len(starts))
    active = np.arange(len(starts))
    for _ in range(MAX_ITER):
        new_index, new_coef = _truncate(
            image[active], index[active], coef[active], shift[active], kappa
        )
        moved = (new_index != index[active]).any(axis=1)
        active, new_index, new_coef = active[moved], new_index[moved], new_coef[moved]
        if not len(active):
            break
        new_image = np.einsum("sk,skq->sq", new_coef, A[new_index])
        new_value = (new_coef * np.take_along_axis(new_image, new_index, 1)).sum(axis=1)
        up = new_value >= value[active]
        still = up & (new_value <= value[active] + TOLERANCE * np.abs(value[active]))
        shift[active[~up]] = np.maximum(10 * shift[active[~up]], first_shift)
        rows = active[up]
        index[rows], coef[rows] = new_index[up], new_coef[up]
        image[rows], value[rows] = new_image[up], new_value[up]
        active = active[~still]
    return np.sort(index, axis=1)


def _truncate(
    image: Float, index: Index, coef: Float, shift: Float, kappa: int
) -> tuple[Index, Float]:
    """One power iteration on A + shift I: keep the kappa largest entries and normalise.

    ``image`` is A times the vectors with the entries ``coef`` at ``index``.
    """
    target = image.copy()
    np.add.at(target, (np.arange(len(index))[:, None], index), shift[:, None] * coef)
    kept = largest(np.abs(target), kappa)
    values = np.take_along_axis(target, kept, 1)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return kept, values / np.where(length > 0, length, 1.0)


def leading_eigenvectors(A: Float, supports: Sequence[Index]) -> tuple[Float, Float]:
    """The largest eigenvalue and its eigenvector for each support, see ``Engine``."""
    values, vectors = np.empty(len(supports)), np.zeros((len(supports), len(A)))
    for s, support in enumerate(supports):
        found, directions = np.linalg.eigh(A[np.ix_(support, support)])
        vector = directions[:, -1]
        values[s] = found[-1]
        vectors[s, support] = vector * np.sign(vector[np.argmax(np.abs(vector))])
    return values, vectors
