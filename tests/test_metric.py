"""``SparseMetric``: that it is a metric, its matrix, names and importances, and what fits leave."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import metricboost.metric
from metricboost import MetricTerm, SDist, SparseMetric
from metricboost.datasets import make_xor

PROPERTY = settings(max_examples=60, deadline=None)
FITTED = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def metrics(draw):
    """A random metric: a few columns, terms up to degree 3, and a factor of any rank."""
    n_features, n_terms = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    column = st.integers(0, n_features - 1)
    terms = draw(
        st.lists(
            st.lists(column, min_size=1, max_size=3).map(lambda term: tuple(sorted(term))),
            min_size=n_terms, max_size=n_terms,
        )
    )  # fmt: skip
    rng = np.random.default_rng(draw(SEEDS))
    return SparseMetric(
        terms,
        rng.standard_normal((draw(st.integers(1, 5)), n_terms)),
        rng.standard_normal(n_features),
        rng.uniform(0.2, 5, n_features),
        rng.standard_normal(n_terms),
        rng.uniform(0.2, 5, n_terms),
    )


def rows_for(metric, seed, n_rows=7):
    return 3 * np.random.default_rng(seed).standard_normal((n_rows, metric.n_features))


def tolerance(metric, *tables):
    """What rounding may do to a distance: it is computed from squared norms."""
    return 1e-6 * (1 + max(np.abs(metric.transform(X)).max() for X in tables))


def example(**changes):
    """age, income, age * income^2 and income^2, on three columns."""
    arguments = {
        "columns": [(0,), (1,), (0, 1, 1), (1, 1)],
        "components": np.array([[3.0, 0.0, 1.0, 0.0], [0.0, 1.0, 2.0, 0.5]]),
        "center": [1.0, 2.0, 0.0],
        "scale": [2.0, 1.0, 1.0],
        "term_center": [0.0, 0.0, 0.5, 1.0],
        "term_scale": [1.0, 1.0, 2.0, 4.0],
        "feature_names": ["age", "income", "height"],
    }
    return SparseMetric(**arguments | changes)


# --- it is a metric


@given(metrics(), SEEDS)
@PROPERTY
def test_symmetry(metric, seed):
    """d(x, y) = d(y, x)."""
    X, Y = rows_for(metric, seed), rows_for(metric, seed + 1)
    assert_array_equal(metric.pair_distance(X, Y), metric.pair_distance(Y, X))
    atol = tolerance(metric, X, Y)
    assert_allclose(metric.pairwise_distance(X, Y), metric.pairwise_distance(Y, X).T, atol=atol)
    assert_allclose(metric.pairwise_distance(X), metric.pairwise_distance(X).T, atol=atol)


@given(metrics(), SEEDS)
@PROPERTY
def test_a_row_is_at_distance_zero_from_itself(metric, seed):
    """Exactly, among its own table; up to rounding in a copy of it."""
    X = rows_for(metric, seed)
    assert (metric.pair_distance(X, X) == 0).all()
    assert (np.diag(metric.pairwise_distance(X)) == 0).all()
    atol = tolerance(metric, X)
    assert_allclose(np.diag(metric.pairwise_distance(X, X.copy())), 0, atol=atol)


@given(metrics(), SEEDS)
@PROPERTY
def test_triangle_inequality(metric, seed):
    """No detour is shorter, and no distance is negative."""
    X = rows_for(metric, seed)
    d = metric.pairwise_distance(X)
    assert (d >= 0).all()
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + tolerance(metric, X)).all()


@given(metrics())
@PROPERTY
def test_matrix_is_symmetric_and_positive_semi_definite(metric):
    """W has no negative eigenvalue and at most the stated rank."""
    W = metric.matrix()
    assert W.shape == (len(metric.columns),) * 2
    assert_array_equal(W, W.T)
    values = np.linalg.eigvalsh(W)
    assert values.min() >= -1e-10 * max(values.max(), 1)
    assert np.linalg.matrix_rank(W) <= metric.rank


@given(metrics(), SEEDS)
@PROPERTY
def test_distances_are_those_of_the_embedding_and_of_the_matrix(metric, seed):
    """|z_i - z_j|, and the root of the quadratic form of W in the terms."""
    X, Y = rows_for(metric, seed), rows_for(metric, seed + 1, n_rows=4)
    found = metric.pairwise_distance(X, Y)
    embedded = metric.transform(X)[:, None] - metric.transform(Y)
    terms = metric.term_features(X)[:, None] - metric.term_features(Y)
    quadratic = np.einsum("ijs,st,ijt->ij", terms, metric.matrix(), terms)
    atol = tolerance(metric, X, Y)
    assert_allclose(found, np.linalg.norm(embedded, axis=2), atol=atol)
    assert_allclose(found, np.sqrt(np.maximum(quadratic, 0)), atol=atol)
    assert_allclose(metric.pair_distance(X[:4], Y), np.diag(found[:4]), atol=atol)


@given(metrics(), SEEDS)
@PROPERTY
def test_terms_are_products_of_standardised_columns(metric, seed):
    """Each centred and scaled again; the embedding is linear in them."""
    X = rows_for(metric, seed)
    standard = (X - metric.center) / metric.scale
    raw = np.stack([np.prod([standard[:, j] for j in t], axis=0) for t in metric.columns], axis=1)
    expected = (raw - metric.term_center) / metric.term_scale
    assert_allclose(metric.term_features(X), expected, atol=1e-9)
    assert_allclose(metric.transform(X), expected @ metric.components.T, atol=1e-8)


def test_close_rows_far_from_the_origin():
    """A small distance between large embeddings is not lost in rounding."""
    metric = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0])
    X = np.array([[1e6], [1e6 + 1e-3], [1e6 + 3e-3]])
    expected = np.abs(X - X.T)
    assert_allclose(metric.pairwise_distance(X), expected, rtol=1e-5)
    assert_allclose(metric.pairwise_distance(X, X), expected, rtol=1e-5)


# --- names, weights, importances


def test_terms_are_named_and_ordered():
    """By weight, the heaviest first; powers with a caret, columns in their order."""
    assert example().terms == [
        MetricTerm("age", (0,), 9.0),
        MetricTerm("age*income^2", (0, 1, 1), 5.0),
        MetricTerm("income", (1,), 1.0),
        MetricTerm("income^2", (1, 1), 0.25),
    ]


def test_names_do_not_depend_on_the_order_within_a_term():
    """(1, 0, 1) is the same monomial as (0, 1, 1)."""
    metric = example(columns=[(0,), (1,), (1, 0, 1), (1, 1)])
    assert metric.terms[1].name == "age*income^2"


def test_default_names():
    """Columns without names are x0, x1, ..."""
    assert [term.name for term in example(feature_names=None).terms][:2] == ["x0", "x0*x1^2"]


def test_importances_by_hand():
    """9 + 5/2 for age, 1 + 0.25 + 5/2 for income, none for height."""
    assert_allclose(example().importances(), np.array([11.5, 3.75, 0.0]) / 15.25)
    assert example().importances()[2] == 0


def test_interactions():
    """Only terms of two or more distinct columns: a square is none."""
    assert [term.name for term in example().interactions()] == ["age*income^2"]


@given(metrics())
@PROPERTY
def test_weights_are_the_diagonal(metric):
    """Terms carry W_aa; importances are not negative and sum to 1."""
    assert sorted(term.columns for term in metric.terms) == sorted(metric.columns)
    weights = [term.weight for term in metric.terms]
    assert_allclose(sorted(weights), np.sort(np.diag(metric.matrix())))
    assert weights == sorted(weights, reverse=True)
    assert_allclose(metric.importances().sum(), 1)
    assert (metric.importances() >= 0).all()
    assert set(metric.interactions()) <= set(metric.terms)


def test_representation():
    """Rank, terms and variables at a glance."""
    assert repr(example()) == "SparseMetric(rank=2, n_terms=4, variables=2 of 3)"


# --- shapes


@pytest.mark.parametrize("method", ["transform", "term_features", "pairwise_distance"])
@pytest.mark.parametrize("shape", [(4, 2), (4, 4), (3,), (2, 2, 3)])
def test_tables_of_another_shape(method, shape):
    """The message has the shape there is and the number of columns there should be."""
    with pytest.raises(ValueError, match=r"shape.*3 columns"):
        getattr(example(), method)(np.zeros(shape))


def test_one_sided_shape_errors():
    """The second table is checked like the first."""
    with pytest.raises(ValueError, match="3 columns"):
        example().pairwise_distance(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match="3 columns"):
        example().pair_distance(np.zeros((2, 3)), np.zeros((2, 4)))


@pytest.mark.parametrize("n_rows", [1, 4])
def test_pairs_need_as_many_rows_on_both_sides(n_rows):
    """Row i against row i: nothing is broadcast."""
    with pytest.raises(ValueError, match=r"(?i)rows"):
        example().pair_distance(np.zeros((2, 3)), np.zeros((n_rows, 3)))


@pytest.mark.parametrize(
    "change",
    [
        {"components": np.ones((4, 2))},  # transposed
        {"components": np.ones((2, 3))},
        {"components": np.ones(8)},
        {"columns": [(0,), (1,), (0, 3), (1, 1)]},  # there is no column 3
        {"columns": [(0,), (1,), (-1,), (1, 1)]},
        {"scale": np.ones(2)},
        {"term_center": np.zeros(3)},
        {"term_scale": np.ones(5)},
        {"feature_names": ["age", "income"]},
    ],
    ids=lambda change: (
        f"{next(iter(change))}-{np.shape(next(iter(change.values())))}"
        if "columns" not in change
        else f"columns-{change['columns'][2]}"
    ),
)
def test_parts_that_do_not_fit_together(change):
    """A metric is refused when it is made, not when it is used."""
    with pytest.raises((ValueError, IndexError), match=next(iter(change))):
        example(**change)


def test_no_rows():
    """An empty table has an empty embedding and no distances."""
    empty = np.empty((0, 3))
    assert example().transform(empty).shape == (0, 2)
    assert example().pairwise_distance(empty).shape == (0, 0)
    assert example().pairwise_distance(np.zeros((2, 3)), empty).shape == (2, 0)


def test_one_row():
    """So does a single row, with itself."""
    assert_array_equal(example().pairwise_distance(np.ones((1, 3))), [[0.0]])


def test_lists_are_tables_too():
    """Anything array-like, also of integers."""
    X = [[1, 2, 3], [4, 5, 6]]
    assert_array_equal(example().transform(X), example().transform(np.array(X, dtype=float)))


# --- alone


ALONE = """
import sys, types
for name in ("sklearn", "scipy", "pandas", "joblib"):
    sys.modules[name] = None  # an import of it fails
package = types.ModuleType("metricboost")
package.__path__ = [sys.argv[1]]
sys.modules["metricboost"] = package  # its __init__ brings the estimators
import pickle, numpy
metric, X = pickle.load(open(sys.argv[2], "rb"))
result = {
    "transform": metric.transform(X), "pairs": metric.pairwise_distance(X),
    "importances": metric.importances(), "names": [term.name for term in metric.terms],
    "interactions": len(metric.interactions()), "repr": repr(metric),
}
pickle.dump(result, open(sys.argv[3], "wb"))
"""


def test_numpy_is_enough(tmp_path, xor):
    """A fitted metric is loaded and used where no scikit-learn and no SciPy can be imported."""
    X, y = xor
    metric = SDist(max_iter=10, random_state=0).fit(X, y).metric_
    stored, answer = tmp_path / "metric.pickle", tmp_path / "answer.pickle"
    stored.write_bytes(pickle.dumps((metric, X)))
    home = str(Path(metricboost.metric.__file__).parent)
    subprocess.run(
        [sys.executable, "-c", ALONE, home, str(stored), str(answer)], check=True, timeout=60
    )
    found = pickle.loads(answer.read_bytes())
    assert_allclose(found["transform"], metric.transform(X), atol=1e-12)
    assert_allclose(found["pairs"], metric.pairwise_distance(X), atol=1e-7)
    assert_array_equal(found["importances"], metric.importances())
    assert found["names"] == [term.name for term in metric.terms]
    assert found["repr"] == repr(metric)


def test_pickling():
    """A pickled metric is the same metric."""
    metric = example()
    twin = pickle.loads(pickle.dumps(metric))
    X = np.random.default_rng(0).standard_normal((5, 3))
    assert_array_equal(twin.transform(X), metric.transform(X))
    assert twin.terms == metric.terms


def test_examples_run():
    """The examples in the docstrings are true."""
    result = doctest.testmod(metricboost.metric)
    assert result.attempted > 0
    assert result.failed == 0


# --- what a fit leaves: the same metric for the same table


@pytest.fixture(scope="module")
def xor():
    return make_xor(160, 6, informative=2, random_state=0)


def sdist(**params):
    return SDist(**{"max_iter": 15, "random_state": 0, "oob_gate": 1.0, **params})


@pytest.fixture(scope="module")
def fitted(xor):
    model = sdist().fit(*xor)
    assert model.best_iter_ > 2
    return model.metric_


def by_name(metric):
    return {term.name: term.weight for term in metric.terms}


def assert_same_metric(found, expected, names):
    """The same terms with the same weights, after ``names`` maps one table's to the other's."""
    renamed = {names(name): weight for name, weight in by_name(found).items()}
    other = by_name(expected)
    assert set(renamed) == set(other)
    for name, weight in renamed.items():
        assert_allclose(weight, other[name], rtol=1e-6, atol=1e-12)


@given(st.permutations(range(6)))
@FITTED
def test_permuted_columns(xor, fitted, order):
    """Columns go by their names wherever they stand."""
    X, y = xor
    found = sdist().fit(X[:, order], y).metric_
    found.feature_names = [f"x{j}" for j in order]
    names = {name: "*".join(sorted(name.split("*"))) for name in by_name(found)}
    assert_same_metric(found, fitted, names.__getitem__)
    assert_allclose(
        found.pair_distance(X[:80][:, order], X[80:][:, order]),
        fitted.pair_distance(X[:80], X[80:]),
        rtol=1e-6,
    )


@given(st.permutations(range(160)))
@FITTED
def test_permuted_rows(xor, order):
    """With all rows in every step their order does not matter."""
    X, y = xor
    params = {"subsample": 1.0, "max_iter": 8}
    a, b = sdist(**params).fit(X, y).metric_, sdist(**params).fit(X[order], y[order]).metric_
    assert_same_metric(b, a, str)
    assert_allclose(b.transform(X), a.transform(X), atol=1e-6)


@given(st.integers(0, 6), st.floats(-1e6, 1e6))
@FITTED
@pytest.mark.filterwarnings("ignore:Constant column")
def test_a_constant_column_added(xor, fitted, place, value):
    """It is left out, and the other columns keep their metric."""
    X, y = xor
    wider = np.insert(X, place, value, axis=1)
    found = sdist().fit(wider, y).metric_
    assert found.n_features == 7
    assert found.importances()[place] == 0
    assert_array_equal(np.delete(found.importances(), place), fitted.importances())
    assert_array_equal(found.transform(wider), fitted.transform(X))


@pytest.mark.parametrize("labels", [[1, 0], ["b", "a"], [True, False], [3.0, -3.0]])
def test_swapped_labels(xor, fitted, labels):
    """Which class is called positive does not matter to a distance."""
    X, y = xor
    found = sdist().fit(X, np.array(labels)[y]).metric_
    assert found.columns == fitted.columns
    assert_allclose(found.transform(X), fitted.transform(X), atol=1e-12)


@given(st.floats(-3, 3), st.floats(0.01, 100))
@FITTED
def test_shifted_and_scaled_columns(xor, fitted, shift, scale):
    """Units do not matter: columns are standardised inside."""
    X, y = xor
    moved = X * scale + shift
    found = sdist().fit(moved, y).metric_
    assert found.columns == fitted.columns
    assert_allclose(found.transform(moved), fitted.transform(X), atol=1e-6)


def test_a_fitted_metric_is_a_metric(xor, fitted):
    """Symmetric, positive semi-definite, triangle inequality, as for any other."""
    X = xor[0][:40]
    d = fitted.pairwise_distance(X)
    assert_allclose(d, d.T, atol=1e-9)
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-7).all()
    assert np.linalg.eigvalsh(fitted.matrix()).min() > -1e-10
    assert_allclose(d[0, 1:], fitted.pair_distance(X[[0] * 39], X[1:]), atol=1e-7)
