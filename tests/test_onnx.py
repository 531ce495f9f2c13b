"""``to_onnx``: onnxruntime computes the same embedding as ``transform``."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import metricboost
from metricboost import SDistClassifier, SparseMetric, to_onnx
from metricboost.datasets import fetch_ionosphere, fetch_secom, make_xor
from metricboost.inputs import Imputation

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

PROPERTY = settings(max_examples=150, deadline=None)
EITHER, SEEDS = st.booleans(), st.integers(0, 2**32 - 1)
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
real_data = pytest.mark.skipif(
    not os.environ.get("METRICBOOST_DATA"),
    reason="set METRICBOOST_DATA to a folder with the real tables",
)


@st.composite
def metrics(draw, imputed=EITHER):
    """A random metric of degree 6 at most. Columns may be far from zero, and may be clipped."""
    n_features = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(SEEDS))
    imputation = None
    if draw(imputed):
        marked = draw(st.lists(st.integers(0, n_features - 1), unique=True))
        imputation = Imputation(np.zeros(n_features), tuple(marked))
    n_columns = n_features + (len(imputation.indicators) if imputation else 0)
    column = st.integers(0, n_columns - 1)
    terms = draw(st.lists(st.lists(column, min_size=1, max_size=6), min_size=1, max_size=8))
    center = rng.standard_normal(n_columns) * 10 ** rng.uniform(-2, draw(st.integers(-1, 8)))
    scale = rng.uniform(0.2, 5, n_columns)
    center[n_features:], scale[n_features:] = 0.3, 0.5
    if imputation:
        fill = center + scale * rng.standard_normal(n_columns)
        imputation = Imputation(fill[:n_features], imputation.indicators)
    n_terms = len(terms)
    return SparseMetric(
        terms,
        rng.standard_normal((draw(st.integers(0, 4)), n_terms)),
        center,
        scale,
        rng.standard_normal(n_terms),
        rng.uniform(0.2, 5, n_terms),
        diagonal=rng.uniform(0.1, 3, n_terms) * draw(st.sampled_from([0, 1]))
        * (rng.random(n_terms) < draw(st.sampled_from([0.5, 1]))),
        imputation=imputation,
        clip=draw(st.sampled_from([None, 0.5, 3.0, np.inf])),
    )  # fmt: skip


def simple(terms, n_features=3, **changes):
    """A metric on columns with mean 0 and deviation 1."""
    n_terms = len(terms)
    arguments = {
        "columns": terms,
        "components": np.random.default_rng(0).standard_normal((2, n_terms)),
        "center": np.zeros(n_features),
        "scale": np.ones(n_features),
        "term_center": np.zeros(n_terms),
        "term_scale": np.ones(n_terms),
    }
    return SparseMetric(**arguments | changes)


def rows_for(metric, seed=0, n_rows=50, missing=0.0):
    """Normal rows around the centre of the metric, with 1.5 times its scale."""
    rng = np.random.default_rng(seed)
    n_features = metric.n_features
    spread = 1.5 * metric.scale[:n_features] * rng.standard_normal((n_rows, n_features))
    X = metric.center[:n_features] + spread
    X[rng.random(X.shape) < missing] = np.nan
    return X


def run(model, X):
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (embedding,) = session.run(["embedding"], {"X": X})
    return embedding


def deviation(metric, X, dtype="float32"):
    """The largest difference from ``transform``, relative to the largest coordinate."""
    X = np.asarray(X, dtype=dtype)
    expected, found = metric.transform(X), run(to_onnx(metric, dtype=dtype), X)
    assert found.shape == expected.shape
    assert found.dtype == dtype
    largest = np.abs(expected).max(initial=0)
    return np.abs(found - expected).max(initial=0) / (largest or 1)


def operators(model):
    return [node.op_type for node in model.graph.node]


# --- the same embedding


@given(metrics(), SEEDS)
@example(simple([]), 0)
@example(simple([(0, 1)], components=np.empty((0, 1))), 0)
@PROPERTY
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_embedding_is_that_of_transform(dtype, metric, seed):
    missing = 0.0 if metric.imputation is None else 0.2
    X = rows_for(metric, seed, missing=missing)
    assert deviation(metric, X, dtype) <= TOLERANCE[dtype]


@given(metrics(imputed=st.just(False)), SEEDS)
@PROPERTY
def test_without_an_imputation_missing_stays_missing(metric, seed):
    X = rows_for(metric, seed, missing=0.2).astype(np.float32)
    found = run(to_onnx(metric), X)
    assert_array_equal(np.isnan(found), np.isnan(metric.transform(X)))


@pytest.mark.parametrize("n_rows", [0, 1, 5000])
@pytest.mark.parametrize("terms", [[], [(0,), (0, 2)]])
def test_any_number_of_rows(n_rows, terms):
    metric = simple(terms)
    assert deviation(metric, rows_for(metric, n_rows=n_rows)) <= 1e-5


def test_columns_far_from_zero():
    """In float32 a time in seconds has steps of 128. Subtracting the centre adds no error."""
    metric = simple([(0,), (0, 0)], 1, center=[1.7e9 + 31.4], scale=[300.0])
    X = rows_for(metric).astype(np.float32)
    assert len(np.unique(X)) > 5
    assert deviation(metric, X) <= 1e-6


def test_clipping_ends_infinite_values():
    metric = simple([(0,), (1, 2)], clip=2.0)
    assert deviation(metric, [[np.inf, -np.inf, 1.0], [0.5, 7.0, -7.0]]) <= 1e-5


@pytest.mark.parametrize("columns", [[(0,)], [(3,)], [(4, 0), (3, 4), (2,)]])
def test_indicators_alone_and_with_values(columns):
    """Columns 3 and 4 are the indicators of columns 2 and 0."""
    imputation = Imputation(np.array([1.0, 2.0, 3.0]), (2, 0))
    metric = simple(
        columns, center=np.arange(5.0), scale=np.arange(1.0, 6.0), imputation=imputation, clip=0.6
    )
    assert deviation(metric, rows_for(metric, missing=0.4)) <= 1e-6


def test_a_fitted_metric():
    X, y = make_xor(400, 20, informative=2, random_state=0)
    model = SDistClassifier(random_state=0).fit(X, y)
    assert deviation(model.metric_, X) <= 1e-5
    assert deviation(model.metric_, X, "float64") <= 1e-12


def test_a_fitted_metric_with_missing_values():
    X, y = make_xor(400, 8, informative=2, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = SDistClassifier(missing="impute", start_share=0.5, random_state=0).fit(X, y)
    assert deviation(model.metric_, X) <= 1e-5


@real_data
def test_ionosphere():
    X, y = fetch_ionosphere(return_X_y=True)
    model = SDistClassifier(random_state=0).fit(X, y)
    assert deviation(model.metric_, X) <= 1e-5


@real_data
def test_a_weight_for_every_column_of_secom():
    """590 sensors with different scales and missing values. Some columns are constant."""
    X, _ = fetch_secom(preprocessed=False, return_X_y=True)
    table = (imputation := Imputation.of(X)).apply(X)
    scale = table.std(axis=0)
    kept = np.flatnonzero(scale > 1e-9)
    metric = simple(
        [(j,) for j in kept], len(scale), components=np.empty((0, len(kept))),
        center=table.mean(axis=0), scale=np.where(scale > 1e-9, scale, 1.0),
        diagonal=np.ones(len(kept)), imputation=imputation,
    )  # fmt: skip
    assert deviation(metric, X) <= 1e-5


# --- the graph


def test_the_graph_is_small():
    """The graph gathers columns once, multiplies matrices once, and has no needless node."""
    metric = simple([(5, 7), (5,), (7, 7)], 1000)
    columns, products = ["Gather", "Sub", "Div"], ["Gather", "Gather", "Mul", "Concat"]
    model = to_onnx(metric)
    assert operators(model) == [*columns, *products, "Sub", "MatMul"]
    assert len(model.graph.SerializeToString()) < 2000


def test_many_weights_take_no_matrix():
    n_terms = 3000
    metric = simple(
        [(j,) for j in range(n_terms)], n_terms, components=np.empty((0, n_terms)),
        diagonal=np.ones(n_terms),
    )  # fmt: skip
    model = to_onnx(metric)
    assert operators(model) == ["Sub", "Div", "Sub", "Mul"]
    assert len(model.graph.SerializeToString()) < 30 * n_terms


@given(metrics())
@PROPERTY
def test_names_are_identifiers(metric):
    """The ONNX standard requires names that are identifiers in C."""
    graph = to_onnx(metric).graph
    names = [constant.name for constant in graph.initializer]
    names += [name for node in graph.node for name in node.output]
    assert all(name.isidentifier() for name in names)
    assert len(set(names)) == len(names)
    assert names[-1] == "embedding"


def test_names_and_versions():
    model = to_onnx(simple([(0,)], feature_names=["age", "Größe", "a, b"]))
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(properties["feature_names"]) == ["age", "Größe", "a, b"]
    assert properties["metricboost_version"] == metricboost.__version__
    assert model.producer_name == "metricboost"


# --- files and errors


def test_the_file_is_the_model(tmp_path):
    metric = simple([(0, 1)])
    path = tmp_path / "metric.onnx"
    path.write_text("in the way")
    model = to_onnx(metric, path)
    assert onnx.load(path) == model
    assert [p.name for p in tmp_path.iterdir()] == ["metric.onnx"]
    X = rows_for(metric).astype(np.float32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_allclose(session.run(None, {"X": X})[0], metric.transform(X), atol=1e-5)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "metric.onnx").mkdir()
    with pytest.raises(OSError, match=r"metric\.onnx"):
        to_onnx(simple([(0,)]), tmp_path / "metric.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["metric.onnx"]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("center", {"center": [1e300, 0, 0]}),
        ("scale", {"scale": [1e300, 1, 1]}),
        ("scale", {"scale": [1e-40, 1, 1]}),
        ("components", {"term_scale": [1e-50]}),
    ],
)
def test_what_float32_cannot_hold(name, changes):
    metric = simple([(0,)], **changes)
    with pytest.raises(ValueError, match=rf"^The {name} of this metric .*dtype='float64'"):
        to_onnx(metric)
    assert operators(to_onnx(metric, dtype="float64"))


def test_other_types():
    with pytest.raises(ValueError, match="dtype='float16' must be one of"):
        to_onnx(simple([(0,)]), dtype="float16")


def test_without_onnx(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "metricboost\[onnx\]"'):
        to_onnx(simple([(0,)]), tmp_path / "metric.onnx")
    assert not list(tmp_path.iterdir())
