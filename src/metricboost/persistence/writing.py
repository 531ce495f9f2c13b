"""Collecting what goes into a file: a tree of plain values that names its arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .archive import Array


@dataclass
class Arrays:
    """The arrays of a file, under a prefix; ``below`` is the same collection, one level down."""

    found: dict[str, Array] = field(default_factory=dict)
    prefix: str = ""

    def below(self, name: str) -> Arrays:
        return Arrays(self.found, f"{self.prefix}{name}/")

    def add(self, name: str, array: npt.ArrayLike) -> str:
        """Keep an array; its full name is what the manifest says."""
        full = self.prefix + name
        if full in self.found:
            raise ValueError(f"two arrays are called {full}.")
        self.found[full] = np.asarray(array)
        return full

    def add_all(self, **arrays: npt.ArrayLike) -> dict[str, str]:
        return {name: self.add(name, array) for name, array in arrays.items()}
