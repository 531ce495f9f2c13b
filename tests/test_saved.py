"""Models that earlier versions have saved load, and predict what they predicted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import metricboost
from metricboost import ModelFileError

SAVED = Path(__file__).parent / "saved"
sys.path.insert(0, str(SAVED))
import make  # noqa: E402

FILES = sorted(SAVED.glob("*/*.mbz"))


def test_there_are_some() -> None:
    assert metricboost.__version__ in {path.parent.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_earlier_model(path: Path) -> None:
    expected = np.load(path.parent / "expected.npz")[path.stem]
    found = make.predicted(metricboost.load(path), make.new_rows(path.stem))
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_an_earlier_format_is_refused() -> None:
    """The error says what to do. The file holds a metric in version 1 of the format."""
    with pytest.raises(ModelFileError, match=r"version 1 of the format.*fit the model and save it"):
        metricboost.load(SAVED / "format-1.mbz")
