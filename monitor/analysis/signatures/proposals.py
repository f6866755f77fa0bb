"""Propose signatures for texts of failures that no signature names. Pure.

A proposal has a pattern that matches all texts of its template, and no text of another template or of another
cause. What is constant in the texts is literal in the pattern; what is variable is the narrowest class of
characters that fits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from monitor.analysis.signatures.classifier import Classifier, FailureText, InvalidPattern, compile_pattern
from monitor.analysis.signatures.signature import COUNTS_AGAINST_SITE, Signature
from monitor.analysis.signatures.templates import (
    GAP,
    MARKS,
    MOST_CHARACTERS,
    Template,
    label,
    masked,
    mine,
    pattern_of,
)
from monitor.analysis.signatures.text_group import TextGroup
from monitor.models.failure_signature import UNKNOWN, Category, Severity

MOST_EXAMPLES = 3
_LEAST_RUNS, _LEAST_SERIES = 3, 2  # either is enough
_LEAST_WORDS, _LEAST_LETTERS = 3, 12  # of the literal text of a pattern: fewer match by chance
_MOST_PATTERN, _MOST_TITLE, _MOST_NAME = 1000, 80, 50  # characters
_MOST_CONSTANT = 5  # digits of a number that may mean something; longer ones are ids

# A category is suggested if the literal words of a text speak of one category only.
_HINTS: Mapping[Category, str] = {
    Category.CREDENTIAL: r"certificates?|credentials?|x509|keytab|kerberos|voms",
    Category.STORAGE: r"disks?|filesystems?|file system|inodes?|quota|tapes?|raid",
    Category.NETWORK: r"network|sockets?|dns|resolver|firewall|unreachable",
    Category.BATCH: r"batch|walltime|scheduler|sbatch|qsub|slurmd?|slurmctld|htcondor",
    Category.RESOURCE: r"out of memory|oom|gpus?|cuda|compiler|glibc",
}
_HINT = re.compile(
    "|".join(rf"(?P<{category}>\b(?:{words})\b)" for category, words in _HINTS.items()), re.IGNORECASE
)


@dataclass(frozen=True)
class Proposal:
    """A signature that would name the failures of *runs* runs.

    Attributes:
        signature: what is proposed; its category is `unknown` if the text suggests none.
        category_reason: the word of the text that suggests the category.
        template: the text with names of its variable parts.
        examples: up to ``MOST_EXAMPLES`` of the texts, the latest first.
    """

    signature: Signature
    category_reason: str
    template: str
    examples: tuple[str, ...]
    runs: int
    series: frozenset[int]
    first: datetime
    latest: datetime

    @property
    def key(self) -> str:
        """What identifies the proposal as long as its pattern stays the same."""
        return hashlib.sha256(self.signature.patterns[0].encode()).hexdigest()[:16]


def propose(
    unknown: Sequence[TextGroup], named: Collection[FailureText], taken: Collection[str]
) -> list[Proposal]:
    """Return the proposals for *unknown*, that with most runs first.

    No pattern matches any of *named*, texts of other causes. No signature has a name of *taken*.
    """
    candidates = {
        str(number): _Candidate(template, pattern)
        for number, template in enumerate(mine([masked(each.message) for each in unknown]))
        if (pattern := _pattern(template)) is not None
    }
    chosen = _precise(candidates, unknown, named)
    proposals = [_proposal(candidate, unknown) for candidate in chosen]
    enough = [each for each in proposals if each.runs >= _LEAST_RUNS or len(each.series) >= _LEAST_SERIES]
    enough.sort(key=lambda each: (-each.runs, each.signature.patterns))
    return _with_free_names(enough, taken)


@dataclass
class _Candidate:
    """A template, its pattern, and the numbers of the texts that the pattern has to match."""

    template: Template
    pattern: str

    @property
    def texts(self) -> frozenset[int]:
        return frozenset(self.template.lines)


def _precise(
    candidates: Mapping[str, _Candidate], unknown: Sequence[TextGroup], named: Collection[FailureText]
) -> list[_Candidate]:
    """Return the candidates that match all of their own texts, and no other text."""
    classifier = Classifier([_named(name, each.pattern) for name, each in candidates.items()])
    matched: dict[str, set[int]] = {name: set() for name in candidates}
    for number, each in enumerate(unknown):
        for signature in classifier.matching(each.failure):
            matched[signature.name].add(number)
    greedy = {signature.name for failure in named for signature in classifier.matching(failure)}
    return [each for name, each in candidates.items() if name not in greedy and matched[name] == each.texts]


def _named(name: str, pattern: str) -> Signature:
    return Signature(name, "", Category.UNKNOWN, Severity.MAJOR, True, (pattern,), "")


def _pattern(template: Template) -> str | None:
    """Return the regular expression of *template*; None if it would match by chance.

    It begins with the first literal text, at the start of the line or after what the ledger puts before a
    text: without its report, a run is judged by the reason in the ledger. A variable part before that, such
    as a time stamp, is left out. It ends at the end of the line.
    """
    parts = list(_parts(template))
    if not _is_telling("\n".join(part.literal for part in parts)):
        return None
    first = next(number for number, part in enumerate(parts) if re.search(r"\w", part.literal))
    text = "".join(part.expression for part in parts[first:]).lstrip(" ")
    edge = r"\b" if text[0].isalnum() else ""
    pattern = (_START if first == 0 else edge) + text + (r"\s*$" if template.is_whole else "")
    return pattern if _is_valid(pattern) else None


def _is_telling(literal: str) -> bool:
    words = re.findall(r"[^\W\d_]{3,}", literal)
    return len(words) >= _LEAST_WORDS and sum(map(len, words)) >= _LEAST_LETTERS


def _is_valid(pattern: str) -> bool:
    if len(pattern) > _MOST_PATTERN:
        return False
    try:
        compile_pattern(pattern)
    except InvalidPattern:
        return False
    return True


class _Part(NamedTuple):
    """A part of a template: its literal text (empty if it is variable), its expression, what pages show."""

    literal: str
    expression: str
    shown: str


def _parts(template: Template) -> Iterator[_Part]:
    values = iter(template.values)
    for text in _PARTS.findall(" ".join(template.words)):
        if text not in MARKS:
            yield _Part(text, _SPECIAL.sub(r"\\\g<0>", text), text)
            continue
        of_mark = next(values)
        constant = next(iter(of_mark)) if len(of_mark) == 1 else ""
        if constant.isdecimal() and len(constant) <= _MOST_CONSTANT:
            yield _Part(constant, constant, constant)
        else:
            yield _Part("", _class(text, of_mark), f"<{label(text)}>" if text != GAP else " ")


def _class(mark: str, values: Collection[str]) -> str:
    """Return the expression of a variable part."""
    for narrow in _NARROW.get(label(mark), ()):
        if all(re.fullmatch(narrow, value, re.ASCII) for value in values):
            return narrow
    return pattern_of(mark)


_START = r"(?:^|failed: |out of time: )\s*"  # what comes before the text of reporters.outcome
_PARTS = re.compile(f"[{MARKS}]|[^{MARKS}]+")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_NARROW = {"number": (r"\d+",), "word": (r"\w+", r"[\w.-]+")}


def _proposal(candidate: _Candidate, unknown: Sequence[TextGroup]) -> Proposal:
    texts = sorted(
        (unknown[number] for number in candidate.texts), key=lambda each: each.latest, reverse=True
    )
    parts = list(_parts(candidate.template))
    category, reason = _category(" ".join(part.literal for part in parts))
    title = "".join(part.literal or "…" for part in parts).lstrip(" :-…")
    words = re.findall("[a-z]{3,}", "\n".join(part.literal for part in parts).lower())
    signature = Signature(
        name=_short("-", words, _MOST_NAME - 4),
        title=_short(" ", (title[:1].upper() + title[1:]).split(), _MOST_TITLE).rstrip(" ,;:-("),
        category=category,
        severity=Severity.MAJOR,
        counts_against_site=COUNTS_AGAINST_SITE[category],
        patterns=(candidate.pattern,),
        help="",
    )
    return Proposal(
        signature=signature,
        category_reason=reason,
        template="".join(part.shown for part in parts),
        examples=tuple(dict.fromkeys(each.message[:MOST_CHARACTERS] for each in texts))[:MOST_EXAMPLES],
        runs=sum(each.runs for each in texts),
        series=frozenset[int]().union(*(each.series for each in texts)),
        first=min(each.first for each in texts),
        latest=texts[0].latest,
    )


def _short(separator: str, words: Sequence[str], most: int) -> str:
    """Return as many *words* as fit."""
    text = words[0][:most] if words else "failure"
    for word in words[1:]:
        if len(text) + len(separator) + len(word) > most:
            break
        text += separator + word
    return text


def _category(text: str) -> tuple[Category, str]:
    """Return the category that *text* suggests, and the word that suggests it."""
    hints = {match.lastgroup or "": match.group() for match in _HINT.finditer(text)}
    if len(hints) != 1:
        return Category.UNKNOWN, ""
    ((category, word),) = hints.items()
    return Category(category), word.lower()


def _with_free_names(proposals: Sequence[Proposal], taken: Collection[str]) -> list[Proposal]:
    names, renamed = {*taken, UNKNOWN}, []
    for proposal in proposals:
        name = free = proposal.signature.name
        number = 1
        while free in names:
            number += 1
            free = f"{name}-{number}"
        names.add(free)
        renamed.append(replace(proposal, signature=replace(proposal.signature, name=free)))
    return renamed
