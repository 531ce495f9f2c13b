"""Generate the tables and numbers of the pages from the results."""

from __future__ import annotations

import re
from pathlib import Path

from ..results import Results
from .other_tables import OTHERS
from .quality_tables import QUALITY
from .shown import Shown

ROOT = Path(__file__).parents[2]
#: The name of a table on a page.
TABLES = QUALITY | OTHERS
TABLE = re.compile(r"(<!-- table: ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
VALUE = re.compile(r"(<!-- value: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def generated(text: str, results: Results) -> str:
    """The text of a page with its tables and numbers generated from the results."""

    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]](Shown(results))}\n\n{match[4]}"

    def value(match: re.Match[str]) -> str:
        *names, form = (part.strip() for part in match[2].split(";"))
        found = Shown(results).value(*names)
        if not found:
            raise ValueError(f"No result for {match[1]}")
        return match[1] + (found.text() if form == "s.e." else found.plain(form)) + match[4]

    return VALUE.sub(value, TABLE.sub(table, text))


def outdated(results: Results) -> dict[Path, str]:
    """The pages that differ from the generated text, with the generated text."""
    found = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = generated(text, results)
        if new != text:
            found[page] = new
    return found
