"""A page as blocks, written as Markdown, with its pictures in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metricboost._files import replacing


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Text with **bold** and `code`."""

    text: str


@dataclass(frozen=True)
class Items:
    texts: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table; its cells may have **bold** parts."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    name: str
    svg: str
    caption: str


Block = Heading | Paragraph | Items | Grid | Picture


def write_page(blocks: Sequence[Block], folder: Path, name: str) -> list[Path]:
    """Write ``name.md`` and its pictures in a folder ``name``, and return the written files."""
    files = {folder / f"{name}.md": markdown(blocks, name)}
    files |= {
        folder / name / f"{block.name}.svg": block.svg
        for block in blocks
        if isinstance(block, Picture)
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return list(files)


def markdown(blocks: Sequence[Block], pictures: str) -> str:
    return "\n\n".join(_as_markdown(block, pictures) for block in blocks) + "\n"


def _as_markdown(block: Block, pictures: str) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Items):
        return "\n".join(f"- {text}" for text in block.texts)
    if isinstance(block, Grid):
        lines = [block.head, ["---"] * len(block.head), *block.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if isinstance(block, Picture):
        return f"![{block.caption}]({pictures}/{block.name}.svg)\n\n*{block.caption}*"
    return block.text
