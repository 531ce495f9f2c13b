"""Total variances of rows: from the covariance of the terms, and from embedded rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from metricboost.boosting.scaling import Scaling
from metricboost.model import Factor, Path
from metricboost.training import spreads
from metricboost.training.learn import Learned
from metricboost.training.spreads import Spread, Spreads, covariance, variances


@pytest.fixture
def fit() -> Learned:
    rng = np.random.default_rng(0)
    terms = [(0,), (1,), (4,), (0, 1), (2, 2), (1, 2, 3)]
    moments = np.stack([rng.normal(size=6), rng.uniform(0.5, 2.0, 6)], axis=1)
    scaling = Scaling(rng.normal(size=5), rng.uniform(0.5, 2.0, 5), np.arange(5), 3.0)
    factor = Factor(np.array([0, 2, 3, 5]), rng.normal(size=(4, 3)))
    return Learned(Path(Factor.empty()), terms, moments, scaling, None, 0, factor)


@pytest.fixture
def X() -> Any:
    return np.random.default_rng(1).normal(3.0, 2.0, size=(301, 5))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_variances_along_a_factor(
    fit: Learned, X: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreads, "BLOCK_ROWS", 64)
    z = fit.metric(fit.factor).transform(X)
    np.testing.assert_allclose(variances(fit.metric(fit.factor), kind(X)), z.var(axis=0))
    spread = Spread(fit, kind(X))
    np.testing.assert_allclose(spread.along(fit.factor), z.var(axis=0), rtol=1e-12)
    assert spread.total(fit.factor) == pytest.approx(z.var(axis=0).sum(), rel=1e-12)
    monkeypatch.setattr(spreads, "MOST_TERMS", 2)
    assert Spread(fit, X).total(fit.factor) == pytest.approx(z.var(axis=0).sum(), rel=1e-12)


def test_covariance_of_terms(fit: Learned, X: Any) -> None:
    metric = fit.metric(Factor.identity(6))
    expected = np.cov(metric.term_features(X).T, bias=True)
    np.testing.assert_allclose(covariance(metric, X), expected, atol=1e-12)


def test_the_empty_factor_has_no_variance(fit: Learned, X: Any) -> None:
    assert Spread(fit, X).total(Factor.empty()) == 0.0


def test_fits_do_not_share_their_spreads(fit: Learned, X: Any) -> None:
    known, other = Spreads(), replace(fit, moments=2 * fit.moments)
    assert known.of(fit, X) is known.of(fit, X)
    assert known.of(other, X) is not known.of(fit, X)
    assert known.of(fit, X).plain() == fit.scaling.plain_variance(X)
