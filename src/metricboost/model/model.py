"""The fitted model, which contains everything that predictions and explanations need.

A model contains a metric, its history and, for a classifier, the reading: the readout with its
calibration and training rows. A model contains no engine, no estimator, and no reference to arrays
of the user. Methods expect valid tables: finite numbers and the right number of columns, with NaN
only if the metric has an imputation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from .._blocks import dense
from .._intervals import interval
from .._threads import allowed_threads, one_blas_thread
from .._typing import Data, Float, Index
from ..engines import Engine, engine_at_hand
from .calibration import Calibration
from .history import History
from .metric import SparseMetric
from .out_of_fold import OutOfFold
from .readouts import (
    Fitted,
    FittedLinear,
    Linear,
    Queries,
    Readout,
    Training,
    rows_for_terms,
)
from .rows import TrainingRows

#: Rows are classified in blocks of this size, to limit the memory for their neighbours.
PREDICTED_ROWS = 50_000
#: If all coordinates of an embedding are smaller, squared distances do not overflow.
FARTHEST = 1e140


@dataclass(frozen=True, eq=False)
class Reading:
    """The readout of a model with its calibration, training rows and out-of-fold scores.

    Attributes
    ----------
    readout : Readout
    calibration : Calibration
    rows : TrainingRows or None
        The training rows; None if the model was saved without them.
    score : float
        The share of the rows that are classified correctly out of fold.
    gain : float
        The difference between the out-of-fold Brier scores of guessing and of the model, in
        standard errors. NaN if the metric was learned from all rows.
    plain_score : float
        The share of the rows that are classified correctly out of fold under the plain distance.
        NaN if it was not computed.
    effective_rows : float
        The number of new rows on which an error would be as precise as ``score`` is. NaN if the
        metric was learned from all rows.
    out_of_fold : OutOfFold or None
        The predictions of which ``score`` and ``gain`` are scores. None for a single fit, for the
        models of a search, and if the model was saved without its training rows.
    """

    readout: Readout
    calibration: Calibration
    rows: TrainingRows | None
    score: float
    gain: float
    plain_score: float
    effective_rows: float = float("nan")
    out_of_fold: OutOfFold | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of ``score``; NaN if the metric was learned from all rows."""
        return self.interval_of(self.score)

    def interval_of(self, score: float) -> tuple[float, float]:
        """The 95% interval of a score out of fold.

        Parameters
        ----------
        score : float
        """
        n = self.effective_rows
        return (n, n) if np.isnan(n) else interval(n * score, n)


class Classifying:
    """The base of ``Model`` and ``Blend``: predictions from log odds."""

    classes: npt.NDArray[Any]

    def log_odds(self, X: Data, engine: Engine | None = None) -> Float:
        """The log probabilities of the classes up to a constant for each row, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        raise NotImplementedError

    def probabilities(self, X: Data, engine: Engine | None = None) -> Float:
        """The probability of each class, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        result: Float = softmax(self.log_odds(X, engine), axis=1)
        return result

    def predicted(self, X: Data, engine: Engine | None = None) -> npt.NDArray[Any]:
        """The predicted class of each row.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        return self.labels_of(self.log_odds(X, engine))

    def labels_of(self, log_odds: Float) -> npt.NDArray[Any]:
        """The classes with the largest log odds.

        Parameters
        ----------
        log_odds : ndarray of shape (n_samples, n_classes)
        """
        if len(self.classes) == 2:  # exactly as in the decision function, so that both agree
            codes = (log_odds[:, 1] - log_odds[:, 0] > 0).astype(np.intp)
        else:
            codes = log_odds.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes[codes]
        return labels


@dataclass(frozen=True, eq=False)
class Model(Classifying):
    """A fitted metric and, for a classifier, its reading.

    Attributes
    ----------
    metric : SparseMetric
    classes : ndarray of shape (n_classes,)
        The class labels.
    class_count : ndarray of shape (n_classes,)
        The number of training rows of each class.
    history : History
    start_share : float
        The share of the plain distance in the metric.
    stability : ndarray of shape (n_features,)
        The share of the averaged fits that used each column.
    reading : Reading or None
        The readout with its calibration and training rows. None for a model that only embeds rows.
    """

    metric: SparseMetric
    classes: npt.NDArray[Any]
    class_count: Index
    history: History
    start_share: float
    stability: Float
    reading: Reading | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The fields. A pickle does not contain the cached results of predictions."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def best(self) -> Model:
        """The model itself. The same attribute of a blend is its best model."""
        return self

    @property
    def best_iter(self) -> int:
        """The number of accepted steps in the metric, summed over the fits."""
        return sum(fit.best_iter for fit in self.history.fits)

    @property
    def n_attempts(self) -> int:
        """The number of attempted steps, summed over the fits."""
        return sum(fit.path.n_attempts for fit in self.history.fits)

    @property
    def the_reading(self) -> Reading:
        """The reading. Raises an error if the model only embeds rows."""
        if self.reading is None:
            raise ValueError(
                "This model only embeds rows, because it was fitted by SDist. Use SDistClassifier "
                "for predictions."
            )
        return self.reading

    @property
    def has_rows(self) -> bool:
        """Whether the model has training rows, which are needed to classify."""
        return self.reading is not None and self.reading.rows is not None

    @property
    def rows(self) -> TrainingRows:
        """The training rows."""
        rows = self.the_reading.rows
        if rows is None:
            raise ValueError(
                "This model was saved without its training rows (rows=False), so it can embed rows "
                "and measure distances, but cannot classify. Save the model with rows=True."
            )
        return rows

    def without_rows(self) -> Model:
        """The same model without its training rows. The result can embed rows but not classify."""
        if self.reading is None:
            return self
        return replace(self, reading=replace(self.reading, rows=None, out_of_fold=None))

    def with_row_numbers(self, numbers: Index) -> Model:
        """The same model, with other row numbers for its training rows.

        Parameters
        ----------
        numbers : ndarray of int
            The new number of each training row.
        """
        rows = replace(self.rows, numbers=numbers)
        return replace(self, reading=replace(self.the_reading, rows=rows))

    @one_blas_thread()
    def embed(self, X: Data) -> Float:
        """The embedding of rows.

        If distances to embedded rows would overflow, an error names the column that is the cause.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        """
        with np.errstate(over="ignore", invalid="ignore"):
            embedding = self.metric.embedded(X)
            _refuse_overflow(embedding, X, self.metric)
        return embedding

    @cached_property
    def inside(self) -> SparseMetric:
        """The metric over the columns of the training rows."""
        return self.metric.over_columns(self.rows.columns)

    @cached_property
    @one_blas_thread()
    def training(self) -> Training:
        """The embedded training rows."""
        return self._training_under(self.inside)

    def _training_under(self, inside: SparseMetric, on_terms: bool = False) -> Training:
        rows, n_classes, some = self.rows, len(self.classes), np.arange(len(self.rows))
        if not on_terms:
            return Training(inside.embedded(rows.values), rows.labels, rows.weight, n_classes)
        some = rows_for_terms(some, len(inside.columns), n_classes)
        places = inside.weighted_features(rows.values, some)
        return Training(places, rows.labels[some], rows.weight[some], n_classes)

    @cached_property
    @one_blas_thread()
    def _fitted(self) -> tuple[Training, Fitted]:
        readout = self.the_reading.readout
        training = self._training_under(self.inside, True) if readout.on_terms else self.training
        return training, readout.fit(training)

    @one_blas_thread()
    def log_odds(self, X: Data, engine: Engine | None = None) -> Float:
        """The calibrated log odds of the classes, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        starts = range(0, max(X.shape[0], 1), PREDICTED_ROWS)
        parts = [self.log_odds_of(self.placed(X[s : s + PREDICTED_ROWS]), engine) for s in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def coefficients(self) -> Float | None:
        """What one standard deviation of each term adds to the log odds of each class.

        The result has the shape (n_terms, n_classes), and the sum over the classes is 0. It is None
        if the readout is not linear, or if the model has no training rows.
        """
        if not self.has_rows or not isinstance(self.the_reading.readout, Linear):
            return None
        fitted = self._fitted[1]
        assert isinstance(fitted, FittedLinear)
        found = np.zeros((len(self.metric.columns), len(self.classes)))
        _, terms, roots = self.metric.factored
        found[terms] = roots[:, None] * fitted.coefficients
        return self.the_reading.calibration.slope * found

    def placed(self, X: Data) -> Float:
        """The rows as the readout needs them: embedded, or as weighted terms.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        """
        if not self.the_reading.readout.on_terms:
            return self.embed(X)
        return self.metric.weighted_features(X)

    @one_blas_thread()
    def log_odds_of(self, places: Float, engine: Engine | None = None) -> Float:
        """The log odds of rows as ``placed`` returns them.

        Parameters
        ----------
        places : ndarray of shape (n_samples, rank) or (n_samples, n_terms)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        training, fitted = self._fitted
        return self._log_odds(places, training, fitted, engine)

    def _log_odds(
        self, embedding: Float, training: Training, fitted: Fitted, engine: Engine | None
    ) -> Float:
        reading = self.the_reading
        queries = Queries(_at_hand(engine), training, embedding, [reading.readout])
        return reading.calibration.log_odds(fitted.evidence(queries))

    def log_odds_after(self, m: int, X: Data, engine: Engine | None = None) -> Float:
        """The log odds under the metric after m accepted steps, without pruning.

        Parameters
        ----------
        m : int
            The number of accepted steps.
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        metric = self.history.metric_after(m, self.metric)
        with one_blas_thread():
            readout, inside = self.the_reading.readout, metric.over_columns(self.rows.columns)
            training = self._training_under(inside, readout.on_terms)
            place = metric.weighted_features if readout.on_terms else metric.embedded
            return self._log_odds(place(X), training, readout.fit(training), engine)

    def nearest(
        self, embedding: Float, k: int, engine: Engine | None = None, c: int | None = None
    ) -> tuple[Index, Float]:
        """The k nearest training rows of each embedded row, and their squared distances.

        Parameters
        ----------
        embedding : ndarray of shape (n_queries, rank)
        k : int
        engine : Engine, optional
        c : int, optional
            The number of a class. Only training rows of this class are searched.

        Returns
        -------
        rows : ndarray of shape (n_queries, k)
            Positions in the training rows.
        squared : ndarray of shape (n_queries, k)
        """
        training = self.training
        members = np.arange(len(training.rows)) if c is None else training.members(c)
        found, squared = _at_hand(engine).nearest(embedding, training.rows[members], k)
        return members[found], squared


@dataclass(frozen=True, eq=False)
class Blend(Classifying):
    """Several models whose log probabilities are averaged.

    Attributes
    ----------
    models : tuple of Model
        The models, the best one first. Explanations use the metric of the best model.
    """

    models: Sequence[Model]

    @property
    def best(self) -> Model:
        """The best model."""
        return self.models[0]

    @property
    def classes(self) -> npt.NDArray[Any]:  # type: ignore[override]
        """The class labels."""
        return self.best.classes

    @property
    def the_reading(self) -> Reading:
        """The reading of the best model."""
        return self.best.the_reading

    def without_rows(self) -> Blend:
        """The blend of the same models without their training rows."""
        return Blend(tuple(model.without_rows() for model in self.models))

    def with_row_numbers(self, numbers: Index) -> Blend:
        """The blend of the same models, with other row numbers for their training rows.

        Parameters
        ----------
        numbers : ndarray of int
            The new number of each training row.
        """
        return Blend(tuple(model.with_row_numbers(numbers) for model in self.models))

    def log_odds(self, X: Data, engine: Engine | None = None) -> Float:
        """The mean of the log probabilities of the models, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        parts = [log_softmax(model.log_odds(X, engine), axis=1) for model in self.models]
        result: Float = np.mean(parts, axis=0)
        return result


def _at_hand(engine: Engine | None) -> Engine:
    return engine_at_hand("auto", allowed_threads()) if engine is None else engine


def _refuse_overflow(embedding: Float, X: Data, metric: SparseMetric) -> None:
    """Raise an error if rows are so far from the training data that distances overflow."""
    if len(embedding) and not np.abs(embedding).max() < FARTHEST:
        used = sorted({j for term in metric.columns for j in term if j < metric.n_features})
        size = np.abs(dense(X[:, used]) / metric.scale[used]).max(axis=0)
        worst = metric.feature_names[used[int(np.argmax(size))]]
        raise ValueError(
            f"The values of column {worst!r} lie so far from the training data that distances "
            "overflow: check its units."
        )
