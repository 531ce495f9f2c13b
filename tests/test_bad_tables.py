"""Bad tables: a result, or one clear error (``python tests/soak.py bad`` tries ten thousand)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))
import bad_tables

SOME = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@SOME
@given(bad_tables.cases())
def test_estimators(case: dict[str, Any]) -> None:
    with bad_tables.within(bad_tables.LIMIT):
        bad_tables.outcome(case)


@settings(SOME, max_examples=30)
@given(bad_tables.files())
def test_the_command(tmp_path_factory: pytest.TempPathFactory, file: dict[str, Any]) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from metricboost.cli.app import app

    folder = tmp_path_factory.mktemp("file")
    with bad_tables.within(bad_tables.LIMIT):
        result = CliRunner().invoke(app, bad_tables.arguments(file, folder))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 2)
    assert "bug in metricboost" not in result.stderr
    assert "Traceback" not in result.output
