"""A page as blocks, and its two forms: Markdown with pictures beside it, and one HTML file."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._files import replacing

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.7rem; text-align: left;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; }
figure { margin: 1.5rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; }
code { background: #f3f3f3; padding: 0 0.2rem; }
"""


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


def number(mean: float, error: float = np.nan, sign: str = "") -> str:
    """A mean and its standard error, as far as they are known."""
    if np.isnan(mean):
        return ""
    return f"{mean:{sign}.3f}" + ("" if np.isnan(error) else f" ({error:.3f})")


def write_page(blocks: Sequence[Block], folder: Path, name: str) -> list[Path]:
    """``name.md`` with its pictures in a folder ``name``, and ``name.html``; what was written."""
    files = {folder / f"{name}.md": markdown(blocks, name), folder / f"{name}.html": page(blocks)}
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


def page(blocks: Sequence[Block]) -> str:
    """One file that fetches nothing."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    body = "\n".join(_as_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n<body>\n{body}\n</body>\n"
        f"</html>\n"
    )


def _as_html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"
    if isinstance(block, Items):
        return "<ul>" + "".join(f"<li>{_inline(text)}</li>" for text in block.texts) + "</ul>"
    if isinstance(block, Grid):
        head = "".join(f"<th>{_inline(text)}</th>" for text in block.head)
        rows = ("".join(f"<td>{_inline(text)}</td>" for text in row) for row in block.rows)
        body = "".join(f"<tr>{row}</tr>\n" for row in rows)
        return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>'
    if isinstance(block, Picture):
        caption = _inline(block.caption)
        return f"<figure>{_unique(block)}<figcaption>{caption}</figcaption></figure>"
    return f"<p>{_inline(block.text)}</p>"


def _unique(picture: Picture) -> str:
    """The SVG alone, its names made its own: several pictures share the page."""
    svg = picture.svg[picture.svg.index("<svg") :]
    return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{picture.name}-", svg)


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)
