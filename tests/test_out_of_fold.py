"""Predictions out of fold, their score and its interval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from metricboost import SDistClassifier, load
from metricboost._intervals import interval
from metricboost.datasets import make_xor

X, Y = make_xor(n_samples=240, n_features=8, informative=2, random_state=0)
SHORT = {"max_iter": 15, "random_state": 0}


@pytest.fixture(scope="module")
def fitted() -> SDistClassifier:
    return SDistClassifier(**SHORT).fit(X, Y)


def test_the_score_is_that_of_the_predictions(fitted: SDistClassifier) -> None:
    probabilities, decision = fitted.oob_predict_proba_, fitted.oob_decision_function_
    assert probabilities.shape == (240, 2)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_allclose(np.mean(probabilities.argmax(axis=1) == Y), fitted.oob_score_)
    assert_array_equal(decision > 0, probabilities[:, 1] > 0.5)
    assert fitted.oob_score_ < fitted.score(X, Y)


def test_several_classes_have_a_number_each() -> None:
    table, classes = load_iris(return_X_y=True)
    model = SDistClassifier(**SHORT).fit(table, classes)
    assert model.oob_decision_function_.shape == (150, 3)
    right = np.mean(model.oob_decision_function_.argmax(axis=1) == classes)
    assert_allclose(right, model.oob_score_)


def test_rows_without_weight_have_no_prediction() -> None:
    weight = np.where(np.arange(240) % 3, 1.0, 0.0)
    model = SDistClassifier(**SHORT).fit(X, Y, sample_weight=weight)
    found = model.oob_predict_proba_
    assert found.shape == (240, 2)
    assert_array_equal(np.isnan(found).any(axis=1), weight == 0)
    right = found[weight > 0].argmax(axis=1) == Y[weight > 0]
    assert_allclose(right.mean(), model.oob_score_)


def test_a_large_table_has_predictions_for_some_rows() -> None:
    table, classes = make_xor(n_samples=4000, n_features=3, informative=2, random_state=0)
    model = SDistClassifier(max_iter=3, n_averaged=2, random_state=0).fit(table, classes)
    scored = ~np.isnan(model.oob_decision_function_)
    assert 2000 < scored.sum() <= 2501
    right = (model.oob_decision_function_[scored] > 0) == classes[scored]
    assert_allclose(right.mean(), model.oob_score_)


def test_a_file_keeps_them_with_the_rows(fitted: SDistClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.mbz")
    loaded = load(tmp_path / "model.mbz")
    assert_array_equal(loaded.oob_decision_function_, fitted.oob_decision_function_)
    assert loaded.oob_interval_ == fitted.oob_interval_
    fitted.save(tmp_path / "model.mbz", rows=False)
    loaded = load(tmp_path / "model.mbz")
    assert loaded.oob_interval_ == fitted.oob_interval_
    assert not hasattr(loaded, "oob_predict_proba_")


def test_a_single_fit_has_none() -> None:
    model = SDistClassifier(n_averaged=1, **SHORT).fit(X, Y)
    assert np.isnan(model.oob_interval_).all()
    with pytest.raises(AttributeError, match="n_averaged=1"):
        model.oob_predict_proba_  # noqa: B018


def test_the_interval_is_wider_than_that_of_new_rows(fitted: SDistClassifier) -> None:
    (low, high), score = fitted.oob_interval_, fitted.oob_score_
    narrow = interval(240 * score, 240)
    assert low < narrow[0] < score < narrow[1] < high
    # Four folds: the variance is that of new rows times 1 + 4 / 3.
    assert_allclose((low, high), interval(240 * score / (7 / 3), 240 / (7 / 3)))


def test_rows_of_unequal_weight_tell_less(fitted: SDistClassifier) -> None:
    weight = np.where(np.arange(240) % 4 == 0, 10.0, 1.0)
    model = SDistClassifier(**SHORT).fit(X, Y, sample_weight=weight)
    low, high = model.oob_interval_
    plain_low, plain_high = fitted.oob_interval_
    assert high - low > 1.2 * (plain_high - plain_low)


def test_the_page_has_the_scores_out_of_fold(fitted: SDistClassifier) -> None:
    told = "Other scores on 240 training rows, by predictions out of fold"
    assert told in fitted.report().html
    assert told in fitted.report(X, Y).html  # most of the given rows are training rows
    new, classes = make_xor(n_samples=60, n_features=8, informative=2, random_state=1)
    assert "Other scores on these 60 rows" in fitted.report(new, classes).html
