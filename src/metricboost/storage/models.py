"""Fitted estimators, to and from the content of a model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._blocks import dense
from .._typing import Float
from ..engines import get_engine
from ..errors import ModelFileError
from ..estimators import SDist, SDistClassifier, SDistClassifierCV
from ..selection.crossfit import CrossFit, Fold
from .archive import Array
from .metrics import (
    pack_fit,
    pack_metric,
    pack_scaling,
    unpack_fit,
    unpack_metric,
    unpack_scaling,
)
from .parameters import (
    pack_labels,
    pack_parameters,
    pack_value,
    unpack_labels,
    unpack_parameters,
    unpack_value,
)
from .readouts import pack_candidate, pack_variant, unpack_candidate, unpack_variant
from .records import Record
from .writing import Arrays

EMPTY = np.empty(0, dtype=np.intp)


def pack_model(model: SDist | SDistClassifierCV, rows: bool, arrays: Arrays) -> dict[str, Any]:
    """A fitted estimator: what its parts share (labels, fits, training rows), then the parts."""
    parts = model.estimators_ if isinstance(model, SDistClassifierCV) else [model]
    crossfits = list({id(part._crossfit): part._crossfit for part in parts}.values())
    number = {id(crossfit): i for i, crossfit in enumerate(crossfits)}
    names = getattr(model, "feature_names_in_", None)
    packed = {
        "kind": type(model).__name__,
        "parameters": pack_parameters(model, arrays.below("parameters")),
        "classes": pack_labels(model.classes_),
        "class_count": [int(count) for count in model.class_count_],
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "plain_score": _plain_score(parts[0]),
        "crossfits": [
            _pack_crossfit(crossfit, arrays.below(f"crossfit{i}"))
            for i, crossfit in enumerate(crossfits)
        ],
        "rows": _pack_rows(parts, arrays.below("rows")) if rows else None,
    }
    if isinstance(model, SDistClassifierCV):
        return {**packed, **_pack_search(model, number, arrays)}
    return {**packed, "part": _pack_part(model, 0, arrays.below("part0"))}


def unpack_model(record: Record, max_bytes: int) -> SDist | SDistClassifierCV:
    kinds = {kind.__name__: kind for kind in (SDist, SDistClassifier, SDistClassifierCV)}
    model = kinds[record.text("kind", tuple(kinds))]()
    unpack_parameters(model, record.record("parameters"))
    model.classes_ = unpack_labels(record.record("classes"))
    model.class_count_ = _class_count(record, len(model.classes_))
    model.n_features_in_ = record.integer("n_features", 1)
    if record.has("feature_names"):
        names = record.texts("feature_names", model.n_features_in_)
        model.feature_names_in_ = np.array(names, dtype=object)
    crossfits, numbers = _unpack_crossfits(record, len(model.classes_), max_bytes)
    if isinstance(model, SDistClassifierCV):
        _unpack_search(model, record, crossfits, numbers)
    else:
        _unpack_part(model, record.record("part"), crossfits, numbers)
    plain = record.optional_number("plain_score", 0.0)
    for part in getattr(model, "estimators_", [model]):
        part._plain_score = np.nan if plain is None else plain
    return model


def _plain_score(part: SDist) -> float | None:
    """How well plain neighbours classify, where the model is a classifier and it is known."""
    score = getattr(part, "_plain_score", np.nan)
    return None if np.isnan(score) else score


def _class_count(record: Record, n_classes: int) -> Array:
    counts = record.values.get("class_count")
    if not isinstance(counts, list) or len(counts) != n_classes:
        record.fail("class_count", "does not count the classes")
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
        record.fail("class_count", "has values that count nothing")
    return np.array(counts, dtype=np.intp)


def _pack_part(model: SDist, crossfit: int, arrays: Arrays) -> dict[str, Any]:
    """What one estimator has beyond what it shares."""
    packed = {
        "crossfit": crossfit,
        "metric": pack_metric(model.metric_, arrays.below("metric"), named=False),
        "variant": pack_variant(model._variant),
        "start_share": float(model.start_share_),
        "stability": arrays.add("stability", model.stability_),
    }
    if isinstance(model, SDistClassifier):
        packed["readout"] = pack_candidate(model._candidate, arrays.below("readout"))
    return packed


def _unpack_part(
    model: SDist, record: Record, crossfits: Sequence[CrossFit], numbers: Array
) -> None:
    crossfit = crossfits[record.integer("crossfit", 0, len(crossfits) - 1)]
    model._crossfit, model._training_rows = crossfit, numbers
    model._variant = unpack_variant(record.record("variant"))
    names = getattr(model, "feature_names_in_", None)
    model.metric_ = unpack_metric(record.record("metric"), names)
    if model.metric_.n_features != model.n_features_in_:
        record.fail("metric", f"is not one of {model.n_features_in_} columns")
    if len(model.metric_.center) != crossfit.X.shape[1]:
        record.fail("metric", "does not have the columns of its fits")
    model.best_iter_ = sum(fit.best_iter for fit in crossfit.fits)
    model.n_iter_ = sum(fit.path.n_attempts for fit in crossfit.fits)
    model.start_share_ = record.number("start_share", 0.0, 1.0)
    model.stability_ = record.numbers("stability", model.n_features_in_)
    if isinstance(model, SDistClassifier):
        candidate = unpack_candidate(record.record("readout"), len(model.classes_))
        model._set_readout(candidate)


def _pack_search(
    search: SDistClassifierCV, number: dict[int, int], arrays: Arrays
) -> dict[str, Any]:
    best = arrays.below("best_params")
    return {
        "parts": [
            {
                "parameters": pack_parameters(part, arrays.below(f"part{i}/parameters")),
                **_pack_part(part, number[id(part._crossfit)], arrays.below(f"part{i}")),
            }
            for i, part in enumerate(search.estimators_)
        ],
        "best_score": float(search.best_score_),
        "best_params": {
            name: pack_value(value, name, best) for name, value in search.best_params_.items()
        },
        "n_splits": int(search.n_splits_),
    }


def _unpack_search(
    search: SDistClassifierCV, record: Record, crossfits: Sequence[CrossFit], numbers: Array
) -> None:
    search.estimators_ = []
    for part in record.records("parts"):
        model = SDistClassifier()
        unpack_parameters(model, part.record("parameters"))
        search._remember_in(model)
        _unpack_part(model, part, crossfits, numbers)
        search.estimators_.append(model)
    if not search.estimators_:
        record.fail("parts", "is empty")
    search.best_estimator_ = search.estimators_[0]
    search.best_score_ = record.number("best_score")
    search.n_splits_ = record.integer("n_splits", 1)
    best = record.record("best_params")
    search.best_params_ = {
        name: unpack_value(best.record(name)) if best.has(name) else None for name in best.values
    }


def _pack_crossfit(crossfit: CrossFit, arrays: Arrays) -> dict[str, Any]:
    return {
        "scaling": pack_scaling(crossfit.scaling, arrays.below("scaling")),
        "sampled": int(crossfit.sampled),
        "fits": [pack_fit(fit, arrays.below(f"fit{i}")) for i, fit in enumerate(crossfit.fits)],
    }


def _pack_rows(parts: Sequence[SDist], arrays: Arrays) -> dict[str, Any]:
    """The training rows, in the columns that any of the metrics (or of their paths) looks at."""
    crossfit = parts[0]._crossfit
    columns = np.array(sorted(set().union(*map(_columns_used, parts))), dtype=np.int64)
    return arrays.add_all(
        columns=columns,
        values=dense(crossfit.X[:, columns]),
        labels=crossfit.labels,
        weight=crossfit.weight,
        numbers=parts[0]._training_rows,
    )


def _columns_used(part: SDist) -> set[int]:
    terms = [*part.metric_.columns, *(term for fit in part._crossfit.fits for term in fit.terms)]
    used = {column for term in terms for column in term}
    if part._variant.share > 0:
        used.update(int(column) for column in part._crossfit.scaling.plain)
    return used


def _unpack_crossfits(
    record: Record, n_classes: int, max_bytes: int
) -> tuple[list[CrossFit], Array]:
    """The fits over the training rows, and the rows' numbers in the table that was fitted."""
    packed = record.records("crossfits")
    if not packed:
        record.fail("crossfits", "is empty")
    n_columns = len(packed[0].record("scaling").numbers("center", None))
    X, labels, weight, numbers = _unpack_rows(record, n_columns, n_classes, max_bytes)
    crossfits = []
    for part in packed:
        fits = [unpack_fit(fit, n_columns) for fit in part.records("fits")]
        if not fits:
            part.fail("fits", "is empty")
        folds = [Fold(fit, EMPTY, EMPTY) for fit in fits]
        scaling = unpack_scaling(part.record("scaling"), n_columns)
        engine = get_engine("auto", 1)
        one_fit, sampled = len(fits) == 1, bool(part.integer("sampled", 0, 1))
        crossfits.append(
            CrossFit(X, labels, weight, n_classes, engine, folds, scaling, one_fit, sampled)
        )
    return crossfits, numbers


def _unpack_rows(
    record: Record, n_columns: int, n_classes: int, max_bytes: int
) -> tuple[Float, Array, Array, Array]:
    """The table of training rows; columns that no metric looks at are zero."""
    if not record.has("rows"):
        return np.zeros((0, n_columns)), EMPTY, np.empty(0), EMPTY
    rows = record.record("rows")
    columns = rows.integers("columns", None, below=n_columns)
    labels = rows.integers("labels", None, below=n_classes)
    if len(labels) * n_columns * 8 > max_bytes:
        raise ModelFileError(
            f"its training rows take {len(labels) * n_columns * 8} bytes, more than "
            f"max_bytes={max_bytes}. Give load a larger max_bytes if you trust the file."
        )
    values = rows.numbers("values", len(labels), len(columns))
    weight = rows.numbers("weight", len(labels))
    if not (weight > 0).all():
        rows.fail("weight", "has values that are not positive")
    if (np.bincount(labels, minlength=n_classes) == 0).any():
        rows.fail("labels", "have no row of some class")
    X = np.zeros((len(labels), n_columns))
    X[:, columns] = values
    return X, labels.astype(np.intp), weight, rows.integers("numbers", len(labels)).astype(np.intp)
