"""The interface of a source: the rows of a table with their classes and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from .._typing import Data, Float, Index
from ..inputs import Imputation


class Summable(Protocol):
    """A summary of some rows; the sum of two summaries is the summary of both sets of rows."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Summable)


@dataclass(frozen=True)
class Block:
    """Some rows of a table.

    Attributes
    ----------
    numbers : ndarray of int
        The numbers of the rows in the table that was given to ``fit``.
    labels : ndarray of int
        The numbers of their classes.
    X : ndarray of shape (n_rows, n_columns)
        Their values in float64. It has no columns if the reduction did not ask for values.
    """

    numbers: Index
    labels: Index
    X: Float


class Source(ABC):
    """The rows of a table that have a weight.

    Only a few blocks of rows, and the rows of a sample, are in memory at a time.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns. The indicators of an imputation are columns too.
    class_count : ndarray of shape (n_classes,)
        The number of rows of every class.
    """

    shape: tuple[int, int]
    class_count: Index

    @abstractmethod
    def reduce(
        self, summarise: Callable[[Block], S], columns: bool = True, least_rows: int = 1
    ) -> S:
        """The sum of the summaries of all blocks, in the order of the blocks.

        Parameters
        ----------
        summarise : callable
            Takes a :class:`Block`. It must be picklable, because it may run on a worker.
        columns : bool, default=True
            Whether the blocks have values. If not, no values are read.
        least_rows : int, default=1
            The least number of rows of a block. Summaries that are larger than a block need more
            rows.

        Returns
        -------
        The sum, of the type that ``summarise`` returns.
        """

    @abstractmethod
    def take(self, numbers: Index) -> tuple[Data, Index, Float]:
        """Some rows, in memory.

        Parameters
        ----------
        numbers : ndarray of int
            The numbers of the rows, in ascending order.

        Returns
        -------
        X : array or sparse matrix
        labels : ndarray of int
        weight : ndarray
        """

    @abstractmethod
    def imputed(self, imputation: Imputation) -> Self:
        """The same rows with missing values filled, and with the columns of the indicators.

        Parameters
        ----------
        imputation : Imputation
        """
