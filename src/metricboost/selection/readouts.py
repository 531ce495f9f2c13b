"""Readouts: from rows embedded by a metric to evidence for every class.

Evidence is one number per row and class, larger for a likelier class. All rules but the last two
look at the k nearest rows of each class:

- margin: the mean squared distance to them (the paper's f is the difference of two such means);
- hull: the squared distance to the flat through them, with a ridge (Vincent & Bengio's local
  hyperplane distance). A class is then a surface rather than a cloud of points, so few rows fill
  more space; with a large ridge it is the distance to their mean;
- votes: the share of the k nearest rows of all classes that belong to the class;
- kernel: a support vector machine under the kernel of the distance;
- mixture: a Gaussian mixture for each class in the leading directions of the embedding, for classes
  that fall into clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from .._blocks import slices
from .._threads import one_blas_thread
from .._typing import Float, Index, Rows
from ..engines import Engine

#: Squared distances count as at least this share of the embedding's variance: rows may coincide.
CLOSEST = 1e-9
#: Queries whose flats are computed at once: k x k systems for each, and the rows they are made of.
BLOCK = 256
#: Entries of all those systems at once.
FLAT_ENTRIES = 2**22
#: Rows whose kernel a support vector machine can hold: it has this number squared.
MOST_KERNEL_ROWS = 30_000
#: Flats are computed for this many classes of a query, the nearest by the margin; the others keep
#: their margin, so they cannot win (a flat is never farther than the margin says). Where there are
#: many classes that is several times less work; it changes few predictions.
CLASSES_WITH_FLATS = 4


@dataclass(frozen=True)
class Training:
    """Embedded rows with their classes and weights."""

    rows: Float
    labels: Index
    weight: Float
    n_classes: int

    def members(self, c: int) -> Index:
        return np.flatnonzero(self.labels == c)

    @cached_property
    def floor(self) -> float:
        """The smallest squared distance that counts."""
        panels = [self.rows[:, part] for part in slices(self.rows.shape[1], len(self.rows), 2**19)]
        variance = float(np.concatenate([panel.var(axis=0) for panel in panels] or [[]]).sum())
        return CLOSEST * (variance if variance > 0 else 1.0)


def in_span(rows: Float, queries: Float) -> tuple[Float, Float]:
    """The same distances in as many coordinates as there are rows, where columns are more.

    One more coordinate has what of a query lies outside the span of the rows.
    """
    if rows.shape[1] <= len(rows):
        return rows, queries
    center = rows.mean(axis=0)
    rows, queries = rows - center, queries - center
    values, vectors = np.linalg.eigh(rows @ rows.T)
    real = values > values[-1] * len(values) * np.finfo(float).eps
    size = np.sqrt(values[real])
    inside = (queries @ rows.T) @ vectors[:, real] / size
    beyond = np.einsum("ij,ij->i", queries, queries) - np.einsum("ij,ij->i", inside, inside)
    outside = np.sqrt(np.maximum(beyond, 0.0))[:, None]
    return (
        np.hstack([vectors[:, real] * size, np.zeros((len(rows), 1))]),
        np.hstack([inside, outside]),
    )


@dataclass(frozen=True)
class Margin:
    """The mean squared distance to the k nearest rows of the class."""

    k: int

    def distances(self, near: Near) -> Float:
        weight = near.weight[:, : self.k]
        result: Float = (weight * near.distances[:, : self.k]).sum(axis=1) / weight.sum(axis=1)
        return result


@dataclass(frozen=True)
class Hull:
    """The squared distance to the flat through the k nearest rows of the class.

    ``min_a |x - mean - Z'a|^2 + r |a|^2`` with Z the rows less their mean and r ``ridge`` times
    their mean square.
    """

    k: int
    ridge: float


@dataclass(frozen=True)
class Votes:
    """The weighted share of the class among the k nearest rows of all classes."""

    k: int


@dataclass(frozen=True)
class Kernel:
    """A support vector machine; the kernel is as wide as ``width`` median squared distances."""

    width: float
    cost: float


@dataclass(frozen=True)
class Mixture:
    """A Gaussian mixture per class in the leading directions of the embedding.

    As many directions as hold a share of its variance.
    """

    variance: float
    n_components: int


Rule = Margin | Hull | Votes | Kernel | Mixture


@dataclass(frozen=True)
class Near:
    """The nearest rows of one class to some queries, in order."""

    queries: Float
    references: Float
    rows: Rows
    distances: Float
    weight: Float
    floor: float

    def only(self, queries: Index) -> Near:
        """For some of the queries."""
        return replace(
            self,
            queries=self.queries[queries],
            rows=self.rows[queries],
            distances=self.distances[queries],
            weight=self.weight[queries],
        )


def evidence(
    engine: Engine, training: Training, queries: Float, rules: Sequence[Rule]
) -> dict[Rule, Float]:
    """Evidence for every class under several rules, n x C each; neighbours are searched once."""
    found: dict[Rule, Float] = {}
    by_class = [rule for rule in rules if isinstance(rule, Margin | Hull)]
    if by_class:
        found.update(_class_distances(engine, training, queries, by_class))
    votes = [rule for rule in rules if isinstance(rule, Votes)]
    if votes:
        found.update(_votes(engine, training, queries, votes))
    for rule in rules:
        if isinstance(rule, Kernel | Mixture):
            found[rule] = Readout(engine, lambda: training, rule)(queries)
    return {rule: found[rule] for rule in rules}


class Readout:
    """One rule on the training rows, for any queries.

    The rows are embedded, and what the rule needs is fitted to them, at the first use.
    """

    def __init__(self, engine: Engine, make_training: Callable[[], Training], rule: Rule) -> None:
        self.rule = rule
        self._engine = engine
        self._make_training = make_training

    @cached_property
    @one_blas_thread()  # the same on any number of cores
    def training(self) -> Training:
        return self._make_training()

    @cached_property
    @one_blas_thread()
    def _model(self) -> Any:
        if isinstance(self.rule, Kernel):
            return _Machine(self.training, self.rule)
        return _mixtures(self.training, self.rule) if isinstance(self.rule, Mixture) else None

    def with_engine(self, engine: Engine) -> Readout:
        """The same on another engine; what was fitted to the rows is shared."""
        _ = self.training, self._model  # once, and not again in every copy
        other = copy(self)
        other._engine = engine
        return other

    @one_blas_thread()
    def __call__(self, queries: Float) -> Float:
        if isinstance(self.rule, Kernel):
            score = self._model.decision_function(queries)
            result: Float = np.stack([-score, score], axis=1) if score.ndim == 1 else score
            return result
        if isinstance(self.rule, Mixture):
            center, basis, densities = self._model
            rows = (queries - center) @ basis
            return np.stack([density.score_samples(rows) for density in densities], axis=1)
        return evidence(self._engine, self.training, queries, [self.rule])[self.rule]


def _class_distances(
    engine: Engine, training: Training, queries: Float, rules: Sequence[Margin | Hull]
) -> dict[Rule, Float]:
    k = max(rule.k for rule in rules)
    near = [_near(engine, training, queries, c, k) for c in range(training.n_classes)]
    found: dict[Rule, Float] = {}
    for k in sorted({rule.k for rule in rules}):
        margins = np.stack([Margin(k).distances(part) for part in near], axis=1)
        found[Margin(k)] = margins
        hulls = [rule for rule in rules if isinstance(rule, Hull) and rule.k == k]
        if hulls:
            found.update(_hull_distances(near, margins, hulls))
    return {rule: -np.log(np.maximum(found[rule], training.floor)) for rule in rules}


def _near(engine: Engine, training: Training, queries: Float, c: int, k: int) -> Near:
    members = training.members(c)
    references = training.rows[members]
    rows, squared = engine.nearest(queries, references, k)
    return Near(queries, references, rows, squared, training.weight[members][rows], training.floor)


def _hull_distances(
    near: Sequence[Near], margins: Float, rules: Sequence[Hull]
) -> dict[Rule, Float]:
    """Flats of the nearest classes of every query; the same k for all rules."""
    n_flats = min(CLASSES_WITH_FLATS, margins.shape[1])
    nearest_classes = np.argsort(margins, axis=1, kind="stable")[:, :n_flats]
    found: dict[Rule, Float] = {rule: margins.copy() for rule in rules}
    for c, part in enumerate(near):
        chosen = np.flatnonzero((nearest_classes == c).any(axis=1))
        size = max(1, min(BLOCK, FLAT_ENTRIES // part.rows.shape[1] ** 2))
        for start in range(0, len(chosen), size):
            block = chosen[start : start + size]
            flats = _flats(part.only(block), rules)
            for rule, distances in zip(rules, flats):
                found[rule][block, c] = distances
    return found


def _flats(near: Near, rules: Sequence[Hull]) -> list[Float]:
    """``|x - mean|^2 - b'(G + rI)^-1 b``, G and b products of the centred rows: the minimum."""
    k = rules[0].k
    share = near.weight[:, :k] / near.weight[:, :k].sum(axis=1, keepdims=True)
    rows = near.references[near.rows[:, :k]]
    mean = (share[:, None, :] @ rows)[:, 0]
    rows -= mean[:, None]
    rows *= np.sqrt(share)[:, :, None]
    away = near.queries - mean
    gram = rows @ rows.transpose(0, 2, 1)
    along = rows @ away[:, :, None]
    mean_square = np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
    diagonal = np.arange(gram.shape[1])
    result = []
    for rule in rules:
        ridged = gram.copy()
        ridged[:, diagonal, diagonal] += np.maximum(rule.ridge * mean_square, near.floor)[:, None]
        along_flat = (along * np.linalg.solve(ridged, along)).sum(axis=(1, 2))
        result.append((away**2).sum(axis=1) - along_flat)
    return result


def _votes(
    engine: Engine, training: Training, queries: Float, rules: Sequence[Votes]
) -> dict[Rule, Float]:
    rows, _ = engine.nearest(queries, training.rows, max(rule.k for rule in rules))
    one_hot = np.eye(training.n_classes)[training.labels] * training.weight[:, None]
    found: dict[Rule, Float] = {}
    for rule in rules:
        counts = one_hot[rows[:, : rule.k]].sum(axis=1)
        found[rule] = np.log(counts + 0.5 * training.weight.mean())
    return found


class _Machine:
    """A support vector machine on a kernel that BLAS computes, several times faster than libsvm."""

    def __init__(self, training: Training, rule: Kernel) -> None:
        self._rows = training.rows
        if len(self._rows) > MOST_KERNEL_ROWS:
            raise ValueError(
                f'classifier="kernel" holds the kernel of all pairs of rows: {len(self._rows)} are '
                f"too many, {MOST_KERNEL_ROWS} the most."
            )
        self._gamma = 1.0 / (rule.width * median_squared(training.rows))
        self._machine = SVC(C=rule.cost, kernel="precomputed")
        kernel = self._kernel(training.rows)
        self._machine.fit(kernel, training.labels, sample_weight=training.weight)

    def _kernel(self, queries: Float) -> Float:
        center = self._rows.mean(axis=0)
        squared = squared_distances(queries - center, self._rows - center)
        squared *= -self._gamma
        return np.exp(squared, out=squared)

    def decision_function(self, queries: Float) -> Float:
        starts = range(0, max(len(queries), 1), BLOCK)
        kernels = (self._kernel(queries[start : start + BLOCK]) for start in starts)
        return np.concatenate([self._machine.decision_function(kernel) for kernel in kernels])


def squared_distances(a: Float, b: Float) -> Float:
    """All pairs, by a matrix product; not below zero."""
    squared: Float = -2 * a @ b.T
    squared += (a**2).sum(axis=1)[:, None]
    squared += (b**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


def median_squared(rows: Float, max_rows: int = 1000) -> float:
    """The median squared distance between rows (evenly spaced ones where there are many)."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), max_rows)).astype(np.intp)]
    some = some - some.mean(axis=0)
    squared = squared_distances(some, some)[np.triu_indices(len(some), k=1)]
    median = float(np.median(squared))
    return median if median > 0 else 1.0


def _mixtures(training: Training, rule: Mixture) -> tuple[Float, Float, list[Any]]:
    """The centre and directions of the embedding, and one density for each class."""
    center = training.rows.mean(axis=0)
    _, size, directions = np.linalg.svd(training.rows - center, full_matrices=False)
    held = np.cumsum(size**2) / max(float((size**2).sum()), np.finfo(float).tiny)
    n_directions = min(int(np.searchsorted(held, rule.variance)) + 1, len(size))
    basis = directions[:n_directions].T
    rows = (training.rows - center) @ basis
    of_each = [rows[training.members(c)] for c in range(training.n_classes)]
    with threadpool_limits(1):  # OpenMP too: k-means' threads add up in any order, and wait
        return center, basis, [_density(own, rule.n_components, training.floor) for own in of_each]


def _density(rows: Float, n_components: int, floor: float) -> Any:
    """A mixture fitted to rows, which may coincide; no more components than rows can carry."""
    rows = rows if len(rows) > 1 else np.repeat(rows, 2, axis=0)  # it wants two
    affordable = max(1, len(rows) // (2 * rows.shape[1] + 2))
    mixture = GaussianMixture(
        min(n_components, affordable), n_init=2, random_state=0,
        reg_covar=max(1e-3 * float(rows.var(axis=0).mean()), floor),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(rows)
