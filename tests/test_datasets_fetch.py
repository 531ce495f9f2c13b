"""Fetching the real tables: download, user folder, results, fingerprint.

Most tests use small tables whose fingerprints replace the real ones. Tests of the real values need
the folder in ``METRICBOOST_DATA``, and are skipped without it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import datasets_server
import numpy as np
import pytest
from datasets_server import (
    FETCHERS,
    no_leftovers,
    uci_files,
    write_npz,
)

from metricboost.datasets import (
    _cache,
    _fetch,
    _sources,
    _table,
    fetch_ionosphere,
    fetch_madelon,
    fetch_secom,
)
from metricboost.datasets._cache import DatasetUnavailableError

# Fixtures must be names of the module in which they are used.
cache = datasets_server.cache
clean = datasets_server.clean
served = datasets_server.served
server = datasets_server.server
tables = datasets_server.tables

REAL_FOLDER = os.environ.get("METRICBOOST_DATA")
needs_data = pytest.mark.skipif(
    not REAL_FOLDER, reason="set METRICBOOST_DATA to a folder with the real tables"
)


# --- downloading


@pytest.mark.parametrize("name", FETCHERS)
def test_download(served, tables, cache, name):
    bunch = FETCHERS[name]()
    np.testing.assert_array_equal(bunch.data, tables[name].X)
    np.testing.assert_array_equal(bunch.target, tables[name].y)
    assert bunch.data.dtype == np.float64
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert len(bunch.target_names) == 2
    assert bunch.frame is None
    assert len(bunch.DESCR) > 200
    assert (cache / f"{name}.npz").exists()
    assert no_leftovers(cache)


@pytest.mark.parametrize("name", FETCHERS)
def test_second_call_asks_nobody(served, tables, name):
    FETCHERS[name]()
    n_requests = len(served.requests)
    again = FETCHERS[name]()
    assert len(served.requests) == n_requests == len(getattr(_sources, name.upper()).files)
    np.testing.assert_array_equal(again.data, tables[name].X)


def test_mirror_address_without_slash(served, monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA_URL", served.url.rstrip("/"))
    assert fetch_ionosphere().data.shape == (6, 34)


def test_cache_serves_as_data_folder(served, tables, cache, monkeypatch):
    fetch_secom()
    with np.load(cache / "secom.npz") as arrays:
        assert sorted(arrays) == ["X", "feature_names", "y"]
        assert arrays["feature_names"].tolist()[:2] == ["s000", "s001"]
    served.close()
    monkeypatch.setenv("METRICBOOST_HOME", str(cache / "elsewhere"))
    monkeypatch.setenv("METRICBOOST_DATA", str(cache))
    np.testing.assert_array_equal(fetch_secom().data, tables["secom"].X)


def test_data_home_argument(served, tmp_path, cache):
    fetch_ionosphere(data_home=tmp_path / "own" / "folder")
    assert (tmp_path / "own" / "folder" / "ionosphere.npz").exists()
    assert not cache.exists()


def test_default_home_is_in_scikit_learns(served, monkeypatch, tmp_path):
    monkeypatch.delenv("METRICBOOST_HOME")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sk"))
    fetch_ionosphere()
    assert (tmp_path / "sk" / "metricboost" / "ionosphere.npz").exists()


def test_home_that_cannot_be_written(served, tables, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="could not be stored.*METRICBOOST_HOME") as caught:
        bunch = fetch_ionosphere(data_home=tmp_path / "file")
    np.testing.assert_array_equal(bunch.data, tables["ionosphere"].X)
    assert caught[0].filename == __file__


def test_many_at_once(served, tables, cache):
    with ThreadPoolExecutor(4) as pool:
        results = [f.result() for f in [pool.submit(fetch_ionosphere) for _ in range(8)]]
    assert all(np.array_equal(bunch.data, tables["ionosphere"].X) for bunch in results)
    assert no_leftovers(cache)


# --- the folder of the user


@pytest.mark.parametrize("name", FETCHERS)
def test_folder_comes_first(served, tables, tmp_path, cache, monkeypatch, name):
    write_npz(tmp_path / "data", name, tables[name])
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path / "data"))
    np.testing.assert_array_equal(FETCHERS[name]().data, tables[name].X)
    assert served.requests == []
    assert not cache.exists()


def test_folder_with_a_wrong_file_is_an_error(served, tables, tmp_path, monkeypatch):
    wrong = _table.make_table(tables["ionosphere"].X * 2, tables["ionosphere"].y)
    write_npz(tmp_path / "data", "ionosphere", wrong)
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetUnavailableError, match=r"ionosphere\.npz is not the ionosphere"):
        fetch_ionosphere()
    assert served.requests == []


def test_folder_without_the_file_falls_back(served, tables, tmp_path, monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path))
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)
    assert len(served.requests) == 1


def test_pickles_are_not_read(tables, tmp_path, monkeypatch):
    np.savez(tmp_path / "ionosphere.npz", X=np.array([{}], dtype=object), y=np.array([1]))
    monkeypatch.setenv("METRICBOOST_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match="allow_pickle"):
        fetch_ionosphere()


# --- results


def test_return_x_y(served, tables):
    X, y = fetch_ionosphere(return_X_y=True)
    np.testing.assert_array_equal(X, tables["ionosphere"].X)
    np.testing.assert_array_equal(y, tables["ionosphere"].y)


@pytest.mark.parametrize("name", FETCHERS)
def test_as_frame(served, tables, name):
    pd = pytest.importorskip("pandas")
    bunch = FETCHERS[name](as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame)
    assert isinstance(bunch.target, pd.Series)
    assert bunch.target.name == "target"
    assert list(bunch.data.columns) == bunch.feature_names
    assert list(bunch.frame.columns) == [*bunch.feature_names, "target"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), tables[name].X)
    X, y = FETCHERS[name](as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)


def test_madelon_subsets(served, tables):
    everything = fetch_madelon()
    train, valid = fetch_madelon(subset="train"), fetch_madelon(subset="valid")
    assert everything.fold.tolist() == ["train"] * 6 + ["valid"] * 3
    np.testing.assert_array_equal(np.vstack([train.data, valid.data]), everything.data)
    assert set(valid.fold) == {"valid"}
    assert len(everything.relevant) == 20
    with pytest.raises(ValueError, match="'test'"):
        fetch_madelon(subset="test")


def test_rule_for_missing_values():
    X = np.ones((100, 6)) * np.arange(100)[:, None]
    X[:3, 1] = np.nan  # 3%: the column is kept, and the three rows are dropped
    X[:4, 2] = np.nan  # 4%: dropped
    X[:, 3] = 7.0  # constant: dropped
    X[:, 4] = np.nan  # no values: dropped
    X[50, 5], X[51:, 5], X[:50, 5] = np.nan, 2.0, 2.0  # constant except for NaN: dropped
    table, names = _fetch._without_missing(_table.make_table(X, np.arange(100)), tuple("abcdef"))
    assert names == ("a", "b")
    assert table.y.tolist() == list(range(3, 100))
    assert np.isfinite(table.X).all()


def test_secom_preprocessed(served):
    bunch = fetch_secom(preprocessed=True)
    assert np.isfinite(bunch.data).all()
    assert bunch.data.shape == (9, len(bunch.feature_names))


def test_arrays_are_the_callers_own(served, tables):
    fetch_ionosphere().data[:] = 0
    np.testing.assert_array_equal(fetch_ionosphere().data, tables["ionosphere"].X)


# --- the fingerprint


def test_fingerprint_ignores_the_form():
    X, y = np.array([[0.0, np.nan], [2.0, 3.0]]), np.array([-1, 1])
    other_nan = np.frombuffer(np.uint64(0xFFF8000000000123).tobytes())[0]
    expected = _table.fingerprint(_table.make_table(X, y))
    same = [
        (np.asfortranarray(X), y),
        (X.astype(np.float32), y.astype(np.int8)),
        (np.where(np.isnan(X), other_nan, X), y),
        (np.where(X == 0, -0.0, X), y),
        (X.tolist(), y.tolist()),
    ]
    for values, labels in same:
        assert _table.fingerprint(_table.make_table(values, labels)) == expected


def test_fingerprint_sees_every_change():
    X, y = np.arange(6.0).reshape(2, 3), np.array([-1, 1])
    tables = [
        (X, y),
        (np.nextafter(X, 9), y),
        (X, -y),
        (X[::-1], y),
        (X[:, ::-1], y),
        (X[:, :2], y),
        (np.where(X == 0, np.nan, X), y),
    ]
    assert len({_table.fingerprint(_table.make_table(*t)) for t in tables}) == len(tables)


def test_table_of_odd_shape():
    with pytest.raises(ValueError, match="labels of shape"):
        _table.make_table(np.zeros((3, 2)), np.zeros(2))


# --- the real tables

SHAPES = {"ionosphere": (351, 34), "secom": (1567, 590), "madelon": (2600, 500)}


@pytest.fixture
def real(monkeypatch):
    monkeypatch.setenv("METRICBOOST_DATA", str(REAL_FOLDER))


@needs_data
@pytest.mark.parametrize("name", FETCHERS)
def test_real_folder(real, name):
    bunch = FETCHERS[name]()
    assert bunch.data.shape == SHAPES[name]
    with np.load(Path(REAL_FOLDER) / f"{name}.npz") as arrays:
        np.testing.assert_array_equal(bunch.data, arrays["X"])
        np.testing.assert_array_equal(bunch.target, arrays["y"])
        assert bunch.feature_names == arrays["feature_names"].tolist()


@needs_data
@pytest.mark.parametrize("name", FETCHERS)
def test_real_values_through_uci_files(server, cache, name):
    table = _table.read_table(Path(REAL_FOLDER) / f"{name}.npz")
    for path, content in uci_files(name, table, n_train=2000).items():
        server.serve(path, content)
    for _ in range(2):
        bunch = FETCHERS[name]()
        np.testing.assert_array_equal(bunch.data, table.X)
        np.testing.assert_array_equal(bunch.target, table.y)
    assert len(server.requests) == len(getattr(_sources, name.upper()).files)
    assert (cache / f"{name}.npz").exists()


@needs_data
def test_real_ionosphere(real):
    bunch = fetch_ionosphere()
    assert np.unique(bunch.target, return_counts=True)[1].tolist() == [126, 225]
    assert np.flatnonzero(np.ptp(bunch.data, axis=0) == 0).tolist() == [1]
    assert "a02 is constant" in bunch.DESCR


@needs_data
def test_real_secom(real):
    raw, clean = fetch_secom(), fetch_secom(preprocessed=True)
    assert np.isnan(raw.data).sum() == 41951
    assert clean.data.shape == (1436, 414)
    assert not np.isnan(clean.data).any()
    assert (np.ptp(clean.data, axis=0) > 0).all()
    assert np.unique(clean.target, return_counts=True)[1].tolist() == [1336, 100]


@needs_data
def test_real_madelon(real):
    train, valid = fetch_madelon(subset="train"), fetch_madelon(subset="valid")
    assert (train.data.shape, valid.data.shape) == ((2000, 500), (600, 500))
    with np.load(Path(REAL_FOLDER) / "madelon.npz") as arrays:
        np.testing.assert_array_equal(np.append(train.fold, valid.fold), arrays["fold"])
    # The relevant columns are the only ones that correlate with others.
    correlation = np.abs(np.corrcoef(train.data.T)) - np.eye(500)
    assert np.flatnonzero(correlation.max(axis=0) > 0.2).tolist() == train.relevant.tolist()


def test_variables_are_what_the_messages_say():
    assert (_cache.DATA_VARIABLE, _cache.HOME_VARIABLE) == ("METRICBOOST_DATA", "METRICBOOST_HOME")
