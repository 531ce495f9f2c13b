"""Probabilities from evidence: known slopes and offsets are found, and nothing overflows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, check_grad, minimize
from scipy.special import logsumexp, softmax

from metricboost.model import Calibration, calibrate
from metricboost.model.calibration import PRIOR_ROWS, Loss
from metricboost.training.choosing import brier, errors

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def simulated(
    slope: float, offsets: list[float], n: int = 20_000, seed: int = 0, spread: float = 1.5
) -> tuple[Array, Array]:
    """Evidence, and classes drawn with the probabilities that a slope and offsets give it."""
    rng = np.random.default_rng(seed)
    evidence = spread * rng.normal(size=(n, len(offsets)))
    proba = softmax(slope * evidence + offsets, axis=1)
    labels = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return evidence, labels


def centred(offsets: Any) -> Array:
    result: Array = np.asarray(offsets) - np.mean(offsets)
    return result


def penalised_loss(parameters: Array, evidence: Array, labels: Array, weight: Array) -> float:
    """Weighted log loss, one row in doubt, and the pull to slope 1 and equal offsets."""
    scores = np.exp(parameters[0]) * evidence + parameters[1:]
    own = scores[np.arange(len(labels)), labels]
    others = (scores.sum(axis=1) - own) / (scores.shape[1] - 1)
    doubt = 1 / (weight.sum() + 2)
    loss = weight @ (logsumexp(scores, axis=1) - (1 - doubt) * own - doubt * others)
    return float(loss + 0.5 * PRIOR_ROWS * (parameters**2).sum())


def parameters_of(found: Calibration) -> Array:
    return np.r_[np.log(found.slope), found.offsets]


# --- known answers


@pytest.mark.parametrize("slope", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("offsets", [[0.0, 0.0], [1.0, -1.0], [0.5, 0.0, -2.0], [0, 1, 2, 1, 0]])
def test_known_slopes_and_offsets_are_found(slope: float, offsets: list[float]) -> None:
    """From 20,000 rows, to within a few percent; only differences of offsets count."""
    found = calibrate(*simulated(slope, offsets), np.ones(20_000))
    assert_allclose(found.slope, slope, rtol=0.08)
    assert_allclose(centred(found.offsets), centred(offsets), atol=0.12)


def test_evidence_that_says_nothing_leaves_the_shares() -> None:
    """The slope goes to zero, and the probabilities to the shares of the classes."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    evidence = rng.normal(size=(3000, 3))
    found = calibrate(evidence, labels, np.ones(3000))
    assert found.slope < 0.1
    shares = np.bincount(labels) / 3000
    assert_allclose(found.probabilities(evidence).mean(axis=0), shares, atol=0.01)
    assert_allclose(found.probabilities(np.zeros((1, 3)))[0], shares, atol=0.02)


def test_evidence_that_misleads_is_ignored_not_reversed() -> None:
    """A slope is never negative: more evidence never makes a class less likely."""
    evidence, labels = simulated(2.0, [0.0, 0.0], n=2000)
    found = calibrate(-evidence, labels, np.ones(2000))
    assert 0 < found.slope < 0.02


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_rows_stay_close_to_the_prior(n: int) -> None:
    """The pull to slope 1 and equal offsets is as strong as one row."""
    found = calibrate(np.zeros((n, 3)), np.zeros(n, dtype=int), np.ones(n))
    assert found.slope == pytest.approx(1.0)
    assert found.offsets[0] > found.offsets[1] == pytest.approx(found.offsets[2])
    assert np.ptp(found.offsets) < np.log(1 + 3 * n) + 1


def test_none_is_the_evidence_itself() -> None:
    evidence = np.random.default_rng(0).normal(size=(6, 4))
    plain = Calibration.none(4)
    assert_array_equal(plain.log_odds(evidence), evidence)
    assert_allclose(plain.probabilities(evidence), softmax(evidence, axis=1))


# --- the optimum


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_derivatives_are_those_of_the_loss(n_classes: int) -> None:
    """Finite differences at the start and elsewhere agree, and so does the loss written out."""
    rng = np.random.default_rng(n_classes)
    evidence = rng.normal(size=(40, n_classes))
    labels, weight = rng.integers(0, n_classes, 40), rng.uniform(0, 2, 40)
    loss = Loss(evidence, labels, weight)
    for scale in (0.0, 0.5, 2.0):
        at = scale * rng.normal(size=n_classes + 1)
        point = loss.at(at)
        assert_allclose(point.value, penalised_loss(at, evidence, labels, weight), rtol=1e-10)
        size = 1e-5 * (1 + np.abs(point.hessian).max())
        error = check_grad(lambda x: loss.at(x).value, lambda x: loss.at(x).gradient, at)
        assert error < size
        slopes = approx_fprime(at, lambda x: loss.at(x).gradient)
        assert_allclose(point.hessian, slopes, atol=size)


def evidence_of(kind: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    if kind == "separable":
        labels = np.arange(200) % 2
        return np.eye(2)[labels] + 0.1 * rng.normal(size=(200, 2)), labels
    if kind == "constant":
        return np.zeros((60, 3)), rng.integers(0, 3, 60)
    if kind == "misleading":
        evidence, labels = simulated(2.0, [0.0, 0.0], n=300)
        return -evidence, labels
    if kind == "one class":
        return rng.normal(size=(50, 3)), np.zeros(50, dtype=int)
    if kind == "shifted":
        evidence, labels = simulated(1.0, [0.0, 0.0, 0.0], n=300)
        return evidence + np.array([0.0, 30.0, -20.0]), labels
    if kind == "steep":  # small differences, so that the best slope is large
        labels = rng.integers(0, 4, 400)
        return 0.02 * np.eye(4)[labels] + 0.02 * rng.normal(size=(400, 4)) - 5.0, labels
    return simulated(1.0, list(rng.normal(size=26)), n=2000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "kind",
    ["separable", "constant", "misleading", "one class", "shifted", "steep", "26 classes"],
)
def test_another_optimiser_finds_the_same_optimum(kind: str, weighted: bool) -> None:
    evidence, labels = evidence_of(kind)
    n, n_classes = evidence.shape
    weight = np.random.default_rng(1).uniform(0.0, 2.0, n) if weighted else np.ones(n)
    loss = Loss(evidence, labels, weight)

    def objective(parameters: Array) -> tuple[float, Array]:
        point = loss.at(parameters)
        return point.value, point.gradient

    bounds = [(-7.0, 7.0)] + [(-50.0, 50.0)] * n_classes
    options = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 50_000, "maxcor": 30}
    other = minimize(objective, np.zeros(n_classes + 1), jac=True, method="L-BFGS-B",
                     bounds=bounds, options=options)  # fmt: skip
    found = parameters_of(calibrate(evidence, labels, weight))
    assert loss.at(found).value <= other.fun + 1e-9 * abs(other.fun)
    assert_allclose(found, other.x, atol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_other_slope_and_offsets_are_better(n_classes: int) -> None:
    """Another optimiser and nearby values find no smaller loss."""
    rng = np.random.default_rng(0)
    evidence, labels = simulated(0.7, list(range(n_classes)), n=150)
    weight = rng.uniform(0.1, 2.0, 150)
    found = parameters_of(calibrate(evidence, labels, weight))
    data = evidence, labels, weight
    best = penalised_loss(found, *data)
    other = minimize(penalised_loss, np.zeros(n_classes + 1), data, method="Nelder-Mead",
                     options={"maxiter": 3000, "maxfev": 3000, "fatol": 1e-6}).fun  # fmt: skip
    assert best < other + 1e-3
    for _ in range(20):
        nearby = found + 0.05 * rng.normal(size=n_classes + 1)
        assert penalised_loss(nearby, *data) > best - 1e-4


def test_offsets_add_up_to_nothing() -> None:
    """Only differences of offsets count, and the pull to equal offsets centres them."""
    found = calibrate(*simulated(1.0, [3.0, 0.0, 0.0], n=500), np.ones(500))
    assert_allclose(found.offsets.sum(), 0.0, atol=1e-3)


# --- weights, classes, units


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_of_three_is_a_row_three_times(n_classes: int) -> None:
    evidence, labels = simulated(1.3, [0.0] * n_classes, n=300)
    repeats = np.random.default_rng(0).integers(0, 4, 300)
    heavy = calibrate(evidence, labels, repeats.astype(float))
    again = np.repeat(np.arange(300), repeats)
    often = calibrate(evidence[again], labels[again], np.ones(len(again)))
    assert_allclose(parameters_of(heavy), parameters_of(often), atol=1e-3)
    plain = calibrate(evidence, labels, np.ones(300))
    assert not np.allclose(parameters_of(heavy), parameters_of(plain), atol=1e-2)


@pytest.mark.parametrize("factor", [0.1, 3.0, 10.0])
def test_a_heavier_class_moves_the_threshold(factor: float) -> None:
    """The offset rises by the log of the factor, and the slope stays."""
    evidence, labels = simulated(1.0, [0.0, 0.0])
    weight = np.where(labels == 1, factor, 1.0)
    found = calibrate(evidence, labels, weight * len(weight) / weight.sum())
    assert_allclose(found.slope, 1.0, rtol=0.1)
    assert_allclose(found.offsets[1] - found.offsets[0], np.log(factor), atol=0.15)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_permuted_classes_permute_the_offsets(n_classes: int) -> None:
    evidence, labels = simulated(0.8, list(np.linspace(-1, 1, n_classes)), n=400)
    order = np.random.default_rng(1).permutation(n_classes)
    a = calibrate(evidence, labels, np.ones(400))
    other = np.empty_like(evidence)
    other[:, order] = evidence
    b = calibrate(other, order[labels], np.ones(400))
    assert_allclose(b.offsets[order], a.offsets, atol=1e-3)
    assert_allclose(b.slope, a.slope, rtol=1e-3)


def test_a_constant_of_the_row_changes_nothing() -> None:
    """Evidence is only compared within a row."""
    evidence, labels = simulated(0.8, [0.0, 0.5, 1.0], n=400)
    moved = evidence + np.random.default_rng(0).normal(size=(400, 1))
    a, b = calibrate(evidence, labels, np.ones(400)), calibrate(moved, labels, np.ones(400))
    assert_allclose(parameters_of(a), parameters_of(b), atol=1e-4)


def test_order_of_rows_changes_nothing() -> None:
    evidence, labels = simulated(0.8, [0.0, 0.5, 1.0], n=400)
    a = calibrate(evidence, labels, np.ones(400))
    b = calibrate(evidence[::-1], labels[::-1], np.ones(400))
    assert_allclose(parameters_of(a), parameters_of(b), atol=1e-4)


# --- evidence of any kind


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("gap", [1e-6, 1.0, 700.0])
@pytest.mark.parametrize("n", [6, 402])
def test_separable_evidence_stays_finite(n_classes: int, gap: float, n: int) -> None:
    """The likelihood then has no maximum; the pull and the bounds keep everything finite."""
    labels = np.arange(n) % n_classes
    evidence = gap * np.eye(n_classes)[labels]
    found = calibrate(evidence, labels, np.ones(n))
    assert np.isfinite(parameters_of(found)).all()
    assert found.slope <= np.exp(7.0) + 1e-6
    proba = found.probabilities(evidence)
    assert np.isfinite(proba).all()
    assert_array_equal(proba.argmax(axis=1), labels)


@pytest.mark.parametrize("n", [12, 40, 300])
def test_rows_that_are_all_told_apart_do_not_make_certain(n: int) -> None:
    """With n rows the mean probability of another class is about 1 in n."""
    labels = np.arange(n) % 2
    evidence = np.random.default_rng(0).normal(2.0, 0.2, size=(n, 1)) * np.eye(2)[labels]
    proba = calibrate(evidence, labels, np.ones(n)).probabilities(evidence)
    doubt = 1 - proba[np.arange(n), labels].mean()
    assert 0.5 / n < doubt < 2 / n


def test_huge_evidence() -> None:
    """Evidence that differs by 700, as of flats through coinciding rows, does not overflow."""
    evidence = np.array([[700.0, -30.0], [-30.0, 700.0], [650.0, 600.0], [0.0, 1e6]])
    found = calibrate(evidence, np.array([0, 1, 1, 1]), np.ones(4))
    assert np.isfinite(parameters_of(found)).all()
    assert_allclose(found.probabilities(evidence).sum(axis=1), 1.0)


def test_a_class_without_rows() -> None:
    """Out of fold a class may be missing from the scored rows: it is unlikely, not impossible."""
    evidence, labels = simulated(1.0, [0.0, 0.0, -30.0], n=300)
    assert labels.max() == 1
    found = calibrate(evidence, labels, np.ones(300))
    proba = found.probabilities(evidence)
    assert np.isfinite(proba).all()
    assert proba[:, 2].mean() < 0.02


@given(
    arrays(np.float64, (7, 3), elements=st.floats(-1e3, 1e3)),
    st.floats(1e-3, 1e3),
    arrays(np.float64, 3, elements=st.floats(-50, 50)),
)
@settings(max_examples=50, deadline=None)
def test_probabilities(evidence: Array, slope: float, offsets: Array) -> None:
    """Probabilities sum to 1, and order the classes as the log odds do."""
    made = Calibration(slope, offsets)
    proba, odds = made.probabilities(evidence), made.log_odds(evidence)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert_allclose(proba.sum(axis=1), 1.0)
    likeliest = np.take_along_axis(proba, odds.argmax(axis=1)[:, None], 1)[:, 0]
    assert_array_equal(likeliest, proba.max(axis=1))


# --- how good the probabilities are


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("slope", [0.3, 3.0])
def test_calibrated_probabilities_are_as_good_as_the_true_ones(
    n_classes: int, slope: float
) -> None:
    """Fitted on 300 rows, the Brier score of fresh ones is close to that of the truth."""
    offsets = list(np.linspace(-0.5, 1.0, n_classes))
    found = calibrate(*simulated(slope, offsets, n=300), np.ones(300))
    evidence, labels = simulated(slope, offsets, n=20_000, seed=1)
    truth = softmax(slope * evidence + offsets, axis=1)
    best = brier(truth, labels).mean()
    assert brier(found.probabilities(evidence), labels).mean() < best + 0.015
    raw = brier(softmax(evidence, axis=1), labels).mean()
    assert raw > best + 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
def test_observed_frequencies_are_the_probabilities(n_classes: int) -> None:
    """In every band of probabilities the share of the class is the mean of the band."""
    offsets = [0.4] + [0.0] * (n_classes - 1)
    found = calibrate(*simulated(2.0, offsets, n=1000), np.ones(1000))
    evidence, labels = simulated(2.0, offsets, seed=1)
    proba = found.probabilities(evidence)[:, 0]
    for low in np.arange(0.0, 1.0, 0.2):
        band = (proba >= low) & (proba < low + 0.2)
        assert band.sum() > 300
        assert abs((labels[band] == 0).mean() - proba[band].mean()) < 0.05


def test_brier_score_and_errors() -> None:
    """Computed by hand; of two tied classes half is right."""
    proba = np.array([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
    labels = np.array([0, 1, 0])
    assert_allclose(brier(proba, labels), [2 * 0.04, 2 * 0.25, 2 * 0.81])
    assert_allclose(errors(proba, labels), [0.0, 0.5, 1.0])
    assert_allclose(errors(np.full((2, 4), 0.25), np.array([0, 3])), 0.75)
