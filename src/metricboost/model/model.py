"""The fitted model: everything that survives a fit, and nothing about how it was made.

A model holds a metric, its history and, for a classifier, how classes are read off it. It holds no
engine, no estimator and no reference to arrays of the user. Methods take tables that are checked
already: finite numbers of the right width, with NaN only if the metric has an imputation.
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
from .._threads import allowed_threads, one_blas_thread
from .._typing import Data, Float, Index
from ..engines import Engine, engine_at_hand
from .calibration import Calibration
from .history import History
from .metric import SparseMetric
from .readouts import Fitted, Queries, Readout, Training
from .rows import TrainingRows

#: Rows that are classified at a time, because their neighbours take memory.
PREDICTED_ROWS = 50_000
#: Coordinates of an embedding below which squared distances do not overflow.
FARTHEST = 1e140


@dataclass(frozen=True, eq=False)
class Reading:
    """How classes are read off a metric.

    Attributes
    ----------
    readout : Readout
    calibration : Calibration
    rows : TrainingRows or None
        None if the model was saved without its training rows.
    score : float
        The share of the rows that were classified correctly out of fold.
    gain : float
        Standard errors by which the model is better than guessing out of fold. NaN if the metric
        had seen the rows.
    plain_score : float
        The share of the rows that plain neighbours classify correctly out of fold; NaN if unknown.
    """

    readout: Readout
    calibration: Calibration
    rows: TrainingRows | None
    score: float
    gain: float
    plain_score: float


class Classifying:
    """What a model and a blend of models share: predictions from log odds."""

    classes: npt.NDArray[Any]

    def log_odds(self, X: Data, engine: Engine | None = None) -> Float:
        """Log probabilities of the classes, up to a constant of the row, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        raise NotImplementedError

    def probabilities(self, X: Data, engine: Engine | None = None) -> Float:
        """The probability of every class, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        result: Float = softmax(self.log_odds(X, engine), axis=1)
        return result

    def predicted(self, X: Data, engine: Engine | None = None) -> npt.NDArray[Any]:
        """The predicted class of every row.

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
        if len(self.classes) == 2:  # the sign of the decision function, to the last bit
            codes = (log_odds[:, 1] - log_odds[:, 0] > 0).astype(np.intp)
        else:
            codes = log_odds.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes[codes]
        return labels


@dataclass(frozen=True, eq=False)
class Model(Classifying):
    """A fitted metric and, for a classifier, how classes are read off it.

    Attributes
    ----------
    metric : SparseMetric
    classes : ndarray of shape (n_classes,)
    class_count : ndarray of shape (n_classes,)
        The training rows of every class.
    history : History
    start_share : float
        The share of the plain distance in the metric.
    stability : ndarray of shape (n_features,)
        The share of the averaged fits that used every column.
    reading : Reading or None
        None for a model that only embeds.
    """

    metric: SparseMetric
    classes: npt.NDArray[Any]
    class_count: Index
    history: History
    start_share: float
    stability: Float
    reading: Reading | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The fields. A pickle leaves out what was computed from them for predictions."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def best(self) -> Model:
        """The model whose metric explains: this one. A blend has several models."""
        return self

    @property
    def best_iter(self) -> int:
        """The accepted steps in the metric, over all fits."""
        return sum(fit.best_iter for fit in self.history.fits)

    @property
    def n_attempts(self) -> int:
        """The attempted steps, over all fits."""
        return sum(fit.path.n_attempts for fit in self.history.fits)

    @property
    def the_reading(self) -> Reading:
        """How classes are read off the metric; an error if the model only embeds."""
        if self.reading is None:
            raise ValueError("This model only embeds rows: it was fitted without a readout.")
        return self.reading

    @property
    def has_rows(self) -> bool:
        """Whether the model has training rows, so that it can classify."""
        return self.reading is not None and self.reading.rows is not None

    @property
    def rows(self) -> TrainingRows:
        """The training rows."""
        rows = self.the_reading.rows
        if rows is None:
            raise ValueError(
                "This model was saved without its training rows (rows=False): it can embed rows "
                "and measure distances, but classifying takes neighbours."
            )
        return rows

    def without_rows(self) -> Model:
        """The same model without its training rows: it only embeds."""
        if self.reading is None:
            return self
        return replace(self, reading=replace(self.reading, rows=None))

    def with_row_numbers(self, numbers: Index) -> Model:
        """The same model, with other numbers for its training rows.

        Parameters
        ----------
        numbers : ndarray of int
            One for every training row.
        """
        rows = replace(self.rows, numbers=numbers)
        return replace(self, reading=replace(self.the_reading, rows=rows))

    @one_blas_thread()
    def embed(self, X: Data) -> Float:
        """The embedding of rows. An error names the column with values too far out.

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
        """The metric over the values of the training rows."""
        return self.metric.over_columns(self.rows.columns)

    @cached_property
    @one_blas_thread()
    def training(self) -> Training:
        """The training rows under the metric."""
        return self._training_under(self.inside)

    def _training_under(self, inside: SparseMetric) -> Training:
        rows = self.rows
        embedding = inside.embedded(rows.values)
        return Training(embedding, rows.labels, rows.weight, len(self.classes))

    @cached_property
    @one_blas_thread()
    def _fitted(self) -> Fitted:
        return self.the_reading.readout.fit(self.training)

    @one_blas_thread()
    def log_odds(self, X: Data, engine: Engine | None = None) -> Float:
        """Calibrated log odds of the classes, n x C.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        starts = range(0, X.shape[0], PREDICTED_ROWS)
        parts = [self.log_odds_of(self.embed(X[s : s + PREDICTED_ROWS]), engine) for s in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @one_blas_thread()
    def log_odds_of(self, embedding: Float, engine: Engine | None = None) -> Float:
        """The log odds of rows that are embedded already.

        Parameters
        ----------
        embedding : ndarray of shape (n_samples, rank)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        return self._log_odds(embedding, self.training, self._fitted, engine)

    def _log_odds(
        self, embedding: Float, training: Training, fitted: Fitted, engine: Engine | None
    ) -> Float:
        reading = self.the_reading
        queries = Queries(_at_hand(engine), training, embedding, [reading.readout])
        return reading.calibration.log_odds(fitted.evidence(queries))

    def log_odds_after(self, m: int, X: Data, engine: Engine | None = None) -> Float:
        """The log odds under the metric after m accepted steps, before pruning.

        Parameters
        ----------
        m : int
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        engine : Engine, optional
            Searches for the neighbours. By default the fastest engine that is installed.
        """
        metric = self.history.metric_after(m, self.metric)
        with one_blas_thread():
            training = self._training_under(metric.over_columns(self.rows.columns))
            fitted = self.the_reading.readout.fit(training)
            return self._log_odds(metric.embedded(X), training, fitted, engine)

    def nearest(
        self, embedding: Float, k: int, engine: Engine | None = None, c: int | None = None
    ) -> tuple[Index, Float]:
        """The k nearest training rows of embedded rows, and their squared distances.

        Parameters
        ----------
        embedding : ndarray of shape (n_queries, rank)
        k : int
        engine : Engine, optional
        c : int, optional
            Only rows of this class.

        Returns
        -------
        rows : ndarray of shape (n_queries, k)
            Places among the training rows.
        squared : ndarray of shape (n_queries, k)
        """
        training = self.training
        members = np.arange(len(training.rows)) if c is None else training.members(c)
        found, squared = _at_hand(engine).nearest(embedding, training.rows[members], k)
        return members[found], squared


@dataclass(frozen=True, eq=False)
class Blend(Classifying):
    """Models whose log probabilities are averaged.

    Attributes
    ----------
    models : tuple of Model
        The best one first: its metric explains.
    """

    models: Sequence[Model]

    @property
    def best(self) -> Model:
        """The model whose metric explains."""
        return self.models[0]

    @property
    def classes(self) -> npt.NDArray[Any]:  # type: ignore[override]
        """The class labels."""
        return self.best.classes

    def without_rows(self) -> Blend:
        """The same models without their training rows."""
        return Blend([model.without_rows() for model in self.models])

    def with_row_numbers(self, numbers: Index) -> Blend:
        """The same models, with other numbers for their training rows.

        Parameters
        ----------
        numbers : ndarray of int
            One for every training row.
        """
        return Blend([model.with_row_numbers(numbers) for model in self.models])

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
    """Refuse rows so far from the training data that squared distances to them overflow."""
    if len(embedding) and not np.abs(embedding).max() < FARTHEST:
        used = sorted({j for term in metric.columns for j in term if j < metric.n_features})
        size = np.abs(dense(X[:, used]) / metric.scale[used]).max(axis=0)
        worst = metric.feature_names[used[int(np.argmax(size))]]
        raise ValueError(
            f"The values of column {worst!r} lie so far from the training data that distances "
            "overflow: check its units."
        )
