"""The text of the page: the sections of ``prose.md``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .document import Block, Paragraph


@cache
def _sections() -> dict[str, list[str]]:
    text = Path(__file__).with_name("prose.md").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {
        title.strip(): [" ".join(one.split()) for one in body.strip().split("\n\n")]
        for title, _, body in parts
    }


def paragraphs(section: str) -> list[str]:
    return _sections()[section]


def prose(section: str) -> list[Block]:
    return [Paragraph(text) for text in paragraphs(section)]
