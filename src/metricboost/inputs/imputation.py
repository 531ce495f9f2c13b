"""Imputation: missing values are replaced by medians, and marked in indicator columns.

The fact that a value is missing can be as informative as the value. Each column that has missing
values in the training table therefore gets an indicator: an additional column that is 1 where the
value was missing, and 0 elsewhere. A metric can use the column, the indicator, or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._typing import Float


@dataclass(frozen=True, eq=False)  # the fields are arrays, which == compares element by element
class Imputation:
    """The values that replace missing values, and the columns that have an indicator.

    The *extended table* has the columns of the input, followed by the indicators.

    Attributes
    ----------
    fill : ndarray of shape (n_features,)
        The value that replaces the missing values of each column: the median of the finite values
        in training, or 0.0 for a column without finite values.
    indicators : tuple of int
        The columns of the input that had missing values in training.

    Examples
    --------
    >>> import numpy as np
    >>> from metricboost.inputs import Imputation
    >>> imputation = Imputation.of(np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]]))
    >>> imputation.fill, imputation.indicators
    (array([2., 6.]), (1,))
    >>> imputation.apply(np.array([[np.nan, np.nan], [3.0, 8.0]]))
    array([[2., 6., 1.],
           [3., 8., 0.]])
    >>> imputation.names(["age", "income"])
    ['age', 'income', 'missing(income)']
    """

    fill: Float
    indicators: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.fill.ndim != 1 or not np.isfinite(self.fill).all():
            raise ValueError(f"fill must be one finite value per column, got {self.fill}.")
        known = set(self.indicators) <= set(range(len(self.fill)))
        if not known or len(set(self.indicators)) < len(self.indicators):
            raise ValueError(
                f"indicators must be distinct columns from 0 to {len(self.fill) - 1}, "
                f"got {self.indicators}."
            )

    @classmethod
    def of(cls, X: npt.ArrayLike) -> Imputation:
        """The imputation for a training table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        X = np.asarray(X, dtype=np.float64)
        missing = np.flatnonzero(np.isnan(X).any(axis=0))
        return cls(_finite_medians(X), tuple(int(j) for j in missing))

    def apply(self, X: npt.ArrayLike) -> Float:
        """The extended table: X with its missing values replaced, followed by the indicators.

        A column without missing values in training has no indicator; its missing values in X are
        only replaced.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features + len(indicators))
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.fill):
            raise ValueError(
                f"X has shape {X.shape}, but the imputation was made for a table with "
                f"{len(self.fill)} columns."
            )
        missing = np.isnan(X)
        marks = missing[:, list(self.indicators)].astype(np.float64)
        return np.hstack([np.where(missing, self.fill, X), marks])

    def names(self, names: Sequence[str]) -> list[str]:
        """The names of the columns of the extended table.

        Parameters
        ----------
        names : sequence of str
            The names of the columns of the input.
        """
        return [*names, *(indicator_name(names[j]) for j in self.indicators)]


def indicator_name(name: str) -> str:
    """The name of the indicator of a column."""
    return f"missing({name})"


def _finite_medians(X: Float) -> Float:
    """The median of the finite values of each column; 0.0 for a column without finite values."""
    if not len(X):
        return np.zeros(X.shape[1])
    finite = np.isfinite(X)
    count, column = finite.sum(axis=0), np.arange(X.shape[1])
    ordered = np.sort(np.where(finite, X, np.nan), axis=0)  # NaN is sorted to the end
    low, high = ordered[np.maximum(count - 1, 0) // 2, column], ordered[count // 2, column]
    # The values are halved before they are added, because the sum of two huge values overflows.
    result: Float = np.where(count > 0, 0.5 * low + 0.5 * high, 0.0)
    return result
