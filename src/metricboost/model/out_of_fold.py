"""Predictions out of fold: for training rows, by metrics and choices that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from .._typing import Float, Index


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions for rows of the table that was given to ``fit``.

    Attributes
    ----------
    n_rows : int
        The number of rows of the table.
    rows : ndarray of int
        The numbers of the rows that have a prediction, in increasing order.
    labels : ndarray of int
        The class numbers of these rows.
    log_odds : ndarray of shape (len(rows), n_classes)
        The log probabilities of the classes, up to a constant for each row.
    """

    n_rows: int
    rows: Index
    labels: Index
    log_odds: Float

    @property
    def probabilities(self) -> Float:
        """The probability of each class, for the rows that have a prediction."""
        result: Float = softmax(self.log_odds, axis=1)
        return result

    def of_all_rows(self, values: Float) -> Float:
        """Values of the predictions as an array with a row for each row of the table.

        Parameters
        ----------
        values : ndarray of shape (len(rows), ...)

        Returns
        -------
        ndarray of shape (n_rows, ...)
            NaN for rows without a prediction.
        """
        found = np.full((self.n_rows, *values.shape[1:]), np.nan)
        found[self.rows] = values
        return found
