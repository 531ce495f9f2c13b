"""Algorithm 2: the truncated power method for the largest sparse eigenvector of A_m.

Each iteration applies A, keeps the kappa largest entries and normalises. If the objective
``xi' A xi`` decreases, the iteration is undone and A is replaced by ``A + lambda I``, where lambda
grows tenfold each time, as described in the paper. (A is not positive semi-definite, and with a
large enough shift every iteration increases the objective.) The all-ones start of the paper is poor
on sparse signals. The method starts from the coordinates with the largest diagonal entries instead,
and keeps the best result. Once the support repeats or the objective hardly increases, further
iterations would only converge to the leading eigenvector of A on the support. The iterations then
stop, and the eigenvector is computed directly.
"""

from __future__ import annotations

import numpy as np

from .._rounding import largest, to_twelve_digits
from .._typing import Float, Index
from .forms import QuadraticForm

N_STARTS = 5
MAX_ITER = 50
#: The iterations from a start end if an iteration increases the objective by at most this share.
TOLERANCE = 1e-4


def sparse_eigenvector(form: QuadraticForm, n_nonzero: int) -> tuple[Index, Float]:
    """The sorted support (at most ``n_nonzero`` indices) and the values of the unit vector xi."""
    kappa = min(n_nonzero, form.size)
    diagonal = form.diagonal()
    starts = largest(diagonal[None, :], min(N_STARTS, form.size))[0]
    if kappa == 1:
        exact = form.block(starts).diagonal() if form.rough else diagonal[starts]
        return starts[[np.argmax(to_twelve_digits(exact))]], np.ones(1)
    ends = _iterate(form, starts, kappa)
    supports = np.unique(ends, axis=0)
    solved = [leading_eigenvector(block) for block in _blocks(form, supports)]
    best = int(np.argmax(to_twelve_digits(np.array([value for value, _ in solved]))))
    return _drop_zeros(supports[best], solved[best][1])


def _blocks(form: QuadraticForm, supports: Index) -> list[Float]:
    """The block of A on each support.

    If the supports have few indices in total, one block is requested from the form.
    """
    together, place = np.unique(supports, return_inverse=True)
    if len(together) > 64:
        return [form.block(support) for support in supports]
    A = form.block(together)
    return [A[np.ix_(index, index)] for index in place.reshape(supports.shape)]


def _iterate(form: QuadraticForm, starts: Index, kappa: int) -> Index:
    """The supports at the end of the truncated power iterations, one row per start."""
    index = np.repeat(starts[:, None], kappa, axis=1)
    coef = np.zeros(index.shape)
    coef[:, 0] = 1.0
    image = form.apply(index, coef)
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
        new_image = form.apply(new_index, new_coef)
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


def leading_eigenvector(block: Float) -> tuple[float, Float]:
    """The largest eigenvalue and its eigenvector, whose largest entry is positive."""
    values, vectors = np.linalg.eigh(block)
    vector = vectors[:, -1]
    return float(values[-1]), vector * np.sign(vector[np.argmax(np.abs(vector))])


def _drop_zeros(support: Index, values: Float) -> tuple[Index, Float]:
    """Drop the entries that are zero up to rounding."""
    real = np.abs(values) > 1e-12
    return support[real], values[real]
