"""Models of tables, to and from records: how columns become numbers, and the model on them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..tables import Column, Problem, TableClassifier, TableEncoder
from .models import pack_model, unpack_model
from .records import Record
from .writing import Arrays

KINDS = ("number", "category")


def pack_table_model(model: TableClassifier, rows: bool, arrays: Arrays) -> dict[str, Any]:
    return {
        "kind": "TableClassifier",
        "target": model.target_,
        "drop": list(model.drop),
        "keep": list(model.keep),
        "columns": [asdict(column) for column in model.encoder_.columns_],
        "problems": [asdict(problem) for problem in model.problems_],
        "model": pack_model(model.model_, rows, arrays),
    }


def unpack_table_model(record: Record, max_bytes: int) -> TableClassifier:
    inner = unpack_model(record.record("model"), max_bytes)
    model = TableClassifier(inner, record.texts("drop"), record.texts("keep"))
    model.model_ = inner
    model.target_ = record.text("target")
    model.encoder_ = TableEncoder(model.drop, model.keep)
    model.encoder_._set_columns([_column(part) for part in record.records("columns")])
    model.problems_ = model.encoder_.problems_ = [
        Problem(part.text("kind"), part.text("column"), part.text("message"))
        for part in record.records("problems")
    ]
    if model.encoder_.features_ != list(getattr(inner, "feature_names_in_", [])):
        record.fail("columns", "are not those of the model")
    return model


def _column(record: Record) -> Column:
    kind, levels = record.text("kind", KINDS), record.texts("levels")
    return Column(record.text("name"), kind, tuple(levels), record.text("decimal", (".", ",")))
