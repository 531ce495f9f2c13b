"""Write the tables of README.md and docs/*.md from the results.

python -m experiments.pages           # `make pages` also writes the page of the paper
python -m experiments.pages --check   # says which pages are not up to date
python -m experiments.pages --age     # how many commits are newer than the results
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter

from metricboost._files import replacing

from ..results import RESULTS, Results
from .generating import ROOT, outdated


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
