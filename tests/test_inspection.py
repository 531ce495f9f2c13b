"""Explanations: shares sum to 1, and contributions sum to squared distances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from metricboost import SDist, SDistClassifier, SDistClassifierCV, SparseMetric, load
from metricboost.datasets import make_xor
from metricboost.inputs import Imputation
from metricboost.inspection import contributions, explain_model, explain_rows


def random_metric(seed, n_features=8, n_terms=12, clip=None, imputation=None):
    random = np.random.default_rng(seed)
    n_columns = n_features + (0 if imputation is None else len(imputation.indicators))
    terms = {
        tuple(sorted(random.integers(0, n_columns, random.integers(1, 4)))) for _ in range(n_terms)
    }
    terms = sorted(terms)
    n = len(terms)
    return SparseMetric(
        terms, random.normal(size=(3, n)), random.normal(size=n_columns),
        random.uniform(0.5, 2, n_columns), random.normal(size=n), random.uniform(0.5, 2, n),
        diagonal=random.uniform(0, 1, n) * (random.random(n) < 0.5), clip=clip,
        imputation=imputation,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("clip", [None, 1.5])
def test_contributions_sum_to_the_squared_distance(seed, clip):
    imputation = Imputation(np.zeros(8), (1, 4)) if seed % 2 else None
    metric = random_metric(seed, clip=clip, imputation=imputation)
    random = np.random.default_rng(100 + seed)
    X, Y = random.normal(size=(2, 1000, 8))
    if imputation is not None:
        X[random.random(X.shape) < 0.2] = np.nan
    parts = contributions(metric, X, Y)
    assert parts.shape == (1000, len(metric.columns))
    assert_allclose(parts.sum(axis=1), metric.pair_distance(X, Y) ** 2, rtol=1e-9)


def test_contributions_of_a_fitted_model():
    X, y = make_xor(n_samples=1400, n_features=20, informative=2, random_state=0)
    model = SDistClassifier(random_state=0, max_degree=3, start_share=0.5).fit(X[:400], y[:400])
    rows = np.random.default_rng(0).integers(0, 400, 1000)
    parts = contributions(model.metric_, X[400:], X[rows])
    expected = model.pair_distance(X[400:], X[rows]) ** 2
    assert_allclose(parts.sum(axis=1), expected, rtol=1e-9)
    assert (parts < 0).any()


def test_shares_of_a_model():
    metric = SparseMetric(
        [(0,), (1, 1), (0, 1), (3,)], np.diag([1.0, 2.0, 3.0, 1.0]), np.zeros(4), np.ones(4),
        np.zeros(4), np.ones(4), ["a", "b", "c"], imputation=Imputation(np.zeros(3), (2,)),
    )  # fmt: skip
    explanation = explain_model(metric)
    assert [(t.name, t.kind) for t in explanation.terms] == [
        ("a*b", "interaction"), ("b^2", "power"), ("a", "variable"), ("missing(c)", "missing"),
    ]  # fmt: skip
    assert_allclose([t.share for t in explanation.terms], [9 / 15, 4 / 15, 1 / 15, 1 / 15])
    by_name = {v.name: v for v in explanation.variables}
    assert_allclose([by_name["a"].alone, by_name["a"].together], [1 / 15, 4.5 / 15])
    assert_allclose([by_name[n].share for n in "abc"], metric.importances())
    assert [(k.a, k.b) for k in explanation.links] == [("a", "b")]
    assert_allclose(explanation.links[0].share, 9 / 15)
    assert_allclose(sum(explanation.shares.values()), 1.0)


@pytest.mark.parametrize("make", [SDist, SDistClassifier])
def test_a_model_explains_itself(make):
    X, y = make_xor(n_samples=300, n_features=10, informative=2, random_state=0)
    model = make(random_state=0).fit(X, y)
    explanation = model.explain()
    assert_allclose(sum(v.share for v in explanation.variables), 1.0)
    assert explanation.start_share == model.start_share_
    pd = pytest.importorskip("pandas")
    for what in ("terms", "variables", "links"):
        assert isinstance(explanation.to_pandas(what), pd.DataFrame)
    with pytest.raises(ValueError, match="what='all'"):
        explanation.to_pandas("all")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    y = np.array(["red", "rose", "white"])[y]
    return SDistClassifier(random_state=0).fit(X[::2], y[::2]), X[1::2], X[::2], y[::2]


def test_neighbours_of_each_class(wine):
    model, X, training, y = wine
    for x, explanation in zip(X[:5], explain_rows(model.model_, X[:5], n_neighbors=4)):
        assert [n.label for n in explanation.neighbors] == ["red"] * 4 + ["rose"] * 4 + [
            "white"
        ] * 4
        for near in explanation.neighbors:
            assert y[near.row] == near.label
            distance = model.pair_distance(x[None], training[[near.row]])[0]
            assert_allclose(near.squared_distance, distance**2, rtol=1e-9)
            assert_allclose(near.contributions.sum(), near.squared_distance, rtol=1e-9)
        own = [n.squared_distance for n in explanation.neighbors[:4]]
        nearest = np.sort(model.metric_.pairwise_distance(x[None], training[y == "red"])[0])[:4]
        assert_allclose(own, nearest**2, rtol=1e-6)


def test_reasons_add_up(wine):
    model, X, _, _ = wine
    for label, explanation in zip(model.predict(X[:5]), model.explain(X[:5])):
        assert explanation.label == label
        other = next(c for c in explanation.probabilities if c != explanation.label)
        distances = {
            c: np.mean([n.squared_distance for n in explanation.neighbors if n.label == c])
            for c in (other, explanation.label)
        }
        reasons = explanation.reasons(other)
        total = sum(amount for _, amount in reasons)
        assert_allclose(total, distances[other] - distances[explanation.label], rtol=1e-9)
        assert [a for _, a in reasons] == sorted((a for _, a in reasons), reverse=True)
    with pytest.raises(ValueError, match="'blue' is not one of the classes"):
        explanation.reasons("blue")


def test_changes_do_what_they_say(wine):
    model, X, _, _ = wine
    changed = 0
    for x, explanation in zip(X[:20], model.explain(X[:20])):
        for change in explanation.changes:
            j = int(change.variable[1:])
            assert change.value == x[j]
            moved = x.copy()
            moved[j] = change.new_value
            assert model.predict(moved[None])[0] == change.label != explanation.label
            changed += 1
        sizes = [abs(change.deviations) for change in explanation.changes]
        assert sizes == sorted(sizes)
    assert changed


def test_the_way_to_another_class(wine):
    model, X, _training, _ = wine
    found = [explanation.way for explanation in model.explain(X[:20])]
    assert all(way is None or 0 < way <= 1 for way in found)
    assert any(way is not None for way in found)
    pytest.importorskip("pandas")
    frame = model.explain(X[:1])[0].to_pandas()
    assert list(frame.columns) == ["row", "label", "squared_distance", "term", "contribution"]


def test_other_models(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = make_xor(n_samples=300, n_features=8, informative=2, random_state=0)
    frame = pd.DataFrame(X.copy(), columns=list("abcdefgh"))  # an older pandas would share X
    frame.iloc[::7, 0] = np.nan
    model = SDistClassifier(random_state=0, missing="impute").fit(frame, y)
    model.save(tmp_path / "model.mbz")
    for fitted in (model, load(tmp_path / "model.mbz")):
        explanation = fitted.explain(frame.iloc[[0, 1]])
        assert len(explanation) == 2
        assert explanation[0].probabilities.keys() == {0, 1}
    search = SDistClassifierCV(cv=3, param_grid={"max_degree": [2]}, random_state=0).fit(X, y)
    assert search.explain(X[:1])[0].label == search.predict(X[:1])[0]
    assert search.explain().terms == explain_model(search.metric_).terms


def test_rows_of_a_model_without_rows(tmp_path):
    X, y = make_xor(n_samples=200, n_features=5, informative=2, random_state=0)
    SDistClassifier(random_state=0).fit(X, y).save(tmp_path / "m.mbz", rows=False)
    model = load(tmp_path / "m.mbz")
    assert model.explain().terms
    with pytest.raises(ValueError, match="without its training rows"):
        model.explain(X[:1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_linear_readout_gives_directions(n_classes, tmp_path):
    """The coefficients and offsets are the log odds; a saved model has the same coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    score = 2 * X[:, 0] - 2 * X[:, 1]
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    model = SDistClassifier(classifier="linear", max_iter=20, random_state=0).fit(X, y)
    terms = model.explain().terms
    found = {term.name: term.coefficients for term in terms}
    assert found["x0"][-1] > 0 > found["x0"][0]
    assert found["x1"][-1] < 0 < found["x1"][0]
    assert np.allclose([sum(term.coefficients) for term in terms], 0, atol=1e-5)
    metric = model.metric_
    features = metric.term_features(X)
    places = [metric.get_feature_names_out().tolist().index(term.name) for term in terms]
    log_odds = features[:, places] @ np.array([term.coefficients for term in terms])
    apart = model.model_.log_odds(X) - log_odds
    assert np.allclose(apart, apart[0])
    model.save(tmp_path / "model.mbz")
    loaded = load(tmp_path / "model.mbz")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.explain() == model.explain()
    near = SDistClassifier(classifier="margin", max_iter=5, random_state=0).fit(X, y)
    assert {term.coefficients for term in near.explain().terms} == {None}
