"""Reading a manifest: every value is asked for with the type and range it must have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ..errors import ModelFileError
from .archive import Array

#: The type of an array's entries by what they are.
#: Readings of an array: one for its length, one for itself.
MOST_USES = 2
KINDS = {"numbers": "<f8", "integers": "<i8", "flags": "|b1"}


@dataclass(frozen=True)
class Record:
    """An object of the manifest, and the arrays that it names."""

    values: Any
    arrays: Mapping[str, Array]
    where: str = "model"
    uses: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise ModelFileError(f"{self.where} is not a record.")

    def has(self, key: str) -> bool:
        """Whether it is there and not null."""
        return self.values.get(key) is not None

    def fail(self, key: str, why: str) -> NoReturn:
        raise ModelFileError(f"{self.where}.{key} {why}.")

    def text(self, key: str, among: tuple[str, ...] | None = None) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            self.fail(key, f"is {_short(value)}, not {'a text' if among is None else list(among)}")
        return value

    def texts(self, key: str, length: int | None = None) -> list[str]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "is not a list of texts")
        if length is not None and len(value) != length:
            self.fail(key, f"has {len(value)} texts, not {length}")
        return value

    def integer(self, key: str, least: int = 0, most: float = math.inf) -> int:
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(key, f"is {_short(value)}, not an integer from {least} to {most}")
        return value

    def number(self, key: str, least: float = -math.inf, most: float = math.inf) -> float:
        value = self.values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.fail(key, f"is {_short(value)}, not a number")
        if not (math.isfinite(value) and least <= value <= most):
            self.fail(key, f"is {_short(value)}, not a finite number from {least} to {most}")
        return float(value)

    def optional_number(self, key: str, least: float = -math.inf) -> float | None:
        return self.number(key, least) if self.has(key) else None

    def optional_integer(self, key: str, least: int = 0) -> int | None:
        return self.integer(key, least) if self.has(key) else None

    def record(self, key: str) -> Record:
        return Record(self.values.get(key), self.arrays, f"{self.where}.{key}", self.uses)

    def records(self, key: str) -> list[Record]:
        value = self.values.get(key)
        if not isinstance(value, list):
            self.fail(key, "is not a list")
        return [
            Record(item, self.arrays, f"{self.where}.{key}[{i}]", self.uses)
            for i, item in enumerate(value)
        ]

    def numbers(self, key: str, *shape: int | None) -> Array:
        """An array of finite numbers; None in the shape is any length."""
        array = self._array(key, "numbers", shape)
        if not np.isfinite(array).all():
            self.fail(key, "has values that are not finite")
        return array

    def integers(self, key: str, *shape: int | None, below: int | None = None) -> Array:
        """An array of integers from 0 on."""
        array = self._array(key, "integers", shape)
        if array.size and (array.min() < 0 or (below is not None and array.max() >= below)):
            self.fail(key, f"has values that are not from 0 to {below}")
        return array

    def flags(self, key: str, *shape: int | None) -> Array:
        return self._array(key, "flags", shape)

    def _array(self, key: str, kind: str, shape: tuple[int | None, ...]) -> Array:
        name = self.text(key)
        array = self.arrays.get(name)
        if array is None:
            self.fail(key, "names an array that is not in the file")
        self.uses[name] += 1
        if self.uses[name] > MOST_USES:  # a small file could otherwise unfold into a large model
            self.fail(key, "names an array that is used elsewhere")
        fits = len(shape) == array.ndim and all(
            expected in (None, length) for expected, length in zip(shape, array.shape)
        )
        if array.dtype.str != KINDS[kind] or not fits:
            wanted = tuple("any" if length is None else length for length in shape)
            self.fail(key, f"is {array.dtype} {array.shape}, not {kind} {wanted}")
        return array


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."
