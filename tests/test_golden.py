"""The models of small tables do not change, unless they are meant to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import SAME, Case, cases, difference, fitted, record

from metricboost.engines import native_available

KNOWN = json.loads((Path(__file__).parent / "golden.json").read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])
def test_a_golden_fit(case: Case, engine: str) -> None:
    if engine == "native" and not native_available():
        pytest.skip("needs the native engine")
    name, X, y, given, weight = case
    found = record(fitted(X, y, given, weight, engine), X)
    assert difference(name, found, KNOWN[f"{name} / {engine}"]) < SAME
