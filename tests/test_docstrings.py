"""Tests that all public functions and methods of the documented packages have docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

PACKAGES = (
    "metricboost", "metricboost.baselines", "metricboost.dask", "metricboost.datasets",
    "metricboost.inspection", "metricboost.model", "metricboost.report", "metricboost.sources",
    "metricboost.storage", "metricboost.tables",
)  # fmt: skip
#: Arguments that need no description.
IMPLICIT = {"self", "cls"}


def public() -> Iterator[tuple[str, Any]]:
    for package in PACKAGES:
        if package == "metricboost.dask":
            pytest.importorskip("distributed")
        module = importlib.import_module(package)
        for name in module.__all__:
            yield f"{package}.{name}", getattr(module, name)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions, and the public methods that are defined in metricboost."""
    for name, thing in public():
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for attribute in sorted(dir(thing)):
                method = inspect.getattr_static(thing, attribute)
                method = getattr(method, "__func__", method)
                own = str(getattr(method, "__module__", None)).startswith("metricboost")
                if own and inspect.isfunction(method) and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", method


def arguments(function: Callable[..., Any]) -> list[str]:
    kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    found = inspect.signature(function).parameters.values()
    return [one.name for one in found if one.kind not in kinds and one.name not in IMPLICIT]


def test_every_public_thing_has_a_docstring() -> None:
    bare = [name for name, thing in public() if callable(thing) and not inspect.getdoc(thing)]
    bare += [name for name, function in functions() if not inspect.getdoc(function)]
    assert not bare


def test_every_argument_is_described() -> None:
    missing = []
    for name, function in functions():
        wanted = arguments(function)
        doc = inspect.getdoc(function) or ""
        section = doc.partition("Parameters\n----------\n")[2]
        named = {
            part.strip()
            for line in section.split("\n")
            if line and not line.startswith(" ")
            for part in line.partition(" : ")[0].split(",")
        }
        if wanted and (not section or not set(wanted) <= named):
            missing.append((name, sorted(set(wanted) - named)))
    assert not missing, "\n".join(f"{name}: {', '.join(left)}" for name, left in missing)
