"""The interface of a source: the rows of a table with their classes and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from .._typing import Data, Float, Index
from ..inputs.imputation import Imputation


class Summable(Protocol):
    """A summary of some rows; the sum of two summaries is the summary of both sets of rows."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Summable)


@dataclass(frozen=True)
class Block:
    """Some rows of a table.

    ``numbers`` are the numbers of the rows in the table as it was given, ``labels`` their class
    numbers. ``X`` has their values in float64; it has no columns if the reduction did not ask for
    columns.
    """

    numbers: Index
    labels: Index
    X: Float


class Source(ABC):
    """The rows of a table that have a weight.

    At most a few blocks of rows, and some chosen rows, are in memory at a time.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns. With an imputation, the columns include its indicators.
    class_count : ndarray of shape (n_classes,)
        How many rows each class has.
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
            Whether the blocks have values. Without them no column is read.
        least_rows : int, default=1
            The least number of rows of a block, for summaries that are larger than a block.
        """

    @abstractmethod
    def take(self, numbers: Index) -> tuple[Data, Index, Float]:
        """Some rows in memory, in ascending order of their numbers: values, labels, weights."""

    @abstractmethod
    def imputed(self, imputation: Imputation) -> Self:
        """The same rows with missing values filled, and with the columns of the indicators."""
