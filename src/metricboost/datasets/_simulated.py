"""Two rings and exclusive or, hidden among columns of noise."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from sklearn.utils import check_random_state

from metricboost.datasets._latent import Crossing, Float, Labels, Latent, RandomState, Rings

# `PURE`: the two columns themselves, deviation about 1. `SHARE`: spread over many columns. The
# Bayes error is about 0.15; the scale of the rings for a share makes nearest neighbours degrade
# with the number of columns as in the paper's table of the double ring.
_RINGS_SHARE = Rings(inner=1.0, outer=2.0, spread=0.48)
_RINGS_PURE = Rings(inner=0.85, outer=1.7, spread=0.41)
_XOR = Crossing(centre=0.8, spread=0.57)


@dataclass(frozen=True)
class SimulationInfo:
    """What is known about a simulated table.

    Attributes
    ----------
    informative : ndarray of int
        Sorted numbers of the columns that carry the class.
    bayes_error : float
        Error of the best possible rule on the informative columns.
    latent : ndarray of shape (n_samples, 2)
        The points of the latent plane, before noise.
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

    Both classes have mean zero in every column: only the distance from the centre of a hidden plane
    tells them apart. Half of the rows are in each class.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 2.
    informative : float in (0, 1] or 2, default=0.1
        A float is the share of the columns that carry the plane, ``q = max(2, round(informative *
        n_features))``: the plane is spread over them by a random orthonormal 2 x q frame, so
        that the total signal does not grow with q. The other columns are normal with deviation
        `noise`. The integer 2 makes two columns the coordinates of the plane
        themselves, among standard normal columns.
    noise : float, default=0.5
        Deviation of the columns without information, next to an informative share.
    blur : float, default=0.0
        Deviation of noise added to every informative column of a share. With a blur, no few
        columns show the plane, only all of them together.
    return_info : bool, default=False
        Whether to return what is known about the table too.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows, the frame and the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table. Columns are not rescaled, and are in random order.
    y : ndarray of shape (n_samples,)
        0 on the inner ring, 1 on the outer.
    info : SimulationInfo
        Only with ``return_info=True``: `informative`, `bayes_error`, `latent` and `posterior`.

    See Also
    --------
    make_xor : Two classes that differ only by the interaction of two coordinates.

    Notes
    -----
    The frame and the places of the informative columns are drawn anew in every call. For a test set
    from the same distribution make all rows in one call and split them.

    The latent radius is normal: means 1 and 2 and deviation 0.48 for a share, means 0.85 and 1.7
    and deviation 0.41 for the two columns (their variance is 0.99). Projecting the informative
    columns on the frame loses nothing about the class, so the Bayes error is that of the plane
    seen through the blur, by quadrature: 0.1488 for a share without blur, 0.1500 for the two
    columns. With 500 training rows and a share of 0.1, the 3-nearest-neighbour error on the
    columns as they are is about 0.31, 0.45 and 0.47 for 50, 500 and 1000 columns (the paper:
    0.31, 0.43, 0.48).

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

    Four clusters lie at the corners of a square in a hidden plane; a class owns two opposite
    corners. Half of the rows are in each class.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    n_features : int, default=50
        Number of columns, at least 2.
    informative : float in (0, 1] or 2, default=0.1
        A float is the share of the columns that carry the plane, ``q = max(2, round(informative *
        n_features))``: the plane is spread over them by a random orthonormal 2 x q frame, so
        that the total signal does not grow with q. The other columns are normal with deviation
        `noise`. The integer 2 makes two columns the coordinates of the plane
        themselves, among standard normal columns: each of the two alone then has the same
        distribution in both classes.
    noise : float, default=0.5
        Deviation of the columns without information, next to an informative share.
    blur : float, default=0.0
        Deviation of noise added to every informative column of a share. With a blur, no few
        columns show the plane, only all of them together.
    return_info : bool, default=False
        Whether to return what is known about the table too.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows, the frame and the order of the columns.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The table. Columns are not rescaled, and are in random order.
    y : ndarray of shape (n_samples,)
        1 where the signs of the two coordinates of the cluster differ, else 0.
    info : SimulationInfo
        Only with ``return_info=True``: `informative`, `bayes_error`, `latent` and `posterior`.

    See Also
    --------
    make_double_ring : Two classes that differ by the distance from a centre.

    Notes
    -----
    The frame and the places of the informative columns are drawn anew in every call. For a test set
    from the same distribution make all rows in one call and split them.

    The centres of the clusters are at (+-0.8, +-0.8), their deviation is 0.57 (so the variance of
    the two columns is 0.96). The best rule is the sign of the product of the observed
    coordinates, of total deviation s, and its error is ``2 t (1 - t)`` with ``t = Phi(-0.8 / s)``:
    0.1476 without blur. With 500 training rows and a share of 0.1, the 3-nearest-neighbour error
    on the columns as they are is about 0.32, 0.46 and 0.49 for 50, 500 and 1000 columns (the
    paper: 0.42, 0.45, 0.50).

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
    """Draw the latent plane and hide it among the columns of a table."""
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
    """Make the coordinates two of the columns; the others are standard normal."""
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
    """Spread the plane over columns and blur them; give also the plane as observed.

    The blur is isotropic and the frame's rows are orthonormal, so the projection on the frame is
    sufficient for the class, and equals the point plus noise of the same deviation in the plane.
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
    # The signs of r are the LAPACK's choice; without them the frame is the same everywhere.
    return np.asarray((q * np.sign(np.diag(r))).T)


def _check_plane(
    n_samples: int, n_features: int, informative: float, noise: float, blur: float
) -> None:
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
    if n_features < 2:
        raise ValueError(f"n_features must be at least 2 to hold a plane, got {n_features}.")
    for name, deviation in (("noise", noise), ("blur", blur)):
        if not (deviation >= 0 and np.isfinite(deviation)):
            raise ValueError(f"{name} is a deviation, finite and not negative; got {deviation}.")
    share = isinstance(informative, numbers.Real) and not isinstance(informative, numbers.Integral)
    if not ((_is_pure(informative) and informative == 2) or (share and 0 < informative <= 1)):
        raise ValueError(
            "informative is a share of the columns, a float in (0, 1], or the integer 2 for the "
            f"two coordinates themselves; got {informative!r}."
        )
