"""Records: the objects of a manifest, and the arrays that they name.

Reading asks for every value with the type and the range that the value must have.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from .archive import Array

#: The types of arrays by what their entries are.
KINDS = {"numbers": "<f8", "integers": "<i8", "flags": "|b1"}
#: The largest number of type float.
LARGEST = sys.float_info.max


@dataclass
class Arrays:
    """The arrays of a file that is being written.

    Attributes
    ----------
    found : dict of str to ndarray
        All arrays of the file by their full names.
    prefix : str
        What the names of new arrays begin with.
    """

    found: dict[str, Array] = field(default_factory=dict)
    prefix: str = ""

    def below(self, name: str) -> Arrays:
        """The same collection with ``name`` added to the prefix of new arrays."""
        return Arrays(self.found, f"{self.prefix}{name}/")

    def add(self, name: str, array: npt.ArrayLike) -> str:
        """Keep an array, and return its full name for the manifest."""
        full = self.prefix + name
        if full in self.found:
            raise ValueError(f"Two arrays of the model file have the name {full}.")
        self.found[full] = np.asarray(array)
        return full

    def add_all(self, **arrays: npt.ArrayLike) -> dict[str, str]:
        """Keep several arrays, and return their full names."""
        return {name: self.add(name, array) for name, array in arrays.items()}


@dataclass(frozen=True)
class Record:
    """An object of a manifest that is being read.

    Every method that takes a ``key`` returns the value of that key. It raises a ``ModelFileError``
    if the value is missing or is not what the method promises. ``least`` and ``most`` are the
    smallest and the largest value that is allowed, ``below`` is larger than all of them, and
    ``shape`` has the lengths of an array, with None for any length.

    Attributes
    ----------
    values : dict
    arrays : dict of str to ndarray
        The arrays of the file that have not been used yet. An array is used once only, because a
        small file could otherwise describe a large model.
    where : str
        The place of the record in the manifest, for error messages.
    """

    values: Any
    arrays: dict[str, Array]
    where: str = "model"

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise ModelFileError(f"{self.where} is not a record.")

    def has(self, key: str) -> bool:
        """Whether the record has a value that is not null."""
        return self.values.get(key) is not None

    def fail(self, key: str, why: str) -> NoReturn:
        """Raise a ``ModelFileError`` about a value.

        Parameters
        ----------
        key : str
        why : str
            What is wrong with the value, such as "is empty".
        """
        raise ModelFileError(f"{self.where}.{key} {why}.")

    def text(self, key: str, among: Collection[str] | None = None) -> str:
        """A text, which must be one of ``among`` if they are given."""
        value = self.values.get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            wanted = "a text" if among is None else f"one of {', '.join(among)}"
            self.fail(key, f"is {_short(value)}, not {wanted}")
        return value

    def texts(self, key: str, length: int) -> list[str]:
        """A list of texts of a given length."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "is not a list of texts")
        if len(value) != length:
            self.fail(key, f"has {len(value)} texts, not {length}")
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.values.get(key)
        if not isinstance(value, bool):
            self.fail(key, f"is {_short(value)}, not true or false")
        return value

    def integer(self, key: str, least: int = 0, most: float = math.inf) -> int:
        """An integer within a range."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(key, f"is {_short(value)}, not an integer from {least} to {most}")
        return value

    def number(self, key: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number within a range."""
        value = self.values.get(key)
        # JSON allows integers of any size. Those beyond LARGEST have no value of type float.
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not (-LARGEST <= value <= LARGEST and least <= value <= most)
        ):
            self.fail(key, f"is {_short(value)}, not a finite number from {least} to {most}")
        return float(value)

    def optional_number(
        self, key: str, least: float = -math.inf, most: float = math.inf
    ) -> float | None:
        """A finite number within a range, or None if the value is null."""
        return self.number(key, least, most) if self.has(key) else None

    def number_or_nan(self, key: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number within a range, or NaN if the value is null."""
        return self.number(key, least, most) if self.has(key) else math.nan

    def record(self, key: str) -> Record:
        """A record inside this one."""
        return Record(self.values.get(key), self.arrays, f"{self.where}.{key}")

    def optional_record(self, key: str) -> Record | None:
        """A record inside this one, or None if the value is null."""
        return self.record(key) if self.has(key) else None

    def records(self, key: str) -> list[Record]:
        """A list of records."""
        value = self.values.get(key)
        if not isinstance(value, list):
            self.fail(key, "is not a list")
        return [
            Record(item, self.arrays, f"{self.where}.{key}[{i}]") for i, item in enumerate(value)
        ]

    def numbers(self, key: str, *shape: int | None) -> Array:
        """An array of finite numbers. None in the shape stands for any length."""
        array = self._array(key, "numbers", shape)
        if not np.isfinite(array).all():
            self.fail(key, "has values that are not finite")
        return array

    def numbers_from(self, least: float, key: str, *shape: int | None) -> Array:
        """An array of finite numbers that are not below ``least``."""
        array = self.numbers(key, *shape)
        if (array < least).any():
            self.fail(key, f"has values below {least}")
        return array

    def positive(self, key: str, *shape: int | None) -> Array:
        """An array of finite numbers above zero."""
        array = self.numbers(key, *shape)
        if not (array > 0).all():
            self.fail(key, "has values that are not positive")
        return array

    def numbers_between(self, least: float, most: float, key: str, *shape: int | None) -> Array:
        """An array of finite numbers within a range."""
        array = self.numbers_from(least, key, *shape)
        if (array > most).any():
            self.fail(key, f"has values above {most}")
        return array

    def integers(
        self, key: str, *shape: int | None, least: int | None = 0, below: int | None = None
    ) -> Array:
        """An array of integers. None as a bound stands for any value."""
        array = self._array(key, "integers", shape)
        if least is not None and (array < least).any():
            self.fail(key, f"has values below {least}")
        if below is not None and (array >= below).any():
            self.fail(key, f"has values that are not below {below}")
        return array.astype(np.intp, copy=False)

    def increasing(self, key: str, least: int = 0, below: int | None = None) -> Array:
        """An array of different integers in increasing order."""
        index = self.integers(key, None, least=least, below=below)
        if (np.diff(index) <= 0).any():
            self.fail(key, "is not in increasing order")
        return index

    def flags(self, key: str, *shape: int | None) -> Array:
        """An array of true and false."""
        return self._array(key, "flags", shape)

    def _array(self, key: str, kind: str, shape: tuple[int | None, ...]) -> Array:
        array = self.arrays.pop(self.text(key), None)
        if array is None:
            self.fail(key, "names an array that is not in the file or is used elsewhere")
        fits = len(shape) == array.ndim and all(
            expected in (None, length) for expected, length in zip(shape, array.shape)
        )
        if array.dtype.str != KINDS[kind] or not fits:
            wanted = tuple("any" if length is None else length for length in shape)
            self.fail(key, f"is {array.dtype} {array.shape}, not {kind} {wanted}")
        return array

    def made(self, make: Callable[..., Any], *parts: Any) -> Any:
        """An object that checks its own parts. Its errors become a ``ModelFileError``.

        Parameters
        ----------
        make : callable
            The class of the object.
        *parts : object
            The arguments of ``make``.
        """
        try:
            return make(*parts)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{self.where}: {error}") from error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
