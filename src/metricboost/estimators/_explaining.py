"""What every fitted classifier can say about itself: explanations and a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..inspection import ModelExplanation, RowExplanation
    from ..report import Report


class ExplainingMixin:
    """``explain`` and ``report``, for a classifier with a metric."""

    def _check_ready(self) -> None:
        """Raise where there is no fitted model to speak of."""
        raise NotImplementedError

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
        from ..inspection import explain_model, explain_rows

        self._check_ready()
        return explain_model(self) if X is None else explain_rows(self, X, n_neighbors)

    def report(self, X: Any = None, y: Any = None, title: str | None = None) -> Report:
        """A self-contained page about the model and how it does on some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows to show, best rows that the model has not seen.
        y : array-like of shape (n_samples,), optional
            Their classes.
        title : str, optional

        Returns
        -------
        metricboost.report.Report
            With ``html``, ``save`` and ``open``; a notebook shows it.
        """
        from ..report import make_report

        self._check_ready()
        return make_report(self, X, y, title)
