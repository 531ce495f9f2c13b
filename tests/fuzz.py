"""Random arguments for the kernels, and damaged files for the loader.

Every call must give a result or raise one of the errors that it may raise.

    python tests/fuzz.py --cases 20000

Arrays have random shapes, types, strides and orders. Some are read-only or empty, and some have
numbers of rows and columns that do not exist. In model files bytes are changed, cut, doubled and
moved. ``make sanitize`` runs this script with kernels that end the process at the first memory
error.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.cython_blas import __pyx_capi__ as BLAS

import metricboost
from metricboost import SDistClassifier
from metricboost.datasets import make_xor
from metricboost.engines import _native
from metricboost.errors import ModelFileError

TYPES = ("float64", "float32", "float16", "int8", "int32", "int64", "bool", "complex128", ">f8")
MAY_RAISE = (TypeError, ValueError)


class Arrays:
    """Random arguments for kernels. Most of them are valid."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def size(self, most: int = 40) -> int:
        return int(self.rng.choice([0, 1, 2, 3, int(self.rng.integers(0, most))]))

    def spoiled(self, array: Any) -> Any:
        """The array, sometimes with another type, layout or shape."""
        if self.chance(0.01):
            array = array.astype(self.rng.choice(TYPES))
        if self.chance(0.01):
            array = np.asfortranarray(array)
        if self.chance(0.01) and array.ndim:
            array = np.repeat(array, 2, axis=0)[::2]
        if self.chance(0.01) and array.ndim:
            array = array[::-1]
        if self.chance(0.006) and array.ndim == 2:
            array = array.T
        if self.chance(0.006) and array.ndim:
            array = np.broadcast_to(array[:1], array.shape) if len(array) else array
        if self.chance(0.006):
            array = array[..., None]
        if self.chance(0.006) and array.ndim:
            array = array[: self.size()]
        if self.chance(0.01) and array.dtype != object:
            array = array.copy()
            array.flags.writeable = False
        return array

    def numbers(self, *shape: int) -> Any:
        values = self.rng.normal(size=shape)
        if self.chance(0.1) and values.size:
            special = [np.nan, np.inf, -np.inf, 1e308, 5e-324, 0.0]
            values.flat[self.rng.integers(values.size)] = self.rng.choice(special)
        return self.spoiled(values)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        values = self.rng.integers(low, max(high, low + 1), size=shape).astype(np.int32)
        if self.chance(0.01) and values.size:
            wrong = [-1, high, 2**31 - 1, -(2**31)]
            values.flat[self.rng.integers(values.size)] = self.rng.choice(wrong)
        return self.spoiled(values)

    def out(self, *shape: int, dtype: Any = np.float64) -> Any:
        return self.spoiled(np.zeros(shape, dtype=dtype))

    def threads(self) -> int:
        return int(self.rng.integers(0, 5))


def graph(a: Arrays) -> None:
    n, k, other = a.size(), a.size(5), a.size(5)
    place = a.numbers(n, a.size(5)) if a.chance(0.5) else None
    made = _native.Graph(a.integers(0, n, n, k), a.integers(0, n, n, other), place)
    s, weight = a.size(10), a.numbers(n)
    made.margins(a.numbers(n, s), a.threads(), a.out(n))
    for kernel in (made.laplacian, made.half_laplacian):
        kernel(a.numbers(n, s), weight, a.threads(), a.out(n, s))
    made.share_sums(a.numbers(n, s), weight, a.threads(), a.out(s, 2))
    rows = a.integers(0, n, a.size())
    kind = np.float32 if a.chance(0.5) else np.float64
    made.column_margins(a.numbers(n, s), rows, a.threads(), a.out(rows.size, s, dtype=kind))


def terms(a: Arrays) -> None:
    p, n, q, degree, s = a.size(), a.size(), a.size(), a.size(4), a.size(5)
    x, factors = a.numbers(p, n), a.integers(0, p + 1, q, degree)
    _native.term_moments(x, factors, a.threads(), a.out(q, 2))
    moments = a.numbers(q, 2)
    _native.term_columns(x, factors, moments, a.threads(), a.out(n, q))
    sweeps = _native.Sweeps(x, a.integers(0, n, a.size()), degree, a.size(100))
    sweeps.append(factors, moments, a.threads())
    sweeps.pull_back(a.numbers(n, s), a.threads(), a.out(s, q))
    neighbors = (a.integers(0, n, n, a.size(5)) for _ in range(2))
    made = _native.Graph(*neighbors, None)
    sweeps.diagonal(made, a.numbers(n), a.threads(), a.out(q))


def nearest(a: Arrays) -> None:
    n, r, classes, count = a.size(600 if a.chance(0.1) else 40), a.size(8), 1 + a.size(3), a.size(3)
    sizes = a.integers(1, 5, count)
    width = int(sizes.astype(np.int64).sum()) if sizes.dtype != bool else count
    width = min(max(width, 0), 100)
    z = a.numbers(n, r)
    guide = z if a.chance(0.7) else a.numbers(n, a.size(4))
    previous = a.integers(-1, n, n, width) if a.chance(0.3) else None
    slots = a.integers(-1, max(count, 1), classes, classes)
    which, blas = (a.integers(0, classes, n), slots, sizes), (BLAS["sgemm"], BLAS["dgemm"])
    out = a.out(n, width, dtype=np.int32), a.out(n, width)
    if a.chance(0.5):
        _native.nearest_directly(z, *which, *blas, a.threads(), *out)
    else:
        _native.nearest(z, guide, 0.0, *which, previous, *blas, a.threads(), *out)


def queries(a: Arrays) -> None:
    n, m, r = a.size(200), a.size(400 if a.chance(0.1) else 40), a.size(8)
    k = a.size(min(m, 200)) if m else 1
    out = a.out(n, k, dtype=np.int32), a.out(n, k)
    both = a.numbers(n, r), a.numbers(m, r)
    _native.nearest_of_queries(*both, BLAS["sgemm"], BLAS["dgemm"], a.threads(), *out)


class Files:
    """A model file, which every call damages in another way."""

    def __init__(self, folder: Path) -> None:
        X, y = make_xor(60, 5, random_state=0)[:2]
        self._path = folder / "model.mbz"
        SDistClassifier(max_iter=3, n_averaged=1, random_state=0).fit(X, y).save(self._path)
        self._content = self._path.read_bytes()

    def __call__(self, a: Arrays) -> None:
        content, rng = bytearray(self._content), a.rng
        for _ in range(int(rng.integers(1, 6))):
            at, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 200))
            kind = rng.integers(5)
            if kind == 0:
                content[at : at + 1] = rng.bytes(1)
            elif kind == 1:
                del content[at : at + length]
            elif kind == 2:
                content[at:at] = content[at : at + length]
            elif kind == 3:
                content[at:at] = rng.bytes(length)
            else:
                content[at:at] = bytes(length)
            content = content or bytearray(b"x")
        self._path.write_bytes(content)
        try:
            metricboost.load(self._path, max_bytes=2**24)
        except ModelFileError as error:
            raise ValueError("refused") from error


def run(cases: int, seed: int) -> None:
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        targets: list[Callable[[Arrays], None]] = [
            graph, terms, nearest, queries, Files(Path(folder)),
        ]  # fmt: skip
        for case in range(cases):
            target = targets[case % len(targets)]
            name = getattr(target, "__name__", "load")
            try:
                target(Arrays(np.random.default_rng((seed, case))))
                done[f"{name}: a result"] += 1
            except MAY_RAISE:
                done[f"{name}: refused"] += 1
            except BaseException:
                print(f"case {case} of seed {seed}, {name}")
                raise
    print(f"{cases} cases: {dict(sorted(done.items()))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    run(given.cases, given.seed)
