"""Distances to flats: the native engine against the NumPy engine."""

from __future__ import annotations

import numpy as np
import pytest

from metricboost.engines import Engine, Flats, get_engine, native_available

pytestmark = pytest.mark.skipif(
    not native_available(), reason="the C++ kernels were not built, so there is nothing to compare"
)


@pytest.fixture(scope="module")
def native() -> Engine:
    return get_engine("native")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("n", "r", "k"), [(1, 1, 1), (5, 3, 7), (70, 40, 8), (300, 20, 10), (130, 300, 20)]
)
def test_flats(n: int, r: int, k: int, threads: int) -> None:
    """Distances agree in any dimension; rows may occur twice, and weights may be zero."""
    rng = np.random.default_rng(n)
    references, queries = rng.normal(size=(60, r)), rng.normal(size=(n, r)) + 3.0
    rows = rng.integers(0, 60, (n, k)).astype(np.int32)
    weight = rng.uniform(0.0, 2.0, (n, k))
    weight[:, k // 2 + 1 :][rng.random((n, k - k // 2 - 1)) < 0.3] = 0.0
    given, ridges = Flats(queries, references, rows, weight, 1e-9), np.array([0.3, 3.0])
    found = get_engine("native", threads).flat_distances(given, ridges)
    np.testing.assert_allclose(found, get_engine("numpy").flat_distances(given, ridges), rtol=1e-9)


def test_flats_of_no_query(native: Engine) -> None:
    none = np.empty((0, 4))
    given = Flats(none, np.ones((3, 4)), np.empty((0, 2), np.int32), none[:, :2], 1e-9)
    assert native.flat_distances(given, np.array([1.0])).shape == (0, 1)


def test_flats_of_rows_that_do_not_exist(native: Engine) -> None:
    rows = np.array([[0, 3]], dtype=np.int32)
    given = Flats(np.ones((1, 4)), np.ones((3, 4)), rows, np.ones((1, 2)), 1e-9)
    with pytest.raises(ValueError, match="no such row"):
        native.flat_distances(given, np.array([1.0]))
