"""What the page says besides its numbers: the sections of ``prose.md``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def _sections() -> dict[str, list[str]]:
    text = files(__package__).joinpath("prose.md").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {
        title.strip(): [" ".join(one.split()) for one in body.strip().split("\n\n")]
        for title, _, body in parts
    }


def paragraphs(section: str) -> list[str]:
    return _sections()[section]


def why(method: str, n_rows: int, difference: float) -> str:
    """The letters of what explains that a method errs more, or less, than in the paper."""
    if method == "kNN":
        return "G"
    if method == "sDist":
        return "R, G" if difference < 0 else "F, G" if n_rows == 100 else "G"
    return "S, G" if difference < 0 else "O, G"
