"""``SparseMetric``: that it is a metric, its matrix, names and importances, and what fits leave."""

from __future__ import annotations

import doctest
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

import metricboost
from metricboost import MetricTerm, SDist, SparseMetric
from metricboost.datasets import make_xor
from metricboost.model import metric as metric_module

PROPERTY = settings(max_examples=60, deadline=None)
FITTED = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def metrics(draw):
    """A random metric: a few columns, terms up to degree 3, a factor and often a diagonal."""
    n_features, n_terms = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    column = st.integers(0, n_features - 1)
    terms = draw(
        st.lists(
            st.lists(column, min_size=1, max_size=3).map(lambda term: tuple(sorted(term))),
            min_size=n_terms, max_size=n_terms,
        )
    )  # fmt: skip
    rng = np.random.default_rng(draw(SEEDS))
    weighted = draw(st.lists(st.booleans(), min_size=n_terms, max_size=n_terms))
    n_components = draw(st.integers(0 if any(weighted) else 1, 5))
    return SparseMetric(
        terms,
        rng.standard_normal((n_components, n_terms)),
        rng.standard_normal(n_features),
        rng.uniform(0.2, 5, n_features),
        rng.standard_normal(n_terms),
        rng.uniform(0.2, 5, n_terms),
        diagonal=rng.uniform(0.1, 3, n_terms) * weighted if draw(st.booleans()) or not n_components
        else None,
    )  # fmt: skip


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
    """Each centred and scaled again; the embedding is linear in them, the factor first."""
    X = rows_for(metric, seed)
    standard = (X - metric.center) / metric.scale
    raw = np.stack([np.prod([standard[:, j] for j in t], axis=0) for t in metric.columns], axis=1)
    expected = (raw - metric.term_center) / metric.term_scale
    assert_allclose(metric.term_features(X), expected, atol=1e-9)
    weighted = metric.diagonal > 0
    alone = expected[:, weighted] * np.sqrt(metric.diagonal[weighted])
    embedding = np.hstack([expected @ metric.components.T, alone])
    assert_allclose(metric.transform(X), embedding, atol=1e-8)
    assert metric.rank == embedding.shape[1]


def test_close_rows_far_from_the_origin():
    """A small distance between large embeddings is not lost in rounding."""
    metric = SparseMetric([(0,)], [[1.0]], [0.0], [1.0], [0.0], [1.0])
    X = np.array([[1e6], [1e6 + 1e-3], [1e6 + 3e-3]])
    expected = np.abs(X - X.T)
    assert_allclose(metric.pairwise_distance(X), expected, rtol=1e-5)
    assert_allclose(metric.pairwise_distance(X, X), expected, rtol=1e-5)


# --- the diagonal


DIAGONAL = [0.0, 0.25, 0.0, 4.0]


def test_diagonal_by_hand():
    """It adds to W, to the weights, to the importances and to the dimensions."""
    metric = example(diagonal=DIAGONAL)
    assert_array_equal(metric.matrix(), example().matrix() + np.diag(DIAGONAL))
    assert metric.rank == 4
    assert by_name(metric) == {"age": 9, "age*income^2": 5, "income^2": 4.25, "income": 1.25}
    assert_allclose(metric.importances(), np.array([11.5, 8.0, 0.0]) / 19.5)
    assert repr(metric) == "SparseMetric(rank=4, n_terms=4, variables=2 of 3)"


def test_a_diagonal_of_zeros_changes_nothing():
    """Nor does it add dimensions."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    assert_array_equal(example(diagonal=np.zeros(4)).transform(X), example().transform(X))


def test_diagonal_alone():
    """A factor without rows: weighted Euclidean distances."""
    metric = example(components=np.empty((0, 4)), diagonal=DIAGONAL)
    X = np.random.default_rng(0).standard_normal((6, 3))
    gaps = metric.term_features(X[:3]) - metric.term_features(X[3:])
    assert_allclose(metric.pair_distance(X[:3], X[3:]), np.sqrt(gaps**2 @ DIAGONAL))
    assert [term.weight for term in metric.terms] == list(DIAGONAL)


def test_neither_factor_nor_diagonal():
    """All rows are alike."""
    metric = example(components=np.empty((0, 4)))
    X = np.random.default_rng(0).standard_normal((4, 3))
    assert metric.transform(X).shape == (4, 0)
    assert_array_equal(metric.pairwise_distance(X), np.zeros((4, 4)))
    assert_array_equal(metric.kernel(X, gamma=1.0), np.ones((4, 4)))


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf])
def test_diagonals_that_make_no_metric(value):
    """The value is named."""
    with pytest.raises(ValueError, match=f"diagonal.*{value}"):
        example(diagonal=[1.0, value, 0.0, 0.0])


def wide(n_columns):
    constants = np.zeros(n_columns), np.ones(n_columns), np.zeros(n_columns), np.ones(n_columns)
    columns = [(j,) for j in range(n_columns)]
    return SparseMetric(columns, np.empty((0, n_columns)), *constants, diagonal=np.ones(n_columns))


def test_the_identity_over_many_columns_needs_little_memory():
    """W would have 800 MB: all but ``matrix`` does without it."""
    X = np.random.default_rng(0).standard_normal((20, 10_000))
    tracemalloc.start()
    metric = wide(10_000)
    found = metric.pairwise_distance(X)
    assert len(metric.terms) == metric.rank == 10_000
    assert_allclose(metric.importances(), 1e-4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert_allclose(found[0], np.linalg.norm(X[0] - X, axis=1), atol=1e-6)


# --- the kernel


@given(metrics(), SEEDS, st.floats(1e-3, 10))
@PROPERTY
def test_kernel_formula(metric, seed, gamma):
    """exp(-gamma d^2) for the d of the metric, symmetric, with ones at i, i."""
    X, Y = rows_for(metric, seed), rows_for(metric, seed + 1, n_rows=4)
    gaps = metric.transform(X)[:, None] - metric.transform(Y)
    expected = np.exp(-gamma * (gaps**2).sum(axis=2))
    atol = 1e-12 * gamma * (1 + np.abs(metric.transform(np.vstack([X, Y]))).max() ** 2)
    assert_allclose(metric.kernel(X, Y, gamma), expected, atol=atol)
    own = metric.kernel(X, gamma=gamma)
    assert_array_equal(own, own.T)
    assert_array_equal(np.diag(own), 1.0)
    assert_allclose(own, metric.kernel(X, X.copy(), gamma), atol=atol)


@given(metrics(), SEEDS)
@PROPERTY
def test_kernel_is_positive_semi_definite(metric, seed):
    """Also for rows that are there twice."""
    X = rows_for(metric, seed)
    X = np.vstack([X, X[:3]])
    own = metric.kernel(X, gamma=metric.median_gamma(X))
    assert np.linalg.eigvalsh(own).min() > -1e-9


def test_kernel_width():
    """The metric's own, unless one is given; with neither, what to do."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    metric = example(gamma=0.5)
    assert metric.gamma == 0.5
    assert_array_equal(metric.kernel(X), example().kernel(X, gamma=0.5))
    assert_array_equal(metric.kernel(X, gamma=2.0), example().kernel(X, gamma=2.0))
    with pytest.raises(ValueError, match=r"gamma=.*fitted estimator"):
        example().kernel(X)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
def test_impossible_kernel_widths(gamma):
    """When the metric is made and when the kernel is computed."""
    with pytest.raises(ValueError, match=f"gamma={gamma}"):
        example(gamma=gamma)
    with pytest.raises(ValueError, match=f"gamma={gamma}"):
        example().kernel(np.zeros((2, 3)), gamma=gamma)


def test_kernel_in_other_models():
    """A support vector machine takes it as it is, kernel ridge regression its values."""
    X = np.random.default_rng(0).standard_normal((120, 3))
    metric = example(diagonal=DIAGONAL)
    metric = example(diagonal=DIAGONAL, gamma=metric.median_gamma(X))
    target = X[:, 0] + X[:, 1] ** 2
    machine = SVC(kernel=metric.kernel).fit(X[:80], target[:80] > 1)
    twin = SVC(kernel="rbf", gamma=metric.gamma).fit(metric.transform(X[:80]), target[:80] > 1)
    assert_allclose(
        machine.decision_function(X[80:]), twin.decision_function(metric.transform(X[80:])),
        atol=0.01,  # its solver stops at 0.001
    )  # fmt: skip
    ridge = KernelRidge(kernel="precomputed", alpha=1e-2).fit(metric.kernel(X[:80]), target[:80])
    assert ridge.score(metric.kernel(X[:80]), target[:80]) > 0.9
    assert np.isfinite(ridge.predict(metric.kernel(X[80:], X[:80]))).all()


@given(metrics(), SEEDS)
@PROPERTY
def test_median_rule(metric, seed):
    """One over the median squared distance between different rows, however often they occur."""
    X = rows_for(metric, seed)
    squared = metric.pairwise_distance(X)[np.triu_indices(len(X), 1)] ** 2
    assert_allclose(metric.median_gamma(X), 1 / np.median(squared), rtol=1e-6)
    assert metric.median_gamma(np.repeat(X[:1], 40, axis=0)) == 1.0
    twice = metric.median_gamma(np.repeat(X[:2], 20, axis=0))
    assert_allclose(twice, 1 / metric.pair_distance(X[:1], X[1:2]) ** 2, rtol=1e-6)


def test_median_rule_on_many_rows():
    """Evenly spaced rows, the first and the last among them, and the same ones every time."""
    X = np.random.default_rng(0).standard_normal((31, 3))
    found = example().median_gamma(X, max_rows=11)
    assert found == example().median_gamma(X[::3]) == example().median_gamma(X, max_rows=11)
    assert found != example().median_gamma(X)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_median_rule_without_pairs(n_rows):
    """No distance, no width."""
    assert example().median_gamma(np.ones((n_rows, 3))) == 1.0
    with pytest.raises(ValueError, match="max_rows=1"):
        example().median_gamma(np.ones((3, 3)), max_rows=1)


# --- names, weights, importances


def test_terms_are_named_and_ordered():
    """In the order of ``columns``; powers with a caret, columns in their order."""
    metric = example()
    assert metric.terms == [
        MetricTerm("age", (0,), 9.0),
        MetricTerm("income", (1,), 1.0),
        MetricTerm("age*income^2", (0, 1, 1), 5.0),
        MetricTerm("income^2", (1, 1), 0.25),
    ]
    assert metric.get_feature_names_out().tolist() == [term.name for term in metric.terms]


def test_terms_features_and_matrix_have_one_order():
    """Naming the columns of ``term_features`` by ``terms`` names them rightly: a fitted metric."""
    X, y = make_xor(200, 8, informative=2, random_state=0)
    metric = SDist(max_iter=20, random_state=0).fit(X, y).metric_
    standard = np.clip((X - metric.center) / metric.scale, -metric.clip, metric.clip)
    assert len(metric.terms) > 2
    for i, term in enumerate(metric.terms):
        product = standard[:, list(term.columns)].prod(axis=1)
        found = metric.term_features(X)[:, i]
        assert_allclose(found, (product - metric.term_center[i]) / metric.term_scale[i], atol=1e-12)
        assert_allclose(metric.matrix()[i, i], term.weight)
    weights = [term.weight for term in metric.terms]
    assert weights == sorted(weights, reverse=True)


def test_names_do_not_depend_on_the_order_within_a_term():
    """(1, 0, 1) is the same monomial as (0, 1, 1)."""
    metric = example(columns=[(0,), (1,), (1, 0, 1), (1, 1)])
    assert metric.terms[2].name == "age*income^2"


def test_default_names():
    """Columns without names are x0, x1, ..."""
    assert [term.name for term in example(feature_names=None).terms][:2] == ["x0", "x1"]


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
    assert [term.columns for term in metric.terms] == metric.columns
    assert_allclose([term.weight for term in metric.terms], np.diag(metric.matrix()))
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
        {"diagonal": np.ones(3)},
        {"diagonal": np.ones((4, 4))},
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


def test_no_terms():
    """A metric of nothing: one dimension of zeros for each row of its factor."""
    metric = SparseMetric([], np.empty((1, 0)), np.zeros(3), np.ones(3), [], [])
    assert metric.term_features(np.ones((2, 3))).shape == (2, 0)
    assert_array_equal(metric.transform(np.ones((2, 3))), np.zeros((2, 1)))


def test_lists_are_tables_too():
    """Anything array-like, also of integers."""
    X = [[1, 2, 3], [4, 5, 6]]
    assert_array_equal(example().transform(X), example().transform(np.array(X, dtype=float)))


# --- alone


ALONE = """
import sys, types
for name in ("sklearn", "scipy", "pandas", "joblib"):
    sys.modules[name] = None  # an import of it fails
# The __init__ of a package brings more than the metric: estimators, readouts, the checks of tables.
for name in ("metricboost", "metricboost.model", "metricboost.inputs"):
    package = types.ModuleType(name)
    package.__path__ = ["/".join([sys.argv[1], *name.split(".")[1:]])]
    sys.modules[name] = package
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
    home = str(Path(metricboost.__file__).parent)
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
    metric = example(diagonal=DIAGONAL, gamma=0.5)
    twin = pickle.loads(pickle.dumps(metric))
    X = np.random.default_rng(0).standard_normal((5, 3))
    assert_array_equal(twin.transform(X), metric.transform(X))
    assert_array_equal(twin.kernel(X), metric.kernel(X))
    assert twin.terms == metric.terms


def test_examples_run():
    """The examples in the docstrings are true."""
    result = doctest.testmod(metric_module)
    assert result.attempted > 0
    assert result.failed == 0


# --- what a fit leaves: the same metric for the same table


@pytest.fixture(scope="module")
def xor():
    return make_xor(160, 6, informative=2, random_state=0)


def sdist(**params):
    short = {"max_iter": 15, "n_averaged": 2, "oob_gate": 1.0, "n_nonzero": 4, "random_state": 0}
    return SDist(**{**short, **params})


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
    """With all rows in every step, and no folds, their order does not matter."""
    X, y = xor
    params = {"subsample": 1.0, "max_iter": 8, "n_averaged": 1}
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
