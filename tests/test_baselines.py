"""Tests of the baselines: optima against an independent solver, metrics, scikit-learn checks."""

from __future__ import annotations

import warnings

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from metricboost.baselines import LMNN, PGDM, BoostMetric, ComponentsMetric, SMLlp, SMLsm
from metricboost.baselines._hinge import Comparisons, HingeLoss, smoothed
from metricboost.datasets import make_xor
from metricboost.inspection import (
    EmbeddingDisplay,
    ImportanceDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
)

matplotlib.use("Agg")
SEEDS = [seed if seed < 5 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(10)]


def problem(seed, n=40, p=6, n_classes=2):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, p)), np.arange(n) % n_classes
    X[:, :2] += y[:, None]
    return X, y


def pairs(X, y):
    """Differences of all pairs of the same class, and of different classes."""
    i, j = np.triu_indices(len(X), 1)
    delta, similar = X[i] - X[j], y[i] == y[j]
    return delta[similar], delta[~similar]


def neighbours(X, y, i, k, same):
    """The k nearest rows of the own class or of the other classes, by sorting."""
    rows = np.flatnonzero((y == y[i]) == same)
    rows = rows[rows != i]
    return rows[np.argsort(((X[rows] - X[i]) ** 2).sum(axis=1), kind="stable")][:k]


def outer(differences):
    return np.einsum("ij,ik->ijk", differences, differences).reshape(len(differences), -1)


class Convex:
    """A convex problem over positive semi-definite W, solved by Clarabel."""

    def __init__(self, p):
        self.cp = pytest.importorskip("cvxpy")
        self.W = self.cp.Variable((p, p), PSD=True)

    def squared(self, differences):
        return outer(differences) @ self.cp.vec(self.W, order="C")

    def least(self, objective):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.cp.Problem(self.cp.Minimize(objective)).solve("CLARABEL")


def triplets(X, y):
    """Differences to the nearest row of the own class, and of the other classes."""
    near = [neighbours(X, y, i, 1, True)[0] for i in range(len(X))]
    far = [neighbours(X, y, i, 1, False)[0] for i in range(len(X))]
    return X - X[near], X - X[far]


# --- optima


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("diagonal", [False, True])
def test_pgdm_is_optimal(seed, diagonal):
    cp = pytest.importorskip("cvxpy")
    X, y = problem(seed, n_classes=2 + seed % 2)
    similar, dissimilar = pairs(X, y)
    scatter = similar.T @ similar
    # Maximise the sum of distances subject to scatter 1000, a scale that suits the solver.
    if diagonal:
        weights = cp.Variable(X.shape[1], nonneg=True)
        squared, total = (dissimilar**2) @ weights, np.diag(scatter) @ weights
    else:
        W = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
        squared, total = outer(dissimilar) @ cp.vec(W, order="C"), cp.trace(scatter @ W)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = cp.Problem(cp.Maximize(cp.sum(cp.sqrt(squared))), [total <= 1000]).solve("CLARABEL")
    model = PGDM(diagonal=diagonal, regularization=0).fit(X, y)
    assert model.converged_
    assert_allclose(model.objective_, 1000 / value**2, rtol=1e-4)


def lmnn_optimum(X, y, mu, impostors):
    near, far, rows = [], [], []
    for i in range(len(X)):
        targets = neighbours(X, y, i, 3, True)
        limit = ((X[targets] - X[i]) ** 2).sum(axis=1).max()
        others = neighbours(X, y, i, len(X), False)
        if impostors == "euclidean":
            others = others[((X[others] - X[i]) ** 2).sum(axis=1) <= limit]
        near.extend(X[i] - X[targets])
        for j in targets:
            far.extend(X[i] - X[others])
            rows.extend([X[i] - X[j]] * len(others))
    convex = Convex(X.shape[1])
    hinges = convex.cp.pos(1 + convex.squared(np.array(rows)) - convex.squared(np.array(far)))
    pull = convex.cp.sum(convex.squared(np.array(near)))
    return convex.least((1 - mu) * pull + mu * convex.cp.sum(hinges))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("impostors", ["all", "euclidean"])
def test_lmnn_is_optimal(seed, impostors):
    X, y = problem(seed, n_classes=2 + seed % 2)
    mu = (0.5, 0.8)[seed % 2]
    optimum = lmnn_optimum(X, y, mu, impostors)
    for solver, tol in (("matrix", 1e-5), ("factor", 1e-6)):
        model = LMNN(mu=mu, impostors=impostors, solver=solver, tol=tol, max_iter=20000).fit(X, y)
        assert model.converged_
        assert_allclose(model.objective_, optimum, rtol=1e-4)
    assert LMNN(mu=mu, impostors=impostors).fit(X, y).objective_ <= 1.03 * optimum


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rotate", [True, False])
def test_smlsm_is_optimal(seed, rotate):
    X, y = problem(seed, n_classes=2 + seed % 2)
    penalty = (0.02, 0.1, 0.3)[seed % 3]
    model = SMLsm(penalty, rotate, tol=1e-5, max_iter=20000).fit(X, y)
    convex = Convex(X.shape[1])
    near, far = triplets(X, y)
    hinges = convex.cp.pos(1 + convex.squared(near) - convex.squared(far))
    norm = (
        convex.cp.trace(convex.W) if rotate else convex.cp.sum(convex.cp.norm(convex.W, 2, axis=1))
    )
    optimum = convex.least(convex.cp.sum(hinges) + model.mu_ * norm)
    assert model.converged_
    assert_allclose(model.objective_, optimum, rtol=1e-4)


def test_the_largest_penalty_of_smlsm_is_the_least_that_leaves_nothing():
    X, y = problem(0)
    assert len(SMLsm(0.99).fit(X, y).components_) > 0
    near, far = triplets(X, y)
    gains = far.T @ far - near.T @ near
    assert_allclose(SMLsm(0.5).fit(X, y).mu_, 0.5 * np.linalg.eigvalsh(gains)[-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_smllp_over_dominant_matrices_is_optimal(seed):
    X, y = problem(seed, n_classes=2 + seed % 2)
    model = SMLlp((0.02, 0.1, 0.3)[seed % 3], form="dominant", tol=1e-6).fit(X, y)
    convex = Convex(X.shape[1])
    cp, W = convex.cp, convex.cp.Variable((6, 6), symmetric=True)
    convex.W = W
    near, far = triplets(X, y)
    hinges = cp.pos(1 + convex.squared(near) - convex.squared(far))
    dominant = [cp.sum(cp.abs(W), axis=1) <= 2 * cp.diag(W)]
    objective = cp.sum(hinges) + model.mu_ * cp.sum(cp.abs(W))
    value = cp.Problem(cp.Minimize(objective), dominant).solve("CLARABEL")
    assert model.converged_
    assert_allclose(model.objective_, value, rtol=1e-4)
    found = model.matrix()
    assert (2 * np.diag(found) - np.abs(found).sum(axis=1) >= -1e-9 * found.max()).all()
    assert_allclose(
        model.objective_,
        np.maximum(0, 1 + quadratic(near, found) - quadratic(far, found)).sum()
        + model.mu_ * np.abs(found).sum(),
        rtol=1e-6,
    )


def quadratic(differences, W):
    return np.einsum("ij,jk,ik->i", differences, W, differences)


@pytest.mark.parametrize("seed", SEEDS)
def test_smllp_meets_its_subgradient_conditions(seed):
    """0 is in the subdifferential, with a weight in [0, 1] for each comparison at the margin."""
    X, y = problem(seed, n_classes=2 + seed % 2)
    model = SMLlp(0.5, tol=1e-8, max_iter=50000).fit(X, y)
    L, mu = model.components_, model.mu_
    assert np.abs(L).max() > 0
    near, far = triplets(X, y)
    gap = 1 + ((near @ L.T) ** 2).sum(axis=1) - ((far @ L.T) ** 2).sum(axis=1)
    slopes = 2 * (
        np.einsum("tr,tj->trj", near @ L.T, near) - np.einsum("tr,tj->trj", far @ L.T, far)
    )
    slopes = slopes.reshape(len(X), -1)
    met = np.abs(gap) < 1e-4
    fixed = slopes[gap >= 1e-4].sum(axis=0) + mu * np.sign(L).ravel()
    zero = (L == 0).ravel()
    # Unknowns: the weights of the comparisons at the margin, and the signs of the zeros of L.
    matrix = np.hstack([slopes[met].T, mu * np.eye(L.size)[:, zero]])
    low = np.concatenate([np.zeros(met.sum()), -np.ones(zero.sum())])
    found = lsq_linear(matrix, -fixed, (low, np.ones(len(low))), tol=1e-12)
    assert np.abs(matrix @ found.x + fixed).max() < 1e-3 * np.abs(slopes).max()


def test_boostmetric_goes_down_and_knows_when_to_stop():
    X, y = problem(0)
    losses = [BoostMetric(max_iter=m).fit(X, y).objective_ for m in (1, 2, 4, 8)]
    assert (np.diff(losses) < 0).all()
    model = BoostMetric(penalty=0.2, max_iter=2000).fit(X, y)
    assert model.converged_
    # The stopping rule, computed from all triplets: no direction gains more than its penalty.
    W, gains, total = model.matrix(), np.zeros((6, 6)), 0.0
    for i in range(len(X)):
        for j in neighbours(X, y, i, 3, True):
            for m in neighbours(X, y, i, 3, False):
                near, far = X[i] - X[j], X[i] - X[m]
                weight = np.exp(near @ W @ near - far @ W @ far)
                gains += weight * (np.outer(far, far) - np.outer(near, near))
                total += weight
    assert np.linalg.eigvalsh(gains / total)[-1] <= model.mu_ * (1 + 1e-6)
    assert_allclose(model.objective_, np.log(total) + model.mu_ * np.trace(W))


# --- what they are made of


def test_the_smoothed_hinge():
    u = np.array([-1.0, 0.0, 0.05, 0.1, 2.0])
    assert_allclose(smoothed(u, 0.1)[1], [0, 0, 0.5, 1, 1])
    for width in (0.1, 1e-3):
        value, slope = smoothed(u, width)
        step = 1e-7
        for i in range(len(u)):
            ahead, behind = u.copy(), u.copy()
            ahead[i] += step
            behind[i] -= step
            numeric = (smoothed(ahead, width)[0] - smoothed(behind, width)[0]) / (2 * step)
            assert abs(numeric - slope[i]) < 1e-3
        hinge = smoothed(u, 0.0)[0]
        assert hinge - width / 2 * len(u) <= value <= hinge


@pytest.mark.parametrize("n_pairs", [30, 600])
def test_gradients_of_the_hinge_loss(n_pairs):
    """Gradients are right for few pairs (by differences) and many pairs (by products)."""
    random = np.random.default_rng(0)
    X, targets = random.normal(size=(40, 5)), random.integers(0, 40, size=(40, 2))
    comparisons = Comparisons(targets, *random.integers(0, 40, size=(2, n_pairs)))
    loss = HingeLoss(X, comparisons, 0.3, 0.7)
    L, direction = random.normal(size=(3, 5)), random.normal(size=(3, 5))
    value, gradient = loss.of_factor(L, 0.5)
    step = 1e-6
    ahead, behind = (loss.of_factor(L + s * direction, 0.5)[0] for s in (step, -step))
    assert_allclose((ahead - behind) / (2 * step), (gradient * direction).sum(), rtol=1e-6)
    of_W, by_W = loss.of_matrix(L.T @ L, 0.5)
    assert_allclose(of_W, value)
    assert_allclose(2 * L @ by_W, gradient, rtol=1e-8)


def test_impostors_that_come_later_are_found():
    """The objective is that of all triplets, including impostors found in later rounds."""
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = LMNN(tol=1e-4).fit(X, y)
    total = 0.0
    E = model.transform(X)
    for i in range(len(X)):
        targets, others = neighbours(X, y, i, 3, True), np.flatnonzero(y != y[i])
        near = ((E[targets] - E[i]) ** 2).sum(axis=1)
        far = ((E[others] - E[i]) ** 2).sum(axis=1)
        total += 0.5 * near.sum() + 0.5 * np.maximum(0, 1 + near[:, None] - far).sum()
    assert_allclose(model.objective_, total, rtol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_low_rank_goes_down(seed):
    """Rounds do not cycle: pairs of earlier rounds are kept."""
    X, y = problem(seed, n=60)
    rough = LMNN(n_components=2, tol=0.1).fit(X, y)
    fine = LMNN(n_components=2, tol=1e-4, max_iter=5000).fit(X, y)
    assert fine.converged_
    assert fine.objective_ <= rough.objective_ * 1.001


def test_as_many_components_as_columns_are_no_restriction():
    X, y = problem(0, p=2)
    full, same = LMNN(tol=1e-4).fit(X[:, :1], y), LMNN(n_components=1, tol=1e-4).fit(X[:, :1], y)
    assert_allclose(same.objective_, full.objective_)


def test_the_convex_form_agrees_where_rows_are_few():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 50)), np.arange(20) % 2
    assert LMNN(solver="matrix", tol=1e-3, max_iter=5000).fit(X, y).objective_ < 1e-3 * 300
    assert LMNN().fit(X, y).objective_ < 1e-3 * 300


@pytest.mark.parametrize("seed", range(6))
def test_columns_of_very_different_scales(seed):
    X, y = problem(seed, n=60)
    X = X * 10.0 ** np.arange(-2, 4)
    best = LMNN(tol=1e-6, max_iter=20000).fit(X, y).objective_
    assert LMNN().fit(X, y).objective_ < 1.05 * best


@pytest.mark.parametrize("model", [SMLlp(), SMLlp(n_components=2), SMLsm(), SMLsm(rotate=False)])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_the_components(model, seed):
    X, y = problem(seed, n_classes=2 + seed)
    model = clone(model).fit(100 + 7 * X, y)
    L, W = model.components_, model.matrix()
    near, far = triplets(7 * X, y)
    hinges = np.maximum(0, 1 + quadratic(near, W) - quadratic(far, W)).sum()
    norm = np.abs(L).sum() if isinstance(model, SMLlp) else np.trace(W)
    if model.get_params().get("rotate") is False:
        norm = np.sqrt((W**2).sum(axis=1)).sum()
    assert_allclose(model.objective_, hinges + model.mu_ * norm, rtol=1e-6)


# --- penalties


def test_rank_falls_with_the_penalty_of_smlsm():
    X, y = load_wine(return_X_y=True)
    models = [SMLsm(penalty).fit(scale(X), y) for penalty in (0.003, 0.03, 0.3, 0.9)]
    ranks = [np.linalg.matrix_rank(model.matrix()) for model in models]
    assert_array_equal(ranks, [len(model.components_) for model in models])
    assert (np.diff(ranks) <= 0).all()
    assert ranks[0] > ranks[-1] >= 1
    assert (models[-1].components_ != 0).all()  # the rank is low, but all columns are used


def test_columns_fall_with_the_penalty_of_smlsm_without_rotation():
    X, y = load_wine(return_X_y=True)
    models = [SMLsm(penalty, rotate=False).fit(scale(X), y) for penalty in (0.01, 0.1, 0.3)]
    columns = [int((model.matrix() != 0).any(axis=0).sum()) for model in models]
    assert (np.diff(columns) <= 0).all()
    assert 13 >= columns[0] > columns[-1] >= 1
    assert_array_equal([len(model.metric_.columns) for model in models], columns)


@pytest.mark.parametrize("form", ["factor", "dominant"])
def test_entries_fall_with_the_penalty_of_smllp(form):
    X, y = load_wine(return_X_y=True)
    models = [SMLlp(penalty, form).fit(scale(X), y) for penalty in (0.01, 0.1, 0.3, 0.6)]
    entries = [int((model.components_ != 0).sum()) for model in models]
    assert (np.diff(entries) < 0).all()
    assert entries[-1] > 0


# --- metrics


def test_pgdm_keeps_its_constraint():
    X, y = problem(0, n=60, n_classes=3)
    for diagonal in (False, True):
        for constraint in ("distance", "squared"):
            model = PGDM(diagonal, constraint, regularization=0).fit(X, y)
            similar, dissimilar = pairs(X, y)
            zeros = np.zeros_like
            apart = model.pair_distance(dissimilar, zeros(dissimilar))
            assert_allclose((apart if constraint == "distance" else apart**2).sum(), 1.0)
            within = (model.pair_distance(similar, zeros(similar)) ** 2).sum()
            assert_allclose(within, model.objective_)
            if diagonal:
                W = model.matrix()
                assert_allclose(W, np.diag(np.diag(W)), atol=1e-15)


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


MODELS = [
    PGDM(),
    PGDM(diagonal=True),
    PGDM(constraint="squared"),
    LMNN(),
    LMNN(impostors="euclidean"),
    LMNN(solver="matrix"),
    LMNN(n_components=2, tol=1e-4),
    LMNN(init="random", random_state=0, tol=1e-4),
    SMLsm(),
    SMLsm(rotate=False),
    SMLlp(tol=1e-5),
    SMLlp(form="dominant"),
    SMLlp(n_components=2, tol=1e-5),
    BoostMetric(max_iter=10),
    ComponentsMetric(NeighborhoodComponentsAnalysis(n_components=2, random_state=0)),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_it_is_a_metric(model):
    X, y = load_iris(return_X_y=True)
    model = clone(model).fit(X, y)
    W = model.matrix()
    assert_allclose(W, W.T)
    assert np.linalg.eigvalsh(W).min() >= -1e-10 * np.abs(W).max()
    assert np.abs(W).max() > 0
    assert_allclose(model.transform(X[:5]), X[:5] @ model.components_.T)
    distances = np.linalg.norm(model.transform(X[:5]) - model.transform(X[5:10]), axis=1)
    assert_allclose(model.pair_distance(X[:5], X[5:10]), distances)
    assert_allclose(model.metric_.pair_distance(X[:5], X[5:10]), distances, rtol=1e-6)
    assert_allclose(model.get_metric()(X[0], X[5]), distances[0])
    name = type(model).__name__.lower()
    assert next(iter(model.get_feature_names_out())) == f"{name}0"
    assert model.n_iter_ >= 1
    assert isinstance(model.converged_, bool)
    assert np.isfinite(model.objective_) or isinstance(model, ComponentsMetric)


OWN = [model for model in MODELS if not isinstance(model, ComponentsMetric)]


@pytest.mark.parametrize("model", OWN, ids=str)
def test_the_order_of_the_rows_does_not_matter(model):
    # No two rows of wine are equal. Ties would be broken by the order of the rows.
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    W = clone(model).fit(X, y).matrix()
    order = np.random.default_rng(0).permutation(len(X))
    again = clone(model).fit(X[order], y[order]).matrix()
    assert np.linalg.norm(again - W) < 0.02 * np.linalg.norm(W)


def test_a_random_start_leads_to_the_same_metric_where_the_problem_is_convex():
    X, y = problem(3)
    a, b = (LMNN(init="random", random_state=s, tol=1e-6).fit(X, y) for s in (0, 1))
    assert_allclose(a.objective_, b.objective_, rtol=1e-4)


def test_they_can_be_exchanged():
    for kind in (PGDM, LMNN, SMLsm, SMLlp, BoostMetric):
        assert {"max_iter", "random_state", "verbose"} <= set(kind().get_params())


def test_they_help_nearest_neighbours():
    """Wine with ten noise columns: the 3-NN error is 15%, and 3 to 10% with the metrics."""
    X, y = load_wine(return_X_y=True)
    X = np.hstack([scale(X), 2 * np.random.default_rng(0).normal(size=(len(X), 10))])
    plain = cross_val_score(KNeighborsClassifier(3), X, y).mean()
    for model in (PGDM(), LMNN(), SMLsm(), SMLsm(rotate=False), SMLlp(0.3), BoostMetric()):
        learned = make_pipeline(model, KNeighborsClassifier(3))
        assert cross_val_score(learned, X, y).mean() > plain + 0.02


# --- edges


@pytest.mark.parametrize(
    "model", [PGDM(regularization=1e-3), LMNN(), SMLsm(), SMLlp(), BoostMetric()], ids=str
)
def test_more_columns_than_rows(model):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 60)), np.arange(30) % 2
    model = clone(model).fit(X, y)
    assert np.isfinite(model.matrix()).all()
    assert model.matrix().any()


@pytest.mark.parametrize("model", OWN, ids=str)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units(model, unit):
    X, y = problem(2)
    model = clone(model)
    plain = KNeighborsClassifier(1).fit(model.fit(X, y).transform(X), y)
    before = plain.kneighbors(return_distance=False)
    model.fit(X * unit, y)
    after = KNeighborsClassifier(1).fit(model.transform(X * unit), y)
    assert np.isfinite(model.matrix()).all()
    same = np.mean(after.kneighbors(return_distance=False) == before)
    assert same > 0.9


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_equal_rows_of_different_classes(model):
    X, y = problem(2)
    X[1] = X[0]
    assert np.isfinite(clone(model).fit(X, y).matrix()).all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_constant_column_and_a_copied_one(model):
    X, y = problem(2)
    X[:, 4], X[:, 5] = 1.0, X[:, 0]
    assert np.isfinite(clone(model).fit(X, y).matrix()).all()


def test_a_class_of_two_rows():
    X, y = problem(2)
    y = np.where(np.arange(40) < 2, 1, 0)
    for model in (PGDM(), LMNN(), SMLsm(), SMLlp(), BoostMetric()):
        assert np.isfinite(clone(model).fit(X, y).matrix()).all()


def test_a_penalty_that_leaves_nothing_says_so():
    X, y = problem(0)
    with pytest.warns(UserWarning, match="learned the zero metric: all distances are zero"):
        model = SMLlp(1.01, form="dominant").fit(X, y)
    assert model.transform(X).shape == (40, 0)
    assert_array_equal(model.pair_distance(X, X[::-1]), np.zeros(40))


def test_zero_where_a_penalty_is_too_large_for_the_factor():
    X, y = problem(0)
    with pytest.warns(UserWarning, match="learned the zero metric"):
        model = SMLlp(3.0).fit(X, y)
    assert model.objective_ == len(X)


def opposite_twins():
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 5))
    return np.vstack([X, X]), np.repeat([0, 1], 20)


def test_nothing_to_gain():
    """Every row has an equal row in the other class, so the zero metric is optimal."""
    X, y = opposite_twins()
    for model in (SMLsm(), SMLsm(rotate=False), SMLlp(), SMLlp(form="dominant")):
        with pytest.warns(UserWarning, match="learned the zero metric"):
            assert model.fit(X, y).objective_ <= len(X)
    random = np.random.default_rng(21)
    binary = random.integers(0, 2, size=(60, 5)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for model in (SMLsm(), SMLsm(rotate=False), SMLlp(), SMLlp(form="dominant")):
            assert np.isfinite(model.fit(binary, np.arange(60) % 2).matrix()).all()


def test_boosting_where_steps_gain_nothing_but_rounding():
    random = np.random.default_rng(0)
    model = BoostMetric(penalty=0.0, max_iter=3000)
    model.fit(random.integers(0, 3, size=(30, 4)), np.arange(30) % 2)
    assert np.isfinite(model.matrix()).all()
    X, y = opposite_twins()
    wide = np.hstack([X] * 14)
    assert np.isfinite(BoostMetric().fit(wide, y).matrix()).all()


def test_boosting_does_not_depend_on_the_seed():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 70)), np.arange(100) % 2
    a, b = (BoostMetric(max_iter=30, random_state=s).fit(X, y).matrix() for s in (0, 1))
    assert np.linalg.norm(a - b) < 1e-4 * np.linalg.norm(a)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_constant_table_is_refused(model):
    with pytest.raises(ValueError, match="All rows of X are equal"):
        clone(model).fit(np.ones((20, 3)), np.arange(20) % 2)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("constraint", ["distance", "squared"])
def test_pgdm_without_regularization_says_what_it_needs(diagonal, constraint):
    X, y = problem(0)
    X[:, 3] = 1.0
    with pytest.raises(ValueError, match="Set regularization above 0"):
        PGDM(diagonal, constraint, regularization=0).fit(X, y)


def test_a_program_beyond_its_precision_ends():
    X, y = problem(0)
    X[:, 2] *= 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SMLlp(form="dominant").fit(X, y)
    assert model.n_iter_ < 100


def test_too_few_iterations_are_said():
    X, y = load_wine(return_X_y=True)
    for model in (PGDM(max_iter=2), LMNN(max_iter=2), SMLsm(max_iter=2), SMLlp(max_iter=2)):
        with pytest.warns(ConvergenceWarning, match="did not converge in"):
            assert not model.fit(scale(X), y).converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # There is no warning, because max_iter is the chosen number of steps.
        BoostMetric(max_iter=2).fit(scale(X), y)


def test_options_that_exclude_each_other():
    X, y = problem(0)
    with pytest.raises(ValueError, match='cannot be used with solver="matrix"'):
        LMNN(solver="matrix", n_components=2).fit(X, y)
    with pytest.raises(ValueError, match='cannot be used with form="dominant"'):
        SMLlp(form="dominant", n_components=2).fit(X, y)


def test_the_adapter_says_what_it_cannot_take():
    X, y = problem(0)
    with pytest.raises(TypeError, match="KNeighborsClassifier has no attribute components_"):
        ComponentsMetric(KNeighborsClassifier()).fit(X, y)
    scaled = make_pipeline(StandardScaler(), PCA(2))
    with pytest.raises(TypeError, match="Pipeline has no attribute components_"):
        ComponentsMetric(scaled).fit(X, y)
    with pytest.raises(ValueError, match="transform of PCA does more than multiply by components_"):
        ComponentsMetric(PCA(2, whiten=True)).fit(X, y)
    pca = ComponentsMetric(PCA(2)).fit(X, y)
    assert_allclose(pca.components_, PCA(2).fit(X).components_)
    assert pca.converged_


def test_the_pictures_are_drawn():
    import pandas as pd

    frame = pd.DataFrame(load_iris().data, columns=["sl", "sw", "pl", "pw"])
    y = load_iris().target
    for model in (SMLsm(rotate=False), LMNN(), ComponentsMetric(PCA(2))):
        model.fit(frame, y)
        assert len(EmbeddingDisplay.from_estimator(model, frame, y).coordinates) == 150
        assert MetricMatrixDisplay.from_estimator(model).names
        variables = ImportanceDisplay.from_estimator(model).variables
        assert variables[0].name in frame.columns
        with pytest.raises(TypeError, match="which has no path"):
            PathDisplay.from_estimator(model)
        with pytest.raises(TypeError, match="which has no predict_proba"):
            SurfaceDisplay.from_estimator(model, frame)
        matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    "model", [PGDM(verbose=1), LMNN(verbose=1), SMLsm(verbose=1), SMLlp(verbose=1),
              BoostMetric(verbose=1)],
    ids=str,
)  # fmt: skip
def test_progress(model, capsys):
    model.fit(*problem(0))
    assert f"{type(model).__name__} [" in capsys.readouterr().err


@parametrize_with_checks(
    [
        PGDM(max_iter=20),
        PGDM(diagonal=True, max_iter=20),
        LMNN(),
        SMLsm(),
        SMLlp(),
        BoostMetric(max_iter=5),
        ComponentsMetric(PCA(1)),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "model", [SMLsm(penalty=0.1, tol=1e-4), PGDM(regularization=0.5)], ids=["SMLsm", "PGDM"]
)
def test_a_wide_table_is_learned_in_the_span_of_its_rows(model, monkeypatch):
    X, y = make_xor(30, 60, random_state=0)
    narrow = clone(model).fit(X, y)
    assert len(narrow.components_) < 30
    for room in ("_smlsm", "_pgdm"):
        monkeypatch.setattr(f"metricboost.baselines.{room}.in_its_span", lambda solve, X: solve(X))
    full = clone(model).fit(X, y)
    assert narrow.objective_ == pytest.approx(full.objective_, rel=1e-3)
    distances = [pairwise_distances(one.transform(X)) for one in (narrow, full)]
    assert np.corrcoef(distances[0].ravel(), distances[1].ravel())[0, 1] > 0.999
