"""Readouts and calibrations, to and from records."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..model import Calibration, OutOfFold, Reading, TrainingRows
from ..model.readouts import READOUTS, Readout
from .records import Arrays, Record

#: The largest integer, and the smallest and largest number, that a readout may have as a parameter.
MOST_COUNTED = 10**6
#: The largest number of rows that a table may have had.
MOST_ROWS = 10**15
LEAST_NUMBER, MOST_NUMBER = 1e-9, 1e9


def pack_reading(reading: Reading, arrays: Arrays) -> dict[str, Any]:
    """How classes are read off a metric, as a record without the training rows.

    Parameters
    ----------
    reading : Reading
    arrays : Arrays
        Receives the offsets of the calibration.
    """
    readout: Any = reading.readout  # every readout is a dataclass
    return {
        "readout": {"kind": reading.readout.name, **asdict(readout)},
        "slope": float(reading.calibration.slope),
        "offsets": arrays.add("offsets", reading.calibration.offsets),
        "score": _or_null(reading.score),
        "gain": _or_null(reading.gain),
        "plain_score": _or_null(reading.plain_score),
        "effective_rows": _or_null(reading.effective_rows),
        "out_of_fold": _packed(reading.out_of_fold, arrays.below("out_of_fold")),
    }


def _packed(found: OutOfFold | None, arrays: Arrays) -> dict[str, Any] | None:
    if found is None:
        return None
    parts = arrays.add_all(rows=found.rows, labels=found.labels, log_odds=found.log_odds)
    return {"n_rows": found.n_rows, **parts}


def unpack_reading(record: Record, n_classes: int, rows: TrainingRows | None) -> Reading:
    """How classes are read off a metric, from a record.

    Parameters
    ----------
    record : Record
    n_classes : int
    rows : TrainingRows or None
        The training rows, which a file keeps once for all models.
    """
    slope = record.number("slope", 0.0)
    return Reading(
        readout=_readout(record.record("readout")),
        calibration=Calibration(slope, record.numbers("offsets", n_classes)),
        rows=rows,
        score=record.number_or_nan("score"),
        gain=record.number_or_nan("gain"),
        plain_score=record.number_or_nan("plain_score"),
        effective_rows=record.number_or_nan("effective_rows", LEAST_NUMBER),
        out_of_fold=_out_of_fold(record, n_classes),
    )


def _out_of_fold(record: Record, n_classes: int) -> OutOfFold | None:
    packed = record.optional_record("out_of_fold")
    if packed is None:
        return None
    n_rows = packed.integer("n_rows", 1, MOST_ROWS)
    rows = packed.increasing("rows", below=n_rows)
    labels = packed.integers("labels", len(rows), below=n_classes)
    return OutOfFold(n_rows, rows, labels, packed.numbers("log_odds", len(rows), n_classes))


def _readout(record: Record) -> Readout:
    """A readout. Parameters that it declares as integers are counts, and others are numbers."""
    kind: Any = READOUTS[record.text("kind", tuple(READOUTS))]
    values = {
        field.name: (
            record.integer(field.name, 1, MOST_COUNTED)
            if field.type in (int, "int")
            else record.number(field.name, LEAST_NUMBER, MOST_NUMBER)
        )
        for field in fields(kind)
    }
    readout: Readout = kind(**values)
    return readout


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
