"""Variants, rules and calibrations, to and from records."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..selection.calibration import Calibration
from ..selection.choosing import Candidate
from ..selection.crossfit import Variant
from ..selection.readouts import Hull, Kernel, Margin, Mixture, Rule, Votes
from .records import Record
from .writing import Arrays

RULES = {rule.__name__.lower(): rule for rule in (Margin, Hull, Votes, Kernel, Mixture)}
#: Neighbours and components are counted; everything else of a rule is a positive number.
COUNTS = ("k", "n_components")
MOST_COUNTED = 10**6


def pack_variant(variant: Variant) -> dict[str, Any]:
    return asdict(variant)


def unpack_variant(record: Record) -> Variant:
    return Variant(
        record.number("share", 0.0, 1.0),
        record.integer("recurrences", 1),
        record.optional_integer("size", 1),
        record.optional_integer("steps", 0),
        record.optional_number("penalty", 0.0),
    )


def pack_rule(rule: Rule) -> dict[str, Any]:
    return {"kind": type(rule).__name__.lower(), **asdict(rule)}


def unpack_rule(record: Record) -> Rule:
    kind = RULES[record.text("kind", tuple(RULES))]
    values = {
        field.name: (
            record.integer(field.name, 1, MOST_COUNTED)
            if field.name in COUNTS
            else record.number(field.name, 1e-9, 1e9)
        )
        for field in fields(kind)
    }
    result: Rule = kind(**values)
    return result


def pack_candidate(candidate: Candidate, arrays: Arrays) -> dict[str, Any]:
    """What predictions need of a candidate; its losses row by row were for choosing."""
    return {
        "variant": pack_variant(candidate.variant),
        "rule": pack_rule(candidate.rule),
        "slope": float(candidate.calibration.slope),
        "offsets": arrays.add("offsets", candidate.calibration.offsets),
        "error": float(candidate.error),
        "gain": None if np.isnan(candidate.gain) else float(candidate.gain),
    }


def unpack_candidate(record: Record, n_classes: int) -> Candidate:
    calibration = Calibration(record.number("slope"), record.numbers("offsets", n_classes))
    variant, rule = unpack_variant(record.record("variant")), unpack_rule(record.record("rule"))
    gain = record.optional_number("gain", -1e9)
    error = record.number("error", 0.0, 1.0)
    return Candidate(
        variant, rule, calibration, np.empty(0), error, np.nan if gain is None else gain
    )
