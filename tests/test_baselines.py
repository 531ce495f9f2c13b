"""The paper's rivals: optimal by an independent solver, metrics, and at home in scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricboost.baselines import PGDM


def problem(seed, n=40, p=6, n_classes=2):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, p)), np.arange(n) % n_classes
    X[:, :2] += y[:, None]
    return X, y


def pairs(X, y):
    """Differences of similar pairs, and of dissimilar ones."""
    i, j = np.triu_indices(len(X), 1)
    delta, similar = X[i] - X[j], y[i] == y[j]
    return delta[similar], delta[~similar]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("diagonal", [False, True])
def test_pgdm_is_optimal(seed, diagonal):
    cp = pytest.importorskip("cvxpy")
    X, y = problem(seed, n_classes=2 + seed % 2)
    similar, dissimilar = pairs(X, y)
    scatter = similar.T @ similar
    # The largest sum of distances where the scatter is 1000: a scale that the solver likes.
    if diagonal:
        weights = cp.Variable(X.shape[1], nonneg=True)
        squared, total = (dissimilar**2) @ weights, np.diag(scatter) @ weights
    else:
        W = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
        outer = np.einsum("ij,ik->ijk", dissimilar, dissimilar).reshape(len(dissimilar), -1)
        squared, total = outer @ cp.vec(W, order="C"), cp.trace(scatter @ W)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = cp.Problem(cp.Maximize(cp.sum(cp.sqrt(squared))), [total <= 1000]).solve("CLARABEL")
    model = PGDM(diagonal=diagonal, regularization=0).fit(X, y)
    assert model.converged_
    assert_allclose(model.objective_, 1000 / value**2, rtol=1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("constraint", ["distance", "squared"])
def test_pgdm_keeps_its_constraint(diagonal, constraint):
    X, y = problem(0, n=60, n_classes=3)
    model = PGDM(diagonal, constraint, regularization=0).fit(X, y)
    similar, dissimilar = pairs(X, y)
    zeros = np.zeros_like
    apart = model.pair_distance(dissimilar, zeros(dissimilar))
    assert_allclose((apart if constraint == "distance" else apart**2).sum(), 1.0)
    assert_allclose((model.pair_distance(similar, zeros(similar)) ** 2).sum(), model.objective_)
    if diagonal:
        assert_allclose(model.matrix(), np.diag(np.diag(model.matrix())), atol=1e-15)


def test_the_squared_constraint_gives_the_best_single_direction():
    X, y = problem(1)
    model = PGDM(constraint="squared", regularization=0).fit(X, y)
    assert model.components_.shape == (1, 6)
    similar, dissimilar = pairs(X, y)
    directions = np.random.default_rng(0).normal(size=(2000, 6))
    ratio = ((similar @ directions.T) ** 2).sum(axis=0) / ((dissimilar @ directions.T) ** 2).sum(
        axis=0
    )
    assert model.objective_ <= ratio.min()


MODELS = [PGDM(), PGDM(diagonal=True), PGDM(constraint="squared")]


@pytest.mark.parametrize("model", MODELS)
def test_it_is_a_metric(model):
    X, y = load_iris(return_X_y=True)
    W = model.fit(X, y).matrix()
    assert_allclose(W, W.T)
    assert np.linalg.eigvalsh(W).min() >= -1e-10 * np.abs(W).max()
    assert np.abs(W).max() > 0
    assert_allclose(model.transform(X[:5]), X[:5] @ model.components_.T)
    distances = np.linalg.norm(model.transform(X[:5]) - model.transform(X[5:10]), axis=1)
    assert_allclose(model.pair_distance(X[:5], X[5:10]), distances)
    assert_allclose(model.get_metric()(X[0], X[5]), distances[0])
    assert next(iter(model.get_feature_names_out())) == "pgdm0"


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_the_rows_does_not_matter(model):
    X, y = load_iris(return_X_y=True)
    W = model.fit(X, y).matrix()
    order = np.random.default_rng(0).permutation(len(X))
    assert_allclose(
        model.fit(X[order], y[order]).matrix(), W, rtol=1e-3, atol=1e-3 * np.abs(W).max()
    )


def test_more_columns_than_rows():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 60)), np.arange(30) % 2
    model = PGDM(regularization=1e-3).fit(X, y)
    assert np.isfinite(model.matrix()).all()


def test_equal_rows_of_different_classes():
    X, y = problem(2)
    X[1] = X[0]
    assert np.isfinite(PGDM().fit(X, y).matrix()).all()


def test_progress(capsys):
    PGDM(verbose=1).fit(*problem(0))
    assert "PGDM [" in capsys.readouterr().err


@parametrize_with_checks([PGDM(max_iter=20), PGDM(diagonal=True, max_iter=20)])
def test_estimator_checks(estimator, check):
    check(estimator)
