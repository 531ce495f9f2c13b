"""The wheel holds every file of the package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Makes a wheel without the compiled kernels, because only the names of its files are compared.
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"wheel.cmake": "false", "wheel.py-api": "py3"})
"""


def test_the_wheel_has_every_file_of_the_package(tmp_path):
    pytest.importorskip("scikit_build_core")
    subprocess.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("metricboost/")}
    source = ROOT / "src"
    made = {".pyc", ".so", ".pyd"}
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "metricboost").rglob("*")
        if path.is_file() and path.suffix not in made
    }
    assert len(wanted) > 100
    assert wanted <= packed, sorted(wanted - packed)
