"""Names that look alike, by the confusable characters of Unicode Technical Standard 39."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Accents, strokes and tails, and the points of Hebrew and Arabic: they are overlooked at a glance, or may be
# left out. Some are in letters of their own (ƞ).
_MARKS = re.compile(
    "[\N{COMBINING GRAVE ACCENT}-\N{COMBINING LATIN SMALL LETTER X}"
    "\N{HEBREW ACCENT ETNAHTA}-\N{HEBREW POINT QAMATS QATAN}"
    "\N{ARABIC FATHATAN}-\N{ARABIC HAMZA BELOW}\N{ARABIC LETTER HIGH HAMZA}]"
)
_DIRECTION = "\N{LEFT-TO-RIGHT MARK}"  # in the data, around letters that are written from right to left


def appearances(name: str) -> tuple[str, str, str]:
    """Return three texts; of names that look alike, one is equal, and if the case alone differs, the first.

    The two cases of a letter may look like different letters: ``I`` looks like ``l``, and ``i`` does not. So
    names are compared in any case, as they are typed, and in lower case.
    """
    return _folded(name), _folded(_skeleton(name)), _skeleton(_folded(name))


def _folded(name: str) -> str:
    """Return what names have in common that differ by case or by compatible characters alone."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _skeleton(text: str) -> str:
    """Return *text* with the prototype of each character, without marks."""
    return _without_marks(_without_marks(text).translate(_prototypes()))


def _without_marks(text: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFD", text))


@cache
def _prototypes() -> dict[int, str]:
    """Return for each character that looks like another the prototype that stands for all of them.

    The library has both directions of Unicode's table, in which each character has one prototype, and no
    prototype has one. Where two characters have each other only, either can stand for both.
    """
    from confusable_homoglyphs.confusables import confusables_data  # noqa: PLC0415  # slow to import

    alike = {
        character.strip(_DIRECTION): [each["c"].strip(_DIRECTION) for each in entries]
        for character, entries in confusables_data.items()
    }
    prototypes = {}
    for character, others in alike.items():
        if len(character) == len(others) == 1:
            [other] = others
            is_prototype = len(other) > 1 or len(alike[other]) > 1
            prototypes[character] = other if is_prototype else min(character, other)
    for character, others in alike.items():
        bare = _without_marks(character)
        # What looks like a t with a mark is a t as well.
        if len(bare) == 1 < len(unicodedata.normalize("NFD", character)):
            prototypes |= {other: bare for other in others if len(other) == 1 and not other.isascii()}
    return {
        ord(character): "".join(prototypes.get(each, each) for each in prototype)
        for character, prototype in prototypes.items()
    }
