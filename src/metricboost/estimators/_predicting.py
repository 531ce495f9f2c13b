"""What every fitted classifier does with its model: predictions, explanations and a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._typing import Data, Float
from ..engines import Engine
from ..inspection import ModelExplanation, RowExplanation, explain_model, explain_rows
from ..model import Blend, Model
from ..report import Report, make_report


class PredictingMixin:
    """Predictions and explanations by a fitted model."""

    if TYPE_CHECKING:  # the estimators have these

        def _ready(self) -> Model | Blend:
            """The fitted model; an error if there is none."""

        def _checked(self, X: Any) -> Data:
            """Rows for the fitted model, checked."""

        def _engine(self) -> Engine:
            """What computes."""

        def _parameters_of_best(self) -> dict[str, Any]:
            """The parameters of the fit whose metric explains."""

    def decision_function(self, X: Any) -> Float:
        """Calibrated log odds: of ``classes_[1]`` if there are two classes, else of each class.

        With two classes the second one is predicted where the log odds are positive. With more
        classes the one with the largest log odds is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        log_odds = self._ready().log_odds(self._checked(X), self._engine())
        return log_odds[:, 1] - log_odds[:, 0] if log_odds.shape[1] == 2 else log_odds

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
        """Class probabilities, calibrated on rows out of fold.

        With ``class_weight`` or ``sample_weight`` they are those of the weighted population.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._ready().probabilities(self._checked(X), self._engine())

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of ``predict_proba``.

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

    def explain(
        self, X: Any = None, n_neighbors: int = 3
    ) -> ModelExplanation | list[RowExplanation]:
        """What was learned or, for given rows, why they are classified as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows to explain; None explains the model.
        n_neighbors : int, default=3
            Neighbours of each class in the explanation of a row.

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
        """A self-contained page about the model and how well it classifies some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows to show. Best are rows that the model has not seen.
        y : array-like of shape (n_samples,), optional
            The classes of the rows.
        title : str, optional

        Returns
        -------
        metricboost.report.Report
            With ``html``, ``save`` and ``open``. A notebook shows it.
        """
        return make_report(
            self._ready(),
            None if X is None else self._checked(X),
            y,
            title=title,
            parameters=self._parameters_of_best(),
            engine=self._engine(),
        )
