"""A table like Madelon, of which it is known which columns matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from sklearn.datasets import make_classification
from sklearn.utils import check_random_state

from metricboost.datasets._latent import Float, Labels, RandomState

_CLASS_SEP = 1.5  # 3-NN on the relevant columns then errs like on the original Madelon, about 0.1


@dataclass(frozen=True)
class MadelonInfo:
    """Which columns of a simulated Madelon matter.

    Attributes
    ----------
    informative : ndarray of int
        Sorted numbers of the columns that span the hypercube.
    redundant : ndarray of int
        Sorted numbers of the linear combinations of the informative columns.
    relevant : ndarray of int
        Both together, sorted.
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

    Every vertex of a hypercube in `n_informative` dimensions holds a normal cluster, half of the
    vertices belong to each class at random, and one label in a hundred is drawn at random.

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
        Whether to return which columns matter too.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows and of the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table, rows and columns in random order.
    y : ndarray of shape (n_samples,)
        The class, 0 or 1.
    info : MadelonInfo
        Only with ``return_info=True``: `informative`, `redundant` and `relevant` (both), as column
        numbers.

    See Also
    --------
    fetch_madelon : The original table of the NIPS 2003 challenge.
    sklearn.datasets.make_classification : The generator used here, itself made after Madelon's.

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
        # Its own shuffle hides which columns are which.
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
            f"n_features={n_features} cannot hold {n_informative} informative and {n_redundant} "
            "redundant columns; raise it or lower them."
        )
