"""Simulated tables like Madelon, with known relevant columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from sklearn.datasets import make_classification
from sklearn.utils import check_random_state

from metricboost.datasets._latent import Float, Labels, RandomState

# The 3-NN error on the relevant columns is then about 0.1, as on the original Madelon.
_CLASS_SEP = 1.5


@dataclass(frozen=True)
class MadelonInfo:
    """The relevant columns of a simulated Madelon table.

    Attributes
    ----------
    informative : ndarray of int
        Sorted numbers of the columns that span the hypercube.
    redundant : ndarray of int
        Sorted numbers of the linear combinations of the informative columns.
    relevant : ndarray of int
        Sorted numbers of the informative and the redundant columns.
    """

    informative: np.ndarray
    redundant: np.ndarray
    relevant: np.ndarray


@overload
def make_madelon(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    n_informative: int = ...,
    n_redundant: int = ...,
    return_info: Literal[False] = ...,
    random_state: RandomState = ...,
) -> tuple[Float, Labels]: ...
@overload
def make_madelon(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    n_informative: int = ...,
    n_redundant: int = ...,
    return_info: Literal[True],
    random_state: RandomState = ...,
) -> tuple[Float, Labels, MadelonInfo]: ...
def make_madelon(
    n_samples: int = 2600,
    n_features: int = 500,
    *,
    n_informative: int = 5,
    n_redundant: int = 15,
    return_info: bool = False,
    random_state: RandomState = None,
) -> tuple[Float, Labels] | tuple[Float, Labels, MadelonInfo]:
    """Make a table like Madelon: clusters on the vertices of a hypercube, hidden among probes.

    Every vertex of a hypercube in `n_informative` dimensions is the centre of a normal cluster. A
    random half of the vertices belongs to each class. One label in a hundred is drawn at random.

    Parameters
    ----------
    n_samples : int, default=2600
        Number of rows.
    n_features : int, default=500
        Number of columns.
    n_informative : int, default=5
        Number of columns that span the hypercube.
    n_redundant : int, default=15
        Number of random linear combinations of the informative columns. The remaining columns are
        standard normal.
    return_info : bool, default=False
        Whether to also return the relevant columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows and of the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table. Rows and columns are in random order.
    y : ndarray of shape (n_samples,)
        The class, 0 or 1.
    info : MadelonInfo
        The column numbers `informative`, `redundant` and `relevant` (both). Only returned if
        `return_info` is True.

    See Also
    --------
    fetch_madelon : The original table of the NIPS 2003 challenge.
    sklearn.datasets.make_classification : The generator that this function uses.

    Examples
    --------
    >>> from metricboost.datasets import make_madelon
    >>> X, y, info = make_madelon(200, 50, return_info=True, random_state=0)
    >>> X.shape, info.informative.size, info.relevant.size
    ((200, 50), 5, 20)
    """
    _check_madelon(n_samples, n_features, n_informative, n_redundant)
    rng = check_random_state(random_state)
    X, y = make_classification(
        n_samples,
        n_features,
        n_informative=n_informative,
        n_redundant=n_redundant,
        n_clusters_per_class=2 ** (n_informative - 1),
        flip_y=0.01,
        class_sep=_CLASS_SEP,
        # With shuffle=True, the positions of the informative columns would be unknown.
        shuffle=False,
        random_state=rng,
    )
    rows, places = rng.permutation(n_samples), rng.permutation(n_features)
    X, y = X[rows][:, np.argsort(places)], y[rows].astype(np.int64)
    relevant = places[: n_informative + n_redundant]
    info = MadelonInfo(
        informative=np.sort(relevant[:n_informative]),
        redundant=np.sort(relevant[n_informative:]),
        relevant=np.sort(relevant),
    )
    return (X, y, info) if return_info else (X, y)


def _check_madelon(n_samples: int, n_features: int, n_informative: int, n_redundant: int) -> None:
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
    if n_informative < 1 or n_redundant < 0:
        raise ValueError(
            "n_informative must be at least 1 and n_redundant at least 0; "
            f"got {n_informative} and {n_redundant}."
        )
    if n_informative + n_redundant > n_features:
        raise ValueError(
            f"n_features={n_features} is less than the number of informative ({n_informative}) and "
            f"redundant ({n_redundant}) columns. Raise n_features, or lower n_informative or "
            "n_redundant."
        )
