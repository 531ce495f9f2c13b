"""Readouts and calibrations, to and from records."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..model import Calibration, Reading, TrainingRows
from ..model.readouts import READOUTS, Readout
from .records import Arrays, Record

#: The largest count that a readout may have as a parameter.
MOST_COUNTED = 10**6


def pack_reading(reading: Reading, arrays: Arrays) -> dict[str, Any]:
    """How classes are read off a metric, as a record without the training rows."""
    return {
        "readout": {"kind": reading.readout.name, **asdict(reading.readout)},
        "slope": float(reading.calibration.slope),
        "offsets": arrays.add("offsets", reading.calibration.offsets),
        "score": _or_null(reading.score),
        "gain": _or_null(reading.gain),
        "plain_score": _or_null(reading.plain_score),
    }


def unpack_reading(record: Record, n_classes: int, rows: TrainingRows | None) -> Reading:
    """How classes are read off a metric, from a record."""
    return Reading(
        readout=_readout(record.record("readout")),
        calibration=Calibration(record.number("slope"), record.numbers("offsets", n_classes)),
        rows=rows,
        score=record.number_or_nan("score", 0.0, 1.0),
        gain=record.number_or_nan("gain", -1e9),
        plain_score=record.number_or_nan("plain_score", 0.0, 1.0),
    )


def _readout(record: Record) -> Readout:
    """A readout whose parameters are counts, if they are declared as integers, or numbers."""
    kind = READOUTS[record.text("kind", tuple(READOUTS))]
    values = {
        field.name: (
            record.integer(field.name, 1, MOST_COUNTED)
            if field.type in (int, "int")
            else record.number(field.name, 1e-9, 1e9)
        )
        for field in fields(kind)
    }
    return kind(**values)


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
