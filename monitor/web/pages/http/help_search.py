"""Find guides, their sections and the terms of the glossary by a text."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.text import slugify

from monitor.web.pages.http import glossary
from monitor.web.pages.http.guides import guide_titles, render_guide
from monitor.web.search.search import Hit, HitGroup, words_of


def help_hits(text: str, at_most: int) -> HitGroup:
    """Return what the help says about *text*: terms first, then guides, then sections of guides."""
    words = [word.casefold() for word in words_of(text)]
    hits = [hit for hit in _all() if all(word in hit.name.casefold() for word in words)] if words else []
    return HitGroup("Help", hits[:at_most], len(hits) > at_most)


def _all() -> Iterator[Hit]:
    help_url = reverse("help")
    for terms in glossary.TERMS.values():
        for term in terms:
            yield Hit(term.name, f"{help_url}#term-{slugify(term.name)}", term.meaning)
    guides = {name: reverse("help-guide", args=[name]) for name in guide_titles()}
    for name, url in guides.items():
        yield Hit(guide_titles()[name], url, "guide")
    for name, url in guides.items():
        for anchor, section in render_guide(name).sections:
            yield Hit(section, f"{url}#{anchor}", f"in the guide {guide_titles()[name]}")
