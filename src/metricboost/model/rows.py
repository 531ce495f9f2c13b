"""The training rows that a classifier keeps, among which predictions search for neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float, Index


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """A copy of training rows, with the columns that the model uses.

    Attributes
    ----------
    columns : ndarray of int
        The numbers of the columns, in increasing order. With an imputation, numbers from
        ``n_features`` refer to indicators.
    values : ndarray of shape (n_rows, n_columns)
        The values of these columns, with missing values imputed.
    labels : ndarray of int
        The class number of each row.
    weight : ndarray
        The weight of each row.
    numbers : ndarray of int
        The numbers of the rows in the table that was given to ``fit``.
    """

    columns: Index
    values: Float
    labels: Index
    weight: Float
    numbers: Index

    def __len__(self) -> int:
        return len(self.values)

    def column(self, j: int) -> Float:
        """The values of one column of the table.

        Parameters
        ----------
        j : int
            The number of the column in the table.
        """
        result: Float = self.values[:, np.searchsorted(self.columns, j)]
        return result
