"""The distances of queries to the flats through their nearest rows.

A flat is the affine subspace through some rows. With a ridge r the squared distance is
``min_a |x - mean - Z'a|^2 + r |a|^2``, where Z has the rows minus their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Rows

#: Flats are computed for blocks of at most BLOCK queries. A flat needs a system of k x k numbers,
#: and the systems of a block have at most FLAT_ENTRIES numbers.
BLOCK = 256
FLAT_ENTRIES = 2**22


@dataclass(frozen=True)
class Flats:
    """Queries, and the rows that their flats go through.

    Attributes
    ----------
    queries : ndarray of shape (n, r)
    references : ndarray of shape (m, r)
    rows : ndarray of shape (n, k)
        The positions in ``references`` of the rows of each query.
    weight : ndarray of shape (n, k)
        The weights of these rows.
    floor : float
        The smallest ridge.
    """

    queries: Float
    references: Float
    rows: Rows
    weight: Float
    floor: float


def flat_distances(flats: Flats, ridges: Float) -> Float:
    """The squared distances, see ``Engine``."""
    n, k = flats.rows.shape
    result = np.empty((n, len(ridges)))
    size = max(1, min(BLOCK, FLAT_ENTRIES // k**2))
    for start in range(0, n, size):
        part = slice(start, start + size)
        gram, along, away = _systems(flats, part)
        mean_square = np.trace(gram, axis1=1, axis2=2) / k
        for j, ridge in enumerate(ridges):
            ridged, diagonal = gram.copy(), np.arange(k)
            ridged[:, diagonal, diagonal] += np.maximum(ridge * mean_square, flats.floor)[:, None]
            along_flat = (along * np.linalg.solve(ridged, along)).sum(axis=(1, 2))
            result[part, j] = away - along_flat
    return result


def _systems(flats: Flats, part: slice) -> tuple[Float, Float, Float]:
    """The parts of ``|x - mean|^2 - b'(G + rI)^-1 b`` for some queries.

    These are the inner products G of the centred rows, the inner products b of the centred rows
    with the centred query, and the squared distance between the query and the mean.
    """
    share = flats.weight[part] / flats.weight[part].sum(axis=1, keepdims=True)
    rows = flats.references[flats.rows[part]]
    mean = (share[:, None, :] @ rows)[:, 0]
    rows -= mean[:, None]
    rows *= np.sqrt(share)[:, :, None]
    away = flats.queries[part] - mean
    return rows @ rows.transpose(0, 2, 1), rows @ away[:, :, None], (away**2).sum(axis=1)
