"""The longest files first: two processes that share the files then end at about the same time."""

from __future__ import annotations

import signal

import pytest

# A shell starts background jobs with Ctrl-C ignored, and every process they start inherits that.
# Tests that send an interrupt need it to arrive (``nohup make test &``).
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: By the time they take, not by their number of tests.
LONG = (
    "test_docs", "test_dask", "test_studies", "test_checkpoints", "test_torch", "test_model_file",
    "test_cli", "test_report", "test_examples_index", "test_sklearn", "test_odd_input",
    "test_estimators_search", "test_estimators_fitting", "test_training_folds",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))
