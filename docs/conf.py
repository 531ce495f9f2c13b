"""How the pages are built: ``make docs``. Nothing is fetched, neither for building nor reading."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pictures

import metricboost

project = "metricboost"
author = "the authors of metricboost"
copyright = author
version = release = metricboost.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # docstrings have the types, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list them
add_module_names = False

nitpick_ignore_regex = [("py:.*", r"sklearn\..*")]  # other projects' pages are not fetched

html_theme = "furo"
html_title = "metricboost"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
pygments_style = "friendly"

pictures.make_missing()
