"""Why one row was classified as it was: its neighbours, term by term, and what would change it.

With Delta the difference of two rows' terms, the squared distance is ``Delta' W Delta``, the sum of
``Delta_a (W Delta)_a`` over the terms a. That is what a term contributes: an exact decomposition.
Single contributions can be negative, where a term goes along with one that W weighs against it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .._blocks import dense
from .._typing import Float, Index
from ..estimators._validation import check_table
from ..metric import SparseMetric
from ._terms import _own

#: A variable is tried at so many values between the smallest and the largest training value.
VALUES = 41
#: Variables that are tried, those that matter most.
VARIABLES = 12


@dataclass(frozen=True)
class Neighbor:
    """A training row near the explained one.

    Attributes
    ----------
    row : int
        Its number in the training data.
    label : object
        Its class.
    squared_distance : float
        The sum of ``contributions``.
    contributions : ndarray of shape (n_terms,)
        What each term adds to the squared distance; it may be negative.
    """

    row: int
    label: Any
    squared_distance: float
    contributions: Float


@dataclass(frozen=True)
class Change:
    """A change of one variable that changes the prediction, all others as they are.

    Attributes
    ----------
    variable : str
    value, new_value : float
    deviations : float
        How far that is, in standard deviations of the training rows.
    label : object
        The class that is predicted then.
    """

    variable: str
    value: float
    new_value: float
    deviations: float
    label: Any


@dataclass(frozen=True)
class RowExplanation:
    """Why a row was classified as it was; made by ``model.explain(X)``.

    Attributes
    ----------
    label : object
        The predicted class.
    probabilities : dict
        Of every class.
    terms : list of str
        The terms of the metric, in the order of the contributions.
    neighbors : list of Neighbor
        The nearest training rows of each class, class by class, the nearest first.
    changes : list of Change
        Changes of a single variable that change the prediction, the smallest first; empty where
        none within the range of the training rows does.
    way : float or None
        How much of the way to a near training row of another class the row must go, in all
        variables that the metric uses, for the prediction to change. None where none of them would
        be classified otherwise itself.
    """

    label: Any
    probabilities: dict[Any, float]
    terms: list[str]
    neighbors: list[Neighbor]
    changes: list[Change]
    way: float | None

    def contributions(self, label: Any) -> Float:
        """Mean contributions to the squared distance to the nearest rows of a class."""
        of_class = [near.contributions for near in self.neighbors if near.label == label]
        if not of_class:
            raise ValueError(f"label={label!r} is none of the classes {list(self.probabilities)}.")
        result: Float = np.mean(of_class, axis=0)
        return result

    def reasons(self, against: Any = None) -> list[tuple[str, float]]:
        """How much farther each term puts another class than the predicted one, the most first.

        Parameters
        ----------
        against : label, optional
            The next most probable class by default.

        Returns
        -------
        list of (term, difference of mean contributions)
            They sum to the difference of the two mean squared distances. Terms with negative
            differences speak for the other class.
        """
        if against is None:
            others = (label for label in self.probabilities if label != self.label)
            against = max(others, key=lambda label: self.probabilities[label])
        difference = self.contributions(against) - self.contributions(self.label)
        order = np.argsort(-difference, kind="stable")
        return [(self.terms[t], float(difference[t])) for t in order if difference[t] != 0]

    def to_pandas(self) -> Any:
        """One line per neighbour and term: row, label, squared_distance, term, contribution."""
        import pandas as pd

        return pd.DataFrame(
            [
                (near.row, near.label, near.squared_distance, term, value)
                for near in self.neighbors
                for term, value in zip(self.terms, near.contributions)
            ],
            columns=["row", "label", "squared_distance", "term", "contribution"],
        )


def contributions(metric: SparseMetric, X: npt.ArrayLike, Y: npt.ArrayLike) -> Float:
    """What every term adds to the squared distance between row i of X and row i of Y.

    Parameters
    ----------
    metric : SparseMetric
    X, Y : array-like of shape (n_pairs, n_features)

    Returns
    -------
    ndarray of shape (n_pairs, n_terms)
        In the order of ``metric.columns``. Rows sum to the squared distances; entries may be
        negative.

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost import SparseMetric
    >>> from metricboost.inspection import contributions
    >>> metric = SparseMetric([(0,), (1,)], [[1.0, -0.5]], np.zeros(2), np.ones(2),
    ...                       np.zeros(2), np.ones(2))
    >>> contributions(metric, [[1.0, 1.0]], [[0.0, 0.0]])
    array([[ 0.5 , -0.25]])
    >>> metric.pair_distance([[1.0, 1.0]], [[0.0, 0.0]]) ** 2
    array([0.25])
    """
    return decomposed(metric, metric.term_features(X) - metric.term_features(Y))


def decomposed(metric: SparseMetric, delta: Float) -> Float:
    weighted = (delta @ metric.components.T) @ metric.components + delta * metric.diagonal
    result: Float = delta * weighted
    return result


def explain_rows(model: Any, X: Any, n_neighbors: int = 3) -> list[RowExplanation]:
    """Why rows are classified as they are, one explanation per row.

    Parameters
    ----------
    model : SDistClassifier or SDistClassifierCV
        Fitted, and with its training rows. Neighbours are those under the metric of the best model
        where several are blended.
    X : array-like of shape (n_samples, n_features)
    n_neighbors : int, default=3
        Neighbours of each class.

    Returns
    -------
    list of RowExplanation
    """
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors!r} must be an integer, 1 or more.")
    return _Explainer(model, n_neighbors).of(X)


class _Explainer:
    """The training rows of a model, as explanations need them."""

    def __init__(self, model: Any, n_neighbors: int) -> None:
        self.model = model
        self.best = getattr(model, "best_estimator_", model)
        training = self.best._readout.training
        self.k = n_neighbors
        self.metric: SparseMetric = self.best.metric_
        self.members = [training.members(c) for c in range(training.n_classes)]
        self.embedding = training.rows
        self.table = self.best._crossfit.X  # imputed already
        self.inside = self.metric.without_imputation()
        self.place = {int(row): i for i, row in enumerate(self.best._training_rows)}
        self.names = [self.metric.name(term) for term in self.metric.columns]
        own = {_own(self.metric, column) for term in self.metric.columns for column in term}
        importance = self.metric.importances()
        self.used = np.array(sorted(own, key=lambda j: (-importance[j], j)), dtype=np.intp)

    def of(self, X: Any) -> list[RowExplanation]:
        embedded = self.best._embedded(X)
        probabilities, labels = self.model.predict_proba(X), self.model.predict(X)
        numeric = dense(check_table(self.best, X, reset=False, missing=self.best.missing))
        features = self.metric.term_features(numeric)
        near = [self._near(embedded, own) for own in self.members]
        return [
            self._one(numeric[i], features[i], [rows[i] for rows in near], label, probability)
            for i, (label, probability) in enumerate(zip(labels.tolist(), probabilities))
        ]

    def _near(self, embedded: Float, members: Index) -> Index:
        rows, _ = self.best._engine().nearest(embedded, self.embedding[members], self.k)
        result: Index = members[rows]
        return result

    def _one(
        self, x: Float, features: Float, near: list[Index], label: Any, probability: Float
    ) -> RowExplanation:
        classes = self.model.classes_
        neighbors = [
            neighbor
            for c, rows in enumerate(near)
            for neighbor in self._neighbors(features, rows, c)
        ]
        others = [n for n in neighbors if n.label != label]
        return RowExplanation(
            label,
            {c: float(p) for c, p in zip(classes.tolist(), probability)},
            self.names,
            neighbors,
            self._changes(x, label),
            self._way(x, label, others),
        )

    def _neighbors(self, features: Float, rows: Index, c: int) -> list[Neighbor]:
        delta = features - self.inside.term_features(self.table[rows])
        parts = decomposed(self.metric, delta)
        numbers = self.best._training_rows[rows]
        label = self.model.classes_.tolist()[c]
        return [Neighbor(int(number), label, float(part.sum()), part)
                for number, part in zip(numbers, parts)]  # fmt: skip

    def _changes(self, x: Float, label: Any) -> list[Change]:
        """The smallest change of each variable that changes the prediction."""
        variables = self.used[:VARIABLES]
        # A column for each variable.
        values = np.stack([_values_of(dense(self.table[:, [j]])[:, 0]) for j in variables], axis=1)
        tried = np.repeat(x[None], values.size, axis=0)
        place = np.tile(variables, VALUES)
        tried[np.arange(len(tried)), place] = values.ravel()
        predicted = self._predict(tried).reshape(values.shape)
        found = []
        for i, j in enumerate(variables):
            change = self._smallest(x, int(j), values[:, i], predicted[:, i], label)
            if change is not None:
                found.append(change)
        return sorted(found, key=lambda change: abs(change.deviations))

    def _smallest(
        self, x: Float, j: int, values: Float, predicted: npt.NDArray[Any], label: Any
    ) -> Change | None:
        present = self._value(x, j)
        deviations = (values - present) / self.metric.scale[j]
        deviations[predicted == label] = np.inf
        best = int(np.argmin(np.abs(deviations)))
        if not np.isfinite(deviations[best]):
            return None
        name = self.metric.feature_names[j]
        new = predicted.tolist()[best]
        return Change(name, float(x[j]), float(values[best]), float(deviations[best]), new)

    def _value(self, x: Float, j: int) -> float:
        """What a value counts as: a missing one as its column's median."""
        filled = np.isnan(x[j]) and self.metric.imputation is not None
        return float(self.metric.imputation.fill[j] if filled else x[j])

    def _way(self, x: Float, label: Any, others: list[Neighbor]) -> float | None:
        """The smallest of 20 shares of the way to a row of another class that changes the class.

        The row is the nearest at which the prediction is another one: some are outliers.
        """
        near = sorted(others, key=lambda neighbor: neighbor.squared_distance)
        goals = dense(self.table[[self.place[neighbor.row] for neighbor in near]])[:, self.used]
        reached = np.flatnonzero(self._predict(self._moved(x, goals, np.ones(len(near)))) != label)
        if not len(reached):
            return None
        shares = np.linspace(0.05, 1, 20)
        changed = self._predict(self._moved(x, goals[reached[:1]], shares)) != label
        return float(shares[np.argmax(changed)])

    def _moved(self, x: Float, goals: Float, shares: Float) -> Float:
        """Copies of a row, moved a share of the way to its goal in the variables that matter."""
        present = np.array([self._value(x, j) for j in self.used])
        moved = np.repeat(x[None], len(shares), axis=0)
        moved[:, self.used] = present + shares[:, None] * (goals - present)
        return moved

    def _predict(self, X: Float) -> npt.NDArray[Any]:
        with warnings.catch_warnings():  # these rows are ours: the columns are in order
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            result: npt.NDArray[Any] = self.model.predict(X)
        return result


def _values_of(column: Float) -> Float:
    """So many values that a column can have: its own where they are few, whole where those are."""
    own = np.unique(column)
    if len(own) <= VALUES:
        return np.resize(own, VALUES)  # repeated: a value may be tried twice
    values: Float = np.linspace(own[0], own[-1], VALUES)
    return np.rint(values) if (own % 1 == 0).all() else values
