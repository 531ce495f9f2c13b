"""Factors and paths of accepted steps, to and from records."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model import Factor, Path, Step
from .archive import Array
from .records import Arrays, Record

#: The most attempted steps of a path. Beyond this number an array of attempts could not hold them.
MOST_ATTEMPTS = 2**62


def pack_path(path: Path, arrays: Arrays) -> dict[str, Any]:
    """A path as a record.

    Parameters
    ----------
    path : Path
    arrays : Arrays
        Receives the arrays of the path.
    """
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
    """A path from a record.

    Parameters
    ----------
    record : Record
    n_terms : int
        The terms of every step are below this number.
    """
    n_attempts = record.integer("n_attempts", 0, MOST_ATTEMPTS)
    attempts = record.increasing("attempts", least=1, below=n_attempts + 1)
    n = len(attempts)
    weights, losses = record.numbers_from(0.0, "weights", n), record.numbers("losses", n)
    refreshed = record.flags("refreshed", n)
    counts = record.integers("n_terms", n), record.integers("n_candidates", n)
    sizes, support = record.integers("sizes", n), record.integers("support", None, below=n_terms)
    xi = record.numbers("xi", len(support))
    # Every size is compared with the sum that all must have, because a sum of huge ones could wrap.
    if (sizes > len(support)).any() or sizes.sum() != len(support):
        record.fail("sizes", "do not add up to the length of the support")
    parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes))]
    steps = [
        Step(
            int(attempts[m]), support[parts[m]], xi[parts[m]],
            float(weights[m]), float(losses[m]), bool(refreshed[m]),
            int(counts[0][m]), int(counts[1][m]),
        )
        for m in range(n)
    ]  # fmt: skip
    return Path(unpack_factor(record.record("start"), n_terms), steps, n_attempts)


def pack_factor(factor: Factor, arrays: Arrays) -> dict[str, str]:
    """A factor as a record.

    Parameters
    ----------
    factor : Factor
    arrays : Arrays
        Receives the arrays of the factor.
    """
    return arrays.add_all(index=factor.index, matrix=factor.matrix)


def unpack_factor(record: Record, n_terms: int) -> Factor:
    """A factor from a record.

    Parameters
    ----------
    record : Record
    n_terms : int
        The terms of the factor are below this number.
    """
    index = record.increasing("index", below=n_terms)
    return Factor(index, record.numbers("matrix", len(index), None))
