"""Why one row was classified as it was: its neighbours, term by term, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from .._blocks import dense
from .._typing import Data, Float, Index
from ..engines import Engine
from ..model import Blend, Model, SparseMetric
from ._contributions import decomposed
from ._terms import refuse_other_objects, table_columns

#: Number of values of a variable that are tried, from its smallest to its largest training value.
VALUES = 41
#: Number of variables that are tried: those with the largest importance.
VARIABLES = 12
#: Number of places that are tried on the way from a row to a training row.
PLACES = 20


@dataclass(frozen=True)
class Neighbor:
    """A training row near the explained row.

    Attributes
    ----------
    row : int
        The number of the row in the training data.
    label : object
        The class of the row.
    squared_distance : float
        The sum of ``contributions``.
    contributions : ndarray of shape (n_terms,)
        What each term adds to the squared distance. Entries may be negative.
    """

    row: int
    label: Any
    squared_distance: float
    contributions: Float


@dataclass(frozen=True)
class Change:
    """A change of one variable that changes the prediction. All other variables stay the same.

    Attributes
    ----------
    variable : str
    value, new_value : float
    deviations : float
        The difference of the two values in standard deviations of the training rows.
    label : object
        The class that is predicted after the change.
    """

    variable: str
    value: float
    new_value: float
    deviations: float
    label: Any


@dataclass(frozen=True)
class RowExplanation:
    """Why a row was classified as it was. ``model.explain(X)`` makes one for every row of X.

    Attributes
    ----------
    label : object
        The predicted class.
    probabilities : dict
        The probability of every class.
    terms : list of str
        The terms of the metric, in the order of the contributions.
    neighbors : list of Neighbor
        The nearest training rows of each class, class by class, in order of increasing distance.
    changes : list of Change
        Changes of a single variable that change the prediction, the smallest first. Only values
        within the range of the training rows are tried, so the list may be empty.
    way : float or None
        The prediction changes if the row moves this share of the way to a near training row of
        another class, in all variables that the metric uses. None if no near training row of
        another class is itself predicted differently.
    """

    label: Any
    probabilities: dict[Any, float]
    terms: list[str]
    neighbors: list[Neighbor]
    changes: list[Change]
    way: float | None

    def contributions(self, label: Any) -> Float:
        """Mean contributions to the squared distances to the neighbours of one class.

        Parameters
        ----------
        label : object
            The class.

        Returns
        -------
        ndarray of shape (n_terms,)
        """
        of_class = [near.contributions for near in self.neighbors if near.label == label]
        if not of_class:
            raise ValueError(
                f"label={label!r} is not one of the classes {list(self.probabilities)}."
            )
        result: Float = np.mean(of_class, axis=0)
        return result

    def reasons(self, against: Any = None) -> list[tuple[str, float]]:
        """How much more each term adds to the distance to another class than to the predicted one.

        Parameters
        ----------
        against : object, optional
            The other class. By default it is the second most probable class.

        Returns
        -------
        list of (term, difference of mean contributions)
            In decreasing order. The differences sum to the difference of the two mean squared
            distances. Terms with a negative difference are evidence for the other class.
        """
        if against is None:
            others = (label for label in self.probabilities if label != self.label)
            against = max(others, key=lambda label: self.probabilities[label])
        difference = self.contributions(against) - self.contributions(self.label)
        order = np.argsort(-difference, kind="stable")
        return [(self.terms[t], float(difference[t])) for t in order if difference[t] != 0]

    def to_pandas(self) -> Any:
        """The contributions of every neighbour and term.

        Returns
        -------
        pandas.DataFrame
            One row for every neighbour and term, with the columns row, label, squared_distance,
            term and contribution.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                (near.row, near.label, near.squared_distance, term, value)
                for near in self.neighbors
                for term, value in zip(self.terms, near.contributions)
            ],
            columns=["row", "label", "squared_distance", "term", "contribution"],
        )


def explain_rows(
    model: Model | Blend, X: Data, n_neighbors: int = 3, engine: Engine | None = None
) -> list[RowExplanation]:
    """Why rows are classified as they are.

    Parameters
    ----------
    model : Model or Blend
        ``model_`` of a fitted classifier, with its training rows. The neighbours are those under
        the metric of the best model of a blend.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Checked rows: finite numbers, with NaN only if the metric has an imputation. A user calls
        ``explain(X)`` of the classifier, which checks the rows.
    n_neighbors : int, default=3
        The number of neighbours of each class.
    engine : Engine, optional
        Computes the neighbours. By default the fastest engine that is installed.

    Returns
    -------
    list of RowExplanation
        One for every row.
    """
    refuse_other_objects(model)
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors!r} must be an integer, 1 or more.")
    return _Explainer(model, n_neighbors, engine).of(X)


class _Explainer:
    """What explanations of rows need of a model."""

    def __init__(self, model: Model | Blend, n_neighbors: int, engine: Engine | None) -> None:
        self.model = model
        self.best = model.best
        self.k = n_neighbors
        self.engine = engine
        self.labels = model.classes.tolist()
        self.metric: SparseMetric = self.best.metric
        self.names = [term.name for term in self.metric.terms]
        columns = {j for term in self.metric.columns for j in table_columns(self.metric, term)}
        importance = self.metric.importances()
        self.used = np.array(sorted(columns, key=lambda j: (-importance[j], j)), dtype=np.intp)

    def of(self, X: Data) -> list[RowExplanation]:
        X = dense(X)
        log_odds = self.model.log_odds(X, self.engine)
        predicted = self.model.labels_of(log_odds).tolist()
        probabilities = softmax(log_odds, axis=1)
        features, embedding = self.metric.term_features(X), self.best.embed(X)
        near = [
            self.best.nearest(embedding, self.k, self.engine, c)[0] for c in range(len(self.labels))
        ]
        return [
            self._one(X[i], features[i], [rows[i] for rows in near], predicted[i], probabilities[i])
            for i in range(len(X))
        ]

    def _one(
        self, x: Float, features: Float, near: list[Index], label: Any, probabilities: Float
    ) -> RowExplanation:
        places = np.concatenate(near)
        neighbors = self._neighbors(features, places)
        others = [i for i, neighbor in enumerate(neighbors) if neighbor.label != label]
        others.sort(key=lambda i: neighbors[i].squared_distance)
        return RowExplanation(
            label,
            {c: float(p) for c, p in zip(self.labels, probabilities)},
            self.names,
            neighbors,
            self._changes(x, label),
            self._way(x, label, places[others]),
        )

    def _neighbors(self, features: Float, places: Index) -> list[Neighbor]:
        rows = self.best.rows
        difference = features - self.best.inside.term_features(rows.values[places])
        return [
            Neighbor(int(rows.numbers[i]), self.labels[rows.labels[i]], float(part.sum()), part)
            for i, part in zip(places, decomposed(self.metric, difference))
        ]

    def _changes(self, x: Float, label: Any) -> list[Change]:
        """The smallest change of each variable that changes the prediction."""
        variables = self.used[:VARIABLES]
        # A column for each variable.
        values = np.stack([_tried_values(self._training_values(j)) for j in variables], axis=1)
        tried = np.repeat(x[None], values.size, axis=0)
        tried[np.arange(len(tried)), np.tile(variables, VALUES)] = values.ravel()
        predicted = self.model.predicted(tried, self.engine).reshape(values.shape)
        found = [
            self._smallest(x, int(j), values[:, i], predicted[:, i], label)
            for i, j in enumerate(variables)
        ]
        return sorted(
            (change for change in found if change is not None),
            key=lambda change: abs(change.deviations),
        )

    def _smallest(
        self, x: Float, j: int, values: Float, predicted: npt.NDArray[Any], label: Any
    ) -> Change | None:
        deviations = (values - self._value(x, j)) / self.metric.scale[j]
        deviations[predicted == label] = np.inf
        best = int(np.argmin(np.abs(deviations)))
        if not np.isfinite(deviations[best]):
            return None
        name = self.metric.feature_names[j]
        new = predicted.tolist()[best]
        return Change(name, float(x[j]), float(values[best]), float(deviations[best]), new)

    def _training_values(self, j: int) -> Float:
        """A column of the training rows, with missing values filled.

        If only the indicator of the column is in the metric, the model does not keep the column.
        The value that fills the column stands for all its values then, because only one thing about
        them matters: that they are not missing.
        """
        rows = self.best.rows
        if j in rows.columns:
            return rows.column(j)
        assert self.metric.imputation is not None
        return np.full(len(rows), self.metric.imputation.fill[j])

    def _value(self, x: Float, j: int) -> float:
        """The value of a variable. A missing value counts as the median that fills its column."""
        imputation = self.metric.imputation
        return float(x[j] if imputation is None or not np.isnan(x[j]) else imputation.fill[j])

    def _way(self, x: Float, label: Any, near: Index) -> float | None:
        """The smallest share of the way to a training row at which the prediction changes.

        Parameters
        ----------
        near : ndarray of int
            Training rows of other classes, in order of increasing distance. The first one whose own
            prediction differs is the goal, because a row may be an outlier of its class.
        """
        goals = np.stack([self._training_values(j)[near] for j in self.used], axis=1)
        at_goals = self.model.predicted(self._moved(x, goals, np.ones(len(goals))), self.engine)
        reached = np.flatnonzero(at_goals != label)
        if not len(reached):
            return None
        shares = np.linspace(1 / PLACES, 1, PLACES)
        on_the_way = self._moved(x, goals[reached[:1]], shares)
        changed = self.model.predicted(on_the_way, self.engine) != label
        return float(shares[np.argmax(changed)])

    def _moved(self, x: Float, goals: Float, shares: Float) -> Float:
        """Copies of a row, each moved a share of the way to a goal in the variables used."""
        present = np.array([self._value(x, j) for j in self.used])
        moved = np.repeat(x[None], len(shares), axis=0)
        moved[:, self.used] = present + shares[:, None] * (goals - present)
        return moved


def _tried_values(column: Float) -> Float:
    """VALUES values that a column can have.

    If a column has few distinct values, they are repeated. Otherwise the values are evenly spaced,
    and rounded if the column has whole numbers only.
    """
    own = np.unique(column)
    if len(own) <= VALUES:
        return np.resize(own, VALUES)
    values: Float = np.linspace(own[0], own[-1], VALUES)
    return np.rint(values) if (own % 1 == 0).all() else values
