"""Tables as they are given: float32, any order, files in memory and sparse matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import metricboost
from metricboost import SDistClassifier, SDistClassifierCV, _blocks
from metricboost.datasets import make_xor
from metricboost.inputs import check_training
from metricboost.sources import InMemory
from metricboost.training.pool import RowLimits, pooled

X, Y = make_xor(240, 12, informative=2, random_state=0)[:2]
X = np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32).astype(np.float64)

LAYOUTS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "float32": lambda X, _: X.astype(np.float32),
    "Fortran": lambda X, _: np.asfortranarray(X),
    "strided": lambda X, _: np.repeat(X, 2, axis=1)[:, ::2],
    "file": lambda X, folder: in_a_file(X, folder),
    "CSR": lambda X, _: sparse.csr_matrix(X),
    "CSC array, float32": lambda X, _: sparse.csc_array(X.astype(np.float32)),
    "COO": lambda X, _: sparse.coo_matrix(X),
}
ALL = pytest.mark.parametrize("layout", LAYOUTS)
SPARSE = ["CSR", "CSC array, float32"]


def in_a_file(X: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.fixture(params=["one piece", "many pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many pieces":
        monkeypatch.setattr(_blocks, "PIECE", 500)


def model(**parameters: Any) -> SDistClassifier:
    return SDistClassifier(max_iter=15, n_averaged=2, random_state=0, **parameters)


@pytest.fixture
def expected(pieces: None) -> SDistClassifier:
    """In as many pieces: sums over other pieces round differently."""
    return model().fit(X, Y)


@ALL
def test_a_layout_makes_no_difference(
    expected: SDistClassifier, layout: str, tmp_path: Path
) -> None:
    """The same model, to the last bit, and the same predictions, whatever holds the numbers."""
    table = LAYOUTS[layout](X, tmp_path)
    found = model().fit(table, Y)
    assert found.metric_.columns == expected.metric_.columns
    assert np.array_equal(found.metric_.components, expected.metric_.components)
    assert np.array_equal(found.predict_proba(table), expected.predict_proba(X))
    assert np.array_equal(expected.transform(table), expected.transform(X))


@ALL
def test_nothing_is_converted(layout: str, tmp_path: Path) -> None:
    """A table has the type that was given, also where it is checked and where it is sampled."""
    table = LAYOUTS[layout](X, tmp_path)
    checked, _ = check_training(model(), table, Y)
    assert checked.dtype == table.dtype
    pool = pooled(InMemory(checked, Y, np.ones(len(Y))), RowLimits(None, None, None), False, 0)
    assert pool.X is checked


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_happens_to_the_table_after_the_fit_does_not_matter(
    layout: str, share: float, tmp_path: Path
) -> None:
    """A model has copied what it needs, also for predictions and explanations made later."""
    table = LAYOUTS[layout](X.copy(), tmp_path)
    if isinstance(table, np.memmap):
        table = np.memmap(table.filename, table.dtype, "r+", table.offset, table.shape)
    fitted = model(start_share=share).fit(table, Y)
    expected = model(start_share=share).fit(X, Y)
    values = table.data if sparse.issparse(table) else table
    values[...] = np.random.default_rng(0).normal(size=values.shape)
    assert np.array_equal(fitted.predict_proba(X), expected.predict_proba(X))
    assert np.array_equal(fitted.kneighbors(X)[1], expected.kneighbors(X)[1])
    for a, b in zip(fitted.explain(X[:2]), expected.explain(X[:2])):
        assert [n.squared_distance for n in a.neighbors] == [
            n.squared_distance for n in b.neighbors
        ]
    stages = zip(fitted.staged_predict(X), expected.staged_predict(X))
    assert all(np.array_equal(a, b) for a, b in stages)


@pytest.mark.parametrize("layout", SPARSE)
def test_all_else_takes_a_sparse_table(layout: str, tmp_path: Path) -> None:
    """Stages, neighbours, explanations, a file of the model, a search."""
    table = LAYOUTS[layout](X, tmp_path)
    sparse_model, dense_model = model().fit(table, Y), model().fit(X, Y)
    for found, expected in zip(sparse_model.staged_predict(table), dense_model.staged_predict(X)):
        assert np.array_equal(found, expected)
    assert np.array_equal(sparse_model.kneighbors(table)[1], dense_model.kneighbors(X)[1])
    rows = [m.explain(t) for m, t in ((sparse_model, table[:3]), (dense_model, X[:3]))]
    for a, b in zip(*rows):
        assert [n.row for n in a.neighbors] == [n.row for n in b.neighbors]
        assert [c.variable for c in a.changes] == [c.variable for c in b.changes]
    sparse_model.save(tmp_path / "model.mbz")
    loaded = metricboost.load(tmp_path / "model.mbz")
    assert np.array_equal(loaded.predict(table), sparse_model.predict(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = SDistClassifierCV(model(), n_iter=1, cv=2, random_state=0)
        assert search.fit(table, Y).predict(table).shape == (240,)


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_what_is_not_finite_is_named(layout: str, value: float, name: str, tmp_path: Path) -> None:
    broken = X.copy()
    broken[7, 3] = value
    with pytest.raises(ValueError, match=f"{name} in column 'x3'"):
        model().fit(LAYOUTS[layout](broken, tmp_path), Y)


def test_a_sparse_table_has_nothing_to_impute() -> None:
    with pytest.raises(ValueError, match="leaves out is 0"):
        model(missing="impute").fit(sparse.csr_matrix(X), Y)
