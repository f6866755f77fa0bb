"""Classify the text of a failure: find the signature that names its cause. Pure.

RE2 first finds the literal parts of all patterns in one pass over the text, and then matches the few patterns
whose parts are there (``FilteredRE2``). Each takes time proportional to the length of the text: no regular
expression can make the classifier hang.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import re2

from monitor.analysis.signatures.signature import Signature

MOST_CHARACTERS = 8_000  # of a text: a report keeps the last 4,000 characters of stderr
_PATTERN_BYTES = 2**20  # RE2's limit for the automaton of one pattern


class InvalidPattern(ValueError):
    """A regular expression is not in the syntax of RE2, or too large. Permanent."""


@dataclass(frozen=True)
class FailureText:
    """What a report says about a failure.

    Attributes:
        message: the message of the failure, usually the decisive line of a program's stderr.
        stage: the stage that failed; empty if it is not known.
        exit_status: the exit status of the program; None if none failed.
        stderr_tail: the last lines that the program wrote to stderr.
        tools: the kinds of shells, transfers and batch systems that took part; empty if they are not known.
    """

    message: str
    stage: str = ""
    exit_status: int | None = None
    stderr_tail: str = ""
    tools: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The text that patterns are matched against: message, stderr, and a line with the exit status."""
        status = "" if self.exit_status is None else f"exit status {self.exit_status}"
        half = MOST_CHARACTERS // 2
        parts = (self.message[:half], self.stderr_tail[-half:], status)
        return "\n".join(part for part in parts if part)


class Classifier:
    """Signatures, compiled."""

    def __init__(self, signatures: Collection[Signature]) -> None:
        """Compile *signatures*.

        Raises:
            InvalidPattern: a pattern cannot be compiled.
        """
        self._signatures: list[Signature] = []
        self._filter = re2.Filter()
        for signature in signatures:
            for pattern in signature.patterns:
                compile_pattern(pattern)
                self._filter.Add(_PREFIX + pattern, _options())
                self._signatures.append(signature)
        if self._signatures:  # an empty filter cannot be compiled
            self._filter.Compile()

    def classify(self, failure: FailureText) -> Signature | None:
        """Return the signature of *failure*; None if no signature matches.

        Of several, the one with the highest precedence wins; of these, the one that matches first in the
        text: what went wrong first is the cause of the rest.
        """
        text = failure.text
        matching = [number for number in self._matches(text) if _applies(self._signatures[number], failure)]
        if not matching:
            return None
        highest = max(self._signatures[number].precedence for number in matching)
        best = [number for number in matching if self._signatures[number].precedence == highest]
        if len(best) > 1:
            best.sort(key=lambda number: (self._filter.re(number).search(text).start(), number))
        return self._signatures[best[0]]

    def matching(self, failure: FailureText) -> list[Signature]:
        """Return every signature that matches *failure*, each once."""
        numbers = self._matches(failure.text)
        signatures = [self._signatures[number] for number in sorted(numbers)]
        return [each for each in dict.fromkeys(signatures) if _applies(each, failure)]

    def _matches(self, text: str) -> Sequence[int]:
        """Return the numbers of the patterns that match *text*."""
        return (self._filter.Match(text) or ()) if self._signatures else ()  # None: no pattern matches


@lru_cache(maxsize=2)
def classifier_of(signatures: tuple[Signature, ...]) -> Classifier:
    """Return the classifier of *signatures*, compiled once: hundreds of patterns take a tenth of a second."""
    return Classifier(signatures)


_PREFIX = "(?im)"


def compile_pattern(pattern: str) -> re2._Regexp:
    """Return *pattern*, compiled.

    Raises:
        InvalidPattern: it is not in the syntax of RE2 (no look-around, no back-references), is too large, or
            matches an empty text, and with it every failure.
    """
    try:
        compiled = re2.compile(_PREFIX + pattern, _options())
    except re2.error as error:
        raise InvalidPattern(_reason(error)) from None
    if compiled.search(""):
        raise InvalidPattern("it matches an empty text, and with it every failure")
    return compiled


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return text.replace(_PREFIX, "", 1)


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    return options


def _applies(signature: Signature, failure: FailureText) -> bool:
    """Return whether stage and tools of *failure* allow *signature*; what is not known allows all."""
    return (not signature.stages or not failure.stage or failure.stage in signature.stages) and (
        not signature.tools or not failure.tools or not signature.tools.isdisjoint(failure.tools)
    )
