"""The guides of ``docs/`` as parts of pages: Markdown rendered to HTML; HTML in a source is not."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from monitor.core.env import ROOT

FOLDER = ROOT / "docs"
_FOR_DEVELOPERS = {"architecture"}  # its diagrams are drawn by the code host
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_ABSOLUTE = re.compile(r"https?://")
_IMAGE_OR_SCHEMA = ("images/*.png", "*.schema.json")


@dataclass(frozen=True)
class RenderedGuide:
    """A rendered guide; *sections* has the anchor and the text of each of its main headings."""

    title: str
    html: SafeString
    sections: Sequence[tuple[str, str]]


@functools.cache
def guide_titles() -> Mapping[str, str]:
    """Return the titles of the guides by name."""
    files = [file for file in sorted(FOLDER.glob("*.md")) if file.stem not in _FOR_DEVELOPERS]
    return {file.stem: file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for file in files}


@functools.cache
def guide_files() -> Mapping[str, Path]:
    """Return the images and schemas that guides link, by their path in the folder of guides."""
    return {
        file.relative_to(FOLDER).as_posix(): file
        for pattern in _IMAGE_OR_SCHEMA
        for file in sorted(FOLDER.glob(pattern))
    }


@functools.cache
def render_guide(name: str) -> RenderedGuide:
    """Return the guide *name*, which is one of ``guide_titles``."""
    _, _, text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    return render(guide_titles()[name], text)


def render(title: str, text: str) -> RenderedGuide:
    """Return the Markdown *text* as HTML; HTML in it is shown as text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    sections = _add_anchors(tokens)
    for token in tokens:
        if token.children:
            token.children = _with_targets(token.children)
    # Safe: the renderer escapes texts and attributes, and HTML is not enabled.
    html = parser.renderer.render(_scrolling(tokens), parser.options, {})
    return RenderedGuide(title, mark_safe(html), sections)  # noqa: S308


def _add_anchors(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Give each heading an ``id`` as code hosts do; return those of the second level, with their texts."""
    seen: Counter[str] = Counter()
    sections = []
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join(child.content for child in content.children or ())
        anchor = _NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")
        seen[anchor] += 1
        anchor = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor] - 1}"
        opening.attrSet("id", anchor)
        if opening.tag == "h2":
            sections.append((anchor, text))
    return sections


def _with_targets(tokens: Sequence[Token]) -> list[Token]:
    """Return *tokens* with links to guides and their files; a link into the repository becomes its text."""
    kept: list[Token] = []
    has_target = False
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href")))
            has_target = target is not None
            token.attrSet("href", target or "")
        elif token.type == "image":
            token.attrSet("src", _target(str(token.attrGet("src"))) or "")
        if token.type not in {"link_open", "link_close"} or has_target:
            kept.append(token)
    return kept


def _target(address: str) -> str | None:
    """Return the address, on the pages, of a link of a guide; None if the pages do not serve its target."""
    path, mark, anchor = address.partition("#")
    if not path or _ABSOLUTE.match(address):
        return address
    if path in guide_files():
        return reverse("help-file", args=[path])
    name = path.removesuffix(".md")
    return f"{reverse('help-guide', args=[name])}{mark}{anchor}" if name in guide_titles() else None


def _scrolling(tokens: Sequence[Token]) -> list[Token]:
    """Return *tokens* with tables and code blocks that can be focused, because they scroll."""
    shown: list[Token] = []
    tables = 0
    for token in tokens:
        if token.type == "table_open":
            tables += 1
            token.attrSet("class", "data")
            shown += [
                _raw(f'<div class="scroll" role="group" aria-label="Table {tables}" tabindex="0">'),
                token,
            ]
        elif token.type == "table_close":
            shown += [token, _raw("</div>\n")]
        elif token.type in {"fence", "code_block"}:
            shown.append(_raw(f'<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n'))
        else:
            shown.append(token)
    return shown


def _raw(html: str) -> Token:
    return Token("html_block", "", 0, content=html)
