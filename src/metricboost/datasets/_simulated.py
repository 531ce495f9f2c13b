"""Simulated tables: two rings, and exclusive or (XOR), hidden among columns of noise."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from sklearn.utils import check_random_state

from metricboost.datasets._latent import Crossing, Float, Labels, Latent, RandomState, Rings

# `_RINGS_PURE` is used if two columns are the coordinates of the plane. Their deviation is about 1.
# `_RINGS_SHARE` is used if the plane is spread over a share of the columns. Its scale is such that
# the nearest-neighbour error grows with the number of columns as in the paper's table of the double
# ring. The Bayes error is about 0.15 in all cases.
_RINGS_SHARE = Rings(inner=1.0, outer=2.0, spread=0.48)
_RINGS_PURE = Rings(inner=0.85, outer=1.7, spread=0.41)
_XOR = Crossing(centre=0.8, spread=0.57)


@dataclass(frozen=True)
class SimulationInfo:
    """The known structure of a simulated table.

    Attributes
    ----------
    informative : ndarray of int
        Sorted numbers of the informative columns.
    bayes_error : float
        Error of the best possible rule on the informative columns.
    latent : ndarray of shape (n_samples, 2)
        The points in the latent plane, without noise.
    posterior : ndarray of shape (n_samples,)
        ``P(y = 1)`` given the informative columns of the row.
    """

    informative: np.ndarray
    bayes_error: float
    latent: Float
    posterior: Float


@overload
def make_double_ring(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    informative: float = ...,
    noise: float = ...,
    blur: float = ...,
    return_info: Literal[False] = ...,
    random_state: RandomState = ...,
) -> tuple[Float, Labels]: ...
@overload
def make_double_ring(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    informative: float = ...,
    noise: float = ...,
    blur: float = ...,
    return_info: Literal[True],
    random_state: RandomState = ...,
) -> tuple[Float, Labels, SimulationInfo]: ...
def make_double_ring(
    n_samples: int = 500,
    n_features: int = 50,
    *,
    informative: float = 0.1,
    noise: float = 0.5,
    blur: float = 0.0,
    return_info: bool = False,
    random_state: RandomState = None,
) -> tuple[Float, Labels] | tuple[Float, Labels, SimulationInfo]:
    """Make two classes on concentric rings, hidden among columns of noise.

    Both classes have mean zero in every column. They differ only in the distance from the centre of
    a hidden plane. Half of the rows are in each class.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 2.
    informative : float in (0, 1] or 2, default=0.1
        A float is the share of informative columns. The plane is spread over ``q = max(2,
        round(informative * n_features))`` columns by a random orthonormal 2 x q frame, so that the
        total signal does not grow with q. The other columns are normal with deviation `noise`. If
        the integer 2 is given, two columns are the coordinates of the plane, and the other columns
        are standard normal.
    noise : float, default=0.5
        Deviation of the other columns. It is used only if `informative` is a share.
    blur : float, default=0.0
        Deviation of noise that is added to every informative column. With blur, a few informative
        columns do not determine the plane, but all informative columns together do. It is used only
        if `informative` is a share.
    return_info : bool, default=False
        Whether to also return the known structure of the table.
    random_state : int, RandomState instance or None, default=None
        The seed for the rows, the frame and the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table. Columns are not rescaled, and are in random order.
    y : ndarray of shape (n_samples,)
        0 on the inner ring, 1 on the outer.
    info : SimulationInfo
        The known structure, with the attributes `informative`, `bayes_error`, `latent` and
        `posterior`. Only returned if `return_info` is True.

    See Also
    --------
    make_xor : Two classes that differ only by the interaction of two coordinates.

    Notes
    -----
    Every call draws a new frame and new positions of the informative columns. To get a test set
    from the same distribution, simulate all rows in one call and split them.

    The latent radius is normal. Its means are 1 and 2 and its deviation is 0.48 if `informative` is
    a share. Its means are 0.85 and 1.7 and its deviation is 0.41 if `informative` is 2 (the
    variance of the two columns is then 0.99). The projection on the frame is sufficient for the
    class, so the Bayes error is that of the plane with blur, which is computed by numerical
    integration: 0.1488 for a share without blur, and 0.1500 for the two columns. With 500 training
    rows and a share of 0.1, the 3-nearest-neighbour error on the unscaled columns is about 0.31,
    0.45 and 0.47 for 50, 500 and 1000 columns (in the paper: 0.31, 0.43, 0.48).

    Examples
    --------
    >>> from metricboost.datasets import make_double_ring
    >>> X, y, info = make_double_ring(200, 40, informative=2, return_info=True, random_state=0)
    >>> X.shape, info.informative.size, round(info.bayes_error, 4)
    ((200, 40), 2, 0.15)
    """
    latent = _RINGS_PURE if _is_pure(informative) else _RINGS_SHARE
    X, y, info = _simulate(latent, n_samples, n_features, informative, noise, blur, random_state)
    return (X, y, info) if return_info else (X, y)


@overload
def make_xor(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    informative: float = ...,
    noise: float = ...,
    blur: float = ...,
    return_info: Literal[False] = ...,
    random_state: RandomState = ...,
) -> tuple[Float, Labels]: ...
@overload
def make_xor(
    n_samples: int = ...,
    n_features: int = ...,
    *,
    informative: float = ...,
    noise: float = ...,
    blur: float = ...,
    return_info: Literal[True],
    random_state: RandomState = ...,
) -> tuple[Float, Labels, SimulationInfo]: ...
def make_xor(
    n_samples: int = 500,
    n_features: int = 50,
    *,
    informative: float = 0.1,
    noise: float = 0.5,
    blur: float = 0.0,
    return_info: bool = False,
    random_state: RandomState = None,
) -> tuple[Float, Labels] | tuple[Float, Labels, SimulationInfo]:
    """Make two classes that differ only by an interaction, hidden among columns of noise.

    Four clusters are at the corners of a square in a hidden plane. Each class has two opposite
    corners. Half of the rows are in each class.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 2.
    informative : float in (0, 1] or 2, default=0.1
        A float is the share of informative columns. The plane is spread over ``q = max(2,
        round(informative * n_features))`` columns by a random orthonormal 2 x q frame, so that the
        total signal does not grow with q. The other columns are normal with deviation `noise`. If
        the integer 2 is given, two columns are the coordinates of the plane, and the other columns
        are standard normal. Each of the two columns alone then has the same distribution in both
        classes.
    noise : float, default=0.5
        Deviation of the other columns. It is used only if `informative` is a share.
    blur : float, default=0.0
        Deviation of noise that is added to every informative column. With blur, a few informative
        columns do not determine the plane, but all informative columns together do. It is used only
        if `informative` is a share.
    return_info : bool, default=False
        Whether to also return the known structure of the table.
    random_state : int, RandomState instance or None, default=None
        The seed for the rows, the frame and the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table. Columns are not rescaled, and are in random order.
    y : ndarray of shape (n_samples,)
        1 where the signs of the two coordinates of the cluster differ, else 0.
    info : SimulationInfo
        The known structure, with the attributes `informative`, `bayes_error`, `latent` and
        `posterior`. Only returned if `return_info` is True.

    See Also
    --------
    make_double_ring : Two classes that differ by the distance from a centre.

    Notes
    -----
    Every call draws a new frame and new positions of the informative columns. To get a test set
    from the same distribution, simulate all rows in one call and split them.

    The centres of the clusters are at (+-0.8, +-0.8), and their deviation is 0.57, so the variance
    of the two columns is 0.96. The best rule is the sign of the product of the observed
    coordinates. Its error is ``2 t (1 - t)`` with ``t = Phi(-0.8 / s)``, where s is the deviation
    of the clusters including the blur: 0.1476 without blur. With 500 training rows and a share of
    0.1, the 3-nearest-neighbour error on the unscaled columns is about 0.32, 0.46 and 0.49 for 50,
    500 and 1000 columns (in the paper: 0.42, 0.45, 0.50).

    Examples
    --------
    >>> from metricboost.datasets import make_xor
    >>> X, y, info = make_xor(200, 40, informative=2, return_info=True, random_state=0)
    >>> X.shape, info.informative.size, round(info.bayes_error, 4)
    ((200, 40), 2, 0.1476)
    """
    X, y, info = _simulate(_XOR, n_samples, n_features, informative, noise, blur, random_state)
    return (X, y, info) if return_info else (X, y)


def _is_pure(informative: float) -> bool:
    return isinstance(informative, numbers.Integral) and not isinstance(informative, bool)


def _simulate(
    latent: Latent,
    n_samples: int,
    n_features: int,
    informative: float,
    noise: float,
    blur: float,
    random_state: RandomState,
) -> tuple[Float, Labels, SimulationInfo]:
    """Draw points in the latent plane and hide them among the columns of a table."""
    _check_plane(n_samples, n_features, informative, noise, blur)
    rng = check_random_state(random_state)
    y = rng.permutation(np.arange(n_samples) % 2).astype(np.int64)
    points = latent.sample(y, rng)
    if _is_pure(informative):
        blur = 0.0
        X, columns = _among_noise(points, n_features, rng)
        plane = points
    else:
        n_informative = max(2, round(informative * n_features))
        X, columns, plane = _across_columns(points, n_features, n_informative, noise, blur, rng)
    posterior = latent.posterior(plane, blur)
    return X, y, SimulationInfo(columns, latent.bayes_error(blur), points, posterior)


def _among_noise(
    points: Float, n_features: int, rng: np.random.RandomState
) -> tuple[Float, np.ndarray]:
    """Use the coordinates as two of the columns. The other columns are standard normal."""
    columns = np.sort(rng.permutation(n_features)[:2])
    X = rng.standard_normal((points.shape[0], n_features))
    X[:, columns] = points
    return X, columns


def _across_columns(
    points: Float,
    n_features: int,
    n_informative: int,
    noise: float,
    blur: float,
    rng: np.random.RandomState,
) -> tuple[Float, np.ndarray, Float]:
    """Spread the plane over columns and add the blur. Also return the observed points in the plane.

    The blur is isotropic and the rows of the frame are orthonormal. The projection on the frame is
    therefore sufficient for the class, and is equal to the latent point plus noise with the same
    deviation in the plane.
    """
    columns = np.sort(rng.permutation(n_features)[:n_informative])
    frame = _random_frame(n_informative, rng)
    X = rng.standard_normal((points.shape[0], n_features))
    informative = points @ frame + blur * X[:, columns]
    X *= noise
    X[:, columns] = informative
    return X, columns, X[:, columns] @ frame.T


def _random_frame(size: int, rng: np.random.RandomState) -> Float:
    """Draw a uniformly distributed pair of orthonormal rows of length `size`."""
    q, r = np.linalg.qr(rng.standard_normal((size, 2)))
    # LAPACK implementations differ in the signs of r. Removing the signs makes the frame unique.
    return np.asarray((q * np.sign(np.diag(r))).T)


def _check_plane(
    n_samples: int, n_features: int, informative: float, noise: float, blur: float
) -> None:
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
    if n_features < 2:
        raise ValueError(f"n_features must be at least 2, got {n_features}.")
    for name, deviation in (("noise", noise), ("blur", blur)):
        if not (deviation >= 0 and np.isfinite(deviation)):
            raise ValueError(f"{name} must be finite and at least 0, got {deviation}.")
    share = isinstance(informative, numbers.Real) and not isinstance(informative, numbers.Integral)
    if not ((_is_pure(informative) and informative == 2) or (share and 0 < informative <= 1)):
        raise ValueError(
            "informative must be a share of the columns (a float in (0, 1]) or the integer 2 (two "
            f"columns with the coordinates), got {informative!r}."
        )
