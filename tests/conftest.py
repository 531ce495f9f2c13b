"""The order of the test files: long ones first, so that processes that share them end together."""

from __future__ import annotations

import pytest

#: The files that take longest, in the order in which they run. The others follow.
LONG = (
    "test_docs", "test_baselines", "test_checkpoints", "test_estimators_search",
    "test_estimators_after_fit", "test_sklearn", "test_dask", "test_cli", "test_oracle",
    "test_experiments", "test_torch", "test_model_file", "test_odd_input", "test_examples_index",
    "test_hostile_files", "test_report", "test_golden",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))
