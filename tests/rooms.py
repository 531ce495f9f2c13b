"""Helpers for tests of boosting: candidates, and states with given neighbours and weights."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from metricboost.boosting.neighborhoods import Neighborhoods
from metricboost.boosting.state import State, Weights
from metricboost.boosting.terms import Candidates
from metricboost.engines import Engine, get_engine, native_available

Array = npt.NDArray[Any]
ENGINE = get_engine("numpy")
ENGINES = ["numpy", *(["native"] if native_available() else [])]
MULTICLASS: tuple[Literal["common", "coded"], ...] = ("common", "coded")


def candidates_of(
    X: Array, max_degree: int, most: int | None = None, engine: Engine = ENGINE
) -> Candidates:
    return Candidates(engine.table(X.T), max_degree, most)


def columns_of(candidates: Candidates, index: Array) -> Array:
    return candidates.table.columns(candidates.terms(index))


def pulled_back(candidates: Candidates, y: Array) -> Array:
    """The product ``y' Phi`` for all candidates."""
    return candidates.table.pulled_back(candidates.every(), y)


def state_of(candidates: Candidates, labels: Array, near: Neighborhoods) -> State:
    """A state with given neighbours, before the first step."""
    state = State(candidates.table, labels, np.ones(len(labels)))
    state.use(near)
    return state


def weights_of(state: State, weight: Array, in_bag: Array | None = None) -> Weights:
    """The weights of a step. By default all rows are in the bag."""
    bag = np.ones(len(weight), dtype=bool) if in_bag is None else in_bag
    inside = np.where(bag, weight, 0.0)
    return Weights(bag, weight, inside, state.graph.weighted(inside))


def terms_of(candidates: Candidates) -> list[tuple[int, ...]]:
    return [candidates.term(t) for t in range(len(candidates))]


def several_classes(n_classes: int, whole: bool) -> tuple[Array, Array]:
    """Sixty rows of unequal classes, the first of them with four rows.

    With ``whole`` the values are whole numbers, so that many distances are tied.
    """
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 3, (60, 4)).astype(float) if whole else rng.normal(size=(60, 4))
    labels = np.r_[[0] * 4, np.arange(56) % (n_classes - 1) + 1]
    return X, rng.permutation(labels)


def noisy(place: Array, noise: float, seed: int = 0) -> Array:
    return place + noise * np.random.default_rng(seed).normal(size=place.shape)
