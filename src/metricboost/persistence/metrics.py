"""Metrics and the paths they came from, to and from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..boosting.learn import Learned
from ..boosting.path import Factor, Path, Step
from ..boosting.scaling import Scaling
from ..boosting.terms import Term
from ..errors import ModelFileError
from ..imputation import Imputation
from ..metric import SparseMetric
from .archive import Array
from .records import Record
from .writing import Arrays

#: Bounds of what is read: no fit comes near them, and beyond them a small file takes long.
MOST_FACTORS = 2**22
MOST_DEGREE = 64


def pack_metric(metric: SparseMetric, arrays: Arrays, named: bool = True) -> dict[str, Any]:
    """Where the names are known from elsewhere, they are left out: there may be 100,000."""
    return {
        "terms": pack_terms(metric.columns, arrays.below("terms")),
        **arrays.add_all(
            components=metric.components, center=metric.center, scale=metric.scale,
            term_center=metric.term_center, term_scale=metric.term_scale, diagonal=metric.diagonal,
        ),
        "stability": (
            None if metric.stability is None else arrays.add("stability", metric.stability)
        ),
        "feature_names": metric.feature_names if named else None,
        "imputation": _pack_imputation(metric.imputation, arrays),
        "gamma": metric.gamma,
        "clip": metric.clip,
    }  # fmt: skip


def unpack_metric(record: Record, names: Sequence[str] | None = None) -> SparseMetric:
    center = record.numbers("center", None)
    n_columns = len(center)
    columns = unpack_terms(record.record("terms"), n_columns)
    n_terms = len(columns)
    imputation = _unpack_imputation(record) if record.has("imputation") else None
    n_features = n_columns if imputation is None else len(imputation.fill)
    try:
        return SparseMetric(
            columns,
            record.numbers("components", None if n_terms else 0, n_terms),
            center,
            _scales(record, "scale", n_columns),
            record.numbers("term_center", n_terms),
            _scales(record, "term_scale", n_terms),
            record.texts("feature_names", n_features) if record.has("feature_names") else names,
            record.numbers("diagonal", n_terms),
            imputation,
            record.optional_number("gamma"),
            record.optional_number("clip"),
            record.numbers("stability", n_terms) if record.has("stability") else None,
        )
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"{record.where}: {error}") from error


def _scales(record: Record, key: str, length: int) -> Array:
    scales = record.numbers(key, length)
    if not (scales > 0).all():
        record.fail(key, "has values that are not positive")
    return scales


def _pack_imputation(imputation: Imputation | None, arrays: Arrays) -> dict[str, str] | None:
    if imputation is None:
        return None
    return arrays.below("imputation").add_all(
        fill=imputation.fill, indicators=np.array(imputation.indicators, dtype=np.int64)
    )


def _unpack_imputation(record: Record) -> Imputation:
    inner = record.record("imputation")
    fill = inner.numbers("fill", None)
    indicators = inner.integers("indicators", None, below=len(fill))
    try:
        return Imputation(fill, tuple(int(j) for j in indicators))
    except ValueError as error:
        raise ModelFileError(f"{inner.where}: {error}") from error


def pack_terms(terms: Sequence[Term], arrays: Arrays) -> dict[str, str]:
    return arrays.add_all(
        degrees=np.array([len(term) for term in terms], dtype=np.int64),
        factors=np.array([j for term in terms for j in term], dtype=np.int64),
    )


def unpack_terms(record: Record, n_columns: int) -> list[Term]:
    degrees = record.integers("degrees", None)
    # Each no larger than the sum may be: a sum of huge ones could wrap around.
    factors = record.integers("factors", None, below=n_columns)
    if len(factors) > MOST_FACTORS or (degrees > MOST_DEGREE).any():
        record.fail("degrees", "are beyond what a metric has")
    if (degrees < 1).any() or (degrees > len(factors)).any() or degrees.sum() != len(factors):
        record.fail("degrees", "do not add up to the factors")
    ends = np.cumsum(degrees)
    return [tuple(int(j) for j in factors[end - d : end]) for d, end in zip(degrees, ends)]


def pack_fit(fit: Learned, arrays: Arrays) -> dict[str, Any]:
    """A finished fit; the screening, which only warnings look at, is left out."""
    return {
        "terms": pack_terms(fit.terms, arrays.below("terms")),
        "moments": arrays.add("moments", fit.moments),
        "scaling": pack_scaling(fit.scaling, arrays.below("scaling")),
        "path": pack_path(fit.path, arrays.below("path")),
        "best_iter": int(fit.best_iter),
        "factor": _pack_factor(fit.factor, arrays.below("factor")),
    }


def unpack_fit(record: Record, n_columns: int) -> Learned:
    terms = unpack_terms(record.record("terms"), n_columns)
    path = unpack_path(record.record("path"), len(terms))
    moments = record.numbers("moments", len(terms), 2)
    if not (moments[:, 1] > 0).all():
        record.fail("moments", "have deviations that are not positive")
    return Learned(
        path,
        terms,
        moments,
        unpack_scaling(record.record("scaling"), n_columns),
        None,
        record.integer("best_iter", 0, len(path)),
        _unpack_factor(record.record("factor"), len(terms)),
    )


def pack_scaling(scaling: Scaling, arrays: Arrays) -> dict[str, Any]:
    return {
        **arrays.add_all(center=scaling.center, scale=scaling.scale, kept=scaling.kept),
        "clip": scaling.clip,
        "n_indicators": int(scaling.n_indicators),
    }


def unpack_scaling(record: Record, n_columns: int) -> Scaling:
    return Scaling(
        record.numbers("center", n_columns),
        _scales(record, "scale", n_columns),
        _increasing(record, "kept", n_columns),
        record.optional_number("clip", 0.0),
        record.integer("n_indicators", 0, n_columns),
    )


def _increasing(record: Record, key: str, below: int) -> Array:
    index = record.integers(key, None, below=below)
    if (np.diff(index) <= 0).any():
        record.fail(key, "is not in increasing order")
    return index


def _pack_factor(factor: Factor, arrays: Arrays) -> dict[str, str]:
    return arrays.add_all(index=factor.index, matrix=factor.matrix)


def _unpack_factor(record: Record, n_terms: int) -> Factor:
    index = _increasing(record, "index", n_terms)
    return Factor(index, record.numbers("matrix", len(index), None))


def pack_path(path: Path, arrays: Arrays) -> dict[str, Any]:
    steps = path.steps
    return {
        "start": _pack_factor(path.start, arrays.below("start")),
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
    attempts = record.integers("attempts", None)
    n = len(attempts)
    weights, losses = record.numbers("weights", n), record.numbers("losses", n)
    if (weights < 0).any():
        record.fail("weights", "are negative")
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
    start = _unpack_factor(record.record("start"), n_terms)
    return Path(start, steps, record.integer("n_attempts"))
