"""Factors and paths of accepted steps, to and from records."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model import Factor, Path, Step
from .archive import Array
from .records import Arrays, Record


def pack_path(path: Path, arrays: Arrays) -> dict[str, Any]:
    """A path as a record."""
    steps = path.steps
    return {
        "start": pack_factor(path.start, arrays.below("start")),
        "n_attempts": int(path.n_attempts),
        **arrays.add_all(
            attempts=np.array([step.attempt for step in steps], dtype=np.int64),
            weights=np.array([step.weight for step in steps], dtype=np.float64),
            losses=np.array([step.loss for step in steps], dtype=np.float64),
            refreshed=np.array([step.refreshed for step in steps], dtype=bool),
            n_terms=np.array([step.n_terms for step in steps], dtype=np.int64),
            n_candidates=np.array([step.n_candidates for step in steps], dtype=np.int64),
            sizes=np.array([len(step.support) for step in steps], dtype=np.int64),
            support=_joined([step.support for step in steps], np.int64),
            xi=_joined([step.xi for step in steps], np.float64),
        ),
    }


def _joined(parts: list[Any], dtype: Any) -> Array:
    return np.concatenate([np.empty(0, dtype=dtype), *parts]).astype(dtype)


def unpack_path(record: Record, n_terms: int) -> Path:
    """A path over at most ``n_terms`` terms from a record."""
    attempts = record.integers("attempts", None)
    n = len(attempts)
    weights, losses = record.numbers_from(0.0, "weights", n), record.numbers("losses", n)
    refreshed = record.flags("refreshed", n)
    counts = record.integers("n_terms", n), record.integers("n_candidates", n)
    sizes, support = record.integers("sizes", n), record.integers("support", None, below=n_terms)
    xi = record.numbers("xi", len(support))
    if (sizes > len(support)).any() or sizes.sum() != len(support):
        record.fail("sizes", "do not add up to the support")
    parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes))]
    steps = [
        Step(
            int(attempts[m]), support[parts[m]], xi[parts[m]],
            float(weights[m]), float(losses[m]), bool(refreshed[m]),
            int(counts[0][m]), int(counts[1][m]),
        )
        for m in range(n)
    ]  # fmt: skip
    start = unpack_factor(record.record("start"), n_terms)
    return Path(start, steps, record.integer("n_attempts"))


def pack_factor(factor: Factor, arrays: Arrays) -> dict[str, str]:
    """A factor as a record."""
    return arrays.add_all(index=factor.index, matrix=factor.matrix)


def unpack_factor(record: Record, n_terms: int) -> Factor:
    """A factor over at most ``n_terms`` terms from a record."""
    index = record.increasing("index", n_terms)
    return Factor(index, record.numbers("matrix", len(index), None))
