"""The tables of the documentation, written from the results.

    python -m experiments.pages           # writes README.md and docs/*.md
    python -m experiments.pages --check   # says which pages are not up to date
    python -m experiments.pages --age     # how many commits are newer than the results

A table stands on a page between ``<!-- table: NAME -->`` and ``<!-- end -->``, where NAME is one of
``page_tables.TABLES``. A single number stands between ``<!-- value: EXPERIMENT; TABLE; MODEL; KEY;
FORMAT -->`` and ``<!-- end -->``. FORMAT is a format of Python; ``s.e.`` instead is a mean with its
standard error.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from pathlib import Path

from metricboost._files import replacing

from .page_tables import TABLES, Shown
from .results import RESULTS, Results

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- table: ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
VALUE = re.compile(r"(<!-- value: ([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def generated(text: str, results: Results) -> str:
    """A page with its tables and numbers as the results have them."""

    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TABLES[match[2]](Shown(results))}\n\n{match[4]}"

    def value(match: re.Match[str]) -> str:
        *names, form = (part.strip() for part in match[2].split(";"))
        found = Shown(results).value(*names)
        if found is None:
            raise ValueError(f"No result for {match[1]}")
        return match[1] + (found.text() if form == "s.e." else found.plain(form)) + match[4]

    return VALUE.sub(value, TABLE.sub(table, text))


def outdated(results: Results) -> dict[Path, str]:
    """The pages that are not as the results have them, with what they should be."""
    found = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = generated(text, results)
        if new != text:
            found[page] = new
    return found


def print_ages() -> None:
    """For every results file: the code of its cells, and the commits of the package since then."""
    for path in sorted(RESULTS.rglob("*.jsonl")):
        codes = Counter(re.findall(r'"code": "([^"]+)"', path.read_text(encoding="utf-8")))
        print(path.relative_to(RESULTS).with_suffix(""))
        for code, count in codes.most_common():
            print(f"  {count:5} cells: {code}{_since(code)}")


def _since(code: str) -> str:
    commit = re.fullmatch(r"\S+ ([0-9a-f]{7,})\+?", code)
    if commit is None:
        return ""
    command = ["git", "rev-list", "--count", f"{commit[1]}..HEAD", "--", "src"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return f", {done.stdout.strip()} commits of src ago" if done.returncode == 0 else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--age", action="store_true", help="print the code behind the results")
    arguments = parser.parse_args()
    if arguments.age:
        print_ages()
        return
    found = outdated(Results(RESULTS))
    for page, text in found.items():
        print(page.relative_to(ROOT), "is not up to date" if arguments.check else "written")
        if not arguments.check:
            with replacing(page) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    if arguments.check and found:
        raise SystemExit("Run python -m experiments.pages.")


if __name__ == "__main__":
    main()
