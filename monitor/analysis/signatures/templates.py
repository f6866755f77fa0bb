"""Mine templates from texts of failures that no signature names. Pure.

The method is that of "Drain: An Online Log Parsing Approach with Fixed Depth Tree" (ICWS 2017): lines with
the same number of words lie in the same leaf of a tree of fixed depth, and join the template there with which
they share most words. Three things differ, because a wrong signature is worse than none:

- Lines are taken in alphabetical order, so that the templates do not depend on the order of the runs.
- The error codes of a line are part of its leaf: lines with different codes have different causes.
- A word is variable only if it takes many values; otherwise each value has its own template.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

MOST_CHARACTERS = 400  # of a line that is mined
_MOST_TEMPLATES = 100  # per leaf; further lines that fit none have no template
_SIMILARITY = 0.7  # share of equal words from which on a line joins a template
_NAMES, _PLAIN_WORDS = 3, 5  # values that make a word variable: of names, and of plain words
_MOST_VALUES = 50  # kept of each variable part
_PRIVATE = 0xE000  # masks are characters that Unicode reserves for private use


class Mask(NamedTuple):
    """A variable part of a line: what it is called, how it is found, and the RE2 class that it becomes."""

    label: str
    finds: str
    pattern: str


_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
_STAMP = (
    rf"(?:{_DAYS},? +)?{_MONTHS} +\d{{1,2}},? +(?:\d{{4}} +)?{_CLOCK}(?: +[A-Z]{{3,4}})?(?: +\d{{4}})?"
    rf"|\d{{4}}[-/]\d\d[-/]\d\d(?:[T ]{_CLOCK}(?: ?Z| ?[-+]\d\d:?\d\d)?)?"
)
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}"
_HOST = r"(?:[a-z0-9][a-z0-9-]*\.){2,}[a-z]{2,7}"
MASKS = (
    Mask("time", rf"\b(?:{_STAMP})", r"\w[\w:.,/+ -]*\w"),
    Mask(
        "url", r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>()\[\],;]*[\w/]", r"[a-z][a-z0-9+.-]*://[^\s'\"<>()\[\],;]+"
    ),
    Mask("address", r"[\w.+-]+@[\w.-]*\w", r"[\w.+-]+@[\w.-]*\w"),
    Mask("uuid", rf"\b(?i:{_UUID})\b", _UUID),
    Mask("host", rf"(?<![\w.-])(?:{_IPV4}|{_HOST})(?![\w-]|\.\w)", r"[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+){2,}"),
    Mask("path", r"(?<![\w/.~])(?:~\w*|\.{1,2})?/[^\s'\":,;()\[\]<>]*\w/?", r"[~.\w]*/[^\s'\":,;()\[\]<>]+"),
    Mask(
        "hex",
        r"\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}\b",
        r"(?:0x)?[0-9a-f]+",
    ),
    Mask("number", r"\d+(?:[.,:]\d+)*", r"\d[\d.,:]*"),
    Mask("bytes", "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]+", "[^ -~]+"),
    Mask("gap", "[ \t]{2,}|\t", r"\s+"),
)
WORD = chr(_PRIVATE + len(MASKS))  # a whole word that is variable
_MARKS = {chr(_PRIVATE + number): mask for number, mask in enumerate(MASKS)}
MARKS = "".join(_MARKS) + WORD
_MARK_OF = {mask.label: mark for mark, mask in _MARKS.items()}
GAP = _MARK_OF["gap"]
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
_FINDS = re.compile("|".join(f"(?P<{mask.label}>{mask.finds})" for mask in MASKS))
_FOREIGN = re.compile(f"[{chr(_PRIVATE)}-{WORD}]")
_CODES = re.compile(
    r"(?i:\b(?:code|error|errno|status|signal|rc|exit|reason|fault)\b[ :=#(\[]{0,3})([-+]?\d{1,6})\b"
    r"|\b([A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)+|[A-Z]{1,4}\d{3,})\b"
)
_GENERIC_START = "Traceback (most recent call last)"
Words = tuple[str, ...]


class MaskedWord(NamedTuple):
    """A word with marks instead of its variable parts, and what stood at each mark."""

    text: str
    values: tuple[str, ...]

    @property
    def raw(self) -> str:
        """The word as it was."""
        values = iter(self.values)
        return "".join(next(values) if letter in _MARKS else letter for letter in self.text)


@dataclass(frozen=True)
class MaskedLine:
    """The decisive line of a text.

    Attributes:
        words: its words, masked.
        codes: its error codes.
        is_whole: whether it is the whole line of the text, not only its beginning.
    """

    words: tuple[MaskedWord, ...]
    codes: tuple[str, ...]
    is_whole: bool

    @property
    def texts(self) -> Words:
        return tuple(word.text for word in self.words)


@dataclass(frozen=True)
class Template:
    """What some lines have in common.

    Attributes:
        words: its words with marks; ``WORD`` stands for the variable middle of a word.
        values: the values at each mark, from left to right; at most ``_MOST_VALUES`` each.
        lines: the numbers of its lines.
        is_whole: whether all of them are whole lines.
    """

    words: Words
    values: tuple[frozenset[str], ...]
    lines: tuple[int, ...]
    is_whole: bool


def masked(message: str) -> MaskedLine:
    """Return the decisive line of *message*, masked; of a traceback, the last line."""
    lines = [line.strip(" \t\r") for line in message.split("\n")]
    lines = [line for line in lines if line] or [""]
    line = lines[-1] if lines[0].startswith(_GENERIC_START) else lines[0]
    is_whole = len(line) <= MOST_CHARACTERS
    line = _FOREIGN.sub("\ufffd", line[:MOST_CHARACTERS])
    if not is_whole:
        line = line.rpartition(" ")[0] or line
    values: list[str] = []
    text = _FINDS.sub(lambda match: _mark(match, values), line)
    remaining = iter(values)
    words = tuple(
        MaskedWord(word, tuple(next(remaining) for letter in word if letter in _MARKS))
        for word in text.split(" ")
    )
    return MaskedLine(words, tuple("".join(code) for code in _CODES.findall(line)), is_whole)


def _mark(match: re.Match[str], values: list[str]) -> str:
    values.append(match.group())
    return _MARK_OF[match.lastgroup or ""]


def mine(lines: Sequence[MaskedLine]) -> list[Template]:
    """Return the templates of *lines*, in alphabetical order; a line has at most one template."""
    leaves: dict[tuple[int, tuple[str, ...]], dict[Words, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, line in enumerate(lines):
        leaves[len(line.words), line.codes][line.texts].append(number)
    templates = []
    for numbers in leaves.values():
        for group in _joined(sorted(numbers)):
            for part in _split(group):
                members = sorted(number for words in part for number in numbers[words])
                templates.append(_template(members, [lines[number] for number in members]))
    return sorted(templates, key=lambda template: (template.words, template.lines))


def _joined(lines: Sequence[Words]) -> list[list[Words]]:
    """Return the *lines* of a leaf in groups of similar ones."""
    groups: list[list[Words]] = []
    shared: list[list[str]] = []  # the words that all lines of a group share
    for words in lines:
        scores = [sum(map(str.__eq__, each, words)) for each in shared]
        best = max(range(len(scores)), key=scores.__getitem__, default=None)
        if best is not None and scores[best] >= _SIMILARITY * len(words):
            groups[best].append(words)
            shared[best] = [a if a == b else WORD for a, b in zip(shared[best], words, strict=True)]
        elif len(groups) < _MOST_TEMPLATES:
            groups.append([words])
            shared.append(list(words))
    return groups


def _split(group: Sequence[Words]) -> Iterator[Sequence[Words]]:
    """Divide *group* until each word that differs takes enough values to be variable."""
    for position, values in enumerate(zip(*group, strict=True)):
        different = set(values)
        if len(different) > 1 and not _is_variable(different):
            for value in sorted(different):
                yield from _split([words for words in group if words[position] == value])
            return
    yield group


def _is_variable(values: Collection[str]) -> bool:
    """Return whether a word with these *values* is a parameter; plain words may tell causes apart."""
    is_plain = all(value.strip(".,:;").isalpha() and value.islower() for value in values)
    return len(values) >= (_PLAIN_WORDS if is_plain else _NAMES)


def _template(numbers: Sequence[int], lines: Sequence[MaskedLine]) -> Template:
    words: list[str] = []
    values: list[frozenset[str]] = []
    for column in zip(*(line.words for line in lines), strict=True):
        texts = sorted({word.text for word in column})
        if len(texts) == 1:
            words += texts
            values += [_some(each) for each in zip(*(word.values for word in column), strict=True)]
        else:
            start, end = _shared_punctuation(texts)
            words.append(f"{start}{WORD}{end}")
            values.append(_some([word.raw[len(start) : len(word.raw) - len(end)] for word in column]))
    return Template(tuple(words), tuple(values), tuple(numbers), all(line.is_whole for line in lines))


def _some(values: Sequence[str]) -> frozenset[str]:
    return frozenset(sorted(set(values))[:_MOST_VALUES])


def _shared_punctuation(texts: Sequence[str]) -> tuple[str, str]:
    """Return the punctuation with which all *texts* begin, and that with which they end."""
    most = min(map(len, texts)) - 1  # a character remains in between
    start = _shared_start([text[:most] for text in texts])
    end = _shared_start([text[len(start) :][::-1][: most - len(start)] for text in texts])
    return start, end[::-1]


def _shared_start(texts: Sequence[str]) -> str:
    letters = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    start = _PUNCTUATION.match("".join(column[0] for column in letters))
    return start.group() if start else ""


def label(mark: str) -> str:
    """Return what the variable part *mark* is called."""
    return "word" if mark == WORD else _MARKS[mark].label


def pattern_of(mark: str) -> str:
    """Return the expression of the variable part *mark*."""
    return r"\S+" if mark == WORD else _MARKS[mark].pattern
