"""Tests of the simulations: their form, their informative columns, and their Bayes error."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, trapezoid
from scipy.stats import ks_2samp, norm, rice
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from metricboost.datasets import (
    _latent,
    _madelon,
    _simulated,
    make_double_ring,
    make_madelon,
    make_xor,
)

PLANES = [make_double_ring, make_xor]
DESIGNS = [0.1, 2]


def knn_error(X, y, n_train):
    model = KNeighborsClassifier(3).fit(X[:n_train], y[:n_train])
    return 1 - model.score(X[n_train:], y[n_train:])


# --- the two planes: form


@pytest.mark.parametrize("make", PLANES)
def test_defaults(make):
    X, y = make(random_state=0)
    assert X.shape == (500, 50)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert np.bincount(y).tolist() == [250, 250]


@pytest.mark.parametrize("make", PLANES)
@given(
    n_samples=st.integers(1, 30),
    n_features=st.integers(2, 60),
    informative=st.one_of(st.just(2), st.floats(0.01, 1.0)),
    blur=st.sampled_from([0.0, 0.01, 0.5, 3.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_info_is_consistent(make, n_samples, n_features, informative, blur, seed):
    X, y, info = make(
        n_samples,
        n_features,
        informative=informative,
        blur=blur,
        return_info=True,
        random_state=seed,
    )
    pure = isinstance(informative, int)
    expected = 2 if pure else max(2, round(informative * n_features))
    assert X.shape == (n_samples, n_features)
    assert np.isfinite(X).all()
    assert abs(2 * y.sum() - n_samples) <= 1
    assert np.unique(info.informative).tolist() == info.informative.tolist()
    assert info.informative.size == expected
    assert info.informative.max() < n_features
    assert info.latent.shape == (n_samples, 2)
    assert info.posterior.shape == (n_samples,)
    assert ((info.posterior >= 0) & (info.posterior <= 1)).all()
    assert 0 <= info.bayes_error <= 0.5


@pytest.mark.parametrize("make", PLANES)
@pytest.mark.parametrize("informative", DESIGNS)
def test_seed_decides_everything(make, informative):
    first = make(60, 30, informative=informative, random_state=3)
    again = make(60, 30, informative=informative, random_state=np.random.RandomState(3))
    other = make(60, 30, informative=informative, random_state=4)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("make", PLANES)
def test_informative_columns_move(make):
    places = {
        tuple(make(5, 40, informative=2, return_info=True, random_state=s)[2].informative)
        for s in range(5)
    }
    assert len(places) > 1


@pytest.mark.parametrize("make", PLANES)
def test_pure_columns_are_the_latent_plane(make):
    X, _, info = make(4000, 30, informative=2, return_info=True, random_state=0)
    np.testing.assert_array_equal(X[:, info.informative], info.latent)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.06)


@pytest.mark.parametrize("make", PLANES)
def test_noise_and_blur_do_not_touch_the_pure_design(make):
    quiet = make(50, 10, informative=2, noise=0.0, return_info=True, random_state=0)
    loud = make(50, 10, informative=2, noise=2.0, blur=1.0, return_info=True, random_state=0)
    np.testing.assert_array_equal(quiet[0], loud[0])
    assert quiet[2].bayes_error == loud[2].bayes_error


@pytest.mark.parametrize("make", PLANES)
def test_share_spreads_one_plane_over_the_block(make):
    X, _, info = make(3000, 60, informative=0.5, return_info=True, random_state=0)
    block = X[:, info.informative]
    values = np.linalg.svd(block, compute_uv=False)
    assert values[2] < 1e-10 * values[0]
    # Orthonormal rows keep lengths, so the total signal does not depend on the number of columns.
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), np.linalg.norm(info.latent, axis=1))
    rest = np.delete(X, info.informative, axis=1)
    np.testing.assert_allclose(rest.std(axis=0), 0.5, atol=0.04)


def test_blur_is_the_deviation_within_the_share():
    X, _, info = make_xor(20000, 40, informative=0.5, blur=1.5, return_info=True, random_state=0)
    block = X[:, info.informative]
    residual = block - LinearRegression().fit(info.latent, block).predict(info.latent)
    np.testing.assert_allclose(residual.std(axis=0), 1.5, atol=0.05)


def test_frame_is_orthonormal():
    frame = _simulated._random_frame(7, np.random.RandomState(0))
    np.testing.assert_allclose(frame @ frame.T, np.eye(2), atol=1e-14)


def test_rings_differ_by_radius_only():
    X, y, info = make_double_ring(20000, 3, informative=2, return_info=True, random_state=0)
    radius = np.hypot(*info.latent.T)
    assert radius[y == 1].mean() - radius[y == 0].mean() > 0.7
    for label in (0, 1):
        np.testing.assert_allclose(X[y == label].mean(axis=0), 0, atol=0.05)


def test_xor_marginals_are_the_same_in_both_classes():
    X, y, info = make_xor(20000, 5, informative=2, return_info=True, random_state=1)
    for column in X.T:
        assert ks_2samp(column[y == 0], column[y == 1]).pvalue > 1e-3
    product = info.latent.prod(axis=1)
    assert product[y == 0].mean() > 0.5
    assert product[y == 1].mean() < -0.5


@pytest.mark.parametrize("make", PLANES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"informative": 0.0}, "informative.*got 0.0"),
        ({"informative": 1.5}, "informative.*got 1.5"),
        ({"informative": 3}, "informative.*got 3"),
        ({"informative": True}, "informative.*got True"),
        ({"informative": "all"}, "informative.*got 'all'"),
        ({"noise": -0.1}, "noise.*got -0.1"),
        ({"noise": float("nan")}, "noise.*got nan"),
        ({"blur": -0.1}, "blur.*got -0.1"),
        ({"n_features": 1}, "n_features.*got 1"),
        ({"n_samples": 0}, "n_samples.*got 0"),
    ],
)
def test_wrong_parameters(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)


# --- the two planes: posterior and Bayes error


@pytest.mark.parametrize(
    ("make", "informative", "documented"),
    [
        (make_double_ring, 0.1, 0.1488),
        (make_double_ring, 2, 0.1500),
        (make_xor, 0.1, 0.1476),
        (make_xor, 2, 0.1476),
    ],
)
def test_bayes_error(make, informative, documented):
    n = 100_000
    _, y, info = make(n, 20, informative=informative, return_info=True, random_state=0)
    assert round(info.bayes_error, 4) == documented
    error = np.mean((info.posterior > 0.5) != y)
    assert abs(error - info.bayes_error) < 4 * np.sqrt(documented * (1 - documented) / n)
    # The average of the conditional error has a smaller variance than the error of the labels.
    risk = np.minimum(info.posterior, 1 - info.posterior)
    assert abs(risk.mean() - info.bayes_error) < 4 * risk.std() / np.sqrt(n)


@pytest.mark.parametrize("make", PLANES)
@pytest.mark.parametrize("informative", DESIGNS)
@pytest.mark.parametrize("blur", [0.0, 0.1, 0.5, 1.0])
def test_posterior_is_calibrated(make, informative, blur):
    _, y, info = make(
        40_000, 20, informative=informative, blur=blur, return_info=True, random_state=5
    )
    cell = np.minimum((info.posterior * 10).astype(int), 9)
    for c in np.unique(cell):
        inside = cell == c
        expected = info.posterior[inside].mean()
        spread = np.sqrt(max(expected * (1 - expected), 1e-4) / inside.sum())
        assert abs(y[inside].mean() - expected) < 4.5 * spread


def ring_density(radius, ring, spread, noise):
    """The density of the observed radius: the integral of Rice's law over the latent radius."""
    rho = np.linspace(ring - 10 * spread, ring + 10 * spread, 2001)
    law = rice.pdf(radius[:, None], np.abs(rho) / noise, scale=noise) * norm.pdf(rho, ring, spread)
    return trapezoid(law, rho, axis=1)


@pytest.mark.parametrize("rings", [_simulated._RINGS_SHARE, _simulated._RINGS_PURE])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2, 0.5, 1.3, 6.0])
def test_ring_posterior_against_integration(rings, noise):
    radius = np.linspace(0.05, 3.0, 40)
    inner, outer = (
        ring_density(radius, ring, rings.spread, noise) for ring in (rings.inner, rings.outer)
    )
    plane = radius[:, None] * np.array([[0.6, -0.8]])
    expected = outer / (inner + outer)
    np.testing.assert_allclose(rings.posterior(plane, noise), expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("rings", [_simulated._RINGS_SHARE, _simulated._RINGS_PURE])
@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_ring_bayes_error_against_integration(rings, noise):
    radius = np.linspace(1e-9, 5 + 6 * noise, 1500)
    densities = [ring_density(radius, r, rings.spread, noise) for r in (rings.inner, rings.outer)]
    np.testing.assert_allclose(trapezoid(densities, radius), 1.0, atol=2e-5)
    expected = 0.5 * trapezoid(np.minimum(*densities), radius)
    assert rings.bayes_error(noise) == pytest.approx(expected, abs=5e-6)


def test_ring_without_noise_is_the_limit():
    rings = _simulated._RINGS_PURE
    plane = np.random.RandomState(0).standard_normal((200, 2))
    np.testing.assert_allclose(rings.posterior(plane, 0.0), rings.posterior(plane, 1e-4), atol=1e-4)
    assert rings.bayes_error(0.0) == pytest.approx(rings.bayes_error(1e-4), abs=1e-6)


def test_ring_posterior_far_out():
    plane = np.array([[0.0, 0.0], [80.0, 0.0], [1e4, 1e4]])
    for noise in (0.0, 0.5):
        posterior = _simulated._RINGS_SHARE.posterior(plane, noise)
        np.testing.assert_allclose(posterior, [0, 1, 1], atol=0.05)


def test_xor_bayes_error_against_integration():
    structure, noise = _simulated._XOR, 0.5
    deviation = np.hypot(structure.spread, noise)

    def density(u, v, label):
        signs = [(1, 1), (-1, -1)] if label == 0 else [(1, -1), (-1, 1)]
        pairs = [(u - a * structure.centre, v - b * structure.centre) for a, b in signs]
        return sum(norm.pdf(s, 0, deviation) * norm.pdf(t, 0, deviation) for s, t in pairs) / 2

    # One of four symmetric quadrants. Class 0 is more probable there.
    wrong = dblquad(lambda u, v: density(u, v, 1), 0, 5, 0, 5, epsabs=1e-8)[0]
    assert structure.bayes_error(noise) == pytest.approx(0.5 * 4 * wrong, abs=1e-6)


@pytest.mark.parametrize("structure", [_simulated._RINGS_SHARE, _simulated._XOR])
def test_noise_costs(structure):
    errors = [structure.bayes_error(noise) for noise in (0.0, 0.25, 0.5, 1.0, 4.0)]
    assert (np.diff(errors) > 0).all()
    assert errors[-1] < 0.5


# --- how hard they are


@pytest.mark.parametrize(
    ("make", "n_features", "expected"),
    [
        (make_double_ring, 50, 0.311),
        (make_double_ring, 500, 0.426),
        (make_xor, 50, 0.33),
        (make_xor, 500, 0.47),
    ],
)
def test_neighbours_lose_the_plane_among_columns(make, n_features, expected):
    """The 3-NN errors on the double ring agree with the paper (500 rows)."""
    errors = [knn_error(*make(2500, n_features, random_state=seed), 500) for seed in range(3)]
    assert np.mean(errors) == pytest.approx(expected, abs=0.035)


@pytest.mark.parametrize("make", PLANES)
def test_pure_columns_alone_are_enough(make):
    X, y, info = make(3000, 200, informative=2, return_info=True, random_state=0)
    assert knn_error(X, y, 1000) > 0.45
    model = KNeighborsClassifier(51).fit(X[:1000, info.informative], y[:1000])
    error = 1 - model.score(X[1000:, info.informative], y[1000:])
    assert error == pytest.approx(info.bayes_error, abs=0.03)


# --- Madelon


@pytest.fixture(scope="module")
def madelon():
    return make_madelon(return_info=True, random_state=0)


def test_madelon_form(madelon):
    X, y, info = madelon
    assert X.shape == (2600, 500)
    assert y.dtype == np.int64
    assert np.unique(y).tolist() == [0, 1]
    assert abs(y.mean() - 0.5) < 0.02
    assert (info.informative.size, info.redundant.size) == (5, 15)
    both = np.concatenate([info.informative, info.redundant])
    assert np.sort(both).tolist() == info.relevant.tolist()


def test_madelon_redundant_columns_are_combinations(madelon):
    X, _, info = madelon
    source, target = X[:, info.informative], X[:, info.redundant]
    assert LinearRegression().fit(source, target).score(source, target) > 1 - 1e-10
    probes = np.delete(X, info.relevant, axis=1)
    correlation = np.corrcoef(np.hstack([probes, X[:, info.relevant]]).T)
    assert np.abs(correlation[: probes.shape[1], probes.shape[1] :]).max() < 0.12


def test_madelon_neighbours_need_the_relevant_columns(madelon):
    X, y, info = madelon
    X = StandardScaler().fit_transform(X)
    relevant, everything = knn_error(X[:, info.relevant], y, 1820), knn_error(X, y, 1820)
    assert relevant < 0.15
    assert everything > relevant + 0.15


def test_madelon_seed():
    first, again = make_madelon(90, 30, random_state=1), make_madelon(90, 30, random_state=1)
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], make_madelon(90, 30, random_state=2)[0])


def test_madelon_without_combinations():
    X, _, info = make_madelon(50, 3, n_informative=1, n_redundant=0, return_info=True)
    assert X.shape == (50, 3)
    assert info.redundant.size == 0
    assert info.relevant.size == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_features": 19},
            r"n_features=19 is less than .* informative \(5\) and redundant \(15\)",
        ),
        ({"n_informative": 0}, "n_informative must be at least 1"),
        ({"n_redundant": -1}, "n_redundant at least 0"),
        ({"n_samples": 0}, "n_samples.*got 0"),
    ],
)
def test_madelon_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_madelon(**parameters)


@pytest.mark.parametrize("module", [_simulated, _madelon, _latent])
def test_examples_run(module):
    assert doctest.testmod(module).failed == 0
