"""Fitted models and blends of them, to and from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model import Blend, FoldFit, History, Model, Plain, SparseMetric, Term, TrainingRows
from .archive import Array
from .metrics import pack_metric, pack_terms, unpack_metric, unpack_terms
from .paths import pack_path, unpack_path
from .readouts import pack_reading, unpack_reading
from .records import Arrays, Record
from .values import pack_labels, unpack_labels


def pack_model(model: Model | Blend, names: Sequence[str] | None, arrays: Arrays) -> dict[str, Any]:
    """A model, or a blend of models with the same classes and training rows, as a record.

    Parameters
    ----------
    model : Model or Blend
    names : sequence of str or None
        Names of the columns that the file has elsewhere.
    arrays : Arrays
        Receives the arrays of the model.
    """
    best, models = model.best, model.models if isinstance(model, Blend) else (model,)
    rows = best.reading.rows if best.reading is not None else None
    return {
        "blend": isinstance(model, Blend),
        "classes": pack_labels(best.classes),
        "class_count": arrays.add("class_count", best.class_count),
        "rows": None if rows is None else _pack_rows(rows, arrays.below("rows")),
        "models": [
            _pack_one(one, names, arrays.below(f"model{i}")) for i, one in enumerate(models)
        ],
    }


def unpack_model(record: Record, names: Sequence[str] | None, n_features: int) -> Model | Blend:
    """A model or a blend from a record.

    Parameters
    ----------
    record : Record
    names : sequence of str or None
        Names of the columns, for metrics without names of their own.
    n_features : int
        The number of columns that every metric must have.
    """
    classes = unpack_labels(record.record("classes"))
    counts = record.integers("class_count", len(classes))
    packed = record.optional_record("rows")
    rows = None if packed is None else _unpack_rows(packed, len(classes))
    models = []
    for part in record.records("models"):
        model = _unpack_one(part, names, classes, counts, rows)
        if model.metric.n_features != n_features:
            part.fail("metric", f"is not a metric of {n_features} columns")
        models.append(model)
    blend = record.flag("blend")
    if not models or (len(models) > 1 and not blend):
        record.fail("models", f"has {len(models)} models")
    if blend and any(model.reading is None for model in models):
        record.fail("models", "has a model without a readout")
    return Blend(tuple(models)) if blend else models[0]


def _pack_one(model: Model, names: Sequence[str] | None, arrays: Arrays) -> dict[str, Any]:
    reading = model.reading
    return {
        "metric": pack_metric(model.metric, arrays.below("metric"), names),
        "history": _pack_history(model.history, arrays.below("history")),
        "start_share": float(model.start_share),
        "stability": arrays.add("stability", model.stability),
        "reading": None if reading is None else pack_reading(reading, arrays.below("reading")),
    }


def _unpack_one(
    record: Record,
    names: Sequence[str] | None,
    classes: Array,
    counts: Array,
    rows: TrainingRows | None,
) -> Model:
    metric = unpack_metric(record.record("metric"), names)
    history = _unpack_history(record.record("history"), metric)
    reading = record.optional_record("reading")
    if reading is not None and rows is not None:
        _check_columns(record, metric, history, rows)
    return Model(
        metric=metric,
        classes=classes,
        class_count=counts,
        history=history,
        start_share=record.number("start_share", 0.0, 1.0),
        stability=record.numbers_between(0.0, 1.0, "stability", metric.n_features),
        reading=None if reading is None else unpack_reading(reading, len(classes), rows),
    )


def _check_columns(
    record: Record, metric: SparseMetric, history: History, rows: TrainingRows
) -> None:
    """Refuse training rows that are not in the columns of a metric, or that lack one of them."""
    if (rows.columns >= len(metric.center)).any():
        record.fail("metric", "lacks some of the columns of the training rows")
    used = {j for term in (*metric.columns, *history.terms) for j in term}
    used.update(int(j) for j in history.plain.columns)
    if not used <= set(rows.columns.tolist()):
        record.fail("metric", "has columns that the training rows lack")


def _pack_rows(rows: TrainingRows, arrays: Arrays) -> dict[str, str]:
    return arrays.add_all(
        columns=rows.columns, values=rows.values, labels=rows.labels, weight=rows.weight,
        numbers=rows.numbers,
    )  # fmt: skip


def _unpack_rows(record: Record, n_classes: int) -> TrainingRows:
    columns = record.increasing("columns")
    labels = record.integers("labels", None, below=n_classes)
    if (np.bincount(labels, minlength=n_classes) == 0).any():
        record.fail("labels", "have no row of some class")
    return TrainingRows(
        columns,
        record.numbers("values", len(labels), len(columns)),
        labels,
        record.positive("weight", len(labels)),
        record.integers("numbers", len(labels)),
    )


def _pack_history(history: History, arrays: Arrays) -> dict[str, Any]:
    return {
        "fits": [_pack_fit(fit, arrays.below(f"fit{i}")) for i, fit in enumerate(history.fits)],
        "terms": pack_terms(history.terms, arrays.below("terms")),
        "moments": arrays.add("moments", history.moments),
        "share": float(history.share),
        "plain_columns": arrays.add("plain_columns", history.plain.columns),
        "plain_variance": history.plain.variance,
    }


def _unpack_history(record: Record, metric: SparseMetric) -> History:
    n_columns = len(metric.center)
    terms = unpack_terms(record.record("terms"), n_columns)
    moments = record.numbers("moments", len(terms), 2)
    if not (moments[:, 1] > 0).all():
        record.fail("moments", "has deviations that are not positive")
    fits = tuple(_unpack_fit(fit, terms, n_columns) for fit in record.records("fits"))
    if not fits:
        record.fail("fits", "is empty")
    share = record.number("share", 0.0, 1.0)
    plain = record.increasing("plain_columns", below=n_columns)
    if share == 0 and len(plain):
        record.fail("plain_columns", "has columns although the share is 0")
    return History(
        fits, terms, moments, share, Plain(plain, record.optional_number("plain_variance", 0.0))
    )


def _pack_fit(fit: FoldFit, arrays: Arrays) -> dict[str, Any]:
    return {
        "path": pack_path(fit.path, arrays.below("path")),
        "best_iter": int(fit.best_iter),
        **arrays.add_all(
            spread=fit.spread, spread_of_all=fit.spread_of_all, columns=fit.columns
        ),
        "metric": pack_metric(fit.metric, arrays.below("metric")),
    }  # fmt: skip


def _unpack_fit(record: Record, terms: Sequence[Term], n_columns: int) -> FoldFit:
    path = unpack_path(record.record("path"), len(terms))
    columns = record.increasing("columns", below=n_columns)
    metric = unpack_metric(record.record("metric"))
    if metric.n_features != len(columns):
        record.fail("metric", f"is not a metric of {len(columns)} columns")
    return FoldFit(
        path,
        record.integer("best_iter", 0, len(path)),
        record.numbers_from(0.0, "spread", 1 + len(path)),
        record.numbers_from(0.0, "spread_of_all", 1 + len(path)),
        columns,
        metric,
    )
