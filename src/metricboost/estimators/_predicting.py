"""``PredictingMixin``: predictions, explanations and the report of a fitted classifier."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import Float, Index
from ..inspection import ModelExplanation, RowExplanation, explain_model, explain_rows
from ..report import Report, make_report
from ._embedding import ModelHolder


class PredictingMixin(ModelHolder):
    """Predictions, explanations and a report from the model of a fitted classifier."""

    def decision_function(self, X: Any) -> Float:
        """Calibrated log odds of the classes.

        With two classes the result has one number per row, the log odds of ``classes_[1]`` against
        ``classes_[0]``; ``classes_[1]`` is predicted if the number is positive. With more classes
        the result has one number per row and class; the class with the largest number is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return decision_values(self._ready().log_odds(self._checked(X), self._engine()))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._ready().predicted(self._checked(X), self._engine())

    def predict_proba(self, X: Any) -> Float:
        """The probabilities of the classes, calibrated with predictions out of fold.

        With ``class_weight`` or ``sample_weight`` the probabilities refer to a population in which
        the rows have these weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ready().probabilities(self._checked(X), self._engine())

    def predict_log_proba(self, X: Any) -> Float:
        """The logarithms of ``predict_proba``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):  # log(0) is -inf, as in scikit-learn's classifiers
            result: Float = np.log(self.predict_proba(X))
        return result

    @property
    def n_neighbors_predict_(self) -> int:
        return self._ready().best.the_reading.readout.n_neighbors

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """The predictions after each accepted step of the fits, without pruning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,)
        """
        model, X = self._ready().best, self._checked(X)
        for m in range(1, model.history.n_steps + 1):
            yield model.labels_of(model.log_odds_after(m, X, self._engine()))

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Float, npt.NDArray[np.int32]] | npt.NDArray[np.int32]:
        """The nearest training rows of each row, under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_neighbors : int, default=None
            The number of neighbours; ``n_neighbors_predict_`` by default.
        return_distance : bool, default=True
            Whether the distances are returned too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors), if ``return_distance``
        rows : ndarray of shape (n_samples, n_neighbors)
            The row numbers of the neighbours in the table that was given to ``fit``.
        """
        model = self._ready().best
        rows = model.rows
        k = self.n_neighbors_predict_ if n_neighbors is None else n_neighbors
        if not isinstance(k, Integral) or not 1 <= k <= len(rows):
            raise ValueError(
                f"n_neighbors={k}, but the model has {len(rows)} training rows: n_neighbors must "
                f"be an integer from 1 to {len(rows)}."
            )
        near, squared = model.nearest(self._embedded(X), int(k), self._engine())
        numbers: Index = rows.numbers[near]
        found = numbers.astype(np.int32)
        return (np.sqrt(squared), found) if return_distance else found

    def explain(
        self, X: Any = None, n_neighbors: int = 3
    ) -> ModelExplanation | list[RowExplanation]:
        """Explain the model, or the predictions for given rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            The rows whose predictions are explained. With None the model is explained.
        n_neighbors : int, default=3
            The number of neighbours of each class in the explanation of a row.

        Returns
        -------
        metricboost.inspection.ModelExplanation, or a list of \
        metricboost.inspection.RowExplanation
        """
        model = self._ready()
        if X is None:
            return explain_model(model)
        return explain_rows(model, self._checked(X), n_neighbors, self._engine())

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Report:
        """A self-contained HTML page about the model and its predictions for some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows for the page. Rows that were not used in ``fit`` show how well the model
            generalises. Without X the page describes only the model.
        y : array-like of shape (n_samples,), optional
            The classes of the rows.
        title : str, optional
            The title of the page.

        Returns
        -------
        metricboost.report.Report
            The page, with ``html``, ``save`` and ``open``. A notebook displays the page.
        """
        return make_report(
            self._ready(),
            None if X is None else self._checked(X),
            y,
            title=title,
            parameters=self._parameters_of_best(),
            engine=self._engine(),
        )


def decision_values(log_odds: Float) -> Float:
    """Log probabilities of the classes as ``decision_function`` returns them.

    Parameters
    ----------
    log_odds : ndarray of shape (n_samples, n_classes)
    """
    return log_odds[:, 1] - log_odds[:, 0] if log_odds.shape[1] == 2 else log_odds
