"""Odd input: what is warned about once and handled, and what simply works."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from containers import CONTAINERS, methods, named, run, small
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDist, SDistClassifier
from metricboost.boosting.loop import PATIENCE
from metricboost.datasets import make_xor
from metricboost.errors import GuessingWarning

BOTH = pytest.mark.parametrize("cls", [SDist, SDistClassifier])
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def table():
    return make_xor(150, 5, informative=2, random_state=0)


@pytest.fixture
def X(table):
    return table[0].copy()


@pytest.fixture
def y(table):
    return table[1].copy()


# --- warned about once, and handled


def warned(call):
    """The result of a call, and the warnings it gave, except that a model only guesses.

    A few rows are seldom enough to be better than guessing.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", GuessingWarning)
        result = call()
    return result, [str(warning.message) for warning in caught]


@BOTH
def test_an_ordinary_fit_is_silent(cls, X, y):
    """Neither ``fit`` nor any method warns."""
    model, messages = warned(lambda: small(cls, n_averaged=5).fit(X, y))
    assert messages == []
    assert warned(lambda: [run(method, X) for method in methods(model).values()])[1] == []


@BOTH
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
@pytest.mark.parametrize("value", [0.0, 4.5, -1e150, 0.1])
def test_constant_columns_are_dropped(cls, kind, value, X, y):
    """One warning that names them; the metric is that of the other columns."""
    X[:, 1], X[:, 3] = value, value
    rest = [0, 2, 4]
    model, messages = warned(lambda: small(cls, oob_gate=0.0).fit(CONTAINERS[kind](X), y))
    assert len(messages) == 1
    assert re.search("(?i)constant", messages[0])
    for j in range(5):
        assert (repr(named(kind, j)) in messages[0]) == (j in (1, 3))
    other = small(cls, oob_gate=0.0).fit(X[:, rest], y)
    assert_allclose(model.transform(CONTAINERS[kind](X)), other.transform(X[:, rest]))
    assert_array_equal(model.feature_importances_[rest], other.feature_importances_)
    assert (model.feature_importances_[[1, 3]] == 0).all()


@BOTH
def test_only_constant_columns(cls, y):
    """A table of constant columns is refused with a clear error."""
    with pytest.raises(ValueError, match=r"(?i)constant"):
        small(cls).fit(np.ones((150, 3)), y)


@BOTH
@pytest.mark.parametrize("rare", [2, 5])
def test_fewer_rows_than_neighbours(cls, rare, X, y):
    """One warning with the parameter, its value, the class and its rows, however many fits."""
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:rare]]
    params = {"n_neighbors": 8, "oob_gate": None, "n_averaged": 5}
    model, messages = warned(lambda: small(cls, **params).fit(X[rows], y[rows]))
    assert len(messages) == 1
    assert "n_neighbors=8" in messages[0]
    assert f"class '1' has too few rows ({rare})" in messages[0]
    assert np.isfinite(model.transform(X)).all()


@BOTH
def test_just_enough_rows_for_the_neighbours(cls, X, y):
    """A class of k + 1 rows has k neighbours for each row, so there is no warning."""
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:9]]
    fit = small(cls, n_neighbors=8, oob_gate=None, n_averaged=5).fit
    assert warned(lambda: fit(X[rows], y[rows]))[1] == []


@BOTH
@pytest.mark.parametrize(
    ("params", "panel"), [({"n_nonzero": 9}, 5), ({"n_nonzero": 3, "max_features": 2}, 2)]
)
def test_more_nonzeros_than_candidates(cls, params, panel, X, y):
    """One warning has both numbers, and the fit uses as many nonzeros as there are candidates."""
    params |= {"max_degree": 1, "oob_gate": None}
    model, messages = warned(lambda: small(cls, **params).fit(X, y))
    assert len(messages) == 1
    assert f"n_nonzero={params['n_nonzero']}" in messages[0]
    assert f"{panel} candidates" in messages[0]
    same = small(cls, **params | {"n_nonzero": panel}).fit(X, y)
    assert_array_equal(model.path_, same.path_)


@BOTH
def test_screened_pairs_are_candidates_too(cls, X, y):
    """Six nonzeros fit a panel of five columns and a screened pair, so there is no warning."""
    assert warned(lambda: small(cls, n_nonzero=6, screen_pairs=1).fit(X, y))[1] == []


@BOTH
def test_default_nonzeros_on_a_narrow_table(cls, X, y):
    """A default is not the user's choice, so a table of two columns gives no warning."""
    assert warned(lambda: small(cls, oob_gate=None).fit(X[:, :2], y))[1] == []


@BOTH
def test_screening_within_its_budget(cls, X, y, monkeypatch):
    """One warning says that not all pairs are screened; a number of pairs screens all."""
    monkeypatch.setattr("metricboost.training.learn.BUDGET", 1000)
    _, messages = warned(lambda: small(cls, oob_gate=None).fit(X, y))
    assert len(messages) == 1
    assert re.search(r"(?i)only pairs of the 2 columns.*screen_pairs", messages[0])
    assert warned(lambda: small(cls, oob_gate=None, screen_pairs=3).fit(X, y))[1] == []
    assert warned(lambda: small(cls, oob_gate=None, max_degree=1).fit(X, y))[1] == []


@BOTH
def test_warnings_do_not_hide_each_other(cls, X, y):
    """A fit warns twice if two things are odd."""
    X[:, 0] = 1.0
    _, messages = warned(lambda: small(cls, n_neighbors=500, oob_gate=None).fit(X, y))
    assert len(messages) == 2


# --- nothing accepted


@BOTH
@pytest.mark.parametrize(
    "init", ["zero", "identity", 2 * np.eye(5)], ids=["zero", "identity", "matrix"]
)
@pytest.mark.parametrize("n_averaged", [1, 3])
def test_nothing_accepted(cls, init, n_averaged, X):
    """With a high gate on noise the metric is the start on all columns, with one warning."""
    rng = np.random.default_rng(0)
    noise, labels = rng.standard_normal((150, 5)) * 3 + 1, rng.integers(0, 2, 150)
    params = {"oob_gate": 30.0, "init": init, "n_averaged": n_averaged}
    model, messages = warned(lambda: small(cls, **params).fit(noise, labels))
    assert len(messages) == 1
    assert re.search(r"(?i)no step was accepted.*oob_gate", messages[0])
    assert model.best_iter_ == 0
    assert len(model.path_) == 0
    assert model.n_iter_ == PATIENCE * n_averaged
    assert sorted(model.metric_.columns) == [(j,) for j in range(5)]
    W = model.metric_.matrix()
    assert_allclose(W, W[0, 0] * np.eye(5), atol=1e-12)
    assert_allclose(model.transform(noise).var(axis=0).sum(), 1.0)
    assert_allclose(model.feature_importances_, 0.2)
    assert (model.stability_ == 0).all()
    assert model.transform(X).shape == (150, 5)


@QUIET
@pytest.mark.parametrize("n_averaged", [1, 3])
@pytest.mark.parametrize("clip", [None, 1.5])
def test_nothing_accepted_is_plain_nearest_neighbours(n_averaged, clip, X, y):
    """The identity on standardised columns, so distances there are Euclidean."""
    model = small(oob_gate=1e6, n_averaged=n_averaged, clip=clip).fit(X, y)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    if clip is not None:
        assert np.abs(standard).max() > clip
        standard = np.clip(standard, -clip, clip)
    expected = standard / np.sqrt(standard.var(axis=0).sum())
    assert_allclose(model.transform(X), expected, atol=1e-12)
    assert model.start_share_ == 1.0
    assert list(model.staged_predict(X)) == []
    assert set(model.predict(X)) <= {0, 1}


@QUIET
@BOTH
def test_pure_noise_with_the_default_gate(cls):
    """A model of noise works, whatever steps the gate has accepted."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((100, 20)), rng.integers(0, 2, 100)
    model = cls(random_state=0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert_allclose(model.feature_importances_.sum(), 1)


# --- must simply work


SCALES = 10.0 ** np.array([-150, -75, 0, 75, 150])


@BOTH
def test_scales_do_not_matter(cls, X, y):
    """Columns from 1e-150 to 1e150 in one table: the same metric, and no floating-point noise."""
    plain = small(cls).fit(X, y)
    assert plain.best_iter_ > 0
    model, messages = warned(lambda: small(cls).fit(X * SCALES, y))
    assert messages == []
    assert model.metric_.columns == plain.metric_.columns
    assert_allclose(model.transform(X * SCALES), plain.transform(X), atol=1e-8)
    assert warned(lambda: [run(m, X * SCALES) for m in methods(model).values()])[1] == []


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("params", [{"max_degree": 3}, {"init": "identity"}, {"engine": "numpy"}])
def test_tiny_and_huge_tables(scale, params, X, y):
    """All columns tiny, or all huge, with and without products."""
    params |= {"oob_gate": 0.0}
    plain, model = small(**params).fit(X, y), small(**params).fit(X * scale, y)
    assert_allclose(model.decision_function(X * scale), plain.decision_function(X), atol=1e-6)


@BOTH
def test_scales_mixed_within_a_column(cls, X, y):
    """Tiny and huge values in one column do no harm either."""
    X[:, 1] = np.random.default_rng(0).choice([1e-150, -1e-150, 1.0, 1e150], 150)
    model = small(cls, oob_gate=0.0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()


def test_extreme_scales_as_given(X, y):
    """Without standardisation such a table works, or the error names ``standardize``."""
    try:
        model = small(standardize=False).fit(X * SCALES, y)
    except ValueError as error:
        assert "standardize" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(model.predict_proba(X * SCALES)).all()


HUGE = """
import warnings, numpy as np
from metricboost import SDistClassifier
from metricboost.datasets import make_xor
warnings.simplefilter("error", RuntimeWarning)
X, y = make_xor(150, 5, informative=2, random_state=0)
one = {"max_iter": 12, "n_averaged": 1, "random_state": 0}
for params in (
    {}, {"clip": None}, {"clip": None, "max_degree": 1}, {"clip": None, "classifier": "knn"},
    {"clip": None, "classifier": "hull"}, {"clip": None, "engine": "numpy"},
):
    model = SDistClassifier(**one, **params).fit(X, y)
    for value in (1e80, 1e150, 1e200, 1e308):
        row = np.full((1, 5), value)
        try:
            assert np.isfinite(model.predict_proba(row)).all(), (params, value)
        except ValueError as error:
            assert "column" in str(error), error
"""


def test_huge_values_in_prediction():
    """A finite value far beyond those of training: an answer, or an error that names columns.

    In a process of its own: a kernel that reads out of bounds ends it.
    """
    done = subprocess.run(
        [sys.executable, "-c", HUGE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@BOTH
def test_large_offsets(cls, X, y):
    """Columns far from zero are still told from constant ones."""
    plain, model = small(cls).fit(X, y), small(cls).fit(X + 1e6, y)
    assert model.metric_.columns == plain.metric_.columns


@QUIET
@BOTH
@pytest.mark.parametrize("shape", [(20, 200), (30, 1000)])
def test_more_columns_than_rows(cls, shape):
    """p > n, with a column that matters."""
    X = np.random.default_rng(0).standard_normal(shape)
    y = np.arange(shape[0]) % 2
    X[:, 7] += 4 * y
    model = small(cls, n_averaged=5).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert np.argmax(model.feature_importances_) == 7


@QUIET
@BOTH
@pytest.mark.parametrize("n_rows", [4, 5, 6])
@pytest.mark.parametrize("n_columns", [1, 2, 7])
@pytest.mark.parametrize(
    "params",
    [
        {"n_averaged": 5},
        {"n_averaged": 5, "oob_gate": None},
        {"oob_gate": None, "subsample": 1.0, "max_degree": 3},
    ],
)
def test_the_smallest_tables(cls, n_rows, n_columns, params):
    """Two rows a class and one column are enough to run."""
    X = np.random.default_rng(n_rows).standard_normal((n_rows, n_columns))
    y = np.arange(n_rows) % 2
    model = small(cls, **params).fit(X, y)
    assert all(np.isfinite(run(model.transform, X)).ravel())
    if cls is SDistClassifier:
        assert np.isfinite(model.predict_proba(X)).all()
        assert set(model.predict(X)) <= {0, 1}


@QUIET
@pytest.mark.parametrize("classifier", ["margin", "hull", "knn"])
def test_more_neighbours_than_training_rows(classifier):
    """Predictions look at all rows if there are fewer than ``n_neighbors_predict``."""
    X, y = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]]), np.array([0, 0, 1, 1, 1])
    model = small(classifier=classifier, n_neighbors_predict=50).fit(X, y)
    assert model.decision_function(X).shape == (5,)
    if classifier != "knn":
        assert_array_equal(model.predict(X), y)


@BOTH
def test_one_column(cls):
    """A single column that matters, linearly and not."""
    x = np.random.default_rng(0).standard_normal((120, 1))
    for y in ((x[:, 0] > 0).astype(int), (np.abs(x[:, 0]) > 0.7).astype(int)):
        model = small(cls, max_iter=40).fit(x, y)
        assert model.best_iter_ > 0
        assert_array_equal(model.feature_importances_, [1.0])


@BOTH
def test_only_zeros_and_ones(cls):
    """Squares of such columns carry nothing new; the interaction is found."""
    X = np.random.default_rng(0).integers(0, 2, (120, 6)).astype(float)
    y = (X[:, 1] != X[:, 4]).astype(int)
    model = small(cls).fit(X, y)
    assert model.metric_.terms[0].columns == (1, 4)
    assert np.isfinite(model.transform(X)).all()


@QUIET
@BOTH
def test_duplicated_rows(cls, X, y):
    """Every row several times, also with contradicting labels."""
    X, y = np.repeat(X[:12], 8, axis=0), np.repeat(y[:12], 8)
    y[::8] = 1 - y[::8]
    model = small(cls, n_neighbors=5, oob_gate=0.0, n_averaged=3).fit(X, y)
    assert np.isfinite(model.transform(X)).all()
    assert_allclose(model.pair_distance(X[:8], X[[0] * 8]), 0, atol=1e-12)
    if cls is SDistClassifier:
        assert np.isfinite(model.predict_proba(X)).all()


@QUIET
@BOTH
def test_all_rows_alike(cls, X):
    """Two distinct rows, each in both classes: nothing can be learned, and nothing breaks."""
    model = small(cls, n_averaged=3).fit(np.repeat(X[:2], 30, axis=0), np.arange(60) % 2)
    assert model.best_iter_ == 0
    assert np.isfinite(model.transform(X)).all()
    if cls is SDistClassifier:
        assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)


@QUIET
@BOTH
def test_a_column_that_varies_in_one_row_only(cls):
    """Folds without that row have a constant column, which is left out there."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[:, 1] = 0.0
    X[7, 1] = 1.0
    model = small(cls, n_averaged=4).fit(X, np.arange(40) % 2)
    assert model.metric_.n_features == 3
    assert np.isfinite(model.transform(X)).all()


def test_one_informative_column_among_a_hundred_thousand():
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 100_000)).astype(np.float32)
    X[:, 77_777] += 4 * y
    model = SDistClassifier(max_iter=5, n_averaged=1, screen_pairs=0, random_state=0).fit(X, y)
    assert model.metric_.terms[0].columns == (77_777,)
    assert model.score(X, y) > 0.95


@QUIET
def test_a_table_that_varies_in_one_row_only():
    """The only column is constant in some folds."""
    X = np.zeros((20, 1))
    X[7] = 1.0
    assert np.isfinite(small(n_averaged=5).fit(X, np.arange(20) % 2).transform(X)).all()


@BOTH
def test_duplicated_columns(cls, X, y):
    """Copies of the two columns that matter are still the heaviest."""
    model = small(cls).fit(np.hstack([X, X, X]), y)
    assert model.best_iter_ > 0
    assert np.isfinite(model.transform(np.hstack([X, X, X]))).all()
    single = small(cls).fit(X, y).feature_importances_
    shared = model.feature_importances_.reshape(3, 5).sum(axis=0)
    assert set(np.argsort(-shared)[:2]) == set(np.argsort(-single)[:2])


@pytest.mark.parametrize("cls", [SDist, SDistClassifier])
def test_warnings_point_to_the_line_that_called_fit(cls):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(UserWarning, match="Constant column") as found:
        cls(random_state=0, max_iter=2).fit(np.c_[X, np.ones(60)], np.arange(60) % 2)
    assert {warning.filename for warning in found} == {__file__}


@pytest.mark.parametrize("low", [1e308, 1e-310, 1e-320, 1e300])
def test_weights_of_any_size(low, X, y):
    """Only ratios of weights matter; weights far below the largest count as zero."""
    ratio = np.where(np.arange(len(y)) % 2 == 0, 1.0, 0.5 if low > 1e-300 else 1.0)
    weight, scaled = low * ratio, ratio
    found, expected = (small(SDistClassifier).fit(X, y, w) for w in (weight, scaled))
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-6)
    tiny = np.where(np.arange(len(y)) < 4, 1e-300, 1.0)
    a, b = (small(SDistClassifier).fit(X, y, w) for w in (tiny, tiny.round()))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    ratio = {label: 1e308 if label else 1e-308 for label in np.unique(y)}
    with pytest.raises(ValueError, match="at least two classes"):
        SDistClassifier(class_weight=ratio).fit(X, y)


def test_parameters_as_numpy_has_them(X, y, tmp_path):
    small(SDistClassifier, clip=np.float32(2.5)).fit(X, y).save(tmp_path / "model.mbz")
