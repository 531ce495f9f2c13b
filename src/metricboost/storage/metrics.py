"""Metrics with their terms and imputations, to and from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inputs import Imputation
from ..model import SparseMetric, Term
from .records import Arrays, Record

#: The most columns of a table, and the most factors of all terms of a metric. No fit comes near
#: these numbers, and a small file that exceeds them would take long to load.
MOST_COLUMNS = 2**24
MOST_FACTORS = 2**22
#: The highest degree of a term: the largest value that ``max_degree`` of the estimators may have.
MOST_DEGREE = 1000


def pack_metric(
    metric: SparseMetric, arrays: Arrays, known_names: Sequence[str] | None = None
) -> dict[str, Any]:
    """A metric as a record.

    Parameters
    ----------
    metric : SparseMetric
    arrays : Arrays
        Receives the arrays of the metric.
    known_names : sequence of str, optional
        Names of the columns that the file has elsewhere. The same names are not written again,
        because there may be 100,000 of them.
    """
    named = known_names is None or list(known_names) != metric.feature_names
    stability = {} if metric.stability is None else {"stability": metric.stability}
    # A clip at infinity clips nothing.
    clip = metric.clip if metric.clip is not None and np.isfinite(metric.clip) else None
    return {
        "terms": pack_terms(metric.columns, arrays.below("terms")),
        **arrays.add_all(
            components=metric.components, center=metric.center, scale=metric.scale,
            term_center=metric.term_center, term_scale=metric.term_scale, diagonal=metric.diagonal,
            **stability,
        ),
        "feature_names": metric.feature_names if named else None,
        "imputation": _pack_imputation(metric.imputation, arrays.below("imputation")),
        "gamma": metric.gamma,
        "clip": clip,
    }  # fmt: skip


def unpack_metric(record: Record, known_names: Sequence[str] | None = None) -> SparseMetric:
    """A metric from a record.

    Parameters
    ----------
    record : Record
    known_names : sequence of str, optional
        The names of the columns if the record has none. Without them they are x0, x1, ...
    """
    center = record.numbers("center", None)
    if len(center) > MOST_COLUMNS:
        record.fail("center", f"has more than {MOST_COLUMNS} columns")
    columns = unpack_terms(record.record("terms"), len(center))
    n_terms = len(columns)
    imputation = _unpack_imputation(record.optional_record("imputation"))
    n_features = len(center) if imputation is None else len(imputation.fill)
    named = record.has("feature_names")
    names = record.texts("feature_names", n_features) if named else known_names
    metric: SparseMetric = record.made(
        SparseMetric,
        columns,
        record.numbers("components", None if n_terms else 0, n_terms),
        center,
        record.positive("scale", len(center)),
        record.numbers("term_center", n_terms),
        record.positive("term_scale", n_terms),
        names,
        record.numbers_from(0.0, "diagonal", n_terms),
        imputation,
        record.optional_number("gamma"),
        record.optional_number("clip"),
        record.numbers("stability", n_terms) if record.has("stability") else None,
    )
    return metric


def _pack_imputation(imputation: Imputation | None, arrays: Arrays) -> dict[str, str] | None:
    if imputation is None:
        return None
    indicators = np.array(imputation.indicators, dtype=np.int64)
    return arrays.add_all(fill=imputation.fill, indicators=indicators)


def _unpack_imputation(record: Record | None) -> Imputation | None:
    if record is None:
        return None
    fill = record.numbers("fill", None)
    indicators = record.integers("indicators", None, below=len(fill))
    imputation: Imputation = record.made(Imputation, fill, tuple(int(j) for j in indicators))
    return imputation


def pack_terms(terms: Sequence[Term], arrays: Arrays) -> dict[str, str]:
    """Terms as a record: their degrees, and the columns of all terms one after the other.

    Parameters
    ----------
    terms : sequence of tuple of int
    arrays : Arrays
        Receives the arrays of the terms.
    """
    return arrays.add_all(
        degrees=np.array([len(term) for term in terms], dtype=np.int64),
        factors=np.array([j for term in terms for j in term], dtype=np.int64),
    )


def unpack_terms(record: Record, n_columns: int) -> list[Term]:
    """Terms from a record.

    Parameters
    ----------
    record : Record
    n_columns : int
        The columns of every term are below this number.
    """
    degrees = record.integers("degrees", None, least=1, below=MOST_DEGREE + 1)
    factors = record.integers("factors", None, below=n_columns)
    if len(factors) > MOST_FACTORS:
        record.fail("factors", f"has more than {MOST_FACTORS} entries")
    if degrees.sum() != len(factors):
        record.fail("degrees", "do not add up to the number of factors")
    ends = np.cumsum(degrees)
    return [tuple(int(j) for j in factors[end - d : end]) for d, end in zip(degrees, ends)]
