"""The interface of readouts, the training rows, and the queries (the rows to classify).

A readout turns distances into *evidence*: one number for each row and class, which is larger for a
more probable class. Calibration turns evidence into probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from ..._blocks import slices
from ..._typing import Float, Index, Rows
from ...engines import FEW_QUERIES, Engine, Flats, Search

#: Squared distances smaller than this share of the total variance of the embedding are set to this
#: value: rows may be equal, and evidence is the logarithm of a distance.
CLOSEST = 1e-9

#: Directions of the span of some rows are left out if the squared lengths of the rows in them are
#: at most this share of the largest squared length of a row.
SPAN = 1e-12

#: Readouts on the terms are fitted to at most this number of rows times terms times classes.
MOST_PRODUCTS = 2**25

T = TypeVar("T")


@dataclass(frozen=True)
class Training:
    """Embedded training rows with their classes and weights.

    Attributes
    ----------
    rows, labels, weight : ndarray
    n_classes : int
    shared : dict or None
        The results that several readouts need. None keeps no results.
    """

    rows: Float
    labels: Index
    weight: Float
    n_classes: int
    shared: dict[Hashable, Any] | None = field(default=None, compare=False, repr=False)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A result that several readouts need, computed once."""
        if self.shared is None:
            return compute()
        if key not in self.shared:
            self.shared[key] = compute()
        result: T = self.shared[key]
        return result

    def members(self, c: int) -> Index:
        """The numbers of the rows of a class."""
        return np.flatnonzero(self.labels == c)

    @cached_property
    def of_class(self) -> list[ClassRows]:
        """The rows of each class."""
        return [ClassRows(self, self.members(c)) for c in range(self.n_classes)]

    @cached_property
    def floor(self) -> float:
        """The smallest squared distance. Smaller squared distances are set to this value."""
        rows, variance = self.rows, 0.0
        center = rows.mean(axis=0)
        for part in slices(len(rows), rows.shape[1], 2**16):
            apart = rows[part] - center
            variance += float(np.einsum("ij,ij->", apart, apart)) / len(rows)
        return CLOSEST * (variance if variance > 0 else 1.0)


def rows_for_terms(rows: Index, n_terms: int, n_classes: int) -> Index:
    """The rows to which a readout on the terms is fitted: all rows, or some of very many.

    The time and the memory of the fit grow with the product of the three numbers. The rows are
    drawn with a fixed seed.
    """
    most = MOST_PRODUCTS // max(n_terms * n_classes, 1)
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


class ClassRows:
    """The training rows of one class, and the search among them for a few queries."""

    def __init__(self, training: Training, members: Index) -> None:
        self.rows = training.rows[members]
        self.weight = training.weight[members]

    @cached_property
    def search(self) -> Search:
        return Search(self.rows)


@dataclass(frozen=True)
class Near:
    """The nearest training rows of one class for each query, the nearest first.

    Attributes
    ----------
    queries, references : ndarray
        The embedded queries, and all embedded training rows of the class.
    rows, distances, weight : ndarray of shape (n_queries, k)
        The positions of the nearest rows in ``references``, their squared distances and weights.
    floor : float
        The smallest squared distance, as in ``Training``.
    """

    queries: Float
    references: Float
    rows: Rows
    distances: Float
    weight: Float
    floor: float

    def flats(self, queries: Index, k: int) -> Flats:
        """The flats of some of the queries, through the k nearest rows."""
        rows, weight = self.rows[queries, :k], self.weight[queries, :k]
        return Flats(self.queries[queries], self.references, rows, weight, self.floor)

    def means(self, k: int) -> Float:
        """The weighted mean squared distance to the k nearest rows."""
        weight = self.weight[:, :k]
        result: Float = (weight * self.distances[:, :k]).sum(axis=1) / weight.sum(axis=1)
        return result


class Queries:
    """Embedded rows to classify. Their neighbours are searched for once, at the first use.

    Parameters
    ----------
    engine : Engine
        Searches for the neighbours.
    training : Training
    rows : ndarray of shape (n_queries, rank)
    readouts : sequence of Readout
        The readouts that will use the queries. They determine how many neighbours are needed.
    """

    def __init__(
        self, engine: Engine, training: Training, rows: Float, readouts: Sequence[Readout]
    ) -> None:
        self.training = training
        self.rows = rows
        self.readouts = readouts
        self._engine = engine
        self._k_of_class = max((readout.k_of_class for readout in readouts), default=0)
        self._k_of_all = max((readout.k_of_all for readout in readouts), default=0)

    @cached_property
    def of_class(self) -> list[Near]:
        """The nearest training rows of each class."""
        return [self._near(c) for c in range(self.training.n_classes)]

    def _near(self, c: int) -> Near:
        own, k = self.training.of_class[c], self._k_of_class
        if len(self.rows) < FEW_QUERIES:
            rows, squared = own.search.nearest(self.rows, k)
        else:
            rows, squared = self._engine.nearest(self.rows, own.rows, k)
        return Near(self.rows, own.rows, rows, squared, own.weight[rows], self.training.floor)

    @cached_property
    def of_all(self) -> Rows:
        """The nearest training rows of all classes together."""
        return self._engine.nearest(self.rows, self.training.rows, self._k_of_all)[0]

    def margins(self, k: int) -> Float:
        """The weighted mean squared distance to the k nearest rows of each class, n x C."""
        return self.once(
            ("margins", k), lambda: np.stack([near.means(k) for near in self.of_class], axis=1)
        )

    def flat_distances(self, c: int, queries: Index, k: int, ridges: Float) -> Float:
        """The squared distances of some queries to the flats of a class, one column per ridge."""
        return self._engine.flat_distances(self.of_class[c].flats(queries, k), ridges)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A result for the queries that several readouts need, computed once."""
        return self.training.once((id(self), key), compute)


class Fitted(Protocol):
    """A readout that is fitted to the training rows."""

    def evidence(self, queries: Queries) -> Float:
        """The evidence: one number for each query and class, n x C."""
        ...


class Readout(ABC):
    """The base of readouts. A readout is a frozen dataclass, whose fields are its parameters.

    Attributes
    ----------
    name : str
        The value of the parameter ``classifier`` that selects the readout.
    automatic : bool
        Whether the readout is a candidate with ``SDistClassifier(classifier="auto")``.
    searched : {"everywhere", "best", "finalists"}
        The metrics with which ``SDistClassifierCV`` tries the readout: all metrics, the best
        metrics of each configuration, or the best metrics of the best configurations.
    searched_by_default : bool
        Whether the search tries the readout with ``classifier="auto"``.
    with_plain_distance : bool
        Whether the search tries the readout with metrics that have a share of the plain distance.
    only_with_plain_distance : bool
        Whether "auto" and the search try the readout only with metrics that have a share of the
        plain distance.
    cautious : bool
        Whether the readout is chosen alone only if it is clearly better than those that are not.
    on_terms : bool
        Whether the rows that the readout gets are the weighted terms of the metric
        (``SparseMetric.weighted_features``), instead of the embedding.
    """

    name: ClassVar[str]
    automatic: ClassVar[bool] = False
    searched: ClassVar[Literal["everywhere", "best", "finalists"]] = "best"
    searched_by_default: ClassVar[bool] = False
    with_plain_distance: ClassVar[bool] = True
    only_with_plain_distance: ClassVar[bool] = False
    cautious: ClassVar[bool] = False
    on_terms: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def grid(cls, n_neighbors: int | None) -> list[Self]:
        """The readouts of this type to choose from. None tries several numbers of neighbours."""

    @property
    def n_neighbors(self) -> int:
        """The number of nearest rows that ``kneighbors`` returns by default."""
        return 10

    @property
    def k_of_class(self) -> int:
        """The number of nearest rows of each class that the readout uses."""
        return 0

    @property
    def k_of_all(self) -> int:
        """The number of nearest rows of all classes together that the readout uses."""
        return 0

    @abstractmethod
    def fit(self, training: Training) -> Fitted:
        """Fit the readout to the training rows. The neighbours of queries come from ``Queries``."""


def evidence(
    engine: Engine, training: Training, rows: Float, readouts: Sequence[Readout]
) -> dict[Readout, Float]:
    """The evidence of several readouts for embedded rows. Neighbours are searched for once."""
    if len(readouts) > 1:
        training = replace(training, shared={})
    queries = Queries(engine, training, rows, readouts)
    return {readout: readout.fit(training).evidence(queries) for readout in readouts}


def as_evidence(squared: Float, training: Training) -> Float:
    """Evidence from squared distances to the classes."""
    result: Float = -np.log(np.maximum(squared, training.floor))
    return result


def in_span(rows: Float, queries: Float) -> tuple[Float, Float]:
    """Reduce the dimension of an embedding that has more columns than training rows.

    The rows and the queries are expressed in coordinates of the span of the rows. An additional
    coordinate has the distance of a query from the span. Distances between queries and rows, and
    between rows, do not change.
    """
    if rows.shape[1] <= len(rows):
        return rows, queries
    center = rows.mean(axis=0)
    rows, queries = rows - center, queries - center
    gram = rows @ rows.T
    factor, pivots, rank, _ = dpstrf(gram, lower=1, tol=SPAN * float(gram.diagonal().max()))
    order = pivots - 1
    coordinates = np.zeros((len(rows), rank + 1))
    coordinates[order, :rank] = np.tril(factor)[:, :rank]
    basis = rows[order[:rank]]
    inside = solve_triangular(factor[:rank, :rank], basis @ queries.T, lower=True).T
    beyond = np.einsum("ij,ij->i", queries, queries) - np.einsum("ij,ij->i", inside, inside)
    return coordinates, np.hstack([inside, np.sqrt(np.maximum(beyond, 0.0))[:, None]])
