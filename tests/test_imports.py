"""Tests of the imports between packages: the allowed ones, and no private names of other packages.

Imports inside functions and imports for type checking are included.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "metricboost"
#: The modules outside the packages, which all packages may import.
BASE = ("errors", "_blocks", "_counter", "_files", "_ignoring", "_intervals", "_rounding", "_tasks",
        "_threads", "_typing", "_version")  # fmt: skip
#: The packages that each package may import, apart from itself and the modules of ``BASE``. Each
#: entry only contains packages above it, so there is no cycle between packages.
ALLOWED: dict[str, tuple[str, ...]] = {
    "inputs": (),
    "engines": (),
    "datasets": (),
    "sources": ("inputs",),
    "model": ("inputs", "engines"),
    "boosting": ("engines", "model"),
    "storage": ("inputs", "model"),
    "baselines": ("inputs", "engines", "model", "boosting"),
    "inspection": ("inputs", "engines", "model", "boosting"),
    "report": ("inputs", "engines", "model", "inspection"),
    "training": ("inputs", "engines", "sources", "model", "boosting", "storage"),
    "estimators": ("inputs", "engines", "sources", "model", "boosting", "storage", "inspection",
                   "report", "training"),
    "tables": ("inputs", "model", "storage", "inspection", "report", "estimators"),
    "dask": ("inputs", "engines", "sources", "model", "report", "estimators"),
    "metricboost": ("model", "storage", "estimators", "tables"),
    "cli": ("datasets", "model", "inspection", "report", "training", "estimators", "tables",
            "metricboost"),
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One import: the two modules, and the imported name unless it is a module."""

    importer: str
    imported: str
    name: str | None


def package_of(module: str) -> str:
    """The package of a module; "base" for modules of ``BASE``, "metricboost" for other modules."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in ALLOWED and parts[1] != "metricboost":
        return parts[1]
    return "base" if len(parts) > 1 and parts[1] in BASE else "metricboost"


@cache
def modules() -> dict[str, Path]:
    """The files of all modules, by dotted names."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["metricboost", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    return tuple(one for name, path in modules().items() for one in imports_of(name, path))


def imports_of(name: str, path: Path) -> Iterator[Import]:
    is_package = path.name == "__init__.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "metricboost":
                    yield Import(name, alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            parts = parts[: len(parts) - node.level + is_package] if node.level else []
            source = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names if source.split(".")[0] == "metricboost" else ():
                inner = f"{source}.{alias.name}"
                is_module = inner in modules()
                yield Import(
                    name, inner if is_module else source, None if is_module else alias.name
                )


def test_every_package_is_in_the_list() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ALLOWED) - {"metricboost"}


def test_the_list_has_no_cycle() -> None:
    names = list(ALLOWED)
    for i, allowed in enumerate(ALLOWED.values()):
        assert set(allowed) <= set(names[:i])


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_what_it_may(package: str) -> None:
    for one in imports():
        if package_of(one.importer) == package:
            target = package_of(one.imported)
            assert target in (package, "base", *ALLOWED[package]), one


def test_shared_modules_import_no_package() -> None:
    for one in imports():
        if package_of(one.importer) == "base":
            assert package_of(one.imported) == "base", one


def test_no_private_name_of_another_package_is_imported() -> None:
    for one in imports():
        target = package_of(one.imported)
        if target in ("base", package_of(one.importer)):
            continue
        names = [*one.imported.split(".")[1:], *([one.name] if one.name else [])]
        private = [name for name in names if name.startswith("_") and name != "__version__"]
        assert not private, one


def test_modules_that_import_each_other_are_of_one_package() -> None:
    reached = {name: reachable(name) for name in modules()}
    for name, found in reached.items():
        circle = {other for other in found if name in reached.get(other, ())}
        assert {package_of(other) for other in circle} <= {package_of(name)}, (name, circle)


def reachable(start: str) -> set[str]:
    """The modules that a module imports, directly or indirectly."""
    graph = edges()
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


@cache
def edges() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for one in imports():
        if one.imported != one.importer:
            graph.setdefault(one.importer, set()).add(one.imported)
    return graph


# --- what is imported when

#: The modules of scikit-learn that metricboost uses.
SKLEARN = "sklearn.metrics, sklearn.mixture, sklearn.model_selection, sklearn.svm"
PRINT_MODULES = "import sys; print(*sys.modules)"


def loaded(statement: str) -> set[str]:
    """The modules that a new interpreter has after a statement."""
    command = [sys.executable, "-c", f"{statement}; {PRINT_MODULES}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return set(done.stdout.split())


def packages(found: set[str]) -> set[str]:
    return {name.split(".")[0] for name in found} - sys.stdlib_module_names


@pytest.mark.parametrize("statement", ["import metricboost", "import metricboost.cli"])
def test_the_package_itself_imports_nothing(statement: str) -> None:
    assert packages(loaded(statement)) - packages(loaded("pass")) == {"metricboost"}


def test_the_help_of_the_command_needs_no_scikit_learn() -> None:
    pytest.importorskip("typer")
    assert not packages(loaded("import metricboost.cli.app")) & {"numpy", "pandas", "sklearn"}


def test_an_estimator_imports_what_scikit_learn_imports() -> None:
    """No pandas, matplotlib, torch or dask, and of joblib only what scikit-learn imports."""
    found = loaded("from metricboost import SDistClassifier, load")
    known = loaded(f"import {SKLEARN}")
    assert packages(found) - packages(known) == {"metricboost"}
    assert {name for name in found - known if name.startswith("joblib")} == set()
