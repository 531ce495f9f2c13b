"""Approximate neighbours: what they find, what they say of themselves, and when they are used."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.testing import assert_array_equal

from metricboost import SDist, SDistClassifier, load
from metricboost.boosting.neighborhoods import class_neighborhoods
from metricboost.datasets import make_double_ring
from metricboost.engines import NeighborLists, approximate, get_engine
from metricboost.engines.approximate import (
    RECALL,
    approximate_available,
    approximate_by_class,
)
from metricboost.estimators import _options

Array = npt.NDArray[Any]
ENGINE = get_engine("auto")


def curved(n: int, seed: int = 0, r: int = 12) -> Array:
    """Rows near a surface of three dimensions."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 3))
    return np.tanh(hidden @ rng.normal(size=(3, r))) + 0.01 * rng.normal(size=(n, r))


def two_lists(k: int) -> NeighborLists:
    return NeighborLists(np.array([[0, 1], [1, 0]], dtype=np.int32), (k, k))


def shared(found: Array, expected: Array) -> float:
    pairs = zip(found, expected, strict=True)
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in pairs]))


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_most_of_the_true_neighbours_are_found(engine: str) -> None:
    """In every list, and the recall says how many."""
    z, k = curved(20_000), 8
    classes = np.random.default_rng(1).integers(0, 2, len(z))
    found = approximate_by_class(get_engine(engine), z, classes, two_lists(k))
    assert found is not None
    rows, recall = found
    exact = ENGINE.nearest_by_class(z, classes, two_lists(k))[0]
    truly = [shared(rows[:, part], exact[:, part]) for part in (slice(0, k), slice(k, 2 * k))]
    assert min(truly) > 0.9
    assert RECALL <= recall <= 1
    assert abs(recall - np.mean(truly)) < 0.02
    assert (classes[rows[:, :k]] == classes[:, None]).all()
    assert (classes[rows[:, k:]] != classes[:, None]).all()
    assert (rows[:, :k] != np.arange(len(z))[:, None]).all()
    assert all(len(set(row)) == 2 * k for row in rows[::50].tolist())


def test_several_classes_in_one_list() -> None:
    z, k = curved(12_000), 6
    classes = np.random.default_rng(2).choice(4, len(z), p=[0.4, 0.3, 0.25, 0.05])
    slots = (np.arange(4)[:, None] != np.arange(4)).astype(np.int32)
    found = approximate_by_class(ENGINE, z, classes, NeighborLists(slots, (k, k)))
    assert found is not None
    exact = ENGINE.nearest_by_class(z, classes, NeighborLists(slots, (k, k)))[0]
    assert shared(found[0][:, k:], exact[:, k:]) > 0.9


def test_noise_in_many_columns_has_no_approximate_answer() -> None:
    z = np.random.default_rng(3).normal(size=(20_000, 40))
    classes = np.arange(len(z)) % 2
    assert approximate_by_class(ENGINE, z, classes, two_lists(5)) is None
    near = class_neighborhoods(ENGINE, z, classes, 5, approximate=True)
    exact = class_neighborhoods(ENGINE, z, classes, 5)
    assert near.recall == 1
    assert_array_equal(near.same, exact.same)
    assert_array_equal(near.other, exact.other)


@pytest.mark.usefixtures("in_any_direction")
def test_few_rows_and_rows_that_are_all_alike() -> None:
    """Then there is one list, or any neighbour is as near as the nearest."""
    for z in (curved(30), np.ones((500, 3)), np.repeat(curved(40), 30, axis=0)):
        classes = np.arange(len(z)) % 2
        near = class_neighborhoods(ENGINE, z, classes, 5, approximate=True)
        assert near.same.min() >= 0
        assert near.other.min() >= 0
        assert near.recall >= RECALL


def test_a_class_of_few_rows() -> None:
    """Its lists are short, and every row still has all of its neighbours."""
    z = curved(5000)
    classes = (np.arange(len(z)) < 9).astype(np.intp)
    near = class_neighborhoods(ENGINE, z, classes, 8, approximate=True)
    exact = class_neighborhoods(ENGINE, z, classes, 8)
    assert_array_equal(np.sort(near.same[:9], axis=1), np.sort(exact.same[:9], axis=1))
    assert near.other.min() >= 0


def test_scale_and_place_make_no_difference() -> None:
    z, classes = curved(6000), np.arange(6000) % 2
    (a, _), (b, _) = (
        approximate_by_class(ENGINE, table, classes, two_lists(5)) or pytest.fail("too few found")
        for table in (z, 1e120 * (z - 7))
    )
    assert shared(a, b) > 0.97


def rings(n: int = 6000) -> tuple[Array, Array]:
    X, y = make_double_ring(n + 2000, 10, informative=2, random_state=0)[:2]
    return X, y


def fit(X: Array, y: Array, **options: Any) -> SDistClassifier:
    options = {"max_iter": 30, "n_averaged": 2, "random_state": 0, **options}
    return SDistClassifier(**options).fit(X, y)


@pytest.fixture
def in_any_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists also where the exact search is as fast."""
    monkeypatch.setattr(approximate, "MANY_DIRECTIONS", 1)


def test_in_few_directions_the_search_is_exact() -> None:
    z, classes = curved(6000)[:, :9], np.arange(6000) % 2
    assert approximate_by_class(ENGINE, z, classes, two_lists(5)) is None


@pytest.mark.usefixtures("in_any_direction")
def test_a_fit_says_its_recall_and_predicts_as_well() -> None:
    X, y = rings()
    exact, near = (fit(X[:6000], y[:6000], neighbors=n) for n in ("exact", "approximate"))
    assert (exact.path_["recall"] == 1).all()
    assert (near.path_["recall"] >= RECALL).all()
    assert (near.path_["recall"] < 1).any()
    assert abs(exact.score(X[6000:], y[6000:]) - near.score(X[6000:], y[6000:])) < 0.01


@pytest.mark.usefixtures("in_any_direction")
def test_the_recall_is_kept_in_files(tmp_path: Any) -> None:
    X, y = rings(3000)
    model = fit(X[:3000], y[:3000], neighbors="approximate")
    model.save(tmp_path / "model.mbz")
    again = load(tmp_path / "model.mbz")
    assert again.neighbors == "approximate"
    assert_array_equal(again.path_["recall"], model.path_["recall"])


@pytest.mark.usefixtures("in_any_direction")
def test_the_model_does_not_depend_on_threads() -> None:
    X, y = rings(3000)
    one, two = (fit(X, y, neighbors="approximate", n_averaged=1, n_jobs=n) for n in (1, 2))
    assert_array_equal(one.metric_.components, two.metric_.components)


def test_auto_is_exact_for_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert approximate_available()
    assert not _options._is_approximate("auto", 99_999)
    assert _options._is_approximate("auto", 100_000)
    assert _options._is_approximate("approximate", 10)
    assert not _options._is_approximate("exact", 10**6)


@pytest.fixture
def without_faiss(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(_options, "approximate_available", lambda: False)
    _options._say_once_what_it_would_save.cache_clear()
    yield
    _options._say_once_what_it_would_save.cache_clear()


def test_auto_without_faiss_stays_exact_and_says_so_once(
    without_faiss: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_options, "MANY_ROWS", 500)
    X, y = rings(3000)
    with pytest.warns(UserWarning, match=r"metricboost\[ann\]"):
        model = fit(X[:800], y[:800])
    assert (model.path_["recall"] == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(X[:800], y[:800])


def test_asking_for_it_without_faiss_says_what_to_install(without_faiss: None) -> None:
    X, y = rings(100)
    with pytest.raises(ImportError, match=r'pip install "metricboost\[ann\]"'):
        SDist(neighbors="approximate").fit(X[:100], y[:100])
