"""The documentation is true: its code runs, its results hold, its pages build without a warning."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metricboost

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Lines of shell blocks that are not run: installing and making are tested elsewhere.
NOT_RUN = ("pip install", "git clone", "make ", "cd metricboost")
#: How far a result may lie from what its comment says.
TOLERANCE = 0.011
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
#: Modules whose examples other files run.
ELSEWHERE = {
    "metricboost.estimators._sdist": "test_estimators.py",
    "metricboost.estimators._classifier": "test_estimators.py",
    "metricboost.model.metric": "test_metric.py",
    "metricboost.inputs.imputation": "test_imputation.py",
    "metricboost.datasets._simulated": "test_datasets_simulated.py",
    "metricboost.datasets._madelon": "test_datasets_simulated.py",
    "metricboost.inspection.displays._surface": "test_displays.py",
    "metricboost.inspection.displays._path": "test_displays.py",
}

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="an installed package has no docs")


def blocks(page: Path) -> list[tuple[str, str, int]]:
    """The language, the content and the first line of every fenced block."""
    text = page.read_text(encoding="utf-8")
    return [
        (match[1].strip(), match[2], text.count("\n", 0, match.start(2)))
        for match in FENCE.finditer(text)
    ]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def promised(block: str, statement: ast.stmt) -> object:
    """What the comment behind an expression says it is, such as 0.84; None where it says none."""
    line = block.splitlines()[statement.end_lineno - 1]
    comment = line.encode()[statement.end_col_offset :].decode().partition("#")[2]
    try:
        return ast.literal_eval(comment.partition(";")[0].strip())
    except (ValueError, SyntaxError):
        return None


def agrees(value: object, expected: object) -> bool:
    """Equal, but that numbers with a point may differ a little."""
    if isinstance(expected, list | tuple):
        parts = list(value)  # type: ignore[call-overload]
        if expected[-1:] in ([...], (...,)):  # and so on
            expected = expected[:-1]
            parts = parts[: len(expected)]
        return len(parts) == len(expected) and all(map(agrees, parts, expected))
    if isinstance(expected, float):
        return bool(abs(float(value) - expected) <= TOLERANCE)  # type: ignore[arg-type]
    return bool(value == expected)


def run_python(block: str, namespace: dict[str, object], place: str) -> None:
    for statement in ast.parse(block).body:
        where = f"{place}, line {statement.lineno} of the block"
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), where, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), where, "eval"), namespace)
        expected = promised(block, statement)
        if expected is not None:
            assert agrees(value, expected), f"{where}: {value!r}, not {expected!r}"


def run_bash(block: str, place: str) -> None:
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    script = "\n".join(line for line in lines if not line.startswith(NOT_RUN))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e"], input=script, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PATH": path, **ONE_THREAD},
    )  # fmt: skip
    assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_runs_and_results_hold(page, tmp_path, monkeypatch):
    """Blocks of a page run one after the other, in a folder of their own."""
    found = [block for block in blocks(page) if block[0] in ("python", "bash", "console")]
    if any("fetch_" in code for _, code, _ in found) and "METRICBOOST_DATA" not in os.environ:
        pytest.skip("needs the real tables: METRICBOOST_DATA")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for language, code, line in found:
        place = f"{named(page)}:{line}"
        if language == "python":
            run_python(code, namespace, place)
        else:
            run_bash(code, place)
    pyplot.close("all")


@pytest.mark.parametrize("page", PAGES[1:], ids=named)
def test_blocks_say_what_they_are(page):
    """Code is python or bash, and what is printed is text; directives are MyST's."""
    languages = {language for language, _, _ in blocks(page) if not language.startswith("{")}
    assert languages <= {"python", "bash", "console", "text", "sql"}


@pytest.mark.parametrize(
    ("block", "agreed"),
    [
        ("1 / 3  # 0.33; a third", True),
        ("1 / 3  # 0.36", False),
        ("1 / 3  # a third", True),
        ("['a', 1 / 3]  # ['a', 0.33]", True),
        ("['b', 1 / 3]  # ['a', 0.33]", False),
        ("['a']  # ['a', 'b']", False),
        ("['a', 'b', 'c']  # ['a', 'b', ...]", True),
        ("['a', 'c']  # ['a', 'b', ...]", False),
        ("len('abc')  # 4", False),
    ],
)
def test_results_in_comments_are_compared(block, agreed):
    if agreed:
        run_python(block, {}, "here")
    else:
        with pytest.raises(AssertionError, match="not"):
            run_python(block, {}, "here")


def test_failing_commands_are_noticed():
    run_bash("pip install nothing-of-the-kind\n$ true", "here")
    with pytest.raises(AssertionError, match="here"):
        run_bash("false\ntrue", "here")


def measured(page: str) -> dict[str, list[list[str]]]:
    """The errors in the rows of a page's tables, by the first word of the row."""
    rows: dict[str, list[list[str]]] = {}
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        name = re.match(r"\| (\w+)[,|]", line)
        if name:
            rows.setdefault(name[1], []).append(re.findall(r"\| \**(0\.\d+)", line))
    return rows


def test_the_comparison_is_that_of_the_study():
    """The short page cannot drift away from the long one."""
    study, short = measured("quality.md"), measured("comparison.md")
    assert {"Madelon", "letter"} <= set(short)
    for name, rows in short.items():
        for row in rows:
            assert row in study[name], f"{name}: {row} is not in quality.md"


def modules() -> list[str]:
    """Those whose docstrings have examples, but for those that the tests of their rooms run."""
    names = [module.name for module in pkgutil.walk_packages(metricboost.__path__, "metricboost.")]
    package = ROOT / "src"
    return [
        name
        for name in names
        if name not in ELSEWHERE
        and (source := package / f"{name.replace('.', '/')}.py").exists()
        and ">>> " in source.read_text(encoding="utf-8")
    ]


def test_other_tests_run_the_other_examples():
    """The names in ELSEWHERE are those of modules, whose tests run doctest."""
    for name, file in ELSEWHERE.items():
        assert importlib.util.find_spec(name) is not None
        assert "doctest.testmod" in (ROOT / "tests" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_hold(name):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    result = doctest.testmod(importlib.import_module(name))
    pyplot.close("all")
    assert result.attempted > 0
    assert result.failed == 0


def shown() -> set[str]:
    """The pictures on the pages."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    return set(re.findall(r"_pictures/(\w+)\.png", text))


def test_every_picture_is_drawn_and_shown(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(DOCS))
    pictures = importlib.import_module("pictures")
    assert set(pictures.PICTURES) == shown()


def blank(path: Path) -> None:
    import matplotlib.image

    matplotlib.image.imsave(path, np.ones((4, 4, 3)))


def test_pages_build_without_warnings(tmp_path):
    """What ``make docs`` does, but that pictures are blank: drawing them takes its time."""
    for package in ("sphinx", "myst_parser", "numpydoc", "furo", "matplotlib"):
        pytest.importorskip(package)
    source = tmp_path / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build", "_pictures", "api"))
    (source / "_pictures").mkdir()
    for name in shown():
        blank(source / "_pictures" / f"{name}.png")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    done = subprocess.run(
        [*command, source, tmp_path / "html"],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()
