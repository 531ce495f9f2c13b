"""The tables of the documentation, written from the results: ``python -m experiments.pages``.

A table stands on a page between ``<!-- table: NAME -->`` and ``<!-- end -->``, where NAME is a key
of ``TABLES``. A single number stands between ``<!-- value: NAMES -->`` and ``<!-- end -->``, where
NAMES are the experiment, the table, the model, the key and the format, separated by semicolons. The
format is a format of Python, or ``s.e.`` for a mean with its standard error. A number must not be
at the start of a line, because Markdown reads a line that starts with a comment as HTML.
"""

from .generating import TABLES, generated, outdated

__all__ = ["TABLES", "generated", "outdated"]
